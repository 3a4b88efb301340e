"""The hot path of ``linear``: Note [Hot path] in ``numgrad.tensors.entries``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import TENSORS, Tensor, refresh
from numgrad.core.elementwise import Planned
from numgrad.core.interpreter import bind, state
from numgrad.tensors.recording import new_tensor

_MISSING: Any = object()


def linear_entry(op: Planned) -> Callable[..., Any]:
    """The function behind ``linear(...)`` for Tensors whose plan exists."""
    plans = op.plans
    empty, new_node, tensors = np.empty, Node, TENSORS

    def entry(
        x: Any = _MISSING, weight: Any = _MISSING, bias: Any = None, *rest: Any, **params: Any
    ) -> Any:
        mode = state.mode
        if (
            mode
            and type(x) in tensors
            and type(weight) in tensors
            and (bias is None or type(bias) in tensors)
            and not rest
            and not params
        ):
            a, w = x._array, weight._array
            if x._memory is not None:
                refresh(x)
            if weight._memory is not None:
                refresh(weight)
            if bias is None:
                b = None
                plan = plans.get((a.dtype, a.shape, w.dtype, w.shape))
            else:
                b = bias._array
                if bias._memory is not None:
                    refresh(bias)
                plan = plans.get((a.dtype, a.shape, w.dtype, w.shape, b.dtype, b.shape))
            if (
                plan is not None
                and plan.direct
                and a.flags.c_contiguous
                and w.flags.c_contiguous
                and (b is None or b.flags.c_contiguous)
            ):
                out = empty(plan.shape, plan.dtype)
                if b is None:
                    plan.compute(a, w, out)
                else:
                    plan.compute(a, w, b, out)
                edge_x = edge_w = edge_b = None
                mask = 0
                saved: tuple = ()
                if mode == 2:
                    if x._requires_grad:
                        mask = 1
                        saved = (weight if weight._memory is None else keep(weight),)
                        edge_x = x._grad_fn
                        if edge_x is None:
                            edge_x = x
                        elif x._slot:
                            edge_x = (edge_x, x._slot - 1)
                    if weight._requires_grad:
                        mask += 2
                        saved = (x if x._memory is None else keep(x), *saved)
                        edge_w = weight._grad_fn
                        if edge_w is None:
                            edge_w = weight
                        elif weight._slot:
                            edge_w = (edge_w, weight._slot - 1)
                    if bias is not None and bias._requires_grad:
                        mask += 4
                        edge_b = bias._grad_fn
                        if edge_b is None:
                            edge_b = bias
                        elif bias._slot:
                            edge_b = (edge_b, bias._slot - 1)
                if mask and plan.records:
                    return Tensor(out, True, new_node(plan, mask, (edge_x, edge_w, edge_b), saved))
                return Tensor(out) if mode != 3 else new_tensor(out)
        given = tuple([v for v in (x, weight) if v is not _MISSING])
        return bind(op, given if bias is None else (*given, bias, *rest), params)

    return entry
