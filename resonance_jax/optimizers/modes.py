"""What an optimizer does to a mode of constant curvature: its multipliers, in NumPy, for plain hyperparameters."""

import numpy as np

from resonance_jax.optimizers.linear import LinearOptimizer


def multipliers(optimizer: LinearOptimizer, curvatures: np.ndarray) -> np.ndarray:
    """Eigenvalues of a step on a quadratic of each curvature, (..., 1 + buffers), complex.

    >>> from resonance_jax.optimizers.linear import heavy_ball
    >>> multipliers(heavy_ball(0.25, 1.0), np.array(0.25)).real.round(3).tolist()  # z^2 - (1 + mu - eta b) z + mu
    [0.5, 0.5]
    """
    rows = optimizer.rows()
    still = np.array([[float(each.value) for each in (weight, *old)] for _, weight, old in rows])
    gains = np.array([float(gradient.value) for gradient, _, _ in rows])
    kicks = np.zeros((*np.shape(curvatures), *still.shape))
    kicks[..., :, 0] = np.asarray(curvatures)[..., None] * gains
    return np.linalg.eigvals(still + kicks)


def rates(optimizer: LinearOptimizer, curvatures: np.ndarray) -> np.ndarray:
    """Growth per step of each mode."""
    size = np.abs(multipliers(optimizer, curvatures)).max(axis=-1)
    return np.log(np.maximum(size, np.finfo(float).tiny))


def largest_step(optimizer: LinearOptimizer, curvature: float) -> float:
    """How many times its step an optimizer may take until a mode of this curvature grows; 0 if every step is too large.

    A step that is larger by a factor is a curvature that is larger by it.

    >>> from resonance_jax.optimizers.linear import heavy_ball
    >>> round(largest_step(heavy_ball(0.9, 0.1), 2.0), 3)  # 2 (1 + mu) / (eta b)
    19.0
    """
    factors = np.geomspace(1e-6, 1e6, 2401)
    shrinks = rates(optimizer, curvature * factors) <= 1e-9
    if not shrinks[0]:
        return 0.0
    last = int(shrinks.argmin()) - 1 if not shrinks.all() else len(factors) - 1
    low, high = factors[last], factors[min(last + 1, len(factors) - 1)]
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rates(optimizer, np.asarray(curvature * middle)) <= 1e-9 else (low, middle)
    return float(low)
