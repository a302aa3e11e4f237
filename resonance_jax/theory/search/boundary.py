"""The edge of stability in a plane of two hyperparameters: the curve on which a growth rate is 0.

The search starts from a coarse grid and its peaks and dips. Then it halves only the cells that the curve crosses, again
and again, and follows the curve into their neighbours. Points lie on an integer lattice as fine as the last cells, so
none is evaluated twice.
"""

import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from resonance_jax import checks
from resonance_jax._version import __version__
from resonance_jax.theory.search.batches import Rate, evaluate, trace_rate
from resonance_jax.theory.search.contour import CORNERS, chains, crossed_edges, segments, sign
from resonance_jax.theory.search.islands import find_islands
from resonance_jax.theory.search.lattice import Known, Values

if TYPE_CHECKING:
    import xarray as xr

NEIGHBOURS = ((0, -1), (1, 0), (0, 1), (-1, 0))  # of a cell, across its edges in the order of `contour.CORNERS`


def stability_boundary(
    rate: Rate,
    *,
    tolerance: float | Mapping[str, float] | None = None,
    coarse: int = 64,
    chunk: int = 1024,
    max_evaluations: int = 200_000,
    **ranges: tuple[float, float],
) -> "xr.Dataset":
    """The curve rate = 0 over two hyperparameters, traced without a dense grid.

    It finds all pieces that separate points of the coarse grid, and follows each wherever it leads within the ranges.
    It also finds islands between the points that show as a peak or a dip on the coarse grid. A region that leaves no
    trace on that grid, such as a tongue thinner than a cell, is missed: take a finer grid. Rates of 0 and -inf are
    treated as no growth; NaN has no sign, and the curve ends there. A rate that touches 0 from below has no boundary.

    Args:
        rate: traceable function of two named scalars, positive where something grows: any growth rate of this package
            or your own. Points are evaluated in order of the first range: put the argument first that makes a rate
            expensive, e.g. f.
        tolerance: largest side of the cells in which the curve is found, one number or one for each name; None takes
            a 500th of each range. Points are interpolated within a cell: where the rate is smooth, they are far closer.
        coarse: cells of the first grid along each range. A region that contains one of these cells is found. The n-th
            tongue of SGDm is about (1 - mu) / (2 pi n) wide in f.
        chunk: points that are evaluated together, as one compiled program.
        max_evaluations: if more would be needed, the finest complete boundary is returned, with a warning. This happens
            to a noisy rate, which changes its sign everywhere near 0 once the cells are smaller than its noise.
        ranges: name of an argument of `rate` -> (lowest, highest); exactly two.

    Returns:
        Dataset over `point` with a variable for each of the two hyperparameters and the coordinate `piece`. The points
        of a piece are in order; a closed piece ends where it begins. A NaN separates one piece from the next, so that
        `plt.plot(edge.f, edge.mu)` draws them all. The attributes hold the number of evaluations and the size of the
        cells.

    Raises:
        ValueError: ranges that do not fit the rate, a tolerance finer than the dtype, bad counts; before compiling.

    >>> edge = stability_boundary(lambda x, y: x**2 + y**2 - 1, x=(-2.0, 2.0), y=(-2.0, 2.0), tolerance=0.01, coarse=8)
    >>> bool(abs(edge.x**2 + edge.y**2 - 1).max() < 1e-4), int(edge.piece.max()) + 1
    (True, 1)
    """
    import xarray as xr  # slow to import, and not needed for the rates

    checks.at_least_one("coarse", coarse, "it counts the cells of the first grid along a range")
    checks.at_least_one("chunk", chunk, "it counts the points that are evaluated together")
    checks.at_least_one("max_evaluations", max_evaluations, "leave it out for 200,000")
    if max_evaluations < (coarse + 1) ** 2:
        raise ValueError(
            f"max_evaluations must be at least {(coarse + 1) ** 2}, the points of the coarse grid, "
            f"got {max_evaluations}; raise it, or take a smaller coarse"
        )
    x, y = _check_ranges(ranges)
    cell = trace_rate(rate, (x, y))
    for name, expected in cell.ranges:
        expected.check(ranges[name])
    wanted = _check_tolerance(tolerance, ranges)
    halvings = {name: max(0, math.ceil(math.log2(_width(ranges[name]) / coarse / wanted[name]))) for name in (x, y)}
    sides = (coarse << halvings[x], coarse << halvings[y])
    low = np.array([ranges[x][0], ranges[y][0]])
    spacing = np.array([_width(ranges[x]) / sides[0], _width(ranges[y]) / sides[1]])

    def values_at(lattice: np.ndarray) -> np.ndarray:
        position = low + spacing * lattice
        return evaluate(cell, {x: position[:, 0], y: position[:, 1]}, chunk=chunk)

    known, cells, stride = _refine(values_at, sides, coarse, max_evaluations)
    if stride != (1, 1):
        warnings.warn(
            f"the boundary takes more than {max_evaluations} evaluations: cells are {stride[0] * spacing[0]:.3g} by "
            f"{stride[1] * spacing[1]:.3g}; a noisy rate does this, so widen the tolerance, or raise max_evaluations",
            stacklevel=2,
        )
    pieces = [low + spacing * piece for piece in _polylines(known, cells, stride)]
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([np.zeros((0, 2)), *(np.concatenate([piece, gap]) for piece in pieces)])[:-1]
    number = np.repeat(np.arange(len(pieces)), [len(piece) + 1 for piece in pieces])[:-1]
    return xr.Dataset(
        {x: ("point", points[:, 0]), y: ("point", points[:, 1])},
        coords={"piece": ("point", number)},
        attrs={
            "evaluations": len(known.keys),
            "cell": (spacing * stride).tolist(),
            "resonance_jax": __version__,
            "dtype": str(jnp.result_type(float)),
        },
    )


# Refining. A cell is identified by its lowest corner and the common stride.

Stride = tuple[int, int]


def _corners(cells: np.ndarray, stride: Stride) -> np.ndarray:
    return cells[:, None, :] + np.array(CORNERS) * stride  # (cells, 4, 2)


def _refine(
    values_at: Values, sides: tuple[int, int], coarse: int, max_evaluations: int
) -> tuple[Known, np.ndarray, Stride]:
    """Cells that the curve crosses, from the coarse grid down to the lattice, as far as the evaluations allow."""
    stride = (sides[0] // coarse, sides[1] // coarse)
    known = Known(np.zeros(0, np.int64), np.zeros(0), sides[1] + 1)
    grid = np.stack(np.meshgrid(*[np.arange(coarse)] * 2, indexing="ij"), axis=-1).reshape(-1, 2) * stride
    known = known.extended(known.missing(_corners(grid, stride)), values_at)
    cells = grid[_is_crossed(known, grid, stride)]
    known, islands = find_islands(known, values_at, coarse, stride, max_evaluations)
    while stride != (1, 1):
        finer = (max(stride[0] // 2, 1), max(stride[1] // 2, 1))
        steps = np.stack(np.meshgrid(*(range(0, s, f) for s, f in zip(stride, finer, strict=True))), -1).reshape(-1, 2)
        children = np.concatenate([(cells[:, None, :] + steps).reshape(-1, 2), _cells_with(islands, finer, sides)])
        children = np.unique(children, axis=0)
        known, followed = _follow(known, children, finer, sides, values_at, max_evaluations)
        if followed is None:
            break
        cells, stride = followed, finer
    return known, cells, stride


def _follow(
    known: Known, cells: np.ndarray, stride: Stride, sides: tuple[int, int], values_at: Values, max_evaluations: int
) -> tuple[Known, np.ndarray | None]:
    """The crossed cells, and all further ones that the curve enters; None if that takes too many evaluations.

    A curve may cross an edge twice, whose ends then have the same sign on the coarser grid. The neighbour across such
    an edge was not among the cells.
    """
    entered, found = cells, [np.zeros((0, 2), np.int64)]
    seen = known.key(cells)
    while len(entered):
        new = known.missing(_corners(entered, stride))
        if len(known.keys) + len(new) > max_evaluations:
            return known, None
        known = known.extended(new, values_at)
        entered = entered[_is_crossed(known, entered, stride)]
        found.append(entered)
        through = crossed_edges(known.at(_corners(entered, stride)))
        beyond = (entered[:, None, :] + np.array(NEIGHBOURS) * stride)[through]
        beyond = beyond[((beyond >= 0) & (beyond < sides)).all(axis=1)]
        keys = np.setdiff1d(known.key(beyond), seen)
        seen = np.union1d(seen, keys)
        entered = known.place(keys)
    return known, np.concatenate(found)


def _cells_with(points: np.ndarray, stride: Stride, sides: tuple[int, int]) -> np.ndarray:
    """The cells that lattice points lie in."""
    return np.minimum(points // stride * stride, np.array(sides) - stride)


def _is_crossed(known: Known, cells: np.ndarray, stride: Stride) -> np.ndarray:
    signs = sign(known.at(_corners(cells, stride)))
    return np.logical_and((signs > 0).any(axis=1), (signs < 0).any(axis=1))


def _polylines(known: Known, cells: np.ndarray, stride: Stride) -> list[np.ndarray]:
    """The pieces of the curve, (points, 2) each, in units of the lattice."""
    corners = _corners(cells, stride)
    cell, *ends = segments(known.at(corners)).T
    # An edge is identified by the key of its lower end and its direction, so that both of its cells agree on its name.
    lower = known.key(corners[:, [0, 1, 3, 0]])  # (cells, 4), the lower ends of the four edges
    names = 2 * lower + np.array([0, 1, 0, 1])
    pieces = []
    for chain in chains(np.stack([names[cell, end] for end in ends], axis=1)):
        key, along_y = np.divmod(np.array(chain), 2)
        begin = known.place(key)
        step = np.where(along_y[:, None], (0, stride[1]), (stride[0], 0))
        pieces.append(begin + step * _zero_between(known.at(begin), known.at(begin + step))[:, None])
    return pieces


def _zero_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where on the way from a to b a line through both is 0, in [0, 1]; half way if one of them is infinite."""
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = np.where(finite, a, 1), np.where(finite, b, -1)
    return a / (a - b)


# Checks


def _width(ends: tuple[float, float]) -> float:
    return ends[1] - ends[0]


def _check_ranges(ranges: Mapping[str, Any]) -> tuple[str, str]:
    if len(ranges) != 2:
        raise ValueError(
            f"a boundary lies in the plane of two ranges, got {list(ranges)}; name two arguments of rate, "
            "e.g. f=(0.0, 0.05), mu=(0.95, 0.999)"
        )
    for name, ends in ranges.items():
        if name in ("point", "piece"):
            raise ValueError(f"the result has a {name!r} of its own; give the argument of rate another name")
        numbers = np.asarray(ends)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be a range of two finite numbers, got {ends!r}; give (lowest, highest)")
        if not numbers[0] < numbers[1]:
            raise ValueError(f"{name} must be a range (lowest, highest), got {ends!r}; put the smaller number first")
    x, y = ranges
    return x, y


def _check_tolerance(tolerance: Any, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """The tolerance of each range."""
    if tolerance is None:
        tolerance = {name: _width(ends) / 500 for name, ends in ranges.items()}
    by_name: dict[str, Any] = dict(tolerance) if isinstance(tolerance, Mapping) else dict.fromkeys(ranges, tolerance)
    if set(by_name) != set(ranges):
        raise ValueError(
            f"tolerance must be one number or one for each of {list(ranges)}, got {tolerance!r}; name both"
        )
    dtype = jnp.result_type(float)
    for name, value in by_name.items():
        checks.between(f"tolerance of {name}", value, 0, jnp.inf, "it is the side of the smallest cells", open_low=True)
        # Two points of the lattice differ, and both indices of one fit into an int64.
        finest = max(8 * float(jnp.finfo(dtype).eps) * np.abs(ranges[name]).max(), _width(ranges[name]) * 2.0**-28)
        if value < finest:
            raise ValueError(
                f"tolerance of {name} must be at least {finest:.2g} in {dtype} over {ranges[name]}, got {value}; widen "
                "it, narrow the range, or work in float64 with jax.enable_x64(True)"
            )
    return by_name
