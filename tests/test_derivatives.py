"""Derivatives of runs and rates, forwards and backwards, against difference quotients; or refused by name."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import resonance_jax as rj
from tests import reference

AT = dict(mu=0.98, eta=0.01, f=1 / 22, amplitude=0.5)
RUN = dict(num_steps=60, tail=60)


def in_dtype(values):
    return {name: jnp.asarray(value, jnp.result_type(float)) for name, value in values.items()}


def quotients(function, at, step=1e-6):
    """Central differences of a function of named numbers, in float64."""
    found = {}
    for name, value in at.items():
        h = step * value
        up, down = (function(**at | {name: value + sign * h}) for sign in (1, -1))
        found[name] = (np.asarray(up, float) - np.asarray(down, float)) / (2 * h)
    return found


def parts(f, amplitude, **problem):
    return dict(shift=rj.shifts.sinusoid(f, amplitude=amplitude), problem=rj.problems.linear_regression(**problem))


@pytest.mark.parametrize(
    ("problem", "eta", "double"),
    [
        (dict(dim=1, samples=5), 0.01, False),
        (dict(dim=7, samples=5, noise_variance=0.1), 0.01, True),
        (dict(dim=1, samples=2, noise_variance=0.1), 300.0, False),  # a huge step size
    ],
)
def test_runs_against_the_numpy_loop(problem, eta, double):
    """The loop of the reference on the draws of the run, whose means are moved along with f and the amplitude."""
    at, dim = AT | dict(eta=eta), problem["dim"]

    def run(p):
        key, made = jax.random.key(3), parts(p["f"], p["amplitude"], **problem)
        result = rj.oscillate(key, mu=p["mu"], eta=p["eta"], **made, **RUN)
        draws = reference.traced_draws(key, num_steps=RUN["num_steps"], **made)
        return jnp.stack([result["growth_rate"], result["log10_distance"]]), draws

    with jax.enable_x64(double):
        p = in_dtype(at)
        drawn = [np.asarray(each, float) for each in jax.jit(lambda p: run(p)[1])(p)]
        forwards, backwards = jax.jit(lambda p: [way(lambda p: run(p)[0])(p) for way in (jax.jacfwd, jax.jacrev)])(p)

    def wave(f, amplitude):
        return amplitude * np.sin(2 * np.pi * f * np.arange(RUN["num_steps"]))[:, None, None]

    def loop(mu, eta, f, amplitude):
        x = drawn[0].copy()
        x[:, :, :dim] += wave(f, amplitude) - wave(at["f"], at["amplitude"])
        return reference.unlimited(x, *drawn[1:], mu=mu, eta=eta, tail=RUN["tail"])[::-1]

    for name, exact in quotients(loop, at).items():
        for ours in (forwards[name], backwards[name]):
            assert np.allclose(ours, exact, rtol=1e-6 if double else 1e-3, atol=1e-7 if double else 1e-3), name


def test_other_runs(x64):
    """Lyapunov exponents and a run of optax, whose state is the weights, not their error."""

    def run(mu, eta, f, amplitude):
        key, made = jax.random.key(0), parts(f, amplitude, dim=1, samples=2)
        settings = dict(**made, mu=mu, eta=eta, key=key)
        trained = rj.train(key, optimizer=optax.sgd(eta, momentum=mu), **made, **RUN)
        return jnp.stack(
            [
                rj.theory.almost_sure_growth(num_steps=60, num_batches=3, **settings).rate,
                rj.theory.lyapunov_spectrum(num_steps=60, **settings)[0],
                jnp.log(trained["distance"]),
            ]
        )

    exact = quotients(jax.jit(run), AT)
    for name, ours in jax.jit(jax.jacrev(lambda p: run(**p)))(in_dtype(AT)).items():
        assert np.allclose(ours, exact[name], rtol=1e-5, atol=1e-6), name


PROBLEM = dict(dim=3, samples=5)
RATES = {
    "in a tongue": lambda mu, eta, f, amplitude: rj.theory.growth_rate(
        rj.shifts.sinusoid(f, amplitude=amplitude), mu=mu, eta=eta
    ),
    "several inputs": lambda mu, eta, f, amplitude: (
        rj.theory.mean_growth(**parts(f, amplitude, **PROBLEM), mu=mu, eta=eta, discrete=False).rate
    ),
    "mean square": lambda mu, eta, amplitude: (
        rj.theory.mean_square_growth(**parts(1 / 22, amplitude, **PROBLEM), mu=mu, eta=eta).rate
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_rates_forwards(name):
    """In float64 against quotients, in float32 up to rounding; refused backwards, since loops have a traced length."""
    rate = RATES[name]
    at = {each: value for each, value in AT.items() if each in rate.__code__.co_varnames}
    with jax.enable_x64(True):
        exact = quotients(jax.jit(rate), at, 1e-5)
        double = jax.jit(jax.jacfwd(lambda p: rate(**p)))(in_dtype(at)) if name != "in a tongue" else None
    found = double or jax.jit(jax.jacfwd(lambda p: rate(**p)))(in_dtype(at))
    for each in at:
        tolerance = dict(rel=1e-6, abs=1e-7) if double else dict(rel=1e-3, abs=1e-4)
        assert float(found[each]) == pytest.approx(exact[each], **tolerance), each
    with pytest.raises(ValueError, match=r"no derivative backwards through it; take jax.jvp or jax.jacfwd, a plain"):
        jax.grad(lambda mu: rate(**at | dict(mu=mu)))(0.98)


def test_outside_the_tongues_all_modes_decay_alike(x64):
    """Liouville: every multiplier has the modulus exp(-alpha T / 2), so d rate / d mu = 1/2, and the others are 0."""

    def rate(p):
        shift = rj.shifts.sinusoid(p["f"], amplitude=p["amplitude"] * jnp.array([0.6, 0.8]))
        return rj.theory.growth_rate(shift, mu=p["mu"], eta=p["eta"], bias=False)

    slopes = jax.jit(jax.jacfwd(rate))(in_dtype(AT | dict(f=1 / 30)))
    assert {name: round(float(slope), 6) + 0 for name, slope in slopes.items()} == dict(mu=0.5, eta=0, f=0, amplitude=0)


def test_a_plain_number_of_steps_is_differentiated_backwards(x64):
    def rate(mu):
        return rj.theory.growth_rate(rj.shifts.sinusoid(1 / 22), mu=mu, eta=0.01, rk4_steps=32)

    exact = quotients(jax.jit(rate), dict(mu=0.98))["mu"]
    assert float(jax.jit(jax.grad(rate))(0.98)) == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.parametrize(
    "rate",
    [
        lambda f: rj.theory.growth_rate(rj.shifts.sinusoid(f), mu=0.9, eta=0.01, discrete=True),
        lambda f: rj.theory.mean_square_growth(**parts(f, 0.5, **PROBLEM), mu=0.9, eta=0.01).rate,
        lambda T: (
            rj.theory.mean_square_growth(
                rj.shifts.switching(T, dim=3, variance=0.1),
                rj.problems.linear_regression(**PROBLEM),
                mu=0.9,
                eta=0.01,
            ).rate
        ),
    ],
)
def test_whole_numbers_of_steps_have_no_slope(rate):
    with pytest.raises(ValueError, match=r"a rate over a whole number of steps has no derivative in the frequency or"):
        jax.jvp(rate, (0.05,), (1.0,))
