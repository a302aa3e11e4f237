"""The report: what does not hold and why, then each figure beside its statements and the measured numbers."""

from pathlib import Path

from resonance_jax.jobs.claims import table
from sweeps._entries import Entry, counted, failures
from sweeps._page import page

TITLE = "Resonance in weight space: statements and measurements"


def summary(entries: list[Entry], total: int) -> str:
    counts = counted([claim for entry in entries for claim in entry.claims])
    return f"{len(entries)} of {total} figures, {counts}."


def setting(entries: list[Entry], scale: str, seconds: float) -> str:
    attrs = entries[0].attrs
    return (
        f"Scale {scale}, {seconds:.0f} s in all; resonance_jax {attrs['resonance_jax']}, jax {attrs['jax']}, "
        f"{attrs['device']}."
    )


def write(out: Path, entries: list[Entry], total: int, scale: str, seconds: float) -> None:
    """Write report.md beside the pictures, and report.html with the pictures inside."""
    head = [summary(entries, total), setting(entries, scale, seconds)]
    _replace(out / "report.md", _markdown(out, entries, head))
    _replace(out / "report.html", page(out, entries, TITLE, head))


def _replace(path: Path, text: str) -> None:
    """Write under another name and rename, so that readers never see half a report."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text(text)
    partial.replace(path)


def _markdown(out: Path, entries: list[Entry], head: list[str]) -> str:
    parts = [f"# {TITLE}\n", *(f"{line}\n" for line in head)]
    failed = failures(entries)
    if failed:
        parts.append("## What does not hold\n")
        for claim, why, figures in failed:
            links = ", ".join(f"[{entry.name}](#{entry.stem})" for entry in figures)
            parts.append(f"- **{claim.statement}** ({links}; {claim.where}). {why}")
        parts.append("")
    parts.append("## Contents\n")
    parts += [f"- [{entry.name}](#{entry.stem}): {counted(entry.claims)}" for entry in entries]
    for entry in entries:
        files = ", ".join(f"[{text}]({file})" for text, file in entry.beside.items() if (out / file).exists())
        parts += [f'\n<a id="{entry.stem}"></a>\n', f"## {entry.name}\n", entry.title + "\n"]
        parts += [f"![{entry.name}]({entry.stem}.png)\n", f"{entry.caption} {files}\n", table(entry.claims)]
        parts.append(f"{entry.ran}.\n")
    return "\n".join(parts)
