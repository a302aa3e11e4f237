import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import mathieu_a, mathieu_b

import resonance_jax as rj
from resonance_jax.numerics.spectral import log_spectral_radius
from tests import reference

ETAS = (0.01, 0.005, 0.001)


@functools.partial(jax.jit, static_argnames="discrete")
def compiled_rate(f, mu, eta, discrete):
    return rj.theory.growth_rate(rj.shifts.sinusoid(f), mu=mu, eta=eta, discrete=discrete)


def growth_rate(f, mu, eta, discrete=False):
    """One program for all sinusoids: arguments of one dtype, where a plain number would be of a weak one."""
    return compiled_rate(*(jnp.asarray(value, jnp.result_type(float)) for value in (f, mu, eta)), discrete=discrete)


def log_rho(f, mu, eta):
    return growth_rate(f, mu, eta) / f


def matrix(scaled):
    from resonance_jax.numerics import entrywise

    return np.asarray(entrywise.to_array(scaled.mantissa), float) * 2.0 ** int(scaled.exponent)


@pytest.mark.parametrize("eta", ETAS)
def test_log_rho_against_scipy_in_float64(x64, eta):
    rng = np.random.default_rng(int(1 / eta))
    cells = [(20, 0.0), (20, 0.999), (2000, 0.0), (2000, 0.75), (2000, 0.999), (22, 0.97), (45, 0.995)]
    cells += [(20 * 100 ** rng.uniform(), rng.uniform(0, 0.999)) for _ in range(15)]
    for T, mu in cells:
        assert float(log_rho(1 / T, mu, eta)) == pytest.approx(reference.log_rho_of_ode(1 / T, mu, eta), abs=1e-6), (
            T,
            mu,
        )


def test_log_rho_against_scipy_in_float32():
    for eta in ETAS:
        for f in np.linspace(0.005, 0.05, 7):
            for mu in (0.95, 0.966, 0.98, 0.999):
                ours = float(log_rho(np.float32(f), np.float32(mu), np.float32(eta)))
                assert ours == pytest.approx(reference.log_rho_of_ode(f, mu, eta), abs=1e-4), (f, mu, eta)


def test_float32_against_float64_on_the_whole_heatmap():
    """Within 1e-4, except at the edges of tongues: there rho is not smooth, and the error is the root of a rounding."""

    def point(f, mu):
        return {"log_rho": log_rho(f, mu, jnp.asarray(0.01, f.dtype))}

    axes = dict(f=np.linspace(0.005, 0.05, 60).astype(np.float32), mu=np.linspace(0.95, 0.999, 60).astype(np.float32))
    single = rj.sweep(point, axes).log_rho
    with jax.enable_x64(True):
        double = rj.sweep(point, axes).log_rho
    error = np.abs(single - double).values
    assert (error < 1e-4).mean() > 0.999
    assert error.max() < 1e-3


@jax.jit
def integrated(T, mu, num_steps):
    """psi over one period of the sinusoid at eta = 0.01: one program for all numbers of steps."""
    B = rj.theory.gradient_matrix(rj.shifts.sinusoid(1 / T))
    return rj.theory.integrate(B, alpha=(1 - mu) / 0.1, duration=T * 0.1, rk4_steps=num_steps)


def test_order_of_convergence_is_four(x64):
    exact = matrix(integrated(22.0, 0.97, 4096))
    errors = [np.abs(matrix(integrated(22.0, 0.97, n)) - exact).max() for n in (32, 64, 128, 256)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 4) < 0.2), orders


def test_liouville(x64):
    """det psi(T) = exp(-n alpha T)."""
    monodromy = jax.jit(lambda T, mu: rj.theory.monodromy(rj.shifts.sinusoid(1 / T), mu=mu, eta=0.01))
    for T, mu in ((20.0, 0.95), (45.0, 0.99), (130.0, 0.9)):
        expected = -2 * (1 - mu) * T  # alpha T in ODE time is (1 - mu) times the period in steps
        assert float(np.linalg.slogdet(monodromy(T, mu))[1]) == pytest.approx(expected, abs=1e-7), (T, mu)


def test_depends_on_alpha_and_omega_only(x64):
    """Step size a quarter: sqrt(eta) halves, so 1 - mu and f halve at equal alpha and Omega."""
    for mu, f in ((0.96, 0.045), (0.6, 0.01)):
        assert float(log_rho(f, mu, 0.01)) == pytest.approx(float(log_rho(f / 2, 1 - (1 - mu) / 2, 0.0025)), abs=1e-7)


def test_half_period_symmetry(x64):
    """psi(T) = (S psi(T/2))^2, because half a period later the mean has changed its sign."""
    mu, eta, T = 0.97, 0.01, 22

    @jax.jit
    def half_and_whole(f):
        shift = rj.shifts.sinusoid(f)
        B = rj.theory.gradient_matrix(shift)
        half = rj.theory.integrate(
            lambda phase: B(phase / 2), alpha=jnp.array((1 - mu) / 0.1), duration=jnp.array(T / 2 * 0.1), rk4_steps=512
        )
        return half, rj.theory.monodromy(shift, mu=mu, eta=eta, rk4_steps=1024)

    half, psi = half_and_whole(1 / T)
    S = np.diag([1, -1, 1, -1])
    assert np.allclose((S @ matrix(half)) @ (S @ matrix(half)), psi, rtol=0, atol=1e-9)


def test_without_resonance_half_the_damping_decides(x64):
    for mu in (0.9, 0.95, 0.99):
        assert float(growth_rate(1 / 33, mu, 0.01)) == pytest.approx(-(1 - mu) / 2, abs=1e-8)
        assert float(growth_rate(1 / 33, mu, 0.01, discrete=True)) == pytest.approx(np.log(mu) / 2, abs=1e-10)


@jax.jit
def mathieu(a, q):
    return rj.theory.integrate(
        lambda phase: jnp.reshape(a - 2 * q * jnp.cos(2 * jnp.pi * phase), (1, 1)),
        alpha=jnp.array(0.0),
        duration=jnp.array(np.pi),
        rk4_steps=2048,
    )


@pytest.mark.parametrize("q", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_mathieu(x64, q, order):
    """y'' + (a - 2q cos 2t) y = 0 has a periodic solution, psi(pi) a trace of +-2, at a = a_m(q) and b_m(q) only."""

    sign = 1 if order % 2 == 0 else -1
    edges = mathieu_b(order, q), mathieu_a(order, q)
    for edge in edges:
        assert np.trace(matrix(mathieu(edge, q))) == pytest.approx(2 * sign, abs=1e-8)
    assert sign * np.trace(matrix(mathieu(np.mean(edges), q))) > 2  # inside the tongue


def test_square_wave_is_the_product_of_two_exponentials(x64):
    """B is constant over each half of the period."""
    eta, norm, n = 0.01, 0.5, 3

    @jax.jit
    def ours(T, mu):
        return rj.theory.monodromy(rj.shifts.square_wave(T, dim=2, norm=norm), mu=mu, eta=eta, input_variance=0.25)

    for T, mu in ((20.0, 0.95), (57.0, 0.99), (200.0, 0.8)):
        psi = np.eye(2 * n)
        for sign in (1, -1):
            x = np.array([sign * norm, 0, 1])
            B = 2 * (np.diag([0.25, 0.25, 0]) + np.outer(x, x))
            A = np.block([[np.zeros((n, n)), np.eye(n)], [-B, -(1 - mu) / np.sqrt(eta) * np.eye(n)]])
            psi = expm(A * T / 2 * np.sqrt(eta)) @ psi
        assert np.allclose(ours(T, mu), psi, rtol=0, atol=1e-7 * np.abs(psi).max()), (T, mu)


def test_discrete_monodromy_against_numpy(x64):
    @jax.jit
    def ours(T, mu, eta):
        shift = rj.shifts.sinusoid(1 / T)
        M = rj.theory.monodromy(shift, mu=mu, eta=eta, discrete=True)
        return M, log_spectral_radius(M), rj.theory.growth_rate(shift, mu=mu, eta=eta, discrete=True)

    for T, mu, eta in ((20, 0.95, 0.01), (31, 0.98, 0.01), (45, 0.999, 0.01), (60, 0.5, 0.005)):
        M, log_radius, rate = ours(float(T), mu, eta)
        theirs = reference.discrete_product(T, mu, eta)
        assert np.allclose(M, theirs, rtol=1e-11, atol=1e-12 * np.abs(theirs).max())
        expected = np.log(np.abs(np.linalg.eigvals(theirs)).max())
        assert float(log_radius) == pytest.approx(expected, abs=1e-10)
        assert float(rate) == pytest.approx(expected / T, abs=1e-11)
        assert np.linalg.det(M) == pytest.approx(mu ** (2 * T), abs=1e-12)


def test_continuous_is_the_limit_of_discrete(x64):
    """Step size to 0 at fixed alpha and Omega: the rate per ODE time differs by O(sqrt(eta))."""
    differences = []
    for scale in (1, 2, 4, 8):
        eta, mu, T = 0.01 / scale**2, 1 - 0.03 / scale, 22 * scale
        rates = [growth_rate(1 / T, mu, eta, discrete=discrete) for discrete in (False, True)]
        differences.append(abs(float(rates[0] - rates[1])) * scale)
    assert np.all(np.diff(np.log2(differences)) < -0.8), differences


@pytest.mark.parametrize("discrete", [False, True])
def test_zero_frequency_is_the_baseline(x64, discrete):
    """f = 0 means the same in runs, in growth_rate and in mean_growth: the mean of the inputs stands at 0."""
    problem = rj.problems.linear_regression(dim=1, samples=1)
    for mu, eta, amplitude in ((0.5, 0.01, 2.0), (0.99, 0.01, 0.5), (0.0, 0.3, 1.0)):
        shift = rj.shifts.sinusoid(0.0, amplitude=amplitude)
        rate = rj.theory.growth_rate(shift, mu=mu, eta=eta, discrete=discrete)
        assert float(rate) == pytest.approx(mode_rate(2.0, mu, eta, discrete), abs=1e-7)
        other = rj.theory.mean_growth(shift, problem, mu=mu, eta=eta, discrete=discrete)
        assert float(rate) == float(other)
    assert mode_rate(2.0, 0.5, 0.01, False) == pytest.approx(-0.0438, abs=1e-4)


def mode_rate(b, mu, eta, discrete):
    """Growth per step of a mode of constant curvature b: the roots of its characteristic polynomial."""
    if discrete:
        return np.log(np.abs(np.roots([1, -(1 + mu - eta * b), mu])).max())
    return np.roots([1, 1 - mu, eta * b]).real.max()


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(("mu", "eta", "amplitude"), [(0.0, 0.01, 0.5), (0.75, 0.01, 0.5), (0.9, 0.01, 0.5)])
def test_slow_drifts_tend_to_the_average_over_frozen_modes(x64, discrete, mu, eta, amplitude):
    """With a bias the modes mix, and at each phase the slowest decides."""
    means = amplitude * np.sin(2 * np.pi * (np.arange(512) + 0.5) / 512)
    B = [2 * np.array([[1 + m * m, m], [m, 1]]) for m in means]
    limit = np.mean([max(mode_rate(b, mu, eta, discrete) for b in np.linalg.eigvalsh(each)) for each in B])
    near, nearer = (abs(float(growth_rate(f, mu, eta, discrete=discrete)) - limit) for f in (1 / 2000, 1 / 8000))
    assert nearer < 1e-3
    assert nearer < max(0.5 * near, 1e-8)  # it falls as T^-0.8 if a mode is overdamped, otherwise it is 0


def test_longest_periods():
    """Rates treat periods above 2^14 steps as 2^14; their monodromy matrix is NaN."""
    for discrete in (False, True):
        long, longer = (growth_rate(np.float32(f), 0.9, 0.01, discrete=discrete) for f in (2.0**-14, 1e-8))
        assert float(long) == pytest.approx(float(longer), abs=1e-7)
    psi = jax.jit(lambda f: rj.theory.monodromy(rj.shifts.sinusoid(f), mu=0.9, eta=0.01))
    assert np.isnan(psi(0.0)).all()
    assert np.isnan(psi(1e-8)).all()


def test_discrete_rates_of_periods_that_are_not_whole_take_some_turns():
    """The discrete monodromy matrix needs a whole period."""
    assert np.isfinite([float(growth_rate(f, 0.9, 0.01, discrete=True)) for f in (0.045, 1 / 22, 1 / 317)]).all()
    M = jax.jit(lambda f: rj.theory.monodromy(rj.shifts.sinusoid(f), mu=0.9, eta=0.01, discrete=True))
    assert [bool(np.isnan(M(f)).any()) for f in (0.045, 1 / 22)] == [True, False]


def test_stiff_and_soft_problems(x64):
    """The number of RK4 steps follows the curvature."""

    @jax.jit
    def ours(T, mu, variance, factor, amplitude):
        shift = rj.shifts.sinusoid(1 / T, amplitude=amplitude)
        return T * rj.theory.growth_rate(shift, mu=mu, eta=0.01, input_variance=variance, loss_factor=factor)

    for T, mu, variance, factor, amplitude in (
        (40.0, 0.95, 3000.0, 2.0, 0.5),
        (200.0, 0.95, 1.0, 200.0, 0.5),
        (40.0, 0.95, 0.1, 1.0, 0.5),
        (30.0, 0.97, 1.0, 2.0, 20.0),
    ):
        exact = reference.log_rho_of_ode(1 / T, mu, 0.01, amplitude=amplitude, variance=variance, factor=factor)
        assert float(ours(T, mu, variance, factor, amplitude)) == pytest.approx(exact, abs=2e-6), (T, variance, factor)


def test_without_bias(x64):
    """One input and no bias: Hill's equation with B = 2 (1 + m^2), against a product of many short exponentials."""
    T, mu, eta, n = 30, 0.98, 0.01, 4000
    m = 0.5 * np.sin(2 * np.pi * (np.arange(n) + 0.5) / n)
    A = np.tile([[0, 1], [0, -(1 - mu) / np.sqrt(eta)]], (n, 1, 1))
    A[:, 1, 0] = -2 * (1 + m * m)
    A *= T * np.sqrt(eta) / n
    term = exponentials = np.tile(np.eye(2), (n, 1, 1))
    for order in range(1, 8):  # the series: entries of A are at most 2e-3
        term = term @ A / order
        exponentials = exponentials + term
    psi = np.eye(2)
    for step in exponentials:
        psi = step @ psi
    ours = jax.jit(lambda f: rj.theory.monodromy(rj.shifts.sinusoid(f), mu=mu, eta=eta, bias=False))(1 / T)
    assert np.allclose(ours, psi, rtol=0, atol=1e-6)


def test_long_strongly_damped_periods_stay_finite():
    rate = growth_rate(1 / 2000, 0.75, 0.01)  # psi is of order 1e-84
    assert float(rate) == pytest.approx(reference.log_rho_of_ode(1 / 2000, 0.75, 0.01) / 2000, abs=2e-5)


def test_three_inputs_along_one_direction_are_one_input(x64):
    """Rotating the inputs changes nothing: a mean along (1, 1, 1)/sqrt(3) grows as one input of that amplitude does."""
    one = growth_rate(1 / 22, 0.99, 0.01)
    shift = functools.partial(rj.shifts.sinusoid, amplitude=[0.5 / np.sqrt(3)] * 3)
    three = jax.jit(lambda f: rj.theory.growth_rate(shift(f), mu=0.99, eta=0.01))(1 / 22)
    assert float(three) == pytest.approx(float(one), abs=1e-9)


def test_the_variance_that_a_shift_adds_counts(x64):
    """Inputs of variance 1 + 3, whose mean rests at 0: log mu / 2 in steps, -(1 - mu) / 2 in ODE time."""
    shift, settings = rj.shifts.resting(3.0), dict(mu=0.5, eta=0.01)
    problem = rj.problems.linear_regression(dim=1, samples=1, bias=False)
    centre = (1 + 0.5 - 0.01 * 2 * 4) / 2  # overdamped: the larger root of z^2 - 2 centre z + mu
    assert float(rj.theory.mean_growth(shift, problem, **settings)) == pytest.approx(
        np.log(centre + np.sqrt(centre**2 - 0.5)), abs=1e-9
    )
    ode = -0.25 + np.sqrt(0.25**2 - 0.01 * 2 * 4 + 0j).real  # lambda^2 + alpha lambda + b = 0
    for rate in (
        rj.theory.growth_rate(shift, bias=False, **settings),
        rj.theory.mean_growth(shift, problem, discrete=False, **settings).rate,
    ):
        assert float(rate) == pytest.approx(ode, abs=1e-9)


def test_bad_input():
    sinusoid = rj.shifts.sinusoid
    with pytest.raises(ValueError, match=r"whole number of steps, at most 1.04858e\+06, got 22.22222; take f = 1/T"):
        rj.theory.monodromy(sinusoid(0.045), mu=0.9, eta=0.01, discrete=True)
    with pytest.raises(ValueError, match=r"stands still has no period, got f = 0; ask growth_rate"):
        rj.theory.monodromy(sinusoid(0.0), mu=0.9, eta=0.01)
    with pytest.raises(ValueError, match=r"mu must lie in \[0, 1\], got 1.5; momentum is"):
        rj.theory.growth_rate(sinusoid(0.1), mu=1.5, eta=0.01)
    with pytest.raises(ValueError, match=r"eta must lie in \(0, inf\), got 0.0; give a positive step size"):
        rj.theory.monodromy(sinusoid(0.1), mu=0.5, eta=0.0)
    with pytest.raises(ValueError, match=r"input_variance must lie in \[0, inf\), got -1.0; give a variance"):
        rj.theory.monodromy(sinusoid(0.1), mu=0.5, eta=0.1, input_variance=-1.0)
    with pytest.raises(ValueError, match=r"one for each of 1 inputs, or their covariance matrix, got shape \(2,\)"):
        rj.theory.monodromy(sinusoid(0.1), mu=0.5, eta=0.1, input_variance=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"rk4_steps must be a whole number of at least 1, got 0; leave it out"):
        rj.theory.monodromy(sinusoid(0.1), mu=0.5, eta=0.1, rk4_steps=0)
