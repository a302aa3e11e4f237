"""The documentation site, without building it: examples, links, pages, the check of a built site, the gallery."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import resonance_jax as rj
from sweeps import _gallery

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINK = re.compile(r"!?\[[^\]]*\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")


def public_names():
    """Path below `rj` -> object, of every public function and class."""
    for name in rj.__all__:
        part = getattr(rj, name)
        if not inspect.ismodule(part):
            yield name, part
            continue
        own = [each for each, value in vars(part).items() if getattr(value, "__module__", "") == part.__name__]
        for each in getattr(part, "__all__", [each for each in own if not each.startswith("_")]):
            if f"{name}.{each}" != "logscale.log10_mean":  # it is rj.log10_mean
                yield f"{name}.{each}", getattr(part, each)


def test_every_public_name_has_an_example():
    """Its docstring is its own, and doctest runs the example."""
    own = {name: vars(it).get("__doc__") if isinstance(it, type) else it.__doc__ for name, it in public_names()}
    assert len(own) > 80
    assert [name for name, text in own.items() if ">>> " not in (text or "")] == []


def documented():
    """Full names of what the reference pages list."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        module = ""
        for directive, what in re.findall(r"^\.\. (\w+):: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            if directive == "currentmodule":
                module = what
            else:
                yield what if what.startswith("resonance_jax.") else f"{module}.{what}"


def test_every_public_name_is_in_the_reference_once():
    listed = list(documented())
    assert len(listed) == len(set(listed))
    assert {f"resonance_jax.{name}" for name, _ in public_names()} - set(listed) == set()


def test_links_and_pictures_are_there():
    for page in (*PAGES, *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == [], page


def test_every_page_is_in_one_table_of_contents():
    listed = ["index"]
    for page in PAGES:
        for block in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed += [(page.parent / name).relative_to(DOCS).as_posix() for name in names]
    assert sorted(listed) == sorted(page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES)


def test_code_of_pages_below_docs_is_in_docs():
    """tests/test_docs.py runs docs/*.md; generated pages and the reference have no code of their own."""
    assert not [page for page in PAGES if page.parent != DOCS and "```python" in page.read_text(encoding="utf-8")]


def test_a_built_site_is_checked(tmp_path):
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "_check_site.py")
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    (tmp_path / "other.html").write_text('<h1 id="here">Other</h1>')
    (tmp_path / "index.html").write_text('<a href="other.html#here">fine</a><a href="https://example.org">fine</a>')
    assert check.problems(tmp_path) == []
    (tmp_path / "index.html").write_text(
        '<a href="gone.html">x</a><a href="other.html#gone">x</a><script src="https://example.org/x.js"></script>'
    )
    found = "\n".join(check.problems(tmp_path))
    assert "gone.html is not there" in found
    assert "other.html#gone has no such anchor" in found
    assert "loads https://example.org/x.js" in found
    assert check.problems(tmp_path / "none")


def test_the_gallery_of_a_result(tmp_path):
    """From what `python -m sweeps` leaves on disk: a page with the statements, a picture in few colours, an index."""
    import matplotlib.pyplot as plt
    import xarray as xr
    from PIL import Image

    from resonance_jax.jobs.claims import table

    results, out = tmp_path / "results", tmp_path / "gallery"
    results.mkdir()
    with pytest.raises(ValueError, match=r"no figures in .*results; `make paper OUT=.*` draws them"):
        _gallery.write(results, out)
    claims = [rj.Claim("it grows", "text", "yes", "yes", True), rj.Claim("it shrinks", "text", "|e| = 2", "1", False)]
    for stem in ("exp1_sinusoid", "exp3_square_wave-sum"):
        plt.figure(figsize=(12, 4)).savefig(results / f"{stem}.png", dpi=100)
        (results / f"{stem}.claims.md").write_text(table(claims))
        attrs = dict(scale="tiny", compile_seconds=1.0, run_seconds=0.5, device="cpu", dtype="float32")
        xr.Dataset(attrs=attrs).to_netcdf(results / f"{stem}.nc", engine="scipy")
    out.mkdir()
    (out / "old.md").write_text("a figure that is gone")
    assert [figure.name for figure in _gallery.write(results, out)] == ["exp1_sinusoid", "exp3_square_wave:sum"]
    assert {path.name for path in out.iterdir()} == {
        *("index.md", "exp1_sinusoid.md", "exp1_sinusoid.png", "exp3_square_wave-sum.md", "exp3_square_wave-sum.png")
    }
    index, page = (out / "index.md").read_text(), (out / "exp3_square_wave-sum.md").read_text()
    assert f"2 of {len(_gallery.in_order())} figures, at scale `tiny`; 2 of 4 statements hold." in index
    assert "Appendix" not in index
    assert "Another reading of it, where the paper is ambiguous: `sum`." in page
    assert r"| it shrinks | text | \|e\| = 2 | 1 | **does&nbsp;not&nbsp;hold** |" in page
    assert "`python -m sweeps exp3_square_wave:sum --scale tiny` drew it" in page
    with Image.open(out / "exp1_sinusoid.png") as picture:
        assert (picture.mode, picture.width) == ("P", 900)
