"""W8, training with `rj.resonance_guard`: what the guard costs around `optax.sgd`.

A network with 512 inputs, 1,024 hidden and 512 output units, 1,050,112 weights, on batches of 64 or 1,024. Both
optimizers train it by compiled steps with donated buffers, called from Python or within one `lax.scan`. `python -m
benchmarks.guard` lets the calls of the two alternate, so that a machine that slows down slows both, and prints the
ratio. On a shared CPU the rows of the table of `python -m benchmarks guard` differ by more than what the guard costs.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import resonance_jax as rj
from benchmarks import _machine
from benchmarks._measure import Form, timed_calls

NAME = "W8 training with a guard"
WIDTHS = {"tiny": (8, 16, 8), "quick": (512, 1024, 512), "paper": (512, 1024, 512)}
NUM_STEPS = {"tiny": 20, "quick": 100, "paper": 500}
BATCH = 64
LARGE_BATCH = 1024  # a GPU has work to do
BATCHES = 16  # in turn

Call = Callable[[], np.ndarray]


def alone() -> optax.GradientTransformationExtraArgs:
    return optax.inject_hyperparams(optax.sgd)(learning_rate=0.01, momentum=0.9)


def guarded() -> optax.GradientTransformationExtraArgs:
    return rj.resonance_guard(alone())


def network(widths: tuple[int, ...], batch: int) -> tuple[Any, Any]:
    """Weights, and batches of inputs and targets."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    layers = [(normal(n, m) / n**0.5, jnp.zeros(m)) for n, m in itertools.pairwise(widths)]
    return layers, (normal(BATCHES, batch, widths[0]), normal(BATCHES, batch, widths[-1]))


def loss(layers: Any, x: Any, y: Any) -> Any:
    for matrix, bias in layers[:-1]:
        x = jax.nn.relu(x @ matrix + bias[None])
    matrix, bias = layers[-1]
    return jnp.mean((x @ matrix + bias[None] - y) ** 2)


def stepped(optimizer: optax.GradientTransformationExtraArgs, batches: Any, carry: Any, k: Any) -> Any:
    """One step: value and gradient, update, new weights."""
    layers, state = carry
    x, y = (each[k % BATCHES] for each in batches)
    value, gradients = jax.value_and_grad(loss)(layers, x, y)
    updates, state = optimizer.update(gradients, state, layers)
    return (optax.apply_updates(layers, updates), state), value


def from_python(optimizer: optax.GradientTransformationExtraArgs, scale: str, batch: int = BATCH) -> Call:
    """A call continues the training by some steps, each a call of one compiled program; the last loss."""
    layers, batches = network(WIDTHS[scale], batch)
    carry = layers, jax.jit(optimizer.init)(layers)  # compiled: buffers that no two fields share, to be donated
    step = jax.jit(partial(stepped, optimizer), donate_argnums=1)
    steps = [jnp.int32(k) for k in range(NUM_STEPS[scale])]

    def call() -> np.ndarray:
        nonlocal carry
        value = None
        for k in steps:
            carry, value = step(batches, carry, k)
        return np.asarray(jax.block_until_ready((value, carry))[0])

    return call


def within_scan(optimizer: optax.GradientTransformationExtraArgs, scale: str, batch: int = BATCH) -> Call:
    """The same, all steps in one compiled program."""
    layers, batches = network(WIDTHS[scale], batch)
    carry = layers, jax.jit(optimizer.init)(layers)  # compiled: buffers that no two fields share, to be donated
    steps = jnp.arange(NUM_STEPS[scale], dtype=jnp.int32)
    loop = jax.jit(
        lambda batches, carry: jax.lax.scan(partial(stepped, optimizer, batches), carry, steps), donate_argnums=1
    )

    def call() -> np.ndarray:
        nonlocal carry
        carry, values = loop(batches, carry)
        return np.asarray(jax.block_until_ready((values, carry))[0][-1])

    return call


LOOPS = {"steps from Python": from_python, "lax.scan": within_scan}


def forms(scale: str) -> list[Form]:
    return [
        Form(f"{loop}, {name}", partial(train, make(), scale))
        for loop, train in LOOPS.items()
        for name, make in (("optax.sgd", alone), ("the same guarded", guarded))
    ]


def overhead(scale: str, repeats: int, batch: int = BATCH) -> dict[str, tuple[float, list[float]]]:
    """For each loop: median seconds a step without the guard; quartiles of how many times as long it takes with it."""
    found = {}
    for loop, train in LOOPS.items():
        calls = [train(make(), scale, batch) for make in (alone, guarded)]
        for call in calls:
            call()
        seconds = np.array([[timed_calls(call, 1)[0] for call in calls] for _ in range(repeats)])
        quartiles = np.percentile(seconds[:, 1] / seconds[:, 0], (25, 50, 75)).tolist()
        found[loop] = float(np.median(seconds[:, 0]) / NUM_STEPS[scale]), quartiles
    return found


def main(scale: str = "quick", repeats: int = 9) -> None:
    print(_machine.machine()["name"])
    for batch in (BATCH, LARGE_BATCH):
        for loop, (seconds, (low, ratio, high)) in overhead(scale, repeats, batch).items():
            print(f"{loop}, batch {batch}: {seconds * 1e3:.3f} ms a step, guarded {ratio:.3f} times as long", end=" ")
            print(f"(quartiles of {repeats} pairs {low:.3f}, {high:.3f})")


if __name__ == "__main__":
    main()
