"""Figures of the report: what each shows, which statements belong to it, and how many of them hold."""

from collections import Counter
from typing import Any, NamedTuple

from resonance_jax.jobs.claims import Claim
from sweeps._captions import CAPTIONS

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

NOT_KNOWN = "Not known."


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

    @property
    def caption(self) -> str:
        """What is plotted."""
        return CAPTIONS.get(self.name.partition(":")[0], "")

    @property
    def beside(self) -> dict[str, str]:
        """What lies beside the report: a text -> a file."""
        return {"data": f"{self.stem}.nc", "explore": f"{self.stem}.html"}


def counted(claims: list[Claim]) -> str:
    """Verdicts in words.

    >>> counted([Claim("a", "b", "c", "d", True), Claim("a", "b", "c", "d", False)])
    '2 statements: 1 holds, 1 does not hold'
    """
    count = Counter(claim.holds for claim in claims)
    if count[True] == len(claims):
        return {1: "the one statement holds", 2: "both statements hold"}.get(
            len(claims), f"all {len(claims)} statements hold"
        )
    parts = [
        f"{count[True]} hold{'s' * (count[True] == 1)}",
        f"{count[False]} do{'es' * (count[False] == 1)} not hold",
        f"{count[None]} cannot be decided from the text",
    ]
    said = [part for part, verdict in zip(parts, (True, False, None), strict=True) if count[verdict]]
    return f"{len(claims)} statement{'s' * (len(claims) > 1)}: {', '.join(said)}"


class Failure(NamedTuple):
    """A statement that does not hold, or cannot be decided, and the figures that say so."""

    claim: Claim
    why: str
    entries: list[Entry]


def failures(entries: list[Entry]) -> list[Failure]:
    """Statements that do not hold, then those that cannot be decided; one that fails in several readings comes once."""
    found: dict[tuple[Any, ...], Failure] = {}
    for entry in entries:
        for claim in entry.claims:
            if not claim.holds:
                why = claim.why or NOT_KNOWN
                key = (claim.statement, claim.where, claim.holds, why)
                found.setdefault(key, Failure(claim, why, [])).entries.append(entry)
    return sorted(found.values(), key=lambda failure: failure.claim.holds is None)
