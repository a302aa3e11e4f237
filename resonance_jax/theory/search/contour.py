"""Marching squares: the zero line through a set of cells, as polylines in order."""

from collections.abc import Iterator

import numpy as np

CORNERS = ((0, 0), (1, 0), (1, 1), (0, 1))  # of a cell, anticlockwise; edge k joins corners k and k + 1


def sign(values: np.ndarray) -> np.ndarray:
    """+1 where a rate grows, -1 where it does not (0 and -inf included), 0 where it is NaN and has no sign."""
    return np.where(values > 0, 1, np.where(np.isnan(values), 0, -1))


def crossed_edges(values: np.ndarray) -> np.ndarray:
    """Whether the sign changes along each edge of cells with these corner values; both (cells, 4)."""
    signs = sign(values)
    return signs * np.roll(signs, -1, axis=1) < 0


def segments(values: np.ndarray) -> np.ndarray:
    """Pairs of edges that the zero line joins inside cells with these corner values (cells, 4).

    Two crossed edges are joined. In a saddle all four are crossed; the sign of the mean of the corners decides which
    opposite corners are connected. Next to a NaN a cell may have one crossed edge; there the line ends.

    Returns:
        (segments, 3): cell, edge, edge.

    >>> segments(np.array([[-1.0, 1.0, 1.0, -1.0]])).tolist()  # it grows to the right: bottom to top
    [[0, 0, 2]]
    """
    crossed = crossed_edges(values)
    plain = np.flatnonzero(crossed.sum(axis=1) == 2)
    saddle = np.flatnonzero(crossed.all(axis=1))
    mean = np.clip(values[saddle], -1e300, 1e300).mean(axis=1)  # so that opposite infinities have a mean
    around_first = sign(mean) != sign(values[saddle, 0])
    pairs = [np.column_stack([plain, *np.nonzero(crossed[plain])[1].reshape(-1, 2).T])]
    for around, edges in ((around_first, ((3, 0), (1, 2))), (~around_first, ((0, 1), (2, 3)))):
        pairs += [np.column_stack([saddle[around], *np.broadcast_to(pair, (around.sum(), 2)).T]) for pair in edges]
    return np.concatenate(pairs)


def chains(pairs: np.ndarray) -> Iterator[list[int]]:
    """Join pairs of labels, (n, 2), into paths. A label occurs in at most two pairs.

    Yields:
        Labels in order: first the paths with two ends, then the closed ones, which end with their first label.

    >>> list(chains(np.array([[5, 7], [1, 2], [7, 6], [2, 3], [3, 1]])))
    [[5, 7, 6], [1, 3, 2, 1]]
    """
    beside: dict[int, list[int]] = {}
    for a, b in pairs.tolist():
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    in_order = sorted(beside)
    for start in [label for label in in_order if len(beside[label]) == 1] + in_order:
        if not beside[start]:
            continue
        path = [start]
        while beside[path[-1]]:
            following = beside[path[-1]].pop()
            beside[following].remove(path[-1])
            path.append(following)
        yield path
