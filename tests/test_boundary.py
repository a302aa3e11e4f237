import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial import cKDTree

import resonance_jax as rj
from resonance_jax.theory.search import contour
from tests import reference

boundary = rj.theory.stability_boundary


def circle(x, y):
    return x**2 + y**2 - 1


def two_circles(x, y):
    return 0.25 - jnp.minimum((x - 1) ** 2 + y**2, (x + 1) ** 2 + y**2)


def tongues(f, mu):
    """Experiment 1."""
    return rj.theory.growth_rate(rj.shifts.sinusoid(f, amplitude=0.5), mu=mu, eta=0.01)


SQUARE = dict(x=(-2.0, 2.0), y=(-1.9, 1.7))  # points of the lattice do not lie on the curves by chance


def pieces(edge):
    """The points of each piece, (points, 2), without the NaN that separates pieces."""
    x, y = edge.data_vars
    columns = np.stack([edge[x], edge[y]], axis=1)
    each = [columns[edge.piece == number] for number in range(int(edge.piece.max()) + 1)]
    assert all(np.isnan(piece[-1]).all() for piece in each[:-1])
    return [piece[~np.isnan(piece).any(axis=1)] for piece in each]


def largest_gap(curve, points):
    """The largest distance of a point of the curve to the nearest of the points; both (n, 2)."""
    return cKDTree(points).query(curve)[0].max()


# Curves with a closed form


def test_circle():
    edge = boundary(circle, tolerance=0.01, coarse=16, **SQUARE)
    (loop,) = pieces(edge)
    assert np.abs(np.hypot(*loop.T) - 1).max() < 2e-5  # cells of 0.01, interpolated: curvature * 0.01^2 / 8
    assert np.array_equal(loop[0], loop[-1])
    turn = np.unwrap(np.arctan2(loop[:, 1], loop[:, 0]))
    assert abs(turn[-1] - turn[0]) == pytest.approx(2 * np.pi)
    assert np.hypot(*np.diff(loop, axis=0).T).max() < 0.0142  # no jump longer than the diagonal of a cell
    assert max(edge.attrs["cell"]) <= 0.01
    assert edge.attrs["evaluations"] < 0.02 * (4 * 3.6) / np.prod(edge.attrs["cell"])


def test_tolerance_follows_the_ranges():
    """A circle a million times smaller: by default cells are at most a 500th of each range."""
    edge = boundary(lambda x, y: x**2 + y**2 - 1e-12, x=(-2e-6, 2e-6), y=(-1.9e-6, 1.7e-6), coarse=16)
    assert [side * 1e6 for side in edge.attrs["cell"]] == pytest.approx([4 / 512, 3.6 / 512])
    assert np.abs(np.hypot(*pieces(edge)[0].T) * 1e6 - 1).max() < 2e-5


def test_every_point_is_evaluated_once():
    seen = []

    def counted(x, y):
        jax.debug.callback(lambda x, y: seen.append((float(x), float(y))), x, y)
        return circle(x, y)

    edge = boundary(counted, tolerance=0.1, coarse=4, chunk=1, **SQUARE)  # a chunk of one has no padding
    jax.effects_barrier()
    assert len(seen) == len(set(seen)) == edge.attrs["evaluations"]


def test_ellipse_with_a_tolerance_for_each_range():
    edge = boundary(
        lambda T, mu: ((T - 50) / 30) ** 2 + ((mu - 0.9) / 0.05) ** 2 - 1,
        T=(0.0, 100.0),
        mu=(0.8, 1.0),
        tolerance=dict(T=0.5, mu=1e-4),
        coarse=10,
    )
    (loop,) = pieces(edge)
    assert edge.attrs["cell"] == pytest.approx([0.3125, 0.2 / 2560])
    assert np.abs(np.hypot((loop[:, 0] - 50) / 30, (loop[:, 1] - 0.9) / 0.05) - 1).max() < 5e-5
    angle = np.linspace(0, 2 * np.pi, 1000)
    unit = loop / [0.5, 1e-4]
    assert largest_gap(np.stack([(50 + 30 * np.cos(angle)) / 0.5, (0.9 + 0.05 * np.sin(angle)) / 1e-4], 1), unit) < 1


def test_hyperbola_has_two_pieces_that_end_on_the_border():
    edge = boundary(lambda x, y: x * y - 0.3, tolerance=0.01, coarse=16, **SQUARE)
    first, second = pieces(edge)
    for piece, (x_end, y_end) in ((first, (-2.0, -1.9)), (second, (2.0, 1.7))):
        assert np.abs(piece[:, 0] * piece[:, 1] - 0.3).max() < 1e-4
        ends = sorted([piece[0].tolist(), piece[-1].tolist()], key=lambda end: abs(end[1]))
        assert ends == [pytest.approx([x_end, 0.3 / x_end], abs=1e-4), pytest.approx([0.3 / y_end, y_end], abs=1e-4)]
        xs = np.sign(x_end) * np.geomspace(0.3 / abs(y_end), 2, 500)
        assert largest_gap(np.stack([xs, 0.3 / xs], 1), piece) < 0.01


def test_two_components():
    edge = boundary(two_circles, tolerance=0.01, coarse=16, **SQUARE)
    loops = pieces(edge)
    assert len(loops) == 2
    for loop, centre in zip(loops, (-1, 1), strict=True):
        assert np.abs(np.hypot(loop[:, 0] - centre, loop[:, 1]) - 0.5).max() < 1e-4
        assert np.array_equal(loop[0], loop[-1])
    assert np.isnan(edge.x).sum() == 1


@pytest.mark.parametrize("centre", [(0.52, 0.55), (0.77, 0.55), (0.52, 0.8), (0.23, 0.55), (0.52, 0.2)])
def test_curve_is_followed_out_of_the_cells_that_the_coarse_grid_saw(centre):
    """A thin ring through one point of the coarse grid: most of it lies in cells whose corners have one sign.

    It lies inside, or is cut by one of the borders.
    """
    radius, half = 0.2746, 0.015

    def ring(x, y):
        return half - abs(((x - centre[0]) ** 2 + (y - centre[1]) ** 2) ** 0.5 - radius)

    points = np.linspace(0, 1, 5)
    assert (ring(points[:, None], points) > 0).sum() == 1
    lines = pieces(boundary(ring, x=(0.0, 1.0), y=(0.0, 1.0), tolerance=0.004, coarse=4))
    radii = np.array([np.hypot(*(line - centre).T).mean() for line in lines])
    for r in (radius - half, radius + half):
        mine = [line for line, of_line in zip(lines, radii > radius, strict=True) if of_line == (r > radius)]
        found = np.concatenate(mine)
        assert np.abs(np.hypot(*(found - centre).T) - r).max() < 1e-4
        angle = np.linspace(0, 2 * np.pi, 500)
        exact = centre + r * np.stack([np.cos(angle), np.sin(angle)], 1)
        inside = exact[((exact >= 0) & (exact <= 1)).all(axis=1)]
        assert largest_gap(inside, found) < 0.004
        if len(inside) == len(exact):
            (loop,) = mine
            assert np.array_equal(loop[0], loop[-1])
        else:
            assert all(np.isin(end, (0, 1)).any() for line in mine for end in (line[0], line[-1]))


@pytest.mark.parametrize("sign", [1, -1])
def test_island_between_the_points_of_the_coarse_grid(sign):
    """A disc of growth, or a hole in growth, around no point of the coarse grid: its slopes show on it."""

    def disc(x, y):
        return sign * (0.03**2 - (x - 0.61) ** 2 - (y - 0.37) ** 2)

    points = np.linspace(0, 1, 5)
    assert not (sign * disc(points[:, None], points) > 0).any()
    (loop,) = pieces(boundary(disc, x=(0.0, 1.0), y=(0.0, 1.0), tolerance=0.01, coarse=4))
    assert np.abs(np.hypot(*(loop - (0.61, 0.37)).T) - 0.03).max() < 1e-3
    assert np.array_equal(loop[0], loop[-1])


def test_island_without_slopes_on_the_coarse_grid_is_missed():
    def mesa(x, y):
        return jnp.where((x - 0.125) ** 2 + (y - 0.125) ** 2 < 0.1**2, 1.0, -1.0)

    unit = dict(x=(0.0, 1.0), y=(0.0, 1.0), tolerance=0.01)
    missed = boundary(mesa, coarse=4, **unit)
    assert missed.sizes["point"] == 0
    assert missed.attrs["evaluations"] == 25
    assert boundary(mesa, coarse=8, **unit).sizes["point"] > 0


def test_curve_along_the_border():
    """With growth everywhere except on the border, the border is the boundary. Without any growth there is none."""
    unit = dict(x=(0.0, 1.0), y=(0.5, 1.0), tolerance=0.05, coarse=4)
    (low,) = pieces(boundary(lambda x, y: y - 0.5, **unit))
    assert np.all(low[:, 1] == 0.5)
    assert sorted(low[[0, -1], 0]) == [0.0, 1.0]
    (high,) = pieces(boundary(lambda x, y: 1 - y, **unit))
    assert np.all(high[:, 1] == 1.0)
    assert boundary(lambda x, y: y - 1, **unit).sizes["point"] == 0


# Rates that are not smooth


def test_nan_has_no_sign_and_infinities_do():
    """The curve ends beside the NaN, within two cells; a jump to -inf is found within one."""
    edge = boundary(
        lambda x, y: jnp.where(
            x > 0.5, jnp.nan, jnp.where(y > x / 3, jnp.inf, jnp.where(y < x / 3 - 0.3, 1.0, -jnp.inf))
        ),
        x=(-1.0, 1.0),
        y=(-1.0, 1.0),
        tolerance=0.02,
        coarse=8,
    )
    lines = pieces(edge)
    assert len(lines) == 2
    for line, offset in zip(sorted(lines, key=lambda line: line[0, 1]), (-0.3, 0.0), strict=True):
        assert np.abs(line[:, 1] - line[:, 0] / 3 - offset).max() < 0.02
        assert line[:, 0].min() == -1
        assert 0.5 - 2 * 0.02 <= line[:, 0].max() <= 0.5


def test_noise_stops_with_the_finest_complete_boundary():
    """A fast sine of amplitude 0.01 imitates noise: below 0.01 the sign of the rate means nothing."""

    def noisy(x, y):
        return y - 0.3 + 0.01 * jnp.sin(1e4 * x + 7e4 * x * y + 3e4 * y)

    unit = dict(x=(0.0, 1.0), y=(0.0, 1.0), coarse=16)
    with pytest.warns(UserWarning, match=r"takes more than 4000 evaluations: cells are .*; a noisy rate does this"):
        edge = boundary(noisy, tolerance=1e-4, max_evaluations=4000, **unit)
    assert edge.attrs["evaluations"] <= 4000
    assert 1e-4 < edge.attrs["cell"][0] < 1 / 16
    assert np.abs(edge.y - 0.3).max() < 0.01 + edge.attrs["cell"][1]
    whole = boundary(noisy, tolerance=0.004, **unit)  # ends without a warning, with many small loops
    assert np.abs(whole.y - 0.3).max() < 0.01 + 0.004
    assert int(whole.piece.max()) > 10


def test_saddles_join_the_corners_of_the_mean():
    values = np.array([[1.0, -1.0, np.inf, -1.0], [1.0, -3.0, 1.0, -1.0], [np.inf, -np.inf, 1.0, -np.inf]])
    found = {(cell, *sorted(ends)) for cell, *ends in contour.segments(values).tolist()}
    assert found == {(0, 0, 1), (0, 2, 3), (1, 0, 3), (1, 1, 2), (2, 0, 3), (2, 1, 2)}


# Experiment 1


@pytest.fixture(scope="module")
def edge_of_tongues():
    return boundary(tongues, f=(0.0, 0.05), mu=(0.95, 0.999), tolerance=1e-4)


def root_in_mu(f, low, high):
    return brentq(lambda mu: reference.log_rho_of_ode(f, mu, 0.01), low, high, xtol=1e-6)


@pytest.mark.parametrize(
    ("T", "tip", "f_range", "mu_range"),
    [(22, 0.965, (0.044, 0.048), (0.955, 0.98)), (45, 0.992, (0.0215, 0.0228), (0.985, 0.998))],
)
def test_tips_of_the_tongues(edge_of_tongues, T, tip, f_range, mu_range):
    """In float32, against DOP853 in float64: the lowest root in mu over all f."""
    exact = minimize_scalar(root_in_mu, bounds=f_range, args=mu_range, method="bounded", options=dict(xatol=1e-5))
    inside = edge_of_tongues.where((edge_of_tongues.f > f_range[0]) & (edge_of_tongues.f < f_range[1]), drop=True)
    lowest = inside.isel(point=inside.mu.argmin("point"))
    assert float(lowest.mu) == pytest.approx(exact.fun, abs=1e-5)
    assert float(lowest.f) == pytest.approx(exact.x, abs=1e-4)
    assert round(1 / exact.x) == T
    assert exact.fun == pytest.approx(tip, abs=5e-4)


def test_tongues_take_few_evaluations(edge_of_tongues):
    """Fewer than a tenth of a dense grid of the same resolution."""
    assert np.all(np.array(edge_of_tongues.attrs["cell"]) <= 1e-4)
    assert edge_of_tongues.attrs["evaluations"] < 500 * 490 / 30


def test_tongues_are_cut_by_the_borders(edge_of_tongues):
    """The second tongue ends twice at the top; the first continues beyond f = 0.05, where it is cut."""
    second, first = pieces(edge_of_tongues)
    assert second[[0, -1], 1] == pytest.approx([0.999, 0.999])
    ends = first[[0, -1]][np.argsort(first[[0, -1], 0])]
    assert ends[0, 1] == pytest.approx(0.999)
    assert ends[1] == pytest.approx([0.05, root_in_mu(0.05, 0.96, 0.998)], abs=1e-5)


# Bad input


def test_bad_input():
    def fails(match, rate=circle, **given):
        with pytest.raises(ValueError, match=match):
            boundary(rate, **(SQUARE | given))

    fails(r"plane of two ranges, got \['x', 'y', 'z'\]; name two arguments of rate", z=(0.0, 1.0))
    fails(r"rate must be a function of named scalars, got 3; pass the function", rate=3)
    fails(r"rate must be a function of x and y, got one of \(x, z\): .*; call the ranges as", rate=lambda x, z: x)
    fails(r"x must be a range of two finite numbers, got 3.0; give \(lowest, highest\)", x=3.0)
    fails(r"x must be a range of two finite numbers, got \(0.0, inf\); give", x=(0.0, np.inf))
    fails(r"x must be a range \(lowest, highest\), got \(1.0, 0.0\); put the smaller number first", x=(1.0, 0.0))
    fails(r"tolerance of x must lie in \(0, inf\), got 0.0; it is the side", tolerance=0.0)
    fails(r"tolerance must be one number or one for each of \['x', 'y'\], got .*; name both", tolerance={"x": 0.1})
    fails(r"tolerance of x must be at least 1.9e-06 in float32 over \(-2.0, 2.0\), got 1e-07; widen", tolerance=1e-7)
    fails(r"coarse must be a whole number of at least 1, got 0; it counts the cells", coarse=0)
    fails(r"chunk must be a whole number of at least 1, got 0; it counts the points", chunk=0)
    fails(r"max_evaluations must be a whole number of at least 1, got 0; leave it out", max_evaluations=0)
    fails(r"max_evaluations must be at least 4225, the points of the coarse grid, got 9; raise it", max_evaluations=9)
    fails(r"rate must return one real number, got .*; return a scalar", rate=lambda x, y: jnp.stack([x, y]))
    fails(r"rate must return one real number, got .*; return a scalar or an Estimate", rate=lambda x, y: (x, y))
    fails(r"rate needs a plain number for x or y.*use jnp.where", rate=lambda x, y: x if y > 0 else y)
    fails(r"rate must be hashable, got one with an unhashable type: 'Unhashable'; wrap it", rate=Unhashable())
    with pytest.raises(ValueError, match=r"the result has a 'piece' of its own; give the argument"):
        boundary(lambda x, piece: x, x=(0.0, 1.0), piece=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"mu must lie in \[0, 1\], got 1.1; momentum is"):
        boundary(tongues, f=(0.0, 0.05), mu=(0.95, 1.1))


class Unhashable:
    __hash__ = None

    def __call__(self, x, y):
        return x
