"""W7, the first heatmap by linear optimizers: what `optimizer=` costs, and what another kind of momentum does.

A form is the heatmap of W1 by one optimizer. The first two are the same computation, given in two ways; the others
compute other heatmaps, and stand beside them for their time.
"""

from collections.abc import Callable
from typing import Any

import jax
import optax

import resonance_jax as rj
from benchmarks import first_heatmap
from benchmarks._heatmap_setting import AMPLITUDE, ETA, SAMPLES, TAIL
from benchmarks._measure import Form, swept

NAME = "W7 first heatmap by linear optimizers"
OPTIMIZERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "mu=, eta=": lambda mu: dict(mu=mu, eta=ETA),
    "optax.sgd": lambda mu: dict(optimizer=optax.sgd(ETA, momentum=mu)),
    "optax.sgd, nesterov=True": lambda mu: dict(optimizer=optax.sgd(ETA, momentum=mu, nesterov=True)),
    "optax.sgd behind weight decay": lambda mu: dict(
        optimizer=optax.chain(optax.add_decayed_weights(1e-3), optax.sgd(ETA, momentum=mu))
    ),
    "two buffers": lambda mu: dict(
        optimizer=optax.chain(optax.trace(mu), optax.ema(0.9, debias=False), optax.scale(-ETA))
    ),
}


def oscillated(num_steps: int, fits: Callable[[Any], dict[str, Any]]) -> Callable[..., dict]:
    def point(seed, f, mu):
        return rj.oscillate(
            jax.random.key(seed),
            shift=rj.shifts.sinusoid(f, amplitude=AMPLITUDE),
            problem=rj.problems.linear_regression(dim=1, samples=SAMPLES),
            num_steps=num_steps,
            tail=TAIL,
            **fits(mu),
        )

    return point


def forms(scale: str) -> list[Form]:
    axes, num_steps = first_heatmap.axes(scale), first_heatmap.NUM_STEPS[scale]
    return [Form(name, swept(oscillated(num_steps, fits), axes, "log10_distance")) for name, fits in OPTIMIZERS.items()]
