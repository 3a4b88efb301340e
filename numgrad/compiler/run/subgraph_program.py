"""A part of a graph that may run or not, or whose length is known only then, as a program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import Graph, Value
from numgrad.compiler.graph.shapes import length_arrays, lengths_read, with_lengths
from numgrad.compiler.passes import optimize
from numgrad.compiler.run.program import compile_graph
from numgrad.compiler.run.replay import replay
from numgrad.compiler.trace.cut import extract
from numgrad.core.formula import Meta


class Subgraph:
    """A graph within a graph.

    Attributes
    ----------
    graph
        Takes what the operation takes: the number that decides, then operands.
    axis
        The axis whose length that number is, for a part that is computed in any case.
    states
        How many states of generators it takes after the number, and returns last of all.
    """

    def __init__(self, graph: Graph, axis: int | None = None, states: int = 0) -> None:
        self.graph, self.axis, self.states = graph, axis, states
        self.derived: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"<part of {len(self.graph.nodes)} nodes>"

    @property
    def metas(self) -> list[Meta]:
        """Shapes and dtypes of the inputs."""
        return [Meta(v.shape, v.dtype) for v in self.graph.inputs]

    @property
    def results(self) -> list[Meta]:
        """Shapes and dtypes of the results."""
        return [Meta(v.shape, v.dtype) for v in self.graph.outputs]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The results, by operations on Tensors."""
        return list(replay(self.graph, inputs))

    @cached_property
    def axes(self) -> set[int]:
        """The axes whose lengths it reads, and no operand has."""
        return lengths_read(self.graph) - {self.axis}

    def with_inputs(self, inputs: Sequence[Value]) -> Subgraph:
        """The same for other inputs, which hold its own."""
        return Subgraph(extract(self.graph, inputs, self.graph.outputs), self.axis, self.states)

    @cached_property
    def optimized(self) -> Graph:
        """The same graph, after the passes."""
        part = extract(self.graph, self.graph.inputs, self.graph.outputs)
        optimize(part)
        return part

    @cached_property
    def _program(self) -> Any:
        """What runs it: arrays of no content after the operands have the lengths that these lack.

        A length found while running comes last.
        """
        graph = self.graph
        part = extract(graph, graph.inputs, graph.outputs)
        return compile_graph(with_lengths(part, self._bound))

    @cached_property
    def _bound(self) -> list[int]:
        return sorted(self.axes) + ([] if self.axis is None else [self.axis])

    def run(self, operands: Sequence[np.ndarray], known: dict[int, int]) -> list[np.ndarray]:
        """The results for ndarrays."""
        given: list[Any] = [
            a.item() if v.weak else np.asarray(a, order="C")
            for v, a in zip(self.graph.inputs, operands, strict=True)
        ]
        if self.axis is not None:
            known = {**known, self.axis: int(operands[0])}
        given += length_arrays(self._bound, known)
        return [
            np.asarray(out, v.dtype)
            for out, v in zip(self._program.run(*given), self.graph.outputs, strict=True)
        ]
