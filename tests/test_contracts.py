"""Parts of the wrong form are refused by name: what was expected, what came, and how to fix it."""

import jax
import jax.numpy as jnp
import optax
import pytest

import resonance_jax as rj
from resonance_jax.problems import Problem
from resonance_jax.shifts import Inputs, Shift

KEY = jax.random.key(0)
REGRESSION = rj.problems.linear_regression(dim=1, samples=2)
LENGTHS = dict(num_steps=4, tail=2)


def inputs(key, k, state):
    return Inputs(jnp.zeros((k.shape[0], 1)), jnp.zeros(k.shape)), state


GOOD = Shift(init=lambda key: (), inputs=inputs)


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (rj.shifts.sinusoid, r"shift must be a Shift, got sinusoid; call its factory, e.g. rj.shifts.sinusoid\(0.05\)"),
        (
            GOOD._replace(init=lambda: ()),
            r"Shift.init must be a function of \(key\), got one of \(\): too many positional",
        ),
        (GOOD._replace(init=None), r"Shift.init must be a function of \(key\), got NoneType; give a function"),
        (
            GOOD._replace(inputs=lambda k, state: 0),
            r"Shift.inputs must be a function of \(key, k, state\), got one of \(k, state\): too many .* used or not",
        ),
        (
            GOOD._replace(inputs=lambda key, k, state: jnp.zeros((k.shape[0], 1))),
            r"Shift.inputs must return two things, the Inputs and the state after them, got float32\[2, 1\]; ret",
        ),
        (
            GOOD._replace(inputs=lambda key, k, state: (jnp.zeros((k.shape[0], 1)), state)),
            r"Shift.inputs must return Inputs\(mean, variance\), got float32\[2, 1\]; a mean alone is Inputs\(mean",
        ),
        (
            GOOD._replace(inputs=lambda key, k, state: (Inputs(jnp.zeros(k.shape), jnp.zeros(k.shape)), state)),
            r"Shift.inputs must return a mean of shape \(block, dim\), got float32\[2\] for a block of 2 steps; a mean",
        ),
        (
            GOOD._replace(inputs=lambda key, k, state: (Inputs(jnp.zeros((k.shape[0], 1)), jnp.zeros(())), state)),
            r"Shift.inputs must return a variance of shape \(block,\), got float32\[\] for a block of 2 steps; one",
        ),
        (
            GOOD._replace(inputs=lambda key, k, state: (Inputs(k[:, None], jnp.zeros(k.shape)), state)),
            r"Shift.inputs must return a mean of float32, got int32; cast it: mean.astype\(jnp.result_type\(float\)\)",
        ),
        (
            Shift(init=lambda key: jnp.zeros(2), inputs=lambda key, k, state: (inputs(key, k, state)[0], state[0])),
            r"Shift.inputs must return a state like that of Shift.init, float32\[2\], got float32\[\]; keep its shapes",
        ),
    ],
)
def test_shifts(shift, message):
    """In every function that takes a shift."""
    for run in (
        lambda: rj.oscillate(KEY, shift=shift, problem=REGRESSION, mu=0.9, eta=0.1, **LENGTHS),
        lambda: rj.train(KEY, shift=shift, problem=REGRESSION, optimizer=optax.sgd(0.1), **LENGTHS),
        lambda: rj.theory.almost_sure_growth(shift, REGRESSION, mu=0.9, eta=0.1, key=KEY),
        lambda: rj.theory.mean_square_growth(shift, REGRESSION, mu=0.9, eta=0.1),
    ):
        with pytest.raises(ValueError, match=message):
            run()


LINE = Problem(
    dim=1,
    init=lambda key, shift, state: (jnp.zeros(()), jnp.ones(())),
    draw=lambda key, k: jax.random.normal(key, (3,)),
    batch=lambda drawn, inputs: inputs.mean[0] + drawn,
    loss=lambda slope, truth, x: jnp.mean((slope * x - truth * x) ** 2),
    error=lambda slope, truth: jnp.abs(slope - truth),
)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            rj.problems.mlp_regression,
            r"problem must be a problems.Problem, got mlp_regression without dim, init, .* first",
        ),
        (LINE._replace(dim=0), r"Problem.dim must be a whole number of at least 1, got 0; count the inputs"),
        (
            LINE._replace(init=lambda key: (0.0, 1.0)),
            r"Problem.init must be a function of \(key, shift, state\), got one of \(key\): too many",
        ),
        (
            LINE._replace(init=lambda key, shift, state: jnp.zeros(())),
            r"Problem.init must return two things, the parameters to start from, and the truth, got float32\[\]; ret",
        ),
        (LINE._replace(draw=lambda key: 0), r"Problem.draw must be a function of \(key, k\), got one of \(key\)"),
        (
            LINE._replace(batch=lambda drawn: drawn),
            r"Problem.batch must be a function of \(drawn, inputs\), got one of \(drawn\): too many",
        ),
        (
            LINE._replace(loss=lambda slope, truth, x: x),
            r"Problem.loss must return one real number, got float32\[3\]; take its mean or sum",
        ),
        (
            LINE._replace(error=lambda slope: slope),
            r"Problem.error must be a function of \(parameters, truth\), got one of \(slope\): too many",
        ),
    ],
)
def test_problems(problem, message):
    with pytest.raises(ValueError, match=message):
        rj.train(KEY, shift=GOOD, problem=problem, optimizer=optax.sgd(0.1), **LENGTHS)


def test_good_parts_pass():
    run = jax.jit(lambda: rj.train(KEY, shift=GOOD, problem=LINE, optimizer=optax.sgd(0.1), **LENGTHS))()
    assert 0 < float(run["loss"]) < 1


def test_the_recursion_is_that_of_least_squares():
    message = r"problem must be least squares, e.g. rj.problems.linear_regression, got Problem; rj.train runs any"
    network = rj.problems.mlp_regression(dim=1)
    with pytest.raises(ValueError, match=message):
        rj.oscillate(KEY, shift=GOOD, problem=network, mu=0.9, eta=0.1, **LENGTHS)
    with pytest.raises(ValueError, match=message):
        rj.theory.lyapunov_spectrum(GOOD, network, mu=0.9, eta=0.1, key=KEY)


@pytest.mark.parametrize("name", ["num_steps", "tail"])
def test_lengths_are_no_axes(name):
    def point(**lengths):
        return rj.oscillate(KEY, shift=GOOD, problem=REGRESSION, mu=0.9, eta=0.1, **LENGTHS | lengths)

    with pytest.raises(
        ValueError, match=rf"{name} fixes a shape and must be a plain number, got a traced one; take it"
    ):
        rj.sweep(point, {name: [2, 3]})


@pytest.mark.parametrize("rate", [rj.theory.growth_rate, rj.theory.monodromy])
def test_rates_of_a_period_name_the_one_for_every_shift(rate):
    message = r"need a periodic shift, got ar2\(f=0.05, .*\); for AR\(2\) and all others take rj.theory.mean_growth\("
    with pytest.raises(ValueError, match=message):
        rate(rj.shifts.ar2(0.05), mu=0.9, eta=0.01)
