"""Statements about a sweep, each beside what was measured."""

from collections.abc import Iterable
from typing import Any, NamedTuple

VERDICTS = {True: "holds", False: "does not hold", None: "ambiguous"}


class Claim(NamedTuple):
    """One statement about a sweep, as the `claims(dataset)` of a sweep file returns them.

    >>> Claim("2 + 2 = 4", "arithmetic", "4", "exactly 4", True).verdict
    'holds'
    """

    statement: str
    where: str  # where it is made, e.g. a section of a paper
    measured: str
    expected: str  # what is taken as agreement
    holds: bool | None  # None: the statement is ambiguous, see `measured`
    why: str = ""  # one sentence on why it does not hold, if it does not

    @property
    def verdict(self) -> str:
        return VERDICTS[self.holds]


def table(claims: Iterable[Any]) -> str:
    """Claims as a Markdown table with the verdict in words. Any named tuple will do; its field `holds` is the verdict.

    The column `why` is left out where no statement fails for a given reason.

    >>> print(table([Claim("2 + 2 = 4", "arithmetic", "4", "exactly 4", True)]), end="")
    | statement | where | measured | expected | verdict |
    | --- | --- | --- | --- | --- |
    | 2 + 2 = 4 | arithmetic | 4 | exactly 4 | holds |
    """
    rows = [
        {name: _cell(name, value) for name, value in claim._asdict().items()} for claim in map(_without_moot, claims)
    ]
    if not rows:
        return ""
    if not any(row.get("why") for row in rows):
        rows = [{name: text for name, text in row.items() if name != "why"} for row in rows]
    head = ["verdict" if name == "holds" else name for name in rows[0]]
    lines = [head, ["---"] * len(head), *(row.values() for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _without_moot(claim: Any) -> Any:
    """Without the reason why it would not hold, if it does."""
    return claim._replace(why="") if isinstance(claim, Claim) and claim.holds else claim


def _cell(name: str, value: Any) -> str:
    text = VERDICTS.get(value, value) if name == "holds" else value
    return str(text).replace("|", r"\|")
