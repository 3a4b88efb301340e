"""The tracer: operations of a function that runs once, written into a graph.

Note [Tracing a function]
-------------------------
Arguments are Tensors over ``TracedArray``s, which know the value of the graph that they are.
Tape, hooks and modes are those of eager code: ``TraceInterpreter`` replaces the computing alone.
So gradients are traced as they are computed, by the formulas. What belongs to nobody in the trace,
Tensors and ndarrays of the world around, is *captured*: an input of the graph, read at each call.
An ndarray that plain NumPy made during the trace is captured too, but *frozen*: there is nothing to
read at the next call, so its content is part of the compiled function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.compiler.graph import evaluate
from numgrad.compiler.graph.graph import CALL, INPUT, Shape, TracedNode, Value
from numgrad.compiler.graph.shapes import hinted, specialised
from numgrad.compiler.graph.sizes import Size
from numgrad.compiler.trace.arrays import TracedArray
from numgrad.compiler.trace.cut import extract
from numgrad.compiler.trace.effects import Effects
from numgrad.compiler.trace.promoted_numbers import Promotion
from numgrad.compiler.trace.views import CONSTANTS
from numgrad.core.interpreter import eagerly, raw
from numgrad.core.op import Op

_NUMBER = (
    "the target is an argument of the compiled function that is a number, and numbers are not "
    "changed in place; write c = c + x"
)


class Tracer(Effects):
    """Records one run of a function as a graph: Note [Tracing a function]."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.sizes.on_number = self._size_as_number
        self.numbers: dict[Value, Any] = {}
        """Values of arguments in the call that is traced, if known."""
        self.promotion: Promotion | None = None
        self._arguments: list[tuple[Value, TracedArray]] = []
        self._tensors: list[tuple[Value, Tensor]] = []

    def finish(self, *, failed: bool) -> None:
        """End the trace; note what was written to memory, unless the function failed."""
        self._collect_gradients()
        self.ended = True
        self.lines.end()
        if failed:
            return
        captured = [(value.value, self._inputs[id(value.array)][1]) for value in self.captured]
        for target, array in (*self._arguments, *captured):
            if array.value is not self.stored.get(id(array), target):
                self.graph.writes.append((target, array.value))

    # ------------------------------------------------------------------------------- arguments

    def array(
        self,
        shape: Sequence[int],
        dtype: Any,
        requires_grad: bool = False,
        *,
        donated: bool = False,
        scalar: bool = False,
    ) -> Tensor:
        """An argument that is an array; one that is donated may be written to, no scalar may."""
        value = self.graph.input(self._symbols(shape), np.dtype(dtype))
        array = TracedArray(self, value)
        self._arguments.append((value, array))
        tensor = Tensor(array, requires_grad)  # pyright: ignore
        self._tensors.append((value, tensor))
        if scalar:
            array.number, array.locked = True, _NUMBER
        elif not donated:
            array.locked = (
                "the target is an argument of the compiled function, which belongs to the caller; "
                "clone() it, or say with donate=... that its memory may be used"
            )
        return tensor

    def is_argument(self, tensor: Tensor) -> bool:
        """Whether a Tensor is an argument that is an array."""
        return any(tensor is t for v, t in self._tensors if v.node.op == INPUT and not v.weak)

    def number(self, value: Any) -> Tensor:
        """An argument that is a Python number of the type of ``value``."""
        dtype = np.dtype(type(value))
        array = TracedArray(self, self.graph.input((), dtype, weak=dtype.kind != "b"))
        array.number, array.locked = True, _NUMBER
        self._arguments.append((array.value, array))
        tensor = Tensor(array)  # pyright: ignore
        self._tensors.append((array.value, tensor))
        return tensor

    # ---------------------------------------------------------------------------------- results

    def follows(self, x: Any) -> bool:
        """Whether derivatives may lead from a Tensor to an input of floating or complex numbers."""
        stack, seen = [self.value(x)], set[Value]()
        while stack:
            value = stack.pop()
            if value in seen or value.dtype.kind not in "fc":
                continue
            seen.add(value)
            node = value.node
            if node.op == INPUT:
                return True
            if isinstance(node.op, Op) and node.op.name not in CONSTANTS:
                stack.extend(node.inputs)
        return False

    def value(self, x: Any) -> Value:
        """The value of a Tensor, array or number in the graph."""
        return self.lift(x).value

    def examples(self, arrays: Sequence[TracedArray]) -> tuple[list[np.ndarray], bool]:
        """The numbers of arrays in the call that is traced, for code that asks for them.

        Ones, and False, if that depends on effects, or on gradients that arrive in a backward.
        """
        values = [a.value for a in arrays]
        known = self.numbers | {c.value: c.array for c in self.captured}
        part = extract(self.graph, self.graph.inputs, values)
        needed = {v for node in part.nodes for v in node.inputs} | set(part.outputs)
        if any(map(_has_effects, part.nodes)) or any(
            new in needed and old not in known
            for old, new in zip(self.graph.inputs, part.inputs, strict=True)
        ):
            return [np.ones(specialised(v.shape), v.dtype) for v in values], False
        given = [known.get(v) for v in self.graph.inputs]
        given = [np.ones(hinted(v.shape), v.dtype) if x is None else x for v, x in zip(
            self.graph.inputs, given, strict=True)]  # fmt: skip
        with eagerly(raw, grad_enabled=False):
            return list(evaluate.compile_graph(part).run(*given)), True

    def memory(self) -> Iterator[tuple[Value, TracedArray]]:
        """Inputs that are memory of the caller or around the function, and the arrays over it."""
        yield from self._arguments
        for value in self.captured:
            if not (value.frozen or value.gradient):
                yield value.value, self._inputs[id(value.array)][1]

    def given(self, value: Value) -> list[Any]:
        """The Tensors and ndarrays that stand for an input."""
        results = [t for v, t in self._tensors if v is value]
        for captured in self.captured:
            if captured.value is value:
                results += [captured.owner, *self.aliases.get(id(captured.array), ())]
        return results

    # ---------------------------------------------------------------------------------- arrays

    def filled(self, shape: Shape, number: Any, dtype: Any) -> TracedArray:
        """An array with one number everywhere."""
        return TracedArray(self, self.filled_value(shape, number, dtype))

    def _size_as_number(self, size: Size) -> Tensor:
        return Tensor(TracedArray(self, self.graph.size(size)))  # pyright: ignore


def _has_effects(node: TracedNode) -> bool:
    return node.op == CALL and node.params["effects"]
