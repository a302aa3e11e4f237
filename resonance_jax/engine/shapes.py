"""Shapes of chunks: how a grid is cut, shared by devices and made to fit into the memory. Only integers, no JAX."""

import itertools
import math
from collections.abc import Callable

Shape = tuple[int, ...]
Index = tuple[slice, ...]  # where a chunk lies in its grid


def chunk_shape(shape: Shape, limit: int) -> Shape:
    """Shape of a chunk of at most `limit` cells: last axes whole, one cut into equal parts, first ones of length 1.

    >>> chunk_shape((10, 100, 100), 5000)
    (1, 50, 100)
    """
    sides: list[int] = []
    room = limit
    for n in reversed(shape):
        parts = math.ceil(n / max(1, min(n, room)))
        sides.insert(0, math.ceil(n / parts))
        room //= sides[0]
    return tuple(sides)


def padded(shape: Shape, num_devices: int) -> Shape:
    """The shape with its longest side rounded up to a multiple of the devices, which share it."""
    longest = longest_side(shape)
    return tuple(-(-n // num_devices) * num_devices if i == longest else n for i, n in enumerate(shape))


def halved(shape: Shape, num_devices: int) -> Shape | None:
    """A padded shape with half of its longest side, padded again; None if it has one cell per device already.

    Padding may round a half up to the shape itself, which is then halved once more.

    >>> halved((8, 3), 1), halved((4, 4), 4), halved((4, 1), 4)
    ((4, 3), (2, 4), None)
    """
    half = shape
    while max(half, default=1) > 1:
        longest = longest_side(half)
        half = tuple(-(-n // 2) if i == longest else n for i, n in enumerate(half))
        if math.prod(padded(half, num_devices)) < math.prod(shape):
            return padded(half, num_devices)
    return None


def longest_side(shape: Shape) -> int:
    """The axis along which devices share a chunk; -1 for a shape without axes."""
    return max(range(len(shape)), key=lambda i: shape[i], default=-1)


def shape_that_fits(shape: Shape, limit: int, num_devices: int, share: Callable[[Shape], float]) -> Shape:
    """Shape of a chunk of at most `limit` cells that fits into the memory, by trials with fewer and fewer cells.

    The smallest chunk has one cell for each device. It is accepted even if it exceeds the budget: the budget is only a
    part of the memory, and what a chunk takes is an estimate.

    Args:
        shape: of the grid.
        limit: largest number of cells.
        num_devices: devices that share a chunk, whose longest side is rounded up to a multiple of them.
        share: padded shape -> the share of the budget that it takes; MemoryError if it cannot be compiled.

    Raises:
        MemoryError: the smallest chunk cannot be compiled.
    """

    def cells_of(limit: int) -> int:
        return math.prod(padded(chunk_shape(shape, limit), num_devices))

    while True:
        tried = chunk_shape(shape, limit)
        cells = cells_of(limit)
        try:
            taken = share(padded(tried, num_devices))
            wanted = int(0.8 * cells / taken) if taken > 1 else cells
        except MemoryError as error:  # compilers allocate memory to try out kernels
            if cells <= num_devices:
                raise MemoryError(one_cell_does_not_fit(num_devices)) from error
            taken, wanted = math.inf, cells
        if taken <= 1 or cells <= num_devices:
            return tried
        limit = max(1, min(cells // 2, wanted))
        while cells_of(limit) >= cells:  # rounding up gave as many cells as before
            limit //= 2


def one_cell_does_not_fit(num_devices: int) -> str:
    return (
        f"one cell for each of {num_devices} devices does not fit into the memory; take fewer devices, smaller arrays "
        "in the point, or a device with more memory"
    )


def chunks_of(index: Index, shape: Shape) -> list[Index]:
    """The chunks of a shape that cover an index; the last ones are cut off at its end.

    >>> chunks_of((slice(0, 3),), (2,))
    [(slice(0, 2, None),), (slice(2, 3, None),)]
    """
    starts = (range(s.start, s.stop, n) for s, n in zip(index, shape, strict=True))
    return [
        tuple(slice(c, min(c + n, s.stop)) for c, n, s in zip(corner, shape, index, strict=True))
        for corner in itertools.product(*starts)
    ]


def shape_of(index: Index) -> Shape:
    return tuple(s.stop - s.start for s in index)
