"""Will SGD with momentum blow up on data that drifts?"""

from resonance_jax import logscale as logscale
from resonance_jax import problems as problems
from resonance_jax import shifts as shifts
from resonance_jax.oscillate import oscillate as oscillate
