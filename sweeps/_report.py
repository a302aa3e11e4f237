"""The report: each statement of the paper beside the measured number, and every figure below."""

import base64
import html
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from resonance_jax.jobs.claims import Claim, table

READINGS = {  # variants that the report shows: those on which a verdict depends
    "exp2_ar2:independent_start": "first two means drawn independently",
    "exp3_square_wave:sum": "gradients summed over the samples, unit vector, half the squared error",
    "exp3_square_wave:unit_norm": "a unit vector, as the text says",
    "exp4_variance:one_sample": "one sample, input variance 0.1, half the squared error",
    "exp4_variance:table": "one sample, input variance 0.25, the squared error",
    "exp4_dimension:one_sample": "one sample, input variance 0.1, half the squared error",
    "noise_heatmaps:ar2": "the AR(2) mean of experiment 2",
    "noise_response:square_wave": "the square wave of experiment 3",
    "reduced_momentum_exp3:sum": "gradients summed over the samples, unit vector, half the squared error",
}

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100%; margin: 0.7rem 0 } img { max-width: 100%; max-height: 58rem }
td, th { border: 1px solid #ccc; padding: 0.3rem 0.5rem; text-align: left; vertical-align: top; font-size: 13px }
.holds { color: #0a6b2d } .does-not-hold { color: #b00020; font-weight: 600 } .ambiguous { color: #8a6d00 }
.small { color: #666; font-size: 13px } h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem }
"""


class Entry(NamedTuple):
    """One figure of the report."""

    name: str  # of the sweep file, with its variant
    text: str  # what it shows
    grid: str
    claims: list[Claim]
    attrs: dict[str, Any]  # of its dataset
    seconds: float  # compiling, running, drawing

    @property
    def stem(self) -> str:
        return self.name.replace(":", "-")

    @property
    def title(self) -> str:
        reading = f" Another reading: {READINGS.get(self.name, self.attrs['variant'])}." if ":" in self.name else ""
        return self.text.splitlines()[0] + reading

    @property
    def ran(self) -> str:
        return (
            f"{self.seconds:.1f} s in all: compiled in {self.attrs['compile_seconds']:.1f} s, ran in "
            f"{self.attrs['run_seconds']:.2f} s on {self.attrs['device']}, {self.attrs['dtype']}"
        )


def summary(entries: list[Entry], total: int, scale: str, seconds: float) -> str:
    verdicts = Counter(claim.verdict for entry in entries for claim in entry.claims)
    counts = ", ".join(f"{verdicts[name]} {name}" for name in ("holds", "does not hold", "ambiguous"))
    attrs = entries[0].attrs
    return (
        f"Scale {scale}; {len(entries)} of {total} figures in {seconds:.0f} s; {sum(verdicts.values())} statements: "
        f"{counts}. resonance_jax {attrs['resonance_jax']}, jax {attrs['jax']}, {attrs['device']}."
    )


def write(out: Path, entries: list[Entry], total: int, scale: str, seconds: float) -> None:
    """Write report.md beside the pictures, and report.html with the pictures inside."""
    head = summary(entries, total, scale, seconds)
    _replace(out / "report.md", _markdown(entries, head))
    _replace(out / "report.html", _html(out, entries, head))


def _replace(path: Path, text: str) -> None:
    """Write under another name and rename, so that readers never see half a report."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text(text)
    partial.replace(path)


def _markdown(entries: list[Entry], head: str) -> str:
    parts = ["# Resonance in weight space: statements and measurements\n", head + "\n"]
    for entry in entries:
        parts += [f"## {entry.name}\n", entry.title + "\n", f"![{entry.name}]({entry.stem}.png)\n"]
        parts += [table(entry.claims), f"{entry.ran}.\n"]
    return "\n".join(parts)


def _html(out: Path, entries: list[Entry], head: str) -> str:
    def cells(*texts: str) -> str:
        return "".join(f"<td>{html.escape(text)}</td>" for text in texts)

    def verdict(claim: Claim) -> str:
        return f'<td class="{claim.verdict.replace(" ", "-")}">{claim.verdict}</td>'

    all_claims = "".join(
        f'<tr><td><a href="#{entry.stem}">{entry.name}</a></td>{cells(*claim[:4])}{verdict(claim)}</tr>'
        for entry in entries
        for claim in entry.claims
    )
    seconds = "".join(f"<tr>{cells(entry.name, entry.ran)}</tr>" for entry in entries)
    figures = "".join(
        f'<h2 id="{entry.stem}">{entry.name}</h2><p>{html.escape(entry.title)}</p>'
        f'<img alt="{entry.name}" src="data:image/png;base64,{_picture(out / f"{entry.stem}.png")}">'
        f'<p class="small">{html.escape(entry.ran)}</p>'
        for entry in entries
    )
    header = "<tr>" + "".join(f"<th>{name}</th>" for name in ("figure", *Claim._fields[:4], "verdict")) + "</tr>"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Resonance in weight space</title>'
        f"<style>{STYLE}</style><h1>Resonance in weight space: statements and measurements</h1>"
        f"<p>{html.escape(head)}</p><table>{header}{all_claims}</table>{figures}"
        f"<h2>Seconds</h2><table>{seconds}</table></html>\n"
    )


def _picture(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
