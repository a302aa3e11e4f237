"""Growth of a typical run: Lyapunov exponents of the random product of one-step matrices."""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax.numerics import logscale
from resonance_jax.numerics.estimate import Estimate
from resonance_jax.numerics.orthonormal import orthonormal
from resonance_jax.optimizers.choosing import chosen
from resonance_jax.optimizers.numbers import weighted
from resonance_jax.optimizers.stepping import stepping
from resonance_jax.problems.base import Problem
from resonance_jax.runs import blocks, contracts
from resonance_jax.runs.recursion import Run, recursion
from resonance_jax.shifts.base import Shift

if TYPE_CHECKING:
    import optax


def almost_sure_growth(
    shift: Shift | None = None,
    problem: Problem | None = None,
    *,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
    key: Array | None = None,
    num_steps: int = 10_000,
    num_batches: int = 10,
) -> Estimate:
    """Growth of log ||xi|| per step, xi = (theta - theta*, v): the largest Lyapunov exponent.

        lambda = lim (1/k) log ||M_{k-1} ... M_1 M_0 xi_0||

    with samples and means drawn as in a run. By the multiplicative ergodic theorem almost every run grows at this rate;
    it is what a heatmap of distances shows. Observation noise adds to xi and does not change it; here there is none.

    Args:
        shift, problem, mu, eta, optimizer: as `mean_growth`. Without a shift nothing moves, or the problem has rows of
            its own.
        key: of the run; None takes a fixed one.
        num_steps: of the run, a multiple of `num_batches`. For a periodic shift, choose whole periods in each batch:
            batches with a part of a period differ, which makes the standard error larger.
        num_batches: equal parts of the run. The first is left out. The standard error is that of the mean over the
            others. It is right if a part is longer than the memory of the shift, and too small otherwise. AR(2) at its
            defaults remembers up to 4000 steps; compare several keys there.

    Returns:
        `Estimate(rate, standard_error)`.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=1)
    >>> found = almost_sure_growth(rj.shifts.resting(), problem, mu=0.9, eta=0.01)
    >>> bool(found.rate + 5 * found.standard_error < 0)
    True
    """
    linear = chosen(mu, eta, optimizer)
    key = jax.random.key(0) if key is None else key
    least_squares, source = contracts.check_run(key, shift, problem, num_steps, 1)
    if not isinstance(num_batches, int) or num_batches < 3 or num_steps % num_batches:
        raise ValueError(
            f"num_batches must be a whole number of at least 3 that divides num_steps={num_steps}, got {num_batches}; "
            "one batch is left out, and the spread of the others gives the error"
        )
    start, advance, phase_space = recursion(key, source=source, problem=least_squares, optimizer=linear, driven=False)
    length = num_steps // num_batches

    def batch(run: Run, _: None) -> tuple[Run, Array]:
        run = advance(run, length)
        return run, logscale.log_norm(phase_space(run))

    sizes = jax.lax.scan(batch, start, None, num_batches)[1]
    rates = jnp.diff(sizes) / length
    return Estimate(jnp.mean(rates), jnp.std(rates, ddof=1) / jnp.sqrt(rates.size))


def lyapunov_spectrum(
    shift: Shift | None = None,
    problem: Problem | None = None,
    *,
    mu: ArrayLike | None = None,
    eta: ArrayLike | None = None,
    optimizer: "optax.GradientTransformation | None" = None,
    key: Array,
    num_steps: int = 10_000,
) -> Array:
    """All Lyapunov exponents, from the largest on: the product of one-step matrices, made orthogonal after every step.

        M_k Q_k = Q_{k+1} R_{k+1},    lambda_i = mean of log |R_ii|

    Of SGDm their sum is num_weights * log(mu), since det M_k = mu^num_weights whatever is drawn.

    Args:
        shift, problem, mu, eta, optimizer, key: as `almost_sure_growth`.
        num_steps: of the run; all of them enter the mean.

    Returns:
        (2 num_weights,); with k buffers in the optimizer ((1 + k) num_weights,). -inf for directions that a step
        forgets completely, half of them at mu = 0.

    >>> import resonance_jax as rj
    >>> problem = rj.problems.linear_regression(dim=1, samples=1)
    >>> spectrum = lyapunov_spectrum(rj.shifts.sinusoid(0.045), problem, mu=0.9, eta=0.01, key=jax.random.key(0))
    >>> round(float(spectrum.sum() / jnp.log(0.9)), 3)
    2.0
    """
    stepped = stepping(chosen(mu, eta, optimizer))
    A, dtype = stepped.matrix(), jnp.result_type(float)
    gain = jnp.asarray(stepped.gain, dtype)
    least_squares, source = contracts.check_run(key, shift, problem, num_steps, 1)
    if least_squares.gaussian is not None and least_squares.gaussian.input_mask is not None:
        raise ValueError("the spectrum has an exponent for each weight; give dim as a plain number, without max_dim")
    _, start_key, source_key, noise_key = jax.random.split(key, 4)  # as a run of `oscillate` does
    w = least_squares.num_weights

    def step(carry: tuple[Array, Array], of_step: tuple[Any, Any]) -> tuple[tuple[Array, Array], None]:
        Q, logs = carry
        u = [Q[a * w : (a + 1) * w] for a in range(len(A))]
        error = u[0] + stepped.reach * u[1]
        curved = jax.vmap(lambda column: least_squares.product(*of_step, column), in_axes=1, out_axes=1)(error)
        moved = [jnp.broadcast_to(weighted(zip(row, u, strict=True)), error.shape) for row in A]
        moved[1] = moved[1] + gain * curved
        Q, sizes = orthonormal(jnp.concatenate(moved))
        return (Q, logs + jnp.log(sizes)), None

    def advance(
        state: tuple[Array, Array, Any, Array], num_blocks: int, length: int
    ) -> tuple[Array, Array, Any, Array]:
        Q, logs, source_state, done = state
        k = done + jnp.arange(num_blocks * length, dtype=jnp.int32)
        keys = (noise_key, source_key)
        drawn, inputs, source_state = blocks.draw(least_squares.draw, source, keys, k, source_state)
        (Q, logs), _ = jax.lax.scan(step, (Q, logs), (drawn, inputs))
        return Q, logs, source_state, done + num_blocks * length

    size = len(A) * w
    state = (jnp.eye(size, dtype=dtype), jnp.zeros((size,), dtype), source.init(start_key), jnp.int32(0))
    return blocks.repeat(advance, state, num_steps)[1] / num_steps
