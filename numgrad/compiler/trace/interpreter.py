"""What an operation means in a trace: a node of the graph, and the tape as in eager code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numgrad.autograd.variable import Tensor, refresh
from numgrad.compiler.trace.calls import record_call
from numgrad.core.abstract import AbstractLength
from numgrad.core.op import OPS, Call, Op, bind
from numgrad.tensors.eager import EagerInterpreter

if TYPE_CHECKING:
    from numgrad.compiler.trace.tracer import Tracer


class TraceInterpreter(EagerInterpreter):
    """Appends what operations compute to the graph of a tracer."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def operand(self, op: Op, a: Any) -> tuple[Any, Any]:
        """An argument as the tape keeps it, and as a traced array or a number."""
        if isinstance(a, Tensor):
            if a._memory is not None:
                refresh(a)
            return a, self.tracer.lift(a)
        if a is None or type(a) in (int, float, complex):
            return a, a
        if isinstance(a, list | tuple) and any(isinstance(x, Tensor | AbstractLength) for x in a):
            stacked = bind(OPS["stack"], tuple(a), {})
            return stacked, stacked._array
        array = self.tracer.lift(a)
        return Tensor(array), array  # pyright: ignore

    def run(self, op: Op, arrays: list[Any], params: dict[str, Any]) -> tuple[Any, Call]:
        """Append the call to the graph."""
        return record_call(self.tracer, op, arrays, params)

    def duplicate(self, original: Tensor, twin: Tensor) -> None:
        """Nothing is kept beside the tensors of a trace."""

    def assign(self, target: Tensor, value: Any) -> None:
        """Nothing is kept beside the tensors of a trace."""
