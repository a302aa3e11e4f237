"""PyTorch uses the same device as JAX."""

import torch  # pyright: ignore[reportMissingImports]

from benchmarks._measure import Unavailable, current_platform


def device() -> str:
    if current_platform() == "cpu":
        return "cpu"
    if not torch.cuda.is_available():
        raise Unavailable("PyTorch sees no GPU")
    return "cuda"
