"""The network of experiment 6. A file of its own, since flax is slow to import."""

from collections.abc import Sequence

from flax import linen as nn
from jax import Array


class MLP(nn.Module):
    """A fully connected ReLU network with one output, initialised as He et al."""

    hidden: Sequence[int] = (20, 20)

    @nn.compact
    def __call__(self, x: Array) -> Array:
        def dense(width: int) -> nn.Dense:
            return nn.Dense(width, kernel_init=nn.initializers.he_normal(), param_dtype=x.dtype, precision="highest")

        for width in self.hidden:
            x = nn.relu(dense(width)(x))
        return dense(1)(x)
