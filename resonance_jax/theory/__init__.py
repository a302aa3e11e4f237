"""Floquet theory of SGDm, mean -> B -> A -> psi(T) -> rho, and three notions of growth under sampling noise."""

from resonance_jax.numerics.spectral import log_spectral_radius as log_spectral_radius
from resonance_jax.theory.estimate import Estimate as Estimate
from resonance_jax.theory.explain import Explanation as Explanation
from resonance_jax.theory.explain import explain as explain
from resonance_jax.theory.floquet.continuous import integrate as integrate
from resonance_jax.theory.floquet.continuous import monodromy as monodromy
from resonance_jax.theory.floquet.discrete import discrete_monodromy as discrete_monodromy
from resonance_jax.theory.floquet.expected import gradient_matrix as gradient_matrix
from resonance_jax.theory.floquet.growth import growth_rate as growth_rate
from resonance_jax.theory.noise.almost_sure import almost_sure_growth as almost_sure_growth
from resonance_jax.theory.noise.almost_sure import lyapunov_spectrum as lyapunov_spectrum
from resonance_jax.theory.noise.mean import mean_growth as mean_growth
from resonance_jax.theory.noise.mean_square import mean_square_growth as mean_square_growth
from resonance_jax.theory.search.boundary import stability_boundary as stability_boundary
from resonance_jax.theory.search.safe_momentum import SafeMomentum as SafeMomentum
from resonance_jax.theory.search.safe_momentum import largest_safe_momentum as largest_safe_momentum
