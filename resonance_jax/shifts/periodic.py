"""Shifts that repeat: mean and variance are functions of a phase."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from resonance_jax import checks, naming
from resonance_jax.shifts.base import Shift
from resonance_jax.shifts.inputs import Inputs
from resonance_jax.shifts.laws.periodic import Periodic, orthonormal
from resonance_jax.shifts.phase import phase_after


def periodic(
    f: ArrayLike,
    profile: Callable[[Array], Array | Inputs],
    *,
    directions: Any = None,
    iid_variance: ArrayLike = 0.0,
) -> Shift:
    """The shift without memory whose inputs at step k are `profile(f k mod 1)`.

    At f = 0 it is the iid baseline: the mean stands at 0 and the variance is larger by `iid_variance`, in runs and in
    all theory. For ever slower drifts, f -> 0 but not 0, rates tend to another limit.

    Args:
        f: frequency in turns per step, in [0, 0.5].
        profile: phase in [0, 1) -> mean (dim,); or `Inputs(mean, variance)`, where the variance moves too.
        directions: (r, dim), the lines that the mean of many inputs moves along: `profile` then returns a mean of
            shape (r,), in units of these vectors, and theory follows r inputs instead of all. None: any direction.
        iid_variance: what the iid baseline adds to the variance of the inputs.

    >>> circle = periodic(0.25, lambda phase: jnp.stack([jnp.cos(2 * jnp.pi * phase), jnp.sin(2 * jnp.pi * phase)]))
    >>> circle.inputs(None, jnp.arange(2), ())[0].mean.round(3).tolist()
    [[1.0, 0.0], [-0.0, 1.0]]
    """
    checks.between("f", f, 0, 0.5, "give a frequency in turns per step; a period of T steps is f = 1/T")
    checks.between("iid_variance", iid_variance, 0, jnp.inf, "give what the iid baseline adds to the variance")
    dtype = jnp.result_type(float)
    f = jnp.asarray(f, dtype)
    moving = f > 0
    basis, to_basis = None, None
    if directions is not None:
        vectors = jnp.atleast_2d(jnp.asarray(directions, dtype))
        if vectors.ndim != 2:
            raise ValueError(
                f"directions must be one vector or a list of them, got shape {vectors.shape}; give (dim,) or (r, dim)"
            )
        basis, to_basis = orthonormal(vectors)

    def at(phase: Array) -> Inputs:
        """In coordinates along the basis; those of the baseline where nothing moves."""
        found = profile(phase)
        mean, variance = found if isinstance(found, Inputs) else (found, jnp.zeros((), dtype))
        if to_basis is not None:
            if mean.shape != (len(to_basis),):
                raise ValueError(
                    f"profile must return one number for each of the {len(to_basis)} directions, got a mean of shape "
                    f"{mean.shape}; return shape ({len(to_basis)},), in units of the directions"
                )
            mean = jnp.sum(to_basis * mean[None, :], axis=1)
        return Inputs(jnp.where(moving, mean, 0), jnp.where(moving, variance, jnp.asarray(iid_variance, dtype)))

    law = Periodic(jnp.where(moving, 1 / jnp.where(moving, f, 1), jnp.inf), at, basis)

    def inputs(key: Array, k: Array, state: tuple[()]) -> tuple[Inputs, tuple[()]]:
        return jax.vmap(lambda one: law.inputs(phase_after(one, f)))(k), state

    def stationary(key: Array, state: tuple[()]) -> Inputs:
        return law.inputs(jax.random.uniform(key, (), dtype))

    return Shift(
        init=lambda key: (),
        inputs=inputs,
        law=law,
        stationary=stationary,
        iid_variance=iid_variance,
        label=naming.call("periodic", f=f, profile=profile),
    )
