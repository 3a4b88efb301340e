"""How operations act on whole batches: every operand that has a batch axis has it in front.

Note [Rules of batching]
------------------------
A rule gets the operation, its operands, the parameters as they are meant for one example, and the
length of the batch. It calls operations on the values of whole batches, so that what it does is
recorded, and batched by outer levels, like anything else; it returns a result (or a tuple of them)
with the batch axis in front, or a tuple in which a ``BatchOperand`` stands for what all examples
share. ``NotImplemented`` leaves the call to ``by_example``, a loop, which is right for every
operation; tests hold the rules to it. Rules need not check what they are given: where one fails,
the interpreter repeats the call on an example for the error.

An operation declares its rule by ``op.batch(rule)``. Most of one operand need other parameters and
nothing else: ``with_parameters`` makes the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from numgrad.core.axis import AxisOp, normalize_axes
from numgrad.core.draws import Draws
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.dataclass import dataclass

Rule = Callable[[Op, Sequence["BatchOperand"], dict[str, Any], int], Any]


@dataclass(frozen=True, slots=True)
class BatchOperand:
    """An argument of a batched call: a value with a batch axis in front, or one for all examples.

    ``shape`` and ``ndim`` are those of one example.
    """

    value: Any
    batched: bool

    @property
    def shape(self) -> tuple[int, ...]:
        shape = getattr(self.value, "shape", ())
        return shape[1:] if self.batched else shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def axes(self, axis: Any) -> Any:
        """An axis of an example, several in their order, or None for all, as axes of the value."""
        return shifted(range(self.ndim) if axis is None else axis, self.ndim)

    def aligned(self, ndim: int) -> Any:
        """The value with axes of length 1 before those of an example, so that they are ``ndim``."""
        missing = ndim - self.ndim
        if not self.batched or missing <= 0:
            return self.value
        size, *rest = self.value.shape
        return apply("reshape", self.value, shape=(size, *(1,) * missing, *rest))

    @property
    def _array(self) -> Any:
        return self.value if hasattr(self.value, "shape") else np.asarray(self.value)

    def repeated(self, size: int) -> Any:
        """The value with a batch axis, broadcast where it has none."""
        if self.batched:
            return self.value
        return apply("broadcast_to", self._array, shape=(size, *self.shape))

    def flat(self) -> BatchOperand:
        """The elements of each example along one axis."""
        lead = self.value.shape[:1] if self.batched else ()
        value = apply("reshape", self._array, shape=(*lead, prod(self.shape)))
        return BatchOperand(value, self.batched)


def shifted(axis: Any, ndim: int) -> Any:
    """An axis of ``ndim``, or several in their order, where a batch axis stands before them."""
    if isinstance(axis, tuple | list | range):
        return tuple([shifted(a, ndim) for a in axis])
    return normalize_axes("batching", axis, ndim)[0] + 1


def apply(name: str, *args: Any, **params: Any) -> Any:
    """Call the operation of that name on whole batches."""
    return bind(OPS[name], args, params)


def with_parameters(change: Callable[..., Any]) -> Rule:
    """The rule of an operation of one operand that has other parameters for a whole batch.

    ``change(x, size, **params)`` returns those that are others.
    """

    def rule(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
        (x,) = operands
        changed = change(x, size, **params)
        return changed if changed is NotImplemented else bind(op, (x.value,), params | changed)

    return rule


unchanged = with_parameters(lambda x, size, **params: {})
"""The rule of an operation that leaves the first axis alone."""


def find_rule(op: Op) -> Rule | None:
    """The rule of an operation, its own or that of its family."""
    if op.batching is not None:
        return op.batching
    if isinstance(op, Elementwise):
        return broadcasting_rule
    return _over_axes if isinstance(op, AxisOp) and "axis" in op.params else None


def broadcasting_rule(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Operands with axes of length 1 where an example has fewer than others."""
    ndim = max([o.ndim for o in operands])
    return bind(op, tuple([o.aligned(ndim) for o in operands]), params)


def _over_axes(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    axis = x.axes(params["axis"])
    return bind(op, (x.value,), {**params, "axis": axis})


def by_example(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    """Call the operation on one example after the other and stack the results."""
    columns = [apply("unstack", o.value) if o.batched else (o.value,) * size for o in operands]
    rows = [bind(op, row, dict(params)) for row in zip(*columns, strict=True)]
    if isinstance(rows[0], tuple):
        return tuple([apply("stack", *column) for column in zip(*rows, strict=True)])
    return apply("stack", *rows)


def first_example(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any]) -> Any:
    """Call the operation on the first example alone."""
    row = [apply("getitem", o.value, index=(0,)) if o.batched else o.value for o in operands]
    return bind(op, tuple(row), dict(params))


def of_examples(draws: Any, operand: Callable[[Any], BatchOperand], size: int) -> Any:
    """A draw for all examples: their axis is the first of every single draw."""
    if isinstance(draws, Draws):
        members = tuple([of_examples(member, operand, size) for member in draws.parts])
        return replace(draws, parts=members, extra=tuple([operand(a).value for a in draws.extra]))
    function, shape, dtype = draws.function, draws.shape, draws.dtype
    operands = [operand(a) for a in draws.operands]
    if draws.independent:
        values = tuple([each.aligned(len(shape)) for each in operands])
        return replace(draws, operands=values, shape=(size, *shape))

    def in_turn(*given_now: Any) -> np.ndarray:
        *values, (count, *rest) = given_now
        result = np.empty((count, *rest), dtype)
        for k in range(count):
            row = [v[k] if o.batched else v for v, o in zip(values, operands, strict=True)]
            result[k] = function(*row, tuple(rest))
        return result

    values = tuple([each.value for each in operands])
    return replace(
        draws, function=in_turn, operands=values, shape=(size, *shape), independent=False
    )
