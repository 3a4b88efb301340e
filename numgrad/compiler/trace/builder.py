"""The writer of the graph of a trace: nodes, constants, and values that are known."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import Graph, Meta as Result, Shape, Value
from numgrad.compiler.graph.sizes import same_shape
from numgrad.compiler.trace.diagnostics import CallingLines
from numgrad.core.op import OPS, Op


class GraphBuilder:
    """Appends nodes to a graph.

    Parameters
    ----------
    dynamic
        Whether lengths of 2 and more are symbols; else they are numbers of this call.

    Attributes
    ----------
    graph
        What was recorded.
    ended
        Whether nothing may be added any more.
    line
        Where nodes come from, if not from the line that runs.
    lines
        The lines that ran.
    units
        Arrays that are 1 at one place and else 0, and the place.
    absent
        Zeros that stand for no dependence.
    saved
        What the backward of an operation needs, by operation and operands that need gradients.
    """

    inner = False
    """Whether what is traced is the body of a loop or a branch.

    It is differentiated as a graph only: no Tensor in it says that it requires grad.
    """

    def __init__(self, dynamic: bool = True) -> None:
        self.graph = Graph()
        self.sizes = self.graph.sizes
        self.dynamic, self.ended = dynamic, False
        self.line: str | None = None
        self.lines = CallingLines()
        self.units: dict[Value, int] = {}
        self.absent: set[Value] = set()
        self.saved: dict[tuple, tuple[str, ...]] = {}
        self._constants: dict[tuple, Value] = {}

    def add(
        self,
        op: Op | str,
        values: Sequence[Value],
        params: dict[str, Any],
        results: Sequence[Result],
        *,
        weak: bool = False,
    ) -> tuple[Value, ...]:
        """Append a node to the graph."""
        line = self.line or self.lines.current()
        return self.graph.add(op, values, params, results, weak=weak, line=line)

    def resolved(self, shape: Shape) -> Shape:
        """A shape, simplified by what is known of its lengths by now."""
        sizes = self.sizes
        if not sizes.learnt:
            return shape
        resolve = sizes.resolve
        return tuple([n if type(n) is int else resolve(n) for n in shape])

    def same_shape(self, a: Shape, b: Shape) -> bool:
        """Whether two shapes are equal without any guard."""
        return same_shape(self.resolved(a), self.resolved(b))

    def _symbols(self, shape: Sequence[int]) -> Shape:
        return tuple(map(self.sizes.axis, shape)) if self.dynamic else tuple(shape)

    def constant(self, number: Any, dtype: Any = None) -> Value:
        """A number of the graph, one node for equal ones."""
        if dtype is not None:
            dtype = np.dtype(dtype)
        key = (type(number), repr(number), dtype)
        cached = self._constants.get(key)
        if cached is None:
            cached = self._constants[key] = self.graph.constant(number, dtype)
        return cached

    def strong(self, value: Value, dtype: Any = None) -> Value:
        """A value that promotes like an array of its dtype."""
        dtype = value.dtype if dtype is None else np.dtype(dtype)
        if not value.weak and value.dtype == dtype:
            return value
        if value.constant is not None:
            return self.constant(value.constant, dtype)
        params = {"dtype": dtype, "copy": True}
        return self.add(OPS["astype"], (value,), params, [(value.shape, dtype)])[0]

    def filled_value(self, shape: Shape, number: Any, dtype: Any) -> Value:
        """The value of an array with one number everywhere."""
        return self._broadcast(self.constant(number, dtype), tuple(shape))

    def unit_value(self, shape: tuple[int, ...], position: int, dtype: np.dtype) -> Value:
        """Zeros with a 1 at one place: a stack of constants, so that reading one folds.

        Views of it are known to be such or nothing but zeros.
        """
        numbers = [self.constant(0, dtype), self.constant(1, dtype)]
        if not shape:
            return numbers[1]
        count = prod(shape)
        values = [numbers[k == position] for k in range(count)]
        (value,) = self.add(OPS["stack"], values, {"axis": 0}, [((count,), dtype)])
        if len(shape) > 1:
            (value,) = self.add(OPS["reshape"], (value,), {"shape": shape}, [(shape, dtype)])
        self.units[value] = position
        return value

    def zero_value(self, shape: Shape, dtype: np.dtype) -> Value:
        """Zeros that a gradient does not have to be multiplied with: there is none."""
        value = self._broadcast(self.graph.constant(0, dtype), shape)
        self.absent.add(value)
        return value

    def _broadcast(self, value: Value, shape: Shape) -> Value:
        if not shape:
            return value
        meta = [(shape, value.dtype)]
        return self.add(OPS["broadcast_to"], (value,), {"shape": shape}, meta)[0]

    def look_at(self, value: Value) -> np.ndarray | None:
        """The numbers of an input that is an ndarray in a place around the function."""
        return None
