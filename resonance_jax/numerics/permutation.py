"""Random permutations, one entry at a time: where an item goes is computed without a table of all the others."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

ROUNDS = 6  # four make a Feistel network pseudo-random
SWAPS = 16  # of a handful of items the network reaches even permutations more often; these swaps reach all alike
GOLDEN = 0x9E3779B9  # odd: multiples of it visit every 32-bit number
EXACT_IN_FLOAT = 2**24


def round_keys(key: Array) -> Array:
    """What `permuted` needs of a key: (ROUNDS + SWAPS,) words."""
    return jax.random.bits(key, (ROUNDS + SWAPS,), jnp.uint32)


def permuted(item: Array, size: ArrayLike, keys: Array, turn: ArrayLike) -> Array:
    """Where an item of 0 .. size - 1 goes in the permutation number `turn`.

    Items are written as two digits to the base ceil(sqrt(size)). A Feistel network, in which each digit in turn moves
    by a hash of the other, permutes all pairs of digits; a pair beyond the last item is sent through it again until it
    is an item, which permutes the items among themselves. Then follow swaps: items are paired by a random reflection,
    and each pair tosses a coin on whether to swap (the swap-or-not shuffle of Hoang, Morris and Rogaway, 2012).

    Args:
        item: (), a whole number below `size`.
        size: how many items there are, at most 2^31; may be traced.
        keys: of `round_keys`.
        turn: which permutation, each independent of the others.

    Returns:
        (), uint32. Over all items every number below `size` comes once.

    >>> keys = round_keys(jax.random.key(0))
    >>> sorted(int(permuted(jnp.uint32(i), 5, keys, 0)) for i in range(5))
    [0, 1, 2, 3, 4]
    """
    size = jnp.asarray(size).astype(jnp.uint32)
    root = jnp.sqrt(size.astype(jnp.float32)).astype(jnp.uint32)
    base = root + jnp.where(size < EXACT_IN_FLOAT, jnp.uint32(1), jnp.uint32(2))
    of_turn = _hash(keys + _hash(jnp.asarray(turn).astype(jnp.uint32) * jnp.uint32(GOLDEN)))

    def network(pair: Array) -> Array:
        high, low = pair // base, pair % base
        for key in of_turn[:ROUNDS]:
            high, low = low, (high + _hash(low ^ key) % base) % base
        return high * base + low

    start = network(jnp.asarray(item).astype(jnp.uint32))
    item = jax.lax.while_loop(lambda pair: pair >= size, network, start)
    for key in of_turn[ROUNDS:]:
        mirror = key % size
        partner = jnp.where(mirror >= item, mirror - item, mirror + size - item)
        coin = _hash(jnp.maximum(item, partner) ^ _hash(key)) & 1
        item = jnp.where(coin == 1, partner, item)
    return item


def _hash(x: Array) -> Array:
    """A bijection of 32-bit words whose every output bit depends on every input bit (lowbias32, C. Wellons)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)
