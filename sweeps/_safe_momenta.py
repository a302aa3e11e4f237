"""`python -m sweeps._safe_momenta`: the table of docs/optimizers.md, the largest safe momentum of each optimizer.

About ten minutes on two cores. `--eta 0.01` computes the rows of one step size.
"""

import argparse
import math
import sys
from collections.abc import Sequence

from resonance_jax.theory import SafeMomentum
from sweeps import _heatmap
from sweeps._optimizers import SAFE, TITLES, safe_momentum

ETAS = (0.1, 0.01, 0.001)
SAMPLES = (1, 5, 20)


def cell(safe: SafeMomentum) -> str:
    """Rounded down, so that the printed number is safe as well."""
    if math.isnan(safe.mu):
        return "none" if safe.sentence.startswith("No momentum") else "cannot tell"
    return f"{math.floor(safe.mu * 1e4) / 1e4:.4f}" if safe.frequency == safe.frequency else f"at least {safe.mu:g}"


def table(etas: Sequence[float]) -> str:
    """Markdown, a column for each optimizer; prints to stderr what the search says of each entry."""
    rows = [["step size", "samples", *TITLES.values()], ["---"] * (2 + len(TITLES))]
    for eta in etas:
        for samples in SAMPLES:
            rows.append([f"{eta:g}", f"{samples}"])
            for optimizer, title in TITLES.items():
                safe = safe_momentum(optimizer, samples, eta)
                rows[-1].append(cell(safe))
                print(f"{title}, {eta:g}, {samples}: {safe}", file=sys.stderr, flush=True)
                recorded = SAFE[optimizer].get(samples, safe.mu) if eta == _heatmap.ETA else safe.mu
                if abs(safe.mu - recorded) > 1.5e-4:
                    print(f"SAFE of sweeps/_optimizers.py has {recorded} here: correct it", file=sys.stderr)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sweeps._safe_momenta", description=__doc__)
    parser.add_argument("--eta", type=float, nargs="+", default=list(ETAS), help="step sizes (default: 0.1 0.01 0.001)")
    print(table(parser.parse_args().eta))


if __name__ == "__main__":
    main()
