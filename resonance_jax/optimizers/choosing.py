"""Who fits: `mu=, eta=` for SGD with momentum, or `optimizer=` for any linear one."""

from typing import Any

from resonance_jax.optimizers.linear import LinearOptimizer, heavy_ball
from resonance_jax.optimizers.reading import read


def chosen(mu: Any, eta: Any, optimizer: Any) -> LinearOptimizer:
    """The optimizer that the arguments of a run or a rate name; ValueError unless they name one."""
    given = [name for name, value in (("mu", mu), ("eta", eta), ("optimizer", optimizer)) if value is not None]
    if given == ["optimizer"]:
        return read(optimizer)
    if given == ["mu", "eta"]:
        return heavy_ball(mu, eta)
    raise ValueError(
        f"give mu and eta for SGD with momentum, or optimizer for another one, got {', '.join(given) or 'none of them'}"
    )
