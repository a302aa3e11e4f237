"""Floquet theory of linear optimizers, mean -> B -> A -> psi(T) -> rho, and three notions of growth under noise."""

from resonance_jax.numerics.estimate import Estimate
from resonance_jax.numerics.spectral import log_spectral_radius
from resonance_jax.theory.explain import explain
from resonance_jax.theory.explanation import Explanation
from resonance_jax.theory.floquet.continuous import integrate
from resonance_jax.theory.floquet.crossing import Crossing, crossing
from resonance_jax.theory.floquet.expected import gradient_matrix
from resonance_jax.theory.floquet.growth import growth_rate
from resonance_jax.theory.floquet.mean import mean_growth
from resonance_jax.theory.floquet.monodromy import monodromy
from resonance_jax.theory.noise.almost_sure import almost_sure_growth, lyapunov_spectrum
from resonance_jax.theory.noise.mean_square import mean_square_growth
from resonance_jax.theory.search.boundary import stability_boundary
from resonance_jax.theory.search.safe_momentum import SafeMomentum, largest_safe_momentum

__all__ = [
    "Crossing",
    "Estimate",
    "Explanation",
    "SafeMomentum",
    "almost_sure_growth",
    "crossing",
    "explain",
    "gradient_matrix",
    "growth_rate",
    "integrate",
    "largest_safe_momentum",
    "log_spectral_radius",
    "lyapunov_spectrum",
    "mean_growth",
    "mean_square_growth",
    "monodromy",
    "stability_boundary",
]
