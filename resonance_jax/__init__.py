"""Will SGD with momentum blow up on data that drifts?"""

import importlib
from typing import TYPE_CHECKING, Any

from resonance_jax._version import __version__ as __version__
from resonance_jax.engine.cache import use_compilation_cache as use_compilation_cache
from resonance_jax.jobs.claims import Claim as Claim
from resonance_jax.numerics import logscale as logscale
from resonance_jax.numerics.labelled import Labelled as Labelled
from resonance_jax.numerics.logscale import log10_mean as log10_mean
from resonance_jax.runs.keys import cell_key as cell_key
from resonance_jax.sweep import sweep as sweep

if TYPE_CHECKING:
    from resonance_jax import optimizers as optimizers
    from resonance_jax import plotting as plotting
    from resonance_jax import problems as problems
    from resonance_jax import shifts as shifts
    from resonance_jax import testing as testing
    from resonance_jax import theory as theory
    from resonance_jax.explorer.page import explore as explore
    from resonance_jax.guard.measure import measure_resonance as measure_resonance
    from resonance_jax.guard.wrapper import resonance_guard as resonance_guard
    from resonance_jax.runs import spectrum as spectrum
    from resonance_jax.runs.lyapunov import lyapunov as lyapunov
    from resonance_jax.runs.oscillate import oscillate as oscillate
    from resonance_jax.runs.train import train as train
    from resonance_jax.streams.diagnose import diagnose as diagnose

# Imported when they are first used: matplotlib, flax, optax and xarray take longer to import than JAX.
_LAZY = {
    "diagnose": "resonance_jax.streams.diagnose:diagnose",
    "explore": "resonance_jax.explorer.page:explore",
    "lyapunov": "resonance_jax.runs.lyapunov:lyapunov",
    "measure_resonance": "resonance_jax.guard.measure:measure_resonance",
    "oscillate": "resonance_jax.runs.oscillate:oscillate",
    "optimizers": "resonance_jax.optimizers",
    "plotting": "resonance_jax.plotting",
    "problems": "resonance_jax.problems",
    "resonance_guard": "resonance_jax.guard.wrapper:resonance_guard",
    "shifts": "resonance_jax.shifts",
    "spectrum": "resonance_jax.runs.spectrum",
    "testing": "resonance_jax.testing",
    "theory": "resonance_jax.theory",
    "train": "resonance_jax.runs.train:train",
}

__all__ = [
    "Claim",
    "Labelled",
    "cell_key",
    "diagnose",
    "explore",
    "log10_mean",
    "logscale",
    "lyapunov",
    "measure_resonance",
    "optimizers",
    "oscillate",
    "plotting",
    "problems",
    "resonance_guard",
    "shifts",
    "spectrum",
    "sweep",
    "testing",
    "theory",
    "train",
    "use_compilation_cache",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    found = importlib.import_module(module)
    globals()[name] = getattr(found, attribute) if attribute else found
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
