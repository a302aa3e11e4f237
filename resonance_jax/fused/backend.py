"""What the kernels take from Pallas and its Triton backend.

Both are imported only when a kernel is built: newer versions of JAX deprecate the Triton backend and may remove it.
Then these functions raise an ImportError or an AttributeError, and the program is left to XLA.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
from jax import Array


def program_id() -> Array:
    """Number of this program of the kernel."""
    from jax.experimental import pallas

    return pallas.program_id(0)


def load(ref: Any, place: Array, **options: Any) -> Array:
    """Entries of an array in memory: those in `mask`, and `other` instead of the rest."""
    from jax.experimental.pallas import triton

    return triton.load(ref.at[place], **options)


def store(ref: Any, place: Array, value: Array, **options: Any) -> None:
    """Write entries of an array in memory, those in `mask`."""
    from jax.experimental.pallas import triton

    triton.store(ref.at[place], value, **options)


def call(
    program: Callable[..., None],
    *args: Any,
    num_programs: int,
    outs: Sequence[jax.ShapeDtypeStruct],
    in_place: Mapping[int, int],
    num_warps: int,
    interpret: bool,
) -> Sequence[Array]:
    """Run `program` on references to the arguments and outputs, `num_programs` times side by side."""
    from jax.experimental import pallas
    from jax.experimental.pallas import triton

    return pallas.pallas_call(
        program,
        grid=(num_programs,),
        out_shape=outs,
        input_output_aliases=dict(in_place),
        compiler_params=triton.CompilerParams(num_warps=num_warps, num_stages=1),
        interpret=interpret,
    )(*args)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence JAX's warning that the Triton backend will be removed: users need not act, since XLA takes over."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*Pallas Triton backend is deprecated", DeprecationWarning)
        yield
