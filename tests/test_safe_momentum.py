import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import resonance_jax as rj
from resonance_jax.theory.search.resonances import Curvatures, frequencies_to_search, turning
from tests import reference


def ar2_of(peak):
    """A shift whose argument may be anything."""
    return rj.shifts.ar2(peak)


PROBLEM = rj.problems.linear_regression(dim=1, samples=5, input_variance=0.25, loss_factor=0.4, reduction="sum")


def safe(rate, *, frequencies=(0.1,), eta=0.01, shift=rj.shifts.sinusoid, **settings):
    """The largest safe momentum for a given rate of f, mu and eta."""

    def of_shift(shift, problem, *, mu, eta):
        return rate(1 / shift.law.period, mu, eta)

    return rj.theory.largest_safe_momentum(
        shift, PROBLEM, eta, frequencies=frequencies, **({"rate": of_shift} | settings)
    )


# Rates with a closed form


def test_first_frequency_and_its_momentum():
    """Grows above mu = 0.9 - f^2: the largest f is the first, whatever the order."""
    frequencies = [0.1, 0.5, 0.3]
    for tolerance in (1e-2, 1e-4, 1e-5):
        found = safe(lambda f, mu, eta: mu - 0.9 + f**2, frequencies=frequencies, tolerance=tolerance)
        assert 0.65 - tolerance - 1e-6 <= found.mu <= 0.65
        assert found.frequency == 0.5


def test_first_to_grow_is_not_the_fastest():
    """f = 0.1 grows slowly from 0.5 on, f = 0.4 fast from 0.5002 on, in the same step of the first scan."""
    found = safe(lambda f, mu, eta: jnp.where(f < 0.2, 0.01 * (mu - 0.5), mu - 0.5002), frequencies=[0.4, 0.1])
    assert found[:2] == (pytest.approx(0.5, abs=1e-4), 0.1)


def test_growth_need_not_be_monotone():
    """Growth in (0.3, 0.5) and above 0.8: the first edge is the answer."""
    found = safe(lambda f, mu, eta: (mu - 0.3) * (mu - 0.5) * (mu - 0.8))
    assert found[:2] == (pytest.approx(0.3, abs=1e-4), pytest.approx(0.1))
    later = safe(lambda f, mu, eta: (mu - 0.3) * (mu - 0.5) * (mu - 0.8), lowest=0.55)
    assert later.mu == pytest.approx(0.8, abs=1e-4)


def test_window_between_two_momenta_of_the_scan_is_missed():
    def window(f, mu, eta):
        return (mu - 0.3011) * (0.3029 - mu)

    assert np.isnan(safe(window, coarse=10).frequency)
    assert safe(window, coarse=4000).mu == pytest.approx(0.3011, abs=1e-4)


def test_sgdm_on_a_quadratic():
    """z^2 - (1 + mu - eta b) z + mu = 0 has a root beyond 1 just where eta b > 2 (1 + mu): high momentum is safe."""

    def rate(f, mu, eta):
        b = 1.0
        centre = (1 + mu - eta * b) / 2
        return jnp.log(jnp.where(centre**2 > mu, abs(centre) + jnp.sqrt(jnp.maximum(centre**2 - mu, 0)), jnp.sqrt(mu)))

    grows_at_lowest = safe(rate, eta=3.0)
    assert np.isnan(grows_at_lowest.mu)
    assert grows_at_lowest.frequency == 0.1
    assert str(grows_at_lowest).startswith("No momentum is safe")
    assert np.isnan(safe(rate, eta=3.0, lowest=0.49).mu)
    for eta, lowest in ((3.0, 0.51), (1.9, 0.0)):
        found = safe(rate, eta=eta, lowest=lowest)
        assert found.mu == pytest.approx(0.999)
        assert np.isnan(found.frequency)
        assert np.isnan(found.margin)
        assert str(found).startswith("Nothing grows.")
    assert safe(rate, eta=1.9, highest=0.7).mu == 0.7


def test_minus_infinity_is_no_growth():
    assert safe(lambda f, mu, eta: jnp.log(2 * mu)).mu == pytest.approx(0.5, abs=1e-4)


def test_second_call_does_not_trace():
    traces = []

    def rate(shift, problem, *, mu, eta):
        traces.append(mu)
        return mu - 1 + 1 / shift.law.period

    for eta, frequencies in ((0.01, [0.1]), (0.02, [0.1, 0.2])):
        rj.theory.largest_safe_momentum(rj.shifts.sinusoid, PROBLEM, eta, frequencies=frequencies, rate=rate)
    assert len(traces) == 1


# Growth of the mean, and of the mean square, the default


def mathieu_exponent(a, q):
    """Growth of y'' + (a - 2q cos 2t) y = 0 per unit of t: half the trace over a period pi is cosh(pi growth)."""

    def derivative(t, y):
        return [y[1], -(a - 2 * q * np.cos(2 * t)) * y[0], y[3], -(a - 2 * q * np.cos(2 * t)) * y[2]]

    end = solve_ivp(derivative, (0, np.pi), [1, 0, 0, 1], method="DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
    return np.arccosh(max(abs(end[0] + end[3]) / 2, 1)) / np.pi


def test_one_input_without_bias_is_the_damped_mathieu_equation():
    """B = 2 (c + m^2) with m = sin(s)/2 is 2c + 1/4 - cos(2s)/4, s = Omega t; damping takes alpha/2 of the growth."""
    eta, c = 0.01, 0.25
    problem = rj.problems.linear_regression(
        dim=1, samples=5, input_variance=c, loss_factor=0.4, reduction="sum", bias=False
    )

    def excess(mu, f):
        alpha, Omega = (1 - mu) / np.sqrt(eta), 2 * np.pi * f / np.sqrt(eta)
        growth = mathieu_exponent((2 * c + 1 / 4 - alpha**2 / 4) / Omega**2, 1 / 8 / Omega**2)
        return growth - alpha / 2 / Omega

    frequencies = (0.0, 0.012, 0.0130, 0.0138, 0.0145, 0.03)
    roots = {f: brentq(excess, 0.9, 0.9999, args=(f,), xtol=1e-7) for f in frequencies[1:] if excess(0.9999, f) > 0}
    first = min(roots, key=lambda f: roots[f])
    assert len(roots) > 1
    mean = functools.partial(rj.theory.mean_growth, discrete=False)
    found = rj.theory.largest_safe_momentum(rj.shifts.sinusoid, problem, eta, frequencies=frequencies, rate=mean)
    assert roots[first] - 1e-4 <= found.mu <= roots[first] + 1e-5
    assert found.frequency == first
    standing = rj.theory.largest_safe_momentum(rj.shifts.sinusoid, problem, eta, frequencies=[0.0], rate=mean)
    assert standing.mu == pytest.approx(0.999)  # nothing moves: damped at each momentum below 1
    assert np.isnan(standing.frequency)


def test_default_is_the_mean_square_of_a_shift():
    """Without a mean that moves, the mean-square threshold is where the rate of `resting` changes its sign."""
    problem = rj.problems.linear_regression(dim=1, samples=2, bias=False)
    found = rj.theory.largest_safe_momentum(rj.shifts.resting(), problem, 0.02)
    rate = jax.jit(lambda mu: rj.theory.mean_square_growth(rj.shifts.resting(), problem, mu=mu, eta=0.02).rate)
    root = brentq(lambda mu: float(rate(mu)), 0.5, 0.9999, xtol=1e-6)
    assert root - 1e-4 <= found.mu <= root + 1e-5
    assert found.frequency == 0


# Frequencies that follow from the setting


def lorentz(centre, width, tip):
    """A tongue that is `width` times the damping wide in f, and grows above mu = tip."""

    def rate(shift, problem, *, mu, eta):
        f = jnp.where(jnp.isfinite(shift.law.period), 1 / shift.law.period, 0)
        return (1 - tip) / (1 + ((f - centre) / (width * (1 - tip))) ** 2) - (1 - mu)

    return rate


@pytest.mark.parametrize("shift", [rj.shifts.sinusoid, lambda T: rj.shifts.square_wave(T, dim=1, norm=0.5)])
@pytest.mark.parametrize(("eta", "tip"), [(1e-4, 0.994), (0.01, 0.97), (0.3, 0.75)])
def test_a_tongue_is_found_where_theory_expects_it(shift, eta, tip):
    """At the natural frequency sqrt(2 eta) / pi, at a half of it, and at the mirror image of that below 0.5."""
    problem = rj.problems.linear_regression(dim=1, samples=1)
    omega = np.arccos((1 + tip - 2 * eta) / (2 * np.sqrt(tip)))
    for centre, order in ((omega / np.pi, 1), (omega / (2 * np.pi), 2), (0.5 - omega / (2 * np.pi), 2)):
        rate = lorentz(centre, 1 / (2 * np.pi * order), tip)
        found = rj.theory.largest_safe_momentum(shift, problem, eta, rate=rate)
        assert tip - 1.1e-4 <= found.mu <= tip + 1e-5, (centre, found)
        assert found.frequency == pytest.approx(centre, abs=0.2 * (1 - tip) / order)
        assert found.margin <= 1e-4
        assert found.searched == (2.0**-13, 0.5)


def test_frequencies_to_search_lie_in_every_tongue(x64):
    """Two in each width (1 - mu) / (2 pi n) around n f = omega / pi, n up to 8, whole turns away or not."""
    rng = np.random.default_rng(0)
    for eta, mu in ((1e-3, 0.97), (0.05, 0.9), (0.3, 0.8)):
        b = Curvatures(1.0, 4.0)
        modes = turning(rj.optimizers.heavy_ball(mu, eta), b)
        f = frequencies_to_search(modes, lowest=1e-3, most=10**6)
        assert (f[0], f[-1]) == (pytest.approx(1e-3, rel=0.2), 0.5)
        low, high = modes.low, modes.high
        for _ in range(200):
            n, whole, omega = rng.integers(1, 9), rng.integers(0, 5), rng.uniform(low, high)
            for centre in ((whole + omega / np.pi) / n, (whole - omega / np.pi) / n):
                if 1e-3 < centre < 0.5:
                    assert np.abs(f - centre).min() < 0.5 * (1 - mu) / (2 * np.pi * n)
        fewer = frequencies_to_search(modes, lowest=1e-3, most=100)
        assert len(fewer) < len(f)


def test_natural_frequencies_are_those_of_the_one_step_matrix():
    for mu, eta in ((0.9, 0.05), (0.99, 1e-3), (0.3, 2.0), (0.5, 3.5)):
        found = turning(rj.optimizers.heavy_ball(mu, eta), Curvatures(0.5, 1.0))
        for omega, b in zip((found.low, found.high), (0.5, 1.0), strict=True):
            eigenvalues = np.linalg.eigvals(reference.one_step_matrix(np.array([[b]]), mu, eta))
            assert omega == pytest.approx(np.abs(np.angle(eigenvalues)).max(), abs=1e-6)
        assert found.damping == pytest.approx(1 - mu, abs=1e-6)


def test_a_tongue_far_from_the_paper():
    """The tip at eta = 0.1, where tongues lie at three times the paper's frequencies, against a dense scan in NumPy."""
    safe = rj.theory.largest_safe_momentum(
        rj.shifts.sinusoid, rj.problems.linear_regression(dim=1, samples=20), 0.1, rate=rj.theory.mean_growth
    )

    def grows(mu):
        return max(reference.log_radius(product(p, N, mu)) / N for p, N in fractions) > 0

    def product(p, N, mu):
        matrix = np.eye(4)
        for k in range(N):
            B = reference.gradient_matrix(0.5 * np.sin(2 * np.pi * p * k / N))
            matrix = reference.one_step_matrix(B, mu, 0.1) @ matrix
        return matrix

    fractions = [(p, N) for N in range(5, 80) for p in range(1, N) if 0.148 < p / N < 0.153 and np.gcd(p, N) == 1]
    assert len(fractions) > 8
    assert not grows(safe.mu)
    assert grows(safe.mu + safe.margin + 5e-4)  # the fractions lie within 5e-4 of every frequency
    assert 0.148 < safe.frequency < 0.153


def test_a_period_of_few_steps_may_grow_where_its_neighbours_do_not():
    """At f = 1/4 a sine visits only three means, and growth begins at 0.2657; a search without f = 1/4 says 0.291."""
    problem = rj.problems.linear_regression(dim=1, samples=200)
    found = rj.theory.largest_safe_momentum(lambda f: rj.shifts.sinusoid(f, amplitude=4.0), problem, 0.05)

    def rate(mu):
        square = np.eye(16)
        for m in (0.0, 4.0, 0.0, -4.0):
            square = expected_square(m, mu) @ square
        return reference.log_radius(square)

    def expected_square(m, mu):
        """E[M (x) M] for 200 samples: M is linear in B, whose covariance falls as 1 / samples."""
        one, mean = reference.expected_kronecker([m], mu=mu, eta=0.05, samples=1)
        outer = np.kron(mean, mean)
        return outer + (one - outer) / 200

    assert found.mu == pytest.approx(brentq(rate, 0.2, 0.3), abs=2e-4)
    assert found.frequency == 0.25


def test_a_search_up_to_no_damping_at_all():
    """Nothing grows below 0.9995: tongues are resolved down to a damping of 1e-4."""
    found = rj.theory.largest_safe_momentum(
        rj.shifts.sinusoid, PROBLEM, 0.01, rate=lorentz(0.05, 1.0, 0.9995), highest=1.0, coarse=8
    )
    assert 0.9993 < found.mu < 0.9996


def test_intervals_of_a_switching_mean_and_their_edge():
    def early(shift, problem, *, mu, eta):  # T = 7 grows from 0.6 on, all others later
        return mu - 0.6 - 0.1 * jnp.abs(shift.law.interval - 7)

    def late(shift, problem, *, mu, eta):  # the longer, the earlier
        return mu - 0.9 + 0.001 * shift.law.interval

    def switching(T):
        return rj.shifts.switching(T, dim=1, variance=0.4)

    found = rj.theory.largest_safe_momentum(switching, PROBLEM, 0.01, rate=early)
    assert (found.mu, found.frequency) == (pytest.approx(0.6, abs=1e-4), 7)
    assert found.searched == (1, 63)
    assert "T from 1 to 63, momentum from 0 to 0.999. Longer intervals are not covered." in str(found)
    unknown = rj.theory.largest_safe_momentum(switching, PROBLEM, 0.01, rate=late)
    assert np.isnan(unknown.mu)
    assert "Cannot tell" in str(unknown)


def test_slow_drifts():
    """If the slowest drift grows first, there is an answer if the rate has reached its limit, not if it still rises."""

    def below(f, mu):
        return jnp.where(jnp.isfinite(f) & (f > 0), jnp.where(f < 1e-3, mu - 0.8, mu - 0.95), -1.0)

    def rises(f, mu):
        return jnp.where(f > 0, mu - 0.9 - 0.01 * jnp.log(jnp.maximum(f, 1e-9) / 0.5), -1.0)

    for of_f, known in ((below, True), (rises, False)):
        found = safe(lambda f, mu, eta, of_f=of_f: of_f(f, mu), frequencies=None)
        if known:
            assert found.mu == pytest.approx(0.8, abs=2e-4)
            assert found.frequency < 1e-3
        else:
            assert np.isnan(found.mu)
            assert "the slowest drift that was searched grows first" in str(found)


def test_estimates_count_as_growing_up_to_three_standard_errors():
    def rate(shift, problem, *, mu, eta):
        return rj.theory.Estimate(mu - 0.8, jnp.full_like(mu, 0.01))

    found = rj.theory.largest_safe_momentum(rj.shifts.sinusoid, PROBLEM, 0.01, frequencies=[0.1], rate=rate)
    assert found.mu == pytest.approx(0.77, abs=1e-4)
    assert found.mu + found.margin == pytest.approx(0.83, abs=1e-4)  # certain growth
    low = rj.theory.largest_safe_momentum(rj.shifts.sinusoid, PROBLEM, 0.01, frequencies=[0.1], rate=rate, lowest=0.78)
    assert np.isnan(low.mu)
    assert str(low).startswith("Cannot tell: at the lowest momentum, 0.78, growth")
    high = rj.theory.largest_safe_momentum(
        rj.shifts.sinusoid, PROBLEM, 0.01, frequencies=[0.1], rate=rate, highest=0.82
    )
    assert high.mu == pytest.approx(0.77, abs=1e-4)
    assert np.isnan(high.margin)
    assert "how far above, the estimates do not tell" in str(high)


def test_a_shift_without_a_period_reports_no_frequency():
    def rate(shift, problem, *, mu, eta):
        return mu - 0.7

    alone = rj.theory.largest_safe_momentum(rj.shifts.ar2(0.04), PROBLEM, 0.01, rate=rate)
    assert alone.mu == pytest.approx(0.7, abs=1e-4)
    assert np.isnan(alone.frequency)
    assert "this shift" in str(alone)
    family = rj.theory.largest_safe_momentum(rj.shifts.ar2, PROBLEM, 0.01, rate=rate)
    assert family.mu == pytest.approx(0.7, abs=1e-4)


# Bad input


def test_bad_input():
    def fails(match, rate=lambda f, mu, eta: mu, **given):
        with pytest.raises(ValueError, match=match):
            safe(rate, **given)

    fails(r"shift must be a function of the frequency, got float; pass rj.shifts.sinusoid itself", shift=0.1)
    fails(r"frequencies must be a list of finite numbers, got \[\]; give at least one", frequencies=[])
    fails(r"frequencies must be a list of finite numbers, got 0.1; give at least one", frequencies=0.1)
    fails(r"f must lie in \[0, 0.5\], got 0.7; give a frequency in turns per step", frequencies=[0.1, 0.7])
    fails(r"cannot tell which frequencies to search.*name the argument f or T", shift=ar2_of, frequencies=None)
    fails(r"eta must lie in \(0, inf\), got 0.0; give a positive step size", eta=0.0)
    fails(r"lowest must lie in \[0, 1\], got -0.1; momentum is", lowest=-0.1)
    fails(r"highest must lie in \(0.5, 1\], got 0.4; it is the end of the scan", lowest=0.5, highest=0.4)
    fails(r"tolerance must lie in \[9.53674e-07, 0.5\], got 1e-09; it is a distance in mu, in float32", tolerance=1e-9)
    fails(r"coarse must be a whole number of at least 1, got 0; it counts the momenta of the first", coarse=0)
    fails(r"chunk must be a whole number of at least 1, got 0; it counts the points", chunk=0)
    fails(
        r"got NaN at 0.1 of frequencies and mu = 0.5.*; list frequencies without it",
        rate=lambda f, mu, eta: jnp.where(mu > 0.5, jnp.nan, -1.0),
    )
    with pytest.raises(
        ValueError, match=r"problem must be least squares, e.g. .*linear_regression, got Problem; rj.train"
    ):
        rj.theory.largest_safe_momentum(rj.shifts.sinusoid, rj.problems.mlp_regression(), 0.01)


def test_keywords_of_the_rate_are_passed_on():
    """The same keywords as the rates take."""

    def rate(shift, problem, *, mu, eta, edge):
        return mu - edge

    problem = rj.problems.linear_regression(dim=1, samples=1)
    for edge in (0.3, 0.6):
        safe = rj.theory.largest_safe_momentum(rj.shifts.sinusoid(0.1), problem, 0.01, rate=rate, edge=edge)
        assert safe.mu == pytest.approx(edge, abs=1e-4)
    with pytest.raises(ValueError, match=r"rate must be hashable, got one with an unhashable type: 'list'"):
        rj.theory.largest_safe_momentum(rj.shifts.sinusoid(0.1), problem, 0.01, rate=rate, edge=[0.3])
