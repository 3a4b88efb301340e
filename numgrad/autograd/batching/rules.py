"""How operations act on whole batches: every operand that has a batch axis has it in front.

Note [Rules of batching]
------------------------
A rule gets the operation, its operands, the parameters as they are meant for one example, and the
length of the batch. It calls operations on the values of whole batches, so that what it does is
recorded, and batched by outer levels, like anything else; it returns a result (or a tuple of them)
with the batch axis in front. ``NotImplemented`` leaves the call to ``by_example``, a loop, which is
right for every operation; tests hold the rules to it. Rules need not check what they are given:
where one fails, the interpreter repeats the call on an example for the error.

Most operations of one operand need other parameters and nothing else: ``PARAMETERS`` gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from numgrad.core.axis import AxisOp, normalize_axes
from numgrad.core.elementwise import Elementwise
from numgrad.core.interpreter import bind
from numgrad.core.op import OPS, Op
from numgrad.operations.shape import as_operand

Rule = Callable[[Op, Sequence["Operand"], dict[str, Any], int], Any]


@dataclass(frozen=True, slots=True)
class Operand:
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

    def repeated(self, size: int) -> Any:
        """The value with a batch axis, broadcast where it has none."""
        if self.batched:
            return self.value
        return apply("broadcast_to", as_operand(self.value), shape=(size, *self.shape))

    def flat(self) -> Operand:
        """The elements of each example along one axis."""
        lead = self.value.shape[:1] if self.batched else ()
        value = apply("reshape", as_operand(self.value), shape=(*lead, prod(self.shape)))
        return Operand(value, self.batched)


def shifted(axis: Any, ndim: int) -> Any:
    """An axis of ``ndim``, or several in their order, where a batch axis stands before them."""
    if isinstance(axis, tuple | list | range):
        return tuple([shifted(a, ndim) for a in axis])
    return normalize_axes("batching", axis, ndim)[0] + 1


def find_rule(op: Op) -> Rule | None:
    """The rule of an operation, by its name or its family."""
    if op.name in PARAMETERS:
        return _with_other_parameters
    rule = RULES.get(op.name)
    if rule is None and isinstance(op, Elementwise):
        return elementwise_rule
    if rule is None and isinstance(op, AxisOp) and "axis" in op.params:
        return _over_axes
    return rule


def by_example(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    """Call the operation on one example after the other and stack the results."""
    columns = [apply("unstack", o.value) if o.batched else (o.value,) * size for o in operands]
    rows = [bind(op, row, dict(params)) for row in zip(*columns, strict=True)]
    if isinstance(rows[0], tuple):
        return tuple([apply("stack", *parts) for parts in zip(*rows, strict=True)])
    return apply("stack", *rows)


def first_example(op: Op, operands: Sequence[Operand], params: dict[str, Any]) -> Any:
    """Call the operation on the first example alone."""
    row = [apply("getitem", o.value, index=(0,)) if o.batched else o.value for o in operands]
    return bind(op, tuple(row), dict(params))


def apply(name: str, *args: Any, **params: Any) -> Any:
    """Call the operation of that name on whole batches."""
    return bind(OPS[name], args, params)


# ----------------------------------------------------------------------------------- families


def elementwise_rule(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    """Operands with axes of length 1 where an example has fewer than others."""
    ndim = max(o.ndim for o in operands)
    return bind(op, tuple([o.aligned(ndim) for o in operands]), params)


def _over_axes(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    axis = x.axes(params["axis"])
    return bind(op, (x.value,), {**params, "axis": axis})


def _with_other_parameters(
    op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    changed = PARAMETERS[op.name](x, size, **params)
    return changed if changed is NotImplemented else bind(op, (x.value,), {**params, **changed})


def _integers(values: Any) -> tuple[int, ...]:
    """Lengths or axes, which may be written as one number or as any sequence."""
    return tuple(np.atleast_1d(values).tolist())


def _index(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


def _other_shape(x: Operand, size: int, shape: Any, order: str) -> dict[str, Any]:
    shape = _integers(shape)
    if not size and shape.count(-1) == 1:  # NumPy cannot tell what is left of an empty batch
        known = -prod(shape)
        shape = tuple([prod(x.shape) // max(known, 1) if n == -1 else n for n in shape])
    return {"shape": (size, *shape)}


def _added_axes(x: Operand, size: int, axis: Any) -> dict[str, Any]:
    count = len(axis) if isinstance(axis, tuple | list) else 1
    return {"axis": shifted(axis, x.ndim + count)}


def _without_axes(x: Operand, size: int, axis: Any) -> dict[str, Any]:
    return {"axis": x.axes([k for k, n in enumerate(x.shape) if n == 1] if axis is None else axis)}


def _other_order(x: Operand, size: int, axes: Any) -> dict[str, Any]:
    order = range(x.ndim)[::-1] if axes is None else _integers(axes)
    return {"axes": (0, *x.axes(order))}


def _of_matrices(x: Operand, size: int, **params: Any) -> Any:
    return {} if x.ndim >= 2 else NotImplemented


def _padding(x: Operand, size: int, widths: Any, values: Any) -> Any:
    return NotImplemented if np.ndim(values) else {"widths": ((0, 0), *widths)}


PARAMETERS: dict[str, Callable[..., Any]] = {
    "astype": lambda x, size, **params: {},
    "average_windows": lambda x, size, **params: {},
    "copy": lambda x, size: {},
    "diagonal": lambda x, size, offset, axis1, axis2: {
        "axis1": x.axes(axis1),
        "axis2": x.axes(axis2),
    },
    "expand_dims": _added_axes,
    "flip": lambda x, size, axis: {"axis": x.axes(axis)},
    "getitem": lambda x, size, index: {"index": (slice(None), *_index(index))},
    "imag": lambda x, size: {},
    "matrix_transpose": _of_matrices,
    "max_pool": lambda x, size, **params: {},
    "max_pool_indices": lambda x, size, **params: {},
    "moveaxis": lambda x, size, source, destination: {
        "source": x.axes(source),
        "destination": x.axes(destination),
    },
    "pad_constant": _padding,
    "permute_dims": _other_order,
    "real": lambda x, size: {},
    "reshape": _other_shape,
    "split_at": lambda x, size, cuts, axis: {"axis": x.axes(axis)},
    "spread_windows": lambda x, size, **params: {},
    "squeeze": _without_axes,
    "swapaxes": lambda x, size, axis1, axis2: {"axis1": x.axes(axis1), "axis2": x.axes(axis2)},
    "tril": _of_matrices,
    "triu": _of_matrices,
    "unstack": lambda x, size, axis: {"axis": x.axes(axis)},
}
"""By name of an operation: which of its parameters are others for a whole batch."""


# ------------------------------------------------------------------------------------- shapes


def _ravel(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    return apply("reshape", x.value, shape=(size, prod(x.shape)), **params)


def _broadcast_to(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    shape = _integers(params["shape"])
    return bind(op, (x.aligned(len(shape)),), {"shape": (size, *shape)})


def _concat(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    axis = params["axis"]
    if axis is None:
        operands, axis = [o.flat() for o in operands], 0
    arrays = tuple([o.repeated(size) for o in operands])
    return bind(op, arrays, {"axis": operands[0].axes(axis)})


def _stack(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    arrays = tuple([o.repeated(size) for o in operands])
    return bind(op, arrays, {"axis": shifted(params["axis"], operands[0].ndim + 1)})


def _diagonal_backward(
    op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape = params["shape"]
    axes = {name: shifted(params[name], len(shape)) for name in ("axis1", "axis2")}
    return bind(op, (x.aligned(len(shape) - 1),), {**params, **axes, "shape": (size, *shape)})


def _getitem_backward(
    op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int
) -> Any:
    (x,) = operands
    shape, index = params["shape"], _index(params["index"])
    written = np.broadcast_to(np.empty(()), shape)[index].ndim
    changed = {"shape": (size, *shape), "index": (slice(None), *index)}
    return bind(op, (x.aligned(written),), changed)


# ---------------------------------------------------------------- along an axis, or flattened


def _along_axis(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    (x,) = operands
    if params["axis"] is None:
        return bind(op, (x.flat().value,), {**params, "axis": 1})
    return bind(op, (x.value,), {**params, "axis": x.axes(params["axis"])})


def _argreduce(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    out = _along_axis(op, operands, params, size)
    if params["axis"] is None and params["keepdims"]:
        return apply("reshape", out, shape=(size, *(1,) * operands[0].ndim))
    return out


def _roll(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    out = _along_axis(op, operands, params, size)
    return apply("reshape", out, shape=operands[0].value.shape) if params["axis"] is None else out


def _linear_recurrence(
    op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int
) -> Any:
    axis = operands[0].axes(params["axis"])
    return bind(op, tuple([o.repeated(size) for o in operands]), {**params, "axis": axis})


# ------------------------------------------------------------------------------------ indices


def _spread(indices: Operand, shape: tuple[int, ...], axis: int, size: int) -> Any:
    """Indices into ``axis`` of each example, one for each element: as ``gather_along`` has them.

    ``shape`` is that of the examples with the indices, flattened, along ``axis``.
    """
    count = shape[axis]
    lonely = (size, *(1,) * axis, count, *(1,) * (len(shape) - axis - 1))
    value = apply("reshape", indices.value, shape=lonely)
    return apply("broadcast_to", value, shape=(size, *shape))


def _take(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    x, indices = operands
    axis = params["axis"]
    if axis is None:
        x, axis = x.flat(), 0
    (axis,) = normalize_axes(op.name, axis, x.ndim)
    if not indices.batched:
        return bind(op, (x.value, indices.value), {"axis": axis + 1})
    if not x.batched:
        out = bind(op, (x.value, indices.value), {"axis": axis})
        return apply("moveaxis", out, source=axis, destination=0)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    where = _spread(indices, (*before, prod(indices.shape), *after), axis, size)
    out = apply("gather_along", x.value, where, axis=axis + 1)
    return apply("reshape", out, shape=(size, *before, *indices.shape, *after))


def _take_backward(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    x, indices = operands
    axis, target = params["axis"], tuple(params["shape"])
    shape = target
    if axis is None:
        shape, axis = (prod(target),), 0
    (axis,) = normalize_axes(op.name, axis, len(shape))
    whole = {"shape": (size, *shape), "axis": axis + 1}
    if indices.batched:
        around = (*shape[:axis], prod(indices.shape), *shape[axis + 1 :])
        value = apply("reshape", x.repeated(size), shape=(size, *around))
        where = _spread(indices, around, axis, size)
        out = apply("gather_along_backward", value, where, **whole)
    else:
        out = bind(op, (x.value, indices.value), whole)
    return out if shape == target else apply("reshape", out, shape=(size, *target))


def _gather_along(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    changed = {"axis": operands[1].axes(params["axis"])}
    if "shape" in params:  # gather_along_backward
        changed["shape"] = (size, *params["shape"])
    return bind(op, tuple([o.repeated(size) for o in operands]), changed)


# ----------------------------------------------------------------------------------- products


def matmul_rule(op: Op, operands: Sequence[Operand], params: dict[str, Any], size: int) -> Any:
    """Products of stacks of matrices, or one of two matrices where that does."""
    a, b = operands
    if a.ndim == 0 or b.ndim == 0:
        return NotImplemented  # an error, whose message one example gives
    # vectors of a batch times one matrix are one product of two matrices
    if a.batched and a.ndim == 1 and not b.batched and b.ndim == 2:
        return bind(op, (a.value, b.value), {})
    if b.batched and b.ndim == 1 and not a.batched and a.ndim == 2:
        return bind(op, (b.value, apply("matrix_transpose", a.value)), {})
    row, column = a.batched and a.ndim == 1, b.batched and b.ndim == 1
    if row:
        a = Operand(apply("expand_dims", a.value, axis=1), True)
    if column:
        b = Operand(apply("expand_dims", b.value, axis=2), True)
    ndim = max(a.ndim, b.ndim)
    out = bind(op, (a.aligned(ndim), b.aligned(ndim)), {})
    if column:
        out = apply("squeeze", out, axis=-1)
    return apply("squeeze", out, axis=-1 if column or b.ndim == 1 else -2) if row else out


RULES: dict[str, Rule] = {
    "argmax": _argreduce,
    "argmin": _argreduce,
    "broadcast_to": _broadcast_to,
    "concat": _concat,
    "cumprod": _along_axis,
    "cumsum": _along_axis,
    "diagonal_backward": _diagonal_backward,
    "gather_along": _gather_along,
    "gather_along_backward": _gather_along,
    "getitem_backward": _getitem_backward,
    "linear_recurrence": _linear_recurrence,
    "matmul": matmul_rule,
    "ravel": _ravel,
    "roll": _roll,
    "stack": _stack,
    "take": _take,
    "take_backward": _take_backward,
}
"""Rules of other operations by name, before those of families: Note [Rules of batching].

``batching_rules_nn`` adds those of neural networks.
"""
