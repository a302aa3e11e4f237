"""A linear optimizer in the coordinates in which a run is quickest: only one buffer, v, sees the gradient.

All other buffers, and the weight, are freed of it by subtracting a multiple of v. What is left of the weight is x:

    e = (x + v) + ahead v,    g = B e - b
    x' = a combination of x and the buffers,    each buffer' = one of e and the buffers; v' has g besides

Heavy ball is  e = x + v, x' = x + v, v' = mu v - eta g:  x is the weight before the last step and v that step.
Nesterov's momentum looks ahead by mu, and is the same otherwise. The product B e enters a single coordinate: XLA, which
computes each output by itself on a CPU, forms it once. Buffers are measured in what they add to the weights, so that
all coordinates are of one size.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from resonance_jax.optimizers.linear import Form, LinearOptimizer
from resonance_jax.optimizers.numbers import (
    ONE,
    ZERO,
    Number,
    divides,
    minus,
    number,
    over,
    plus,
    times,
    total,
    weighted,
)

TINY = 2.0**-60  # a buffer that adds nothing to the weights, as where the step size is 0, is measured in this
Coefficient = float | Array  # plain where it is known


class Row(NamedTuple):
    """What a coordinate is after a step: a linear combination."""

    x: Coefficient
    error: Coefficient  # of e
    buffers: tuple[Coefficient, ...]  # v first
    truth: Coefficient  # of theta*; not 0 where weights decay, towards 0 and not towards theta*
    gradient: Coefficient  # of g


class Stepping(NamedTuple):
    """One step in these coordinates."""

    base: float  # e = x + base v + ahead v: 1, or 0 where v does not move the weights in the step that makes it
    ahead: Coefficient
    x: Row
    buffers: tuple[Row, ...]  # that of v first, the only one with a gradient
    pull: Coefficient  # about what a gradient adds to the weights; for the usual kinds of momentum free of the momentum

    @property
    def reach(self) -> Coefficient:
        """e = x + reach v."""
        return weighted([(1.0, self.base), (1.0, self.ahead)])

    def matrix(self) -> list[list[Coefficient]]:
        """Of a step on (x, buffers) without gradient, row by row."""
        rows = [[row.x, *row.buffers] for row in (self.x, *self.buffers)]
        for coefficients, row in zip(rows, (self.x, *self.buffers), strict=True):
            for i, share in enumerate((1.0, self.reach)):  # of e
                coefficients[i] = weighted([(1.0, coefficients[i]), (row.error, share)])
        return rows

    @property
    def gain(self) -> Coefficient:
        """What a gradient adds to v."""
        return self.buffers[0].gradient

    @property
    def decays(self) -> bool:
        """Whether theta* drives the weights."""
        return not all(isinstance(row.truth, float) and row.truth == 0 for row in (self.x, *self.buffers))


def stepping(optimizer: LinearOptimizer) -> Stepping:
    """The coordinates of a run."""
    pivot, weight, buffers = _around_pivot(optimizer)
    at_once = over(weight.gradient, pivot.gradient)  # what the gradient adds to the weight besides through the pivot
    of_buffers = [_without_gradient(row, pivot) for row in buffers]
    of_weight = _without_gradient(weight, pivot)
    # x' = weight' - of_weight.fresh * pivot',  whose coefficient of the pivot is put together such that terms cancel
    of_pivot = total(
        [
            plus(times(of_weight.error, at_once), weight.old[0]),
            minus(times(of_weight.error, weight.fresh), times(at_once, pivot.old[0])),
            *(times(each, row.fresh) for each, row in zip(of_weight.old[1:], of_buffers, strict=True)),
        ]
    )
    x = (of_pivot, *of_weight.old[1:])
    adds = [weight.fresh if at_once.is_zero else at_once, *x[1:]]  # what each buffer adds to the weights
    sizes = [_not_zero(each) for each in adds]

    def in_sizes(coefficient: Number, i: int) -> Number:
        return ONE if minus(coefficient, adds[i]).is_zero and not adds[i].is_zero else over(coefficient, sizes[i])

    ahead = ZERO  # of what the gradient adds at once, v has a share already; the rest is what came through the pivot
    if not at_once.is_zero:
        ahead = over(weight.fresh, at_once if divides(at_once, weight.fresh) else sizes[0])

    def row_of(row: _Row, own: int) -> Row:
        """With  s_k = z_k + fresh_k s_1  for the buffers behind the pivot, each measured in its size."""
        shared = (times(each, other.fresh) for each, other in zip(row.old[1:], of_buffers, strict=True))
        coefficients = (total([row.old[0], *shared]), *row.old[1:])
        measured = (
            each if i == own else over(times(sizes[own], each), size)
            for i, (each, size) in enumerate(zip(coefficients, sizes, strict=True))
        )
        drag = times(sizes[own], row.error)
        gain = times(sizes[own], row.gradient)
        return Row(0.0, drag.value, tuple(each.value for each in measured), drag.value, gain.value)

    return Stepping(
        0.0 if at_once.is_zero and weight.fresh.is_zero else 1.0,
        ahead.value,
        Row(
            of_weight.error.value,
            0.0,
            tuple(in_sizes(each, i).value for i, each in enumerate(x)),
            minus(of_weight.error, ONE).value,
            0.0,
        ),
        tuple(row_of(row, i) for i, row in enumerate((pivot, *of_buffers))),
        times(weight.fresh if at_once.is_zero else Number(2 * at_once.factor, at_once.of), pivot.gradient).value,
    )


class _Row(NamedTuple):
    """The weight or a buffer after a step, in terms of the pivot's new value besides what the step begins with."""

    gradient: Number
    error: Number
    old: tuple[Number, ...]  # that of the pivot first
    fresh: Number  # the pivot after the step


def _around_pivot(optimizer: LinearOptimizer) -> tuple[_Row, _Row, list[_Row]]:
    """The buffer that shall see the gradient, the weight, and the other buffers."""
    for i in range(len(optimizer.buffers)):
        pivot, weight, buffers = _written_out(optimizer, i)
        if not pivot.gradient.is_zero and all(divides(pivot.gradient, row.gradient) for row in (weight, *buffers)):
            return pivot, weight, buffers
    # The gradient itself as one more buffer: for SGD without momentum, and where one would divide by what may be 0.
    padded = [form._replace(old=(*form.old, ZERO)) for form in (*optimizer.buffers, optimizer.weight)]
    gradient = Form(ONE, ZERO, (ZERO,) * len(padded))
    return _written_out(LinearOptimizer((*padded[:-1], gradient), padded[-1]), len(optimizer.buffers))


def _written_out(optimizer: LinearOptimizer, pivot: int) -> tuple[_Row, _Row, list[_Row]]:
    """The pivot, the weight and the other buffers, without new values but that of the pivot."""
    done: list[_Row] = []
    of_pivot: list[_Row] = []
    for i, form in enumerate((*optimizer.buffers, optimizer.weight)):
        row = _Row(form.gradient, form.weight, form.old, ZERO)
        for factor, new in zip(form.new, done, strict=False):
            row = _plus(row, factor, new)
        if i == pivot:
            of_pivot, row = [row], _Row(ZERO, ZERO, (ZERO,) * len(row.old), ONE)
        done.append(row)

    def pivot_first(row: _Row) -> _Row:
        return row._replace(old=(row.old[pivot], *row.old[:pivot], *row.old[pivot + 1 :]))

    done = [pivot_first(row) for row in done]
    return pivot_first(of_pivot[0]), done[-1], [*done[:pivot], *done[pivot + 1 : -1]]


def _without_gradient(row: _Row, pivot: _Row) -> _Row:
    """The same where the gradient is written as what the pivot's new value has of it."""
    ratio = over(row.gradient, pivot.gradient)
    freed = _plus(row, minus(ZERO, ratio), pivot)
    return freed._replace(gradient=ZERO, fresh=plus(row.fresh, ratio))


def _plus(row: _Row, factor: Number, other: _Row) -> _Row:
    """row + factor other."""
    return _Row(
        plus(row.gradient, times(factor, other.gradient)),
        plus(row.error, times(factor, other.error)),
        tuple(plus(a, times(factor, b)) for a, b in zip(row.old, other.old, strict=True)),
        plus(row.fresh, times(factor, other.fresh)),
    )


def _not_zero(adds: Number) -> Number:
    """What a buffer is measured in, given what one of it adds to the weights."""
    if not adds.of:
        return ONE if adds.is_zero else adds
    value = jnp.asarray(adds.value)
    return number(jnp.where(value == 0, jnp.asarray(TINY, value.dtype), value))
