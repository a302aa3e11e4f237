"""The Python of README.md and docs/*.md runs, block after block, as a reader would type it; names in them exist."""

import ast
import contextlib
import doctest
import io
import pkgutil
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import resonance_jax as rj
from tests import reference

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


def test_a_law_of_ones_own_is_exact(x64):
    """The law of docs/shifts.md, in inputs of different variances, against the average of E[M (x) M] in NumPy."""
    (law,) = [
        block["code"] for block in BLOCK.finditer(PAGES["shifts.md"].read_text()) if "(NamedTuple)" in block["code"]
    ]
    names = dict(jax=jax, jnp=jax.numpy, Inputs=rj.shifts.Inputs, Shift=rj.shifts.Shift)
    run(law, "shifts.md", 0, names)
    u, C, settings = np.array([0.8, -0.3]), np.diag([0.1, 2.0]), dict(mu=0.9, eta=0.05, samples=2)
    problem = rj.problems.linear_regression(dim=2, samples=2, input_variance=np.diag(C))
    found = rj.theory.mean_square_growth(names["flipping"](u), problem, mu=0.9, eta=0.05)
    average = np.mean([reference.expected_step(sign * u, C, **settings)[0] for sign in (1, -1)], axis=0)
    assert float(found) == pytest.approx(reference.log_radius(average) / 2, abs=1e-9)
    assert float(found.standard_error) == 0


def test_equations_name_functions_and_tests_that_exist():
    """Names are found by their form: `rj.`, `resonance_jax.` or `tests/file.py::name`, in backticks."""
    page = PAGES["equations.md"].read_text(encoding="utf-8")
    functions, tests = (
        set(re.findall(r"`((?:rj|resonance_jax)\.[\w.]+)`", page)),
        re.findall(r"`([\w/]+\.py)::(\w+)`", page),
    )
    assert len(functions) > 30
    assert len(set(tests)) > 50
    for name in functions:
        pkgutil.resolve_name(name.replace("rj.", "resonance_jax.", 1) if name.startswith("rj.") else name)
    for file, test in tests:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), f"{file}::{test}"
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        assert "Test" in section or "test |" in section, section.partition("\n")[0]


def floors():
    """Room -> its floor, from the table of docs/extending.md."""
    rows = re.findall(r"^\| (\d+) \| `([\w./]+)` \|", PAGES["extending.md"].read_text(encoding="utf-8"), re.MULTILINE)
    return {room: int(floor) for floor, room in rows}


def room_of(path):
    """The innermost room that a file of the package, relative to it, lies in."""
    rooms = [room for room in floors() if path == room or path.startswith(room if room.endswith("/") else room + "/")]
    assert rooms, f"{path} is in no row of the table in docs/extending.md"
    return max(rooms, key=len)


def imported_by(file):
    """Files of the package, relative to it, that a file imports."""
    package = ROOT / "resonance_jax"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "resonance_jax":
            folder = package.joinpath(*node.module.split(".")[1:])
            modules = [folder / alias.name for alias in node.names] if folder.is_dir() else [folder]
            for module in modules:
                found = module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__init__.py"
                yield (found if found.exists() else folder / "__init__.py").relative_to(package).as_posix()


def test_imports_point_down():
    """As docs/extending.md says: from lower floors or the same room. What `__init__` re-exports lies in its folder."""
    package = ROOT / "resonance_jax"
    for file in sorted(package.rglob("*.py")):
        if file.name == "__init__.py" and file.parent.name != "fused":
            continue
        here = room_of(file.relative_to(package).as_posix())
        for imported in imported_by(file):
            there = room_of(imported)
            assert there == here or floors()[there] < floors()[here], f"{file} imports {imported}"
