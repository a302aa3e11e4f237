"""Statements of the paper beside measured numbers."""

from collections.abc import Iterable
from typing import Any, NamedTuple

SCALES = ("tiny", "quick", "paper")


class Claim(NamedTuple):
    """One statement of the paper about a figure, in our words."""

    statement: str
    where: str  # in the paper
    measured: str
    expected: str  # what counts as agreement
    holds: bool | None  # None: the statement is ambiguous, see `measured`

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "does not hold", None: "ambiguous"}[self.holds]


def table(claims: list[Claim]) -> str:
    """The claims as a Markdown table."""
    rows = ["| statement | where | measured | expected | verdict |", "| --- | --- | --- | --- | --- |"]
    for claim in claims:
        cells = (claim.statement, claim.where, claim.measured, claim.expected, claim.verdict)
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def each(values: Iterable[Any], form: str, name: str, at: Iterable[Any]) -> str:
    """Values and what they belong to: `0.1, 0.2 at eta = 0.01, 0.005`."""
    return f"{', '.join(f'{value:{form}}' for value in values)} at {name} = {', '.join(f'{float(a):g}' for a in at)}"


def pick(scale: str, **sizes: dict[str, int]) -> dict[str, int]:
    """The sizes of one scale."""
    if scale not in sizes:
        raise ValueError(f"scale must be one of {', '.join(sizes)}, got {scale!r}; pick one of them")
    return sizes[scale]
