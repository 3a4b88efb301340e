"""The tape: what an operation means on every ground, and the node that its backward begins from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.autograd.anomaly import warn_of_result
from numgrad.autograd.batching.selected import Selected, selected
from numgrad.autograd.engine.task import edge_of
from numgrad.autograd.forward_rules import RECORDING, takes_tangent
from numgrad.autograd.history import record
from numgrad.autograd.node import Node
from numgrad.autograd.saved import keep
from numgrad.autograd.variable import NO_GRAD_VIEW, Tensor, root
from numgrad.autograd.versions import INFERENCE, Version, version_of
from numgrad.core.arguments import complete
from numgrad.core.interpreter import BaseInterpreter, ThreadSettings, state
from numgrad.core.op import Op
from numgrad.core.plan import Call
from numgrad.core.primitive import Composite, View


class RecordingInterpreter(BaseInterpreter):
    """Computes, or has computed, what operations mean, and keeps a tape of it."""

    def bind(self, op: Op, args: tuple, params: dict[str, Any]) -> Any:
        if isinstance(op, Composite):
            return op.expanded(args, params)
        args, params = complete(op, args, params)
        operands, arrays = [], []
        for a in args:
            operand, array = self.operand(op, a)
            operands.append(operand)
            arrays.append(array)
        if op.keeps_state and state.grad_enabled:
            out, call = self.run_recorded(op, operands, arrays, params)
        else:
            out, call = self.run(op, arrays, params)
        if state.anomaly:
            warn_of_result(op, arrays, out)
        mask = 0
        if state.grad_enabled and op.differentiable:
            for k, a in enumerate(operands):
                if isinstance(a, Tensor) and a._requires_grad and call.differentiable(k):
                    mask |= 1 << k
        if type(out) is tuple:
            tensors = _record_many(call, mask, operands, out)
            if isinstance(op, View):
                for number, output in enumerate(tensors):
                    link(output, operands[0], number + 1)
            return tensors
        tensor = _record(call, mask, operands, out) if mask else new_tensor(out)
        if isinstance(op, View) and op.shares(arrays[0], out):
            link(tensor, operands[0], tensor._slot)
        return tensor

    def selected(self, x: Tensor, mask: Tensor) -> Selected:
        return selected(x, mask)

    def recorded(self, op: Op, args: tuple, params: dict[str, Any]) -> tuple[Any, Call | None]:
        """Also of operands that do not require grad: the tape alone keeps records."""
        if state.grad_enabled and any(
            isinstance(a, Tensor) and a.requires_grad and takes_tangent(op, k)
            for k, a in enumerate(args)
        ):
            out = self.bind(op, args, params)
            return out, _call_of(out)
        standins = tuple(
            Tensor(a._array, a.dtype.kind in "fc") if isinstance(a, Tensor) else a for a in args
        )
        with ThreadSettings(**RECORDING):
            out = self.bind(op, standins, params)
        forgotten = map(Tensor, [y._array for y in _outputs(out)])  # without the graph
        return tuple(forgotten) if isinstance(out, tuple) else next(forgotten), _call_of(out)

    @abstractmethod
    def operand(self, op: Op, a: Any) -> tuple[Any, Any]:
        """An argument as it is kept, and as an array or number to compute with."""

    @abstractmethod
    def run(self, op: Op, arrays: list[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        """The result, or several, and the record of the call."""

    def run_recorded(
        self, op: Op, operands: list[Any], arrays: list[Any], params: dict[str, Any]
    ) -> tuple[Any, Call]:
        """The same of an operation that computes more if a backward may follow."""
        return self.run(op, arrays, params)


def _outputs(out: Any) -> tuple:
    return out if isinstance(out, tuple) else (out,)


def _call_of(out: Any) -> Call | None:
    for y in _outputs(out):
        if isinstance(y, Tensor) and y.grad_fn is not None:
            return y.grad_fn.call
    return None


def link(view: Tensor, base: Any, slot: int) -> None:
    """Make a new tensor a view of another, or of an ndarray, whose owner may write to it."""
    if not isinstance(base, Tensor):
        if view._memory is None:
            view._memory = Version(foreign=True)
        return
    view._memory = root(base)
    if view._grad_fn is None:
        traced = state.grad_enabled and base._slot != NO_GRAD_VIEW
        view._slot = slot if traced else NO_GRAD_VIEW
        if state.inference and base._requires_grad and version_of(base) is not INFERENCE:
            # as the base it is a tensor of which operations outside are recorded
            view._requires_grad = view._array.dtype.kind in "fc"


def new_tensor(array: np.ndarray) -> Tensor:
    """A Tensor without history, marked in inference mode."""
    return Tensor(array, memory=INFERENCE if state.inference else None)


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
                values.append(call.auxiliary(name))
        saved = tuple(values)
    edges: list[Any] = [None] * len(operands)
    for k, a in enumerate(operands):
        if mask >> k & 1:  # a Tensor that requires grad
            edges[k] = edge_of(a)
    return record(call, mask, tuple(edges), saved)


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
