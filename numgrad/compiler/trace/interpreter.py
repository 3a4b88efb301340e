"""What an operation means in a trace: a node of the graph, and the tape as in eager code."""

from __future__ import annotations

from typing import Any, Self

from numgrad.autograd.variable import Tensor, refresh
from numgrad.compiler.trace.calls import record_call
from numgrad.compiler.trace.tracer import Tracer
from numgrad.core.abstract import AbstractLength
from numgrad.core.op import OPS, Call, Op, bind, state
from numgrad.tensors.eager import EagerInterpreter


class TraceInterpreter(EagerInterpreter):
    """Appends what operations compute to the graph of a tracer, in a ``with`` block."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self._before: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._before = state.set(
            interpreters=(*state.interpreters, self), tracer=self.tracer, anomaly=False
        )
        return self

    def __exit__(self, *exception: object) -> None:
        state.set(**self._before)
        self.tracer.finish(failed=exception[0] is not None)

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
