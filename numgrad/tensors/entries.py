"""The functions behind calls of operations in eager code.

Note [Hot path]
---------------
``entry`` builds, for each planned operation of one or two operands, a function with the common
case written out: Tensors over contiguous arrays whose plan exists. Everything else, from a list
to a missing plan, goes through ``bind``, which makes the plan the hot path finds next time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import TENSORS, Parameter, Tensor, refresh
from numgrad.core.arguments import complete
from numgrad.core.axis import AxisOp
from numgrad.core.elementwise import MAX_PLANS, Planned
from numgrad.core.interpreter import bind, state
from numgrad.core.op import Op
from numgrad.tensors.recording import new_tensor

_EMPTY = np.empty
_MISSING: Any = object()


def eager_entry(op: Op) -> Callable[..., Any]:
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
