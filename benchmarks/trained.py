"""W3 and W4, training: experiment 5 (Adam on regression) and experiment 6 (a network) as `sweeps/` runs them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import resonance_jax as rj
from benchmarks._measure import Axes, Form, Prepare, swept
from sweeps import _response, exp5_adam, exp6_mlp

TORCH_SHARE = 20  # every eager step takes the same time, so a 20th of the steps is enough


def plain(
    name: str, make: Callable[..., tuple[Any, Any, optax.GradientTransformation]], num_steps: int, tail: int
) -> Callable[..., dict]:
    """A vmapped optax scan, one step per iteration: what one writes first."""

    def run(seed: Any, *parameters: Any) -> dict[str, jax.Array]:
        shift, problem, optimizer = make(*parameters)
        weights_key, start_key, shift_key, noise_key = jax.random.split(jax.random.key(seed), 4)
        shift_state = shift.init(start_key)
        theta, truth = problem.init(weights_key, shift, shift_state)

        def step(carry: Any, k: jax.Array) -> Any:
            theta, state, total = carry
            inputs, _ = shift.inputs(shift_key, k[None], shift_state)
            drawn = problem.draw(jax.random.fold_in(noise_key, k), k)
            batch = problem.batch(drawn, jax.tree.map(lambda leaf: leaf[0], inputs))
            updates, state = optimizer.update(jax.grad(problem.loss)(theta, truth, batch), state, theta)
            theta = optax.apply_updates(theta, updates)
            error = jax.lax.cond(k >= num_steps - tail, lambda: problem.error(theta, truth), lambda: jnp.zeros(()))
            return (theta, state, total + error), None

        start = (theta, optimizer.init(theta), jnp.zeros(()))
        (_, _, total), _ = jax.lax.scan(step, start, jnp.arange(num_steps, dtype=jnp.int32))
        return {name: total / tail}

    return run


def adam(beta1: Any, T: Any) -> Any:
    problem = rj.problems.linear_regression(**_response.LINEAR, dim=_response.DIM, samples=1, input_variance=0.1)
    shift = rj.shifts.switching(T, dim=_response.DIM, variance=1.0)
    return shift, problem, optax.adam(_response.ETA, b1=beta1)


def network(v: Any, T: Any) -> Any:
    shift = rj.shifts.switching(T, dim=2, variance=v)
    return shift, rj.problems.mlp_regression(), optax.sgd(_response.ETA, momentum=_response.MU)


def plain_adam(seed, beta1, T):
    return plain("distance", adam, _response.NUM_STEPS, exp5_adam.TAIL)(seed, beta1, T)


def plain_network(seed, v, T):
    return plain("loss", network, exp6_mlp.NUM_STEPS, exp6_mlp.TAIL)(seed, v, T)


def torch_adam(axes: Axes) -> Callable[[], Any]:
    from benchmarks import trained_torch

    return trained_torch.adam(axes, num_steps=_response.NUM_STEPS // TORCH_SHARE, tail=exp5_adam.TAIL // TORCH_SHARE)


def torch_network(axes: Axes) -> Callable[[], Any]:
    from benchmarks import trained_torch

    return trained_torch.network(axes, num_steps=exp6_mlp.NUM_STEPS // TORCH_SHARE, tail=exp6_mlp.TAIL // TORCH_SHARE)


def torch_form(prepare: Prepare) -> Form:
    return Form(
        "PyTorch, vmap(grad), eager",
        prepare,
        needs="torch",
        share=1 / TORCH_SHARE,
        note=f"1/{TORCH_SHARE} of the steps",
    )


def adam_forms(axes: Axes) -> list[Form]:
    return [
        Form("rj.sweep of rj.train", swept(exp5_adam.point, axes, "distance")),
        Form("plain vmapped optax scan", swept(plain_adam, axes, "distance")),
        torch_form(lambda: torch_adam(axes)),
    ]


def network_forms(axes: Axes) -> list[Form]:
    return [
        Form("rj.sweep of rj.train", swept(exp6_mlp.point, axes, "loss")),
        Form("plain vmapped optax scan", swept(plain_network, axes, "loss")),
        torch_form(lambda: torch_network(axes)),
    ]
