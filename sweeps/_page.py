"""The report as one HTML page that opens offline: pictures inside, each beside its statements."""

import base64
import html
from pathlib import Path

from resonance_jax.jobs.claims import Claim
from sweeps._entries import Entry, counted, failures

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 90rem; margin: 2rem auto; padding: 0 1.5rem; color: #222 }
h1 { margin-bottom: 0.3rem } .lead { font-size: 18px; margin: 0 0 0.3rem } a { color: #0b57a4 }
h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem }
.small, figcaption { color: #555; font-size: 13px } figure { margin: 0 } img { max-width: 100%; max-height: 58rem }
.failed li { margin-bottom: 0.6rem }
.contents { columns: 24rem; column-gap: 2.5rem } .contents li { break-inside: avoid }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1.5rem; align-items: start }
table { border-collapse: collapse; width: 100% }
td, th { border: 1px solid #ccc; padding: 0.3rem 0.5rem; text-align: left; vertical-align: top; font-size: 13px }
.holds { color: #0a6b2d } .does-not-hold { color: #b00020; font-weight: 600 } .ambiguous { color: #8a6d00 }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #ddd } a { color: #7fb5ee } .small, figcaption { color: #aaa }
  h2 { border-color: #444 } td, th { border-color: #444 } img { background: white }
  .holds { color: #6fd08c } .does-not-hold { color: #ff7a85 } .ambiguous { color: #e0c060 }
}
"""


def page(out: Path, entries: list[Entry], title: str, head: list[str]) -> str:
    lead, *rest = (html.escape(line) for line in head)
    contents = "".join(
        f'<li><a href="#{entry.stem}">{html.escape(entry.name)}</a>: {html.escape(counted(entry.claims))}</li>'
        for entry in entries
    )
    seconds = "".join(
        f"<tr><td>{html.escape(entry.name)}</td><td>{html.escape(entry.ran)}</td></tr>" for entry in entries
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Resonance in weight space</title><style>{STYLE}</style><h1>{html.escape(title)}</h1>"
        f'<p class="lead">{lead}</p><p class="small">{" ".join(rest)}</p>{_failed(entries)}'
        f'<h2>Contents</h2><ul class="contents">{contents}</ul>{"".join(_figure(out, entry) for entry in entries)}'
        f"<h2>Seconds</h2><table>{seconds}</table></html>\n"
    )


def _failed(entries: list[Entry]) -> str:
    """What does not hold, with one sentence each on why."""
    lines = []
    for claim, why, figures in failures(entries):
        links = ", ".join(f'<a href="#{entry.stem}">{html.escape(entry.name)}</a>' for entry in figures)
        undecided = "; cannot be decided" if claim.holds is None else ""
        lines.append(
            f"<li><b>{html.escape(claim.statement)}</b> ({links}; {html.escape(claim.where)}{undecided})<br>"
            f"{html.escape(why)}</li>"
        )
    return f'<h2>What does not hold</h2><ul class="failed">{"".join(lines)}</ul>' if lines else ""


def _figure(out: Path, entry: Entry) -> str:
    """A figure with its caption, beside its statements."""
    rows, picture = "".join(map(_row, entry.claims)), _picture(out / f"{entry.stem}.png")
    links = "".join(f' <a href="{file}">{text}</a>' for text, file in entry.beside.items() if (out / file).exists())
    return (
        f'<h2 id="{entry.stem}">{html.escape(entry.name)}</h2><p>{html.escape(entry.title)}</p><div class="pair">'
        f'<figure><img alt="{html.escape(entry.name)}" src="data:image/png;base64,{picture}">'
        f"<figcaption>{html.escape(entry.caption)}{links}</figcaption></figure>"
        f"<table><tr><th>statement</th><th>measured</th><th>verdict</th></tr>{rows}</table></div>"
        f'<p class="small">{html.escape(entry.ran)}</p>'
    )


def _row(claim: Claim) -> str:
    """A statement and where it is made, what was measured and what counts as agreement, the verdict."""
    statement, where, measured, expected = (html.escape(text) for text in claim[:4])
    return (
        f'<tr><td>{statement}<br><span class="small">{where}</span></td>'
        f'<td>{measured}<br><span class="small">expected: {expected}</span></td>'
        f'<td class="{claim.verdict.replace(" ", "-")}">{claim.verdict}</td></tr>'
    )


def _picture(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
