"""The conformance suite passes every part of the package, and catches parts that break each promise."""

import jax
import jax.numpy as jnp
import pytest

import resonance_jax as rj
from resonance_jax.shifts import Inputs, Periodic, Redrawn, Shift, periodic
from resonance_jax.testing import check_law, check_problem, check_shift


def circle(f):
    return periodic(f, lambda phase: 0.4 * jnp.stack([jnp.sin(2 * jnp.pi * phase), jnp.cos(2 * jnp.pi * phase)]))


SHIFTS = {
    "resting": lambda: rj.shifts.resting(0.3),
    "sinusoid": lambda: rj.shifts.sinusoid(0.03),
    "sinusoid, three inputs": lambda: rj.shifts.sinusoid(0.03, amplitude=[0.1, 0.2, 0.3]),
    "sinusoid at f = 0": lambda: rj.shifts.sinusoid(0.0),
    "circle": lambda: circle(1 / 7),
    "breathing": lambda: rj.shifts.breathing(0.05),
    "breathing at f = 0": lambda: rj.shifts.breathing(0.0),
    "square_wave": lambda: rj.shifts.square_wave(40, dim=3),
    "switching": lambda: rj.shifts.switching(7, dim=2, variance=0.3),
    "switching at T = 0": lambda: rj.shifts.switching(0, dim=1, variance=0.3),
    "ar2": lambda: rj.shifts.ar2(0.03),
    "ar2, independent start": lambda: rj.shifts.ar2(0.03, joint_start=False),
}
PROBLEMS = {
    "one input": lambda: rj.problems.linear_regression(dim=1, samples=20),
    "no bias, noise": lambda: rj.problems.linear_regression(dim=3, samples=1, bias=False, noise_variance=0.1),
    "sum": lambda: rj.problems.linear_regression(dim=2, samples=5, reduction="sum", loss_factor=1.0),
    "masked": lambda: rj.problems.linear_regression(dim=2, samples=2, max_dim=4, max_samples=5),
    "many": lambda: rj.problems.linear_regression(dim=9, samples=2, weight_variance=0.25),
    "variances": lambda: rj.problems.linear_regression(dim=2, samples=3, input_variance=[0.1, 10.0]),
    "covariance": lambda: rj.problems.linear_regression(dim=2, samples=3, input_variance=[[1.0, 0.5], [0.5, 2.0]]),
    "network": rj.problems.mlp_regression,
}


@pytest.mark.parametrize("name", SHIFTS)
def test_shifts_of_the_package(name):
    check_shift(SHIFTS[name]())


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_of_the_package(name):
    check_problem(PROBLEMS[name]())
    check_problem(PROBLEMS[name](), rj.shifts.breathing(0.1))


GOOD = rj.shifts.sinusoid(0.05)


def with_inputs(mean, variance=lambda key, k: jnp.zeros(k.shape)):
    return Shift(lambda key: (), lambda key, k, state: (Inputs(mean(key, k), variance(key, k)), state))


def normal_of_block(key, k):
    return jax.random.normal(key, (k.shape[0], 1))


@pytest.mark.parametrize(
    ("shift", "error", "message"),
    [
        (GOOD._replace(inputs=None), ValueError, r"Shift.inputs must be a function of \(key, k, state\), got NoneType"),
        (with_inputs(normal_of_block), AssertionError, r"the mean must not depend on how steps are cut into blocks"),
        (
            with_inputs(lambda key, k: jnp.where(k[:, None] == 9, jnp.nan, 0.0)),
            AssertionError,
            r"the mean must be finite, got \[nan\] at step 9",
        ),
        (
            with_inputs(lambda key, k: jnp.zeros((k.shape[0], 1)), lambda key, k: jnp.full(k.shape, -1.0)),
            AssertionError,
            r"the variance must be >= 0, got -1.0",
        ),
        (
            GOOD._replace(stationary=lambda key, state: jnp.zeros(1)),
            AssertionError,
            r"Shift.stationary must return Inputs\(mean, variance\), got Shape",
        ),
        (
            GOOD._replace(stationary=lambda key, state: Inputs(jnp.zeros(2), jnp.zeros(()))),
            AssertionError,
            r"Shift.stationary must return shapes \(1,\) and \(\), got \(\(2,\), \(\)\)",
        ),
        (
            GOOD._replace(law=Periodic(jnp.array(30.0), GOOD.law.profile)),
            AssertionError,
            r"Periodic.profile: the mean of a step must be that of its phase; they differ",
        ),
        (
            rj.shifts.switching(2, dim=1, variance=1.0)._replace(law=Redrawn(jnp.array(2.0), jnp.array(0.2))),
            AssertionError,
            r"Law.growth of the mean must be that of the average over runs: the law says -0.0\d+ a step, runs grow",
        ),
    ],
)
def test_broken_shifts_are_caught(shift, error, message):
    with pytest.raises(error, match=message):
        check_shift(shift)


class TwoSides:
    """An exact law in one file: the mean is +u or -u with probability 1/2, drawn anew at every step."""

    num_coordinates, isotropic, random, cycle, longest_cycle = None, False, False, None, None

    def __init__(self, u):
        self.u = u

    def whole(self, inputs):
        return inputs

    def growth(self, shift, linear, averaging):
        from resonance_jax.numerics.estimate import exact
        from resonance_jax.numerics.products import largest_rate

        def matrix(sign):
            inputs = linear.coordinates(Inputs(sign * self.u, jnp.zeros(())))
            return jax.vmap(lambda column: jnp.stack(linear.step(tuple(column), inputs)))(jnp.diag(linear.exists)).T

        return exact(largest_rate((matrix(1) + matrix(-1)) / 2, linear, jnp.ones(())))

    def visited(self, shift, *, every_phase=False):
        return Inputs(jnp.stack([self.u, -self.u]), jnp.zeros(2))


def two_sides(u):
    def inputs(key, k, state):
        sign = jax.vmap(lambda one: jax.random.rademacher(jax.random.fold_in(key, one), (), jnp.float32))(k)
        return Inputs(sign[:, None] * u[None, :], jnp.zeros(k.shape)), state

    return Shift(lambda key: (), inputs, TwoSides(u), label="two_sides")


def test_a_new_law_touches_no_other_file():
    """It serves the search. That such a law passes the suite and serves `explain` is what docs/shifts.md shows."""
    shift = two_sides(jnp.array([0.5, -0.3]))
    problem = rj.problems.linear_regression(dim=2, samples=5, input_variance=[0.5, 1.0])
    safe = rj.theory.largest_safe_momentum(shift, problem, 0.01, highest=0.95, coarse=2, chunk=8)
    assert safe.mu == 0.95


def test_broken_laws_and_problems_are_caught():
    shift = two_sides(jnp.array([0.5]))
    wrong = shift._replace(law=TwoSides(jnp.array([1.5])))
    with pytest.raises(AssertionError, match=r"Law.growth of the mean must be that of the average over runs"):
        check_law(wrong)
    problem = rj.problems.linear_regression(dim=2, samples=3)
    linear = problem.least_squares

    def doubled(drawn, inputs):
        return tuple(tuple(2 * entry for entry in row) for row in linear.matrix(drawn, inputs))

    def double(function):
        return lambda *arguments: 2 * function(*arguments)

    for changes, message in (
        (dict(matrix=doubled), r"LeastSquares.product must be B of LeastSquares.matrix times the error"),
        (dict(trace=double(linear.trace)), r"LeastSquares.trace must be that of LeastSquares.matrix"),
        (dict(weights=lambda key: (jnp.ones(3), jnp.zeros(3))), r"LeastSquares.weights must be as far apart"),
        (
            dict(matrix=doubled, product=double(linear.product), trace=double(linear.trace)),
            r"LeastSquares: B e - b must be the gradient of Problem.loss: \|B e - b\| is",
        ),
    ):
        with pytest.raises(AssertionError, match=message):
            check_problem(problem._replace(least_squares=linear._replace(**changes)))
    with pytest.raises(AssertionError, match=r"Problem.loss must be finite and >= 0, got"):
        check_problem(problem._replace(loss=lambda *parts: -1 - problem.loss(*parts), least_squares=None))
    with pytest.raises(ValueError, match=r"Problem.draw must be a function of \(key, k\), got one of \(key\)"):
        check_problem(problem._replace(draw=lambda key: 0))
