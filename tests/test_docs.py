"""The Python of README.md and docs/*.md runs, block after block, as a reader would type it in."""

import contextlib
import doctest
import io
import re
from pathlib import Path

import jax
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PAGES = {page.name: page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}


def run(code, page, line, names):
    """Run a block in `names`, as a session with its answers or as a script. Returns what it prints."""
    if ">>> " in code:
        test = doctest.DocTestParser().get_doctest(code, names, page, page, line)
        test.globs = names  # and not a copy: the next block goes on with them
        report = io.StringIO()
        doctest.DocTestRunner().run(test, out=report.write, clear_globs=False)
        assert not report.getvalue()
        return ""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile("\n" * line + code, page, "exec"), names)  # lines are numbered as on the page
    return printed.getvalue()


def without_digits(text):
    """Signs and words stay; digits depend on the machine."""
    return re.sub(r"\d", "0", text)


def store(path):
    """What the `resonance run` of docs/batch.md leaves behind, of one step."""
    import resonance_jax as rj

    def point(seed, mu):
        return {"loss": mu * seed, "diverged_at": jax.numpy.int32(-1)}

    rj.sweep(point, dict(seed=np.arange(3.0), mu=[0.8, 0.9]), store=path, devices=1)


@pytest.mark.parametrize("name", PAGES)
def test_blocks(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "batch.md":
        store(tmp_path / "mlp.zarr")
    page = PAGES[name].read_text(encoding="utf-8")
    names = {"__name__": "__main__"}
    found = list(BLOCK.finditer(page))
    assert len(found) == page.count("```python")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):  # as a reader has them
        for block in found:
            printed = run(block["code"], name, page[: block.start("code")].count("\n"), names)
            if block["output"]:
                assert without_digits(printed) == without_digits(block["output"])
