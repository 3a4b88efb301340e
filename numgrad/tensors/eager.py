"""The eager interpreter: computes at once and records what a backward needs.

Note [Hot path]
---------------
``entry`` builds, for each planned operation of one or two operands, a function with the common
case written out: Tensors over contiguous arrays whose plan exists. Everything else, from a list
to a missing plan, goes through ``bind``, which makes the plan the hot path finds next time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.history import record
from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import (
    INFERENCE,
    NO_GRAD_VIEW,
    TENSORS,
    Parameter,
    Tensor,
    Version,
    refresh,
    root,
)
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import MAX_PLANS, Planned
from numgrad.core.op import Call, Composite, Op, bind, complete, state
from numgrad.core.view import View
from numgrad.errors import NumgradTypeError, NumgradValueError

_NUMBERS = (float, int, complex)
TOO_LARGE = 2**1024
"""The first integer that no float can hold."""


class EagerInterpreter:
    """What an operation means when nothing else interprets it."""

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if isinstance(op, Composite):
            return _expanded(op, args, params)
        args, params = complete(op, args, params)
        operands, arrays = [], []
        for a in args:
            operand, array = self.operand(op, a)
            operands.append(operand)
            arrays.append(array)
        out, call = self.run(op, arrays, params)
        mask = 0
        if state.grad_enabled and op.differentiable:
            for k, a in enumerate(operands):
                if isinstance(a, Tensor) and a._requires_grad and call.differentiable(k):
                    mask |= 1 << k
        if type(out) is tuple:
            tensors = _record_many(call, mask, operands, out)
            if isinstance(op, View):
                for number, part in enumerate(tensors):
                    _link(part, operands[0], number + 1)
            return tensors
        tensor = _record(call, mask, operands, out) if mask else new_tensor(out)
        if isinstance(op, View) and op.shares(arrays[0], out):
            _link(tensor, operands[0], tensor._slot)
        return tensor

    def operand(self, op: Op, a: Any) -> tuple[Any, Any]:
        """An argument as it is kept, and as an array or number to compute with."""
        return _operand(op, a)

    def run(self, op: Op, arrays: list[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        """The result, or several, and the record of the call."""
        return op.run(arrays, params)

    def entry(self, op: Op) -> Callable[..., Any]:
        """The function behind ``op(...)``: Note [Hot path]."""
        own = op.eager_entry()
        if own is not None:
            return own
        if isinstance(op, AxisOp):
            return _axis_entry(op)
        if isinstance(op, Planned) and len(op.inputs) == 1:
            return _unary_entry(op)
        if isinstance(op, Planned) and len(op.inputs) == 2:
            return _binary_entry(op)

        def entry(*args: Any, **params: Any) -> Any:
            return bind(op, args, params)

        return entry


def _expanded(op: Composite, args: tuple, params: dict[str, Any]) -> Any:
    """The result of a composite, by the operations it is written with."""
    try:
        return op.function(*args, **params)
    except TypeError as error:
        try:
            op.__signature__.bind(*args, **params)
        except TypeError as mismatch:
            raise NumgradTypeError(f"{op.name}: {mismatch}") from error
        raise


def _link(view: Tensor, base: Any, slot: int) -> None:
    """Make a new tensor a view of another, or of an ndarray, whose owner may write to it."""
    if not isinstance(base, Tensor):
        if view._memory is None:
            view._memory = Version(foreign=True)
        return
    view._memory = root(base)
    if view._grad_fn is None:
        traced = state.grad_enabled and base._slot != NO_GRAD_VIEW
        view._slot = slot if traced else NO_GRAD_VIEW


def new_tensor(array: np.ndarray) -> Tensor:
    """A Tensor without history, marked in inference mode."""
    return Tensor(array, memory=INFERENCE if state.inference else None)


def _operand(op: Op, a: Any) -> tuple[Any, Any]:
    """An argument as it is kept, and as an array or number to compute with."""
    kind = type(a)
    if kind is Tensor or isinstance(a, Tensor):
        if a._memory is not None:
            refresh(a)
        return a, a._array
    if kind in _NUMBERS:
        if kind is int and abs(a) >= TOO_LARGE:
            raise NumgradValueError(
                f"{op.name}: an integer of {a.bit_length()} bits fits no dtype; give a float"
            )
        return a, a
    if kind is np.ndarray:
        return a, a
    if a is None:
        return None, None
    if isinstance(a, list | tuple) and any(isinstance(x, Tensor) for x in a):
        try:
            stacked = bind(_stack_op(), tuple(a), {})
        except RecursionError:
            raise NumgradValueError(
                f"{op.name}: a {kind.__name__} is nested too deeply, or contains itself"
            ) from None
        return stacked, stacked._array
    check_array_kind(op.name, a)
    try:
        array = np.asarray(a)
    except (ValueError, TypeError) as error:
        raise NumgradTypeError(f"{op.name}: cannot make an array of {type(a).__name__}") from error
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"{op.name}: a {type(a).__name__} of dtype {array.dtype} is not numeric"
        )
    return array, array


def check_array_kind(name: str, value: Any) -> None:
    """Raise for kinds of arrays that mean something else than their numbers.

    Raises
    ------
    NumgradTypeError
        If it is a masked array, whose mask would be lost, or in a product a matrix.
    """
    if not isinstance(value, np.ndarray):
        return
    if hasattr(value, "filled"):  # so that nothing imports np.ma early
        raise NumgradTypeError(
            f"{name}: a masked array among the operands would lose its mask; give its numbers with "
            ".filled(value), and choose by the mask with np.where"
        )
    if type(value).__name__ == "matrix" and name in ("multiply", "power"):
        raise NumgradTypeError(
            f"{name}: for a np.matrix operators mean products of matrices; use np.asarray on it, "
            "and @ for such a product"
        )


def _stack_op() -> Op:
    from numgrad.core.op import OPS

    return OPS["stack"]


def _edge(a: Any) -> Any:
    """Where the gradient of an operand goes."""
    return edge_of(a) if isinstance(a, Tensor) and a._requires_grad else None


def _node(call: Call, mask: int, operands: Sequence[Any], out: Any) -> Node:
    saves = call.saves(mask)
    saved: tuple = ()
    if saves:
        names = call.op.inputs
        values = []
        for name in saves:
            if name == "y":
                values.append(out)
            elif name in names:
                values.append(
                    tuple(map(keep, operands))
                    if names == ("inputs",)
                    else keep(operands[names.index(name)])
                )
            else:
                values.append(call.aux[call.op.auxiliaries.index(name)])
        saved = tuple(values)
    edges = tuple([_edge(a) if mask >> k & 1 else None for k, a in enumerate(operands)])
    return record(call, mask, edges, saved)


def _record(call: Call, mask: int, operands: Sequence[Any], out: np.ndarray) -> Tensor:
    return Tensor(out, True, _node(call, mask, operands, out))


def _record_many(call: Call, mask: int, operands: Sequence[Any], outs: tuple) -> tuple:
    if not mask:
        return tuple(map(new_tensor, outs))
    node = _node(call, mask, operands, outs)
    return tuple(
        Tensor(out, True, node, k + 1) if out.dtype.kind in "fc" else Tensor(out)
        for k, out in enumerate(outs)
    )


# ------------------------------------------------------------------------------- the hot path

_EMPTY = np.empty
_MISSING: Any = object()


def _unary_entry(op: Planned) -> Callable[..., Any]:
    plans = op.plans
    differentiable = op.differentiable
    empty, new_node = _EMPTY, Node

    def entry(x: Any = _MISSING, *rest: Any, **params: Any) -> Any:
        mode = state.mode
        if type(x) in TENSORS and mode and not rest and not params:
            array = x._array
            if x._memory is not None:
                refresh(x)
            plan = plans.get((array.dtype, array.shape))
            if plan is not None and array.flags.c_contiguous:
                out = empty(plan.allocate, plan.dtype)
                if plan.flat:
                    plan.entry(array, out)
                else:
                    plan.entry(array.ravel(), out.ravel())
                if not (x._requires_grad and mode == 2 and differentiable and plan.records):
                    return Tensor(out) if mode != 3 else new_tensor(out)
                keeps = plan.keeps[1]
                if keeps == 2:
                    saved: tuple = (out,)
                elif keeps == 0:
                    saved = ()
                else:
                    kept = x if x._memory is None else keep(x)
                    saved = (kept,) if keeps == 1 else (kept, out)
                node = x._grad_fn
                if node is None:
                    node = x
                elif x._slot:
                    node = (node, x._slot - 1)
                return Tensor(out, True, new_node(plan, 1, (node,), saved))
        return bind(op, () if x is _MISSING else (x, *rest), params)

    return entry


def _binary_entry(op: Planned) -> Callable[..., Any]:
    plans = op.plans
    empty, new_node, ndarray = _EMPTY, Node, np.ndarray

    def entry(a: Any = _MISSING, b: Any = _MISSING, *rest: Any, **params: Any) -> Any:
        mode = state.mode
        if not mode or rest or params or b is _MISSING:
            return bind(op, tuple([v for v in (a, b, *rest) if v is not _MISSING]), params)
        kind_a, kind_b = type(a), type(b)
        x: Any = None
        z: Any = None
        plan = None
        mask = 0
        if kind_a is Tensor or kind_a is Parameter:
            x = a._array
            if a._memory is not None:
                refresh(a)
            if a._requires_grad:
                mask = 1
            if kind_b is Tensor or kind_b is Parameter:
                z = b._array
                if b._memory is not None:
                    refresh(b)
                if b._requires_grad:
                    mask += 2
                plan = plans.get((x.dtype, x.shape, z.dtype, z.shape))
            elif kind_b is float or kind_b is int:
                z = b
                plan = plans.get((x.dtype, x.shape, kind_b))
            elif kind_b is ndarray:
                z = b
                plan = plans.get((x.dtype, x.shape, z.dtype, z.shape))
        elif kind_b is Tensor or kind_b is Parameter:
            z = b._array
            if b._memory is not None:
                refresh(b)
            if b._requires_grad:
                mask = 2
            if kind_a is float or kind_a is int:
                x = a
                plan = plans.get((kind_a, z.dtype, z.shape))
            elif kind_a is ndarray:
                x = a
                plan = plans.get((x.dtype, x.shape, z.dtype, z.shape))
        if plan is None:
            return bind(op, (a, b), params)
        if plan.arrays:
            if not (x.flags.c_contiguous and z.flags.c_contiguous):
                return bind(op, (a, b), params)
            out = empty(plan.allocate, plan.dtype)
            dims = plan.dims
            if plan.flat:
                plan.entry(x, z, out)
            elif not dims:
                plan.entry(x.ravel(), z.ravel(), out.ravel())
            elif len(dims) == 2:  # unpacking costs less than a starred argument
                rows, columns = dims
                plan.entry(x.ravel(), z.ravel(), out.ravel(), rows, columns)
            else:
                plan.entry(x.ravel(), z.ravel(), out.ravel(), *dims)
        else:  # one operand is a number; integers are checked for their range elsewhere
            if not plan.floating:
                return bind(op, (a, b), params)
            array = z if plan.scalar_a else x
            if not array.flags.c_contiguous:
                return bind(op, (a, b), params)
            out = empty(plan.allocate, plan.dtype)
            try:
                if plan.flat:
                    plan.entry(x, z, out)
                elif plan.scalar_a:
                    plan.entry(x, z.ravel(), out.ravel())
                else:
                    plan.entry(x.ravel(), z, out.ravel())
            except (TypeError, OverflowError):  # an integer that no float can hold
                return bind(op, (a, b), params)
        mask &= plan.records
        if not mask or mode != 2:
            return Tensor(out) if mode != 3 else new_tensor(out)
        keeps = plan.keeps[mask]
        if keeps == 0:
            saved: tuple = ()
        else:
            kept_a = kept_b = None
            if keeps & 1:
                kept_a = a if kind_a in TENSORS and a._memory is None else keep(a)
            if keeps & 2:
                kept_b = b if kind_b in TENSORS and b._memory is None else keep(b)
            if keeps == 3:
                saved = (kept_a, kept_b)
            elif keeps == 1:
                saved = (kept_a,)
            elif keeps == 2:
                saved = (kept_b,)
            else:
                kept = ((1, kept_a), (2, kept_b), (4, out))
                saved = tuple([value for bit, value in kept if keeps & bit])
        edge_a = edge_b = None
        if mask & 1:
            edge_a = a._grad_fn
            if edge_a is None:
                edge_a = a
            elif a._slot:
                edge_a = (edge_a, a._slot - 1)
        if mask & 2:
            edge_b = b._grad_fn
            if edge_b is None:
                edge_b = b
            elif b._slot:
                edge_b = (edge_b, b._slot - 1)
        return Tensor(out, True, new_node(plan, mask, (edge_a, edge_b), saved))

    return entry


def _axis_entry(op: AxisOp) -> Callable[..., Any]:
    quick = op.quick
    empty, new_node = _EMPTY, Node

    def entry(x: Any = _MISSING, *rest: Any, **params: Any) -> Any:
        mode = state.mode
        if type(x) not in TENSORS or not mode:
            return bind(op, () if x is _MISSING else (x, *rest), params)
        array = x._array
        if x._memory is not None:
            refresh(x)
        try:
            key: tuple = (array.dtype, array.shape)
            if rest or params:
                key += (*rest, *params.items())
            plan = quick.get(key)
        except TypeError:  # an axis given as a list
            return bind(op, (x, *rest), params)
        if plan is None:
            out = bind(op, (x, *rest), params)
            if len(quick) >= MAX_PLANS:
                quick.clear()
            args, complete_params = complete(op, (x, *rest), params)
            plan = op.plan(array, complete_params)
            if plan.simple and len(args) == 1:
                quick[key] = plan
            return out
        if not array.flags.c_contiguous:
            return bind(op, (x, *rest), params)
        out = empty(plan.allocate, plan.dtype)
        plan.entry(array.ravel(), *plan.scalars, out.ravel(), *plan.sizes)
        if not (x._requires_grad and mode == 2 and plan.records):
            return Tensor(out) if mode != 3 else new_tensor(out)
        keeps = plan.keeps
        if keeps == 0:
            saved: tuple = ()
        elif keeps == 2:
            saved = (out,)
        else:
            kept = keep(x)
            saved = (kept,) if keeps == 1 else (kept, out)
        node = x._grad_fn
        if node is None:
            node = x
        elif x._slot:
            node = (node, x._slot - 1)
        return Tensor(out, True, new_node(plan, 1, (node,), saved))

    return entry
