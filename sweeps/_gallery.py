"""`python -m sweeps._gallery RESULTS`: docs/gallery, one page for each figure, from a folder that `make paper` wrote.

Building the site takes seconds and running every sweep at full size does not, so pages and pictures are kept in the
repository. Run this again when a sweep changes.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr
from PIL import Image

from sweeps._run import in_order, load

SECTIONS = ("Experiment", "Appendix", "Beyond the paper")  # how the first line of a sweep file begins
WIDTH = 900  # pixels
FAILS = "| **does&nbsp;not&nbsp;hold** |"
OUT = Path(__file__).parent.parent / "docs" / "gallery"

HEAD = """# Gallery

Figures of the paper and beyond it, each with its statements beside what was measured. {summary} A statement that does
not hold is shown like any other. `python -m sweeps NAME` draws one figure, `make paper` all of them, with a
report; `SCALE=paper` runs them at full size.
"""


class Shown(NamedTuple):
    """One figure of the gallery."""

    name: str  # of the sweep file, with its variant
    text: str  # docstring of the sweep file
    claims: str  # as a Markdown table
    attrs: dict[str, Any]  # of the dataset

    @property
    def stem(self) -> str:
        return self.name.replace(":", "-")

    @property
    def section(self) -> str:
        return next(section for section in SECTIONS if self.text.startswith(section))

    @property
    def title(self) -> str:
        return self.text.partition(":")[0] + (f" (`{self.name.partition(':')[2]}`)" if ":" in self.name else "")

    @property
    def verdicts(self) -> Counter[str]:
        head, _, *rows = [line.strip("| ").split(" | ") for line in self.claims.splitlines()]
        return Counter(row[head.index("verdict")] for row in rows)


def shown(results: Path, name: str) -> Shown | None:
    """A figure as a run left it; None if there is none."""
    stem = name.replace(":", "-")
    if not (results / f"{stem}.png").exists():
        return None
    with xr.open_dataset(results / f"{stem}.nc", engine="scipy") as data:
        return Shown(name, load(name).text, (results / f"{stem}.claims.md").read_text(), dict(data.attrs))


def counted(verdicts: Counter[str]) -> str:
    """`4 of 5 statements hold`, and how many cannot be decided."""
    text = f"{verdicts['holds']} of {verdicts.total()} statements hold"
    return text + (f", {verdicts['ambiguous']} cannot be decided" if verdicts["ambiguous"] else "")


def page(figure: Shown) -> str:
    """The page of one figure: picture, what it shows, statements, and the file that drew it."""
    file, _, variant = figure.name.partition(":")
    reading = f"\n\nAnother reading of it, where the paper is ambiguous: `{variant}`." if variant else ""
    attrs = figure.attrs
    return (
        f"# {figure.title}\n\n{_prose(figure.text)}{reading}\n\n![{figure.title}]({figure.stem}.png)\n\n"
        f"{counted(figure.verdicts)}.\n\n{figure.claims.replace('| does not hold |', FAILS)}\n"
        f"`python -m sweeps {figure.name} --scale {attrs['scale']}` drew it: compiled in "
        f"{float(attrs['compile_seconds']):.1f} s, ran in {float(attrs['run_seconds']):.2f} s on {attrs['device']}, "
        f"{attrs['dtype']}.\n\n## The file that draws it\n\n"
        f"```{{literalinclude}} ../../sweeps/{file}.py\n:language: python\n```\n"
    )


def card(figure: Shown) -> str:
    """One entry of the index."""
    title = figure.title.removeprefix(f"{figure.section}, ")
    title = title[0].upper() + title[1:]
    return (
        f"- [![{title}]({figure.stem}.png)]({figure.stem}.md)\n"
        f"  [{title}]({figure.stem}.md): {counted(figure.verdicts)}.\n"
    )


def failures(figure: Shown) -> list[str]:
    """A line for each statement of a figure that does not hold."""
    head, _, *rows = [line.strip("| ").split(" | ") for line in figure.claims.splitlines()]
    statement, verdict = head.index("statement"), head.index("verdict")
    failing = [row[statement] for row in rows if row[verdict] == "does not hold"]
    return [f"- {each} ([{figure.name}]({figure.stem}.md))\n" for each in failing]


def index(figures: list[Shown], total: int) -> str:
    """The page that shows the figures, small; `total` is how many there would be."""
    verdicts = sum((figure.verdicts for figure in figures), Counter[str]())
    scales = ", ".join(sorted({figure.attrs["scale"] for figure in figures}))
    number = f"{len(figures)} of {total}" if len(figures) < total else f"All {total}"
    summary = f"{number} figures, at scale `{scales}`; {counted(verdicts)}."
    parts = [HEAD.format(summary=summary)]
    for section in SECTIONS:
        cards = [card(figure) for figure in figures if figure.section == section]
        if cards:
            parts += [f"\n## {section}{'s' * (section == 'Experiment')}\n\n", *cards]
    parts += ["\n## What does not hold\n\n", *(failing for figure in figures for failing in failures(figure))]
    pages = "\n".join(figure.stem for figure in figures)
    return "".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def shrink(picture: Path, to: Path) -> None:
    """At most WIDTH pixels wide, in 256 colours."""
    with Image.open(picture) as image:
        small = image.convert("RGB")
        small.thumbnail((WIDTH, 2 * WIDTH), Image.Resampling.LANCZOS)
        small.quantize(256).save(to, optimize=True)


def write(results: Path, out: Path) -> list[Shown]:
    """Write the gallery anew, from every figure that the results have."""
    names = in_order()
    figures = [figure for figure in (shown(results, name) for name in names) if figure]
    if not figures:
        raise ValueError(f"no figures in {results}; `make paper OUT={results}` draws them")
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.md"), *out.glob("*.png")):
        old.unlink()
    for figure in figures:
        shrink(results / f"{figure.stem}.png", out / f"{figure.stem}.png")
        (out / f"{figure.stem}.md").write_text(page(figure), encoding="utf-8")
    (out / "index.md").write_text(index(figures, len(names)), encoding="utf-8")
    return figures


def _prose(text: str) -> str:
    """A docstring without the title that its first line begins with."""
    plain = text.partition(": ")[2].strip().replace("*", r"\*").replace("<", r"\<")
    return plain[0].upper() + plain[1:]


if __name__ == "__main__":
    print(f"{len(write(Path(sys.argv[1]), OUT))} figures in {OUT}")
