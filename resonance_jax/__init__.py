"""Will SGD with momentum blow up on data that drifts?"""

from resonance_jax import plotting as plotting
from resonance_jax import problems as problems
from resonance_jax import shifts as shifts
from resonance_jax import theory as theory
from resonance_jax._version import __version__ as __version__
from resonance_jax.engine.cache import use_compilation_cache as use_compilation_cache
from resonance_jax.numerics import logscale as logscale
from resonance_jax.numerics.logscale import log10_mean as log10_mean
from resonance_jax.runs import spectrum as spectrum
from resonance_jax.runs.keys import cell_key as cell_key
from resonance_jax.runs.oscillate import oscillate as oscillate
from resonance_jax.runs.train import train as train
from resonance_jax.sweep import sweep as sweep
