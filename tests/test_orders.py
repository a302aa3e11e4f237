"""Orders of recorded rows, against plain Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import resonance_jax as rj
from resonance_jax.numerics.permutation import permuted, round_keys
from resonance_jax.problems.orders import as_order

N, SAMPLES = 120, 4
KEY = jax.random.key(7)


def rows_of(order, num_steps, *, num_rows=N, samples=SAMPLES, key=KEY, pieces=1):
    """Rows of the first steps, asked for in pieces, in a line."""
    order, found, k = as_order(order), [], np.arange(num_steps, dtype=np.int32)
    state = order.init(key, num_rows)
    call = jax.jit(lambda k, state: order.rows(jax.random.fold_in(key, 1), k, state, num_rows, samples))
    for part in np.split(k, pieces):
        rows, state = call(jnp.asarray(part), state)
        found.append(np.asarray(rows))
    return np.concatenate(found).reshape(-1)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 17, 1000])
def test_a_permutation_has_every_item_once_and_its_table_is_not_needed(size):
    keys = round_keys(KEY)
    table = jax.jit(jax.vmap(jax.vmap(permuted, (0, None, None, None)), (None, None, None, 0)), static_argnums=1)
    found = np.asarray(table(jnp.arange(size, dtype=jnp.uint32), size, keys, jnp.arange(20)))
    assert (np.sort(found, axis=1) == np.arange(size)).all()
    if size > 16:
        assert len({tuple(row) for row in found}) == 20


def test_permutations_are_uniform():
    """Chi-squared over the 120 orders of five items, and over the place of each of 64: false alarms below 1e-6 each."""
    from scipy.stats import chi2

    keys = jax.jit(jax.vmap(round_keys))(jax.random.split(KEY, 24_000))
    many = jax.jit(jax.vmap(jax.vmap(permuted, (0, None, None, None)), (None, None, 0, None)), static_argnums=(1,))
    found = np.asarray(many(jnp.arange(5, dtype=jnp.uint32), 5, keys, 3))
    _, counts = np.unique(found @ 5 ** np.arange(5), return_counts=True)
    assert len(counts) == 120
    assert ((counts - 200) ** 2 / 200).sum() < chi2.isf(1e-6, 119)
    found = np.asarray(many(jnp.arange(64, dtype=jnp.uint32), 64, keys[:6400], 0))
    counts = np.stack([np.bincount(found[:, i], minlength=64) for i in range(64)])
    assert ((counts - 100) ** 2 / 100).sum() < chi2.isf(1e-6, 63 * 63)
    steps = np.bincount((found[:, 1] - found[:, 0]).astype(np.int64) % 64, minlength=64)[1:]
    assert ((steps - steps.mean()) ** 2 / steps.mean()).sum() < chi2.isf(1e-6, 62)


def test_each_pass_of_each_order_has_every_row_once():
    per_pass = N // SAMPLES
    assert (rows_of("time", 2 * per_pass) == np.tile(np.arange(N), 2)).all()
    for order in ("shuffled", rj.problems.blocks(7), rj.problems.blocks(20)):
        first, second = rows_of(order, 2 * per_pass).reshape(2, N)
        assert (np.sort(first) == np.arange(N)).all()
        assert (np.sort(second) == np.arange(N)).all()
        assert (first != second).any()


def test_blocks_stay_together_and_the_rest_ends_the_pass():
    found = rows_of(rj.problems.blocks(7), N // SAMPLES)
    blocks = found[: 17 * 7].reshape(17, 7)
    assert (np.diff(blocks, axis=1) == 1).all()
    assert (blocks[:, 0] % 7 == 0).all()
    assert found[-1] == N - 1
    for length in (N, N + 5, 10 * N):
        assert (rows_of(rj.problems.blocks(length), N // SAMPLES) == np.arange(N)).all()
    traced = jax.jit(
        lambda length: as_order(rj.problems.blocks(length)).rows(KEY, jnp.arange(30), round_keys(KEY), N, 4)
    )
    assert (np.asarray(traced(7)[0]).reshape(-1) == rows_of(rj.problems.blocks(7), 30)).all()


@pytest.mark.parametrize("size", [1, 5, 40, 300])
def test_the_buffer_is_that_of_a_loop(size):
    """A plain buffer, one row at a time, on the same draws."""
    steps = 90  # three passes
    order = rj.problems.buffer(size)
    found = rows_of(order, steps, pieces=6)
    key = jax.random.fold_in(KEY, 1)
    uniform = np.concatenate(
        [jax.random.uniform(jax.random.fold_in(key, k), (SAMPLES,), jnp.float32) for k in range(steps)]
    )
    held, coming, expected = [i % N for i in range(size)], size, []
    for u in uniform:
        slot = int(np.float32(u) * np.float32(size))
        expected.append(held[slot])
        held[slot] = coming % N
        coming += 1
    assert (found == expected).all()
    if size == 1:
        assert (found == np.arange(steps * SAMPLES) % N).all()
    masked = rows_of(rj.problems.buffer(size, max_size=512), steps)
    assert (masked == expected).all()


def test_other_keys_give_other_orders_and_the_same_key_the_same():
    for order in ("shuffled", rj.problems.blocks(3), rj.problems.buffer(20)):
        first, again, other = (rows_of(order, 30, key=jax.random.key(seed)) for seed in (0, 0, 1))
        assert (first == again).all()
        assert (first != other).any()


def test_orders_that_are_none():
    with pytest.raises(
        ValueError, match=r"order must be 'time', 'shuffled', blocks\(length\) or buffer\(size\), got 'tim"
    ):
        as_order("tim")
    with pytest.raises(ValueError, match="length must be a whole number of at least 1, got 0; give the rows that stay"):
        rj.problems.blocks(0)
    with pytest.raises(ValueError, match=r"size must be a whole number of at least 1, got 1.5; give the rows that the"):
        rj.problems.buffer(1.5)
