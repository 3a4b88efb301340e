"""Walks over a graph from inputs to outputs, with a rule for each node; common subexpressions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.compiler.graph.graph import (
    CALL,
    CONSTANT,
    INPUT,
    Graph,
    Length,
    Shape,
    TracedNode,
    Value,
)
from numgrad.compiler.graph.keys import node_key
from numgrad.compiler.graph.sizes import same, same_shape
from numgrad.core.op import OPS, Op

Rule = Callable[["Rewriting", TracedNode], Value | Sequence[Value] | None]
"""Gives what stands for the results of a node, or None to keep it. It sees new operands only."""


def rewrite(graph: Graph, rule: Rule) -> int:
    """Apply a rule to every node; returns how many it replaced."""
    return Rewriting(graph).run(rule)


class Rewriting:
    """One walk over a graph; its methods add nodes before the one that is looked at.

    Views that would change nothing add no node.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.line: str | None = None
        self.memory: dict[Value, Any] = {}
        """A fact that a rule noted about a value."""
        self._nodes = graph.nodes
        self._new: dict[Value, Value] = {}
        self._uses: Counter[Value] | None = None

    def run(self, rule: Rule) -> int:
        """Apply a rule to every node; returns how many it replaced."""
        graph, new, replaced = self.graph, self._new, 0
        graph.nodes = []
        for node in self._nodes:
            if new and not new.keys().isdisjoint(node.inputs):
                node.inputs = tuple([new.get(v, v) for v in node.inputs])
            self.line = node.line
            results = rule(self, node)
            if results is None:
                graph.nodes.append(node)
                continue
            replaced += 1
            results = (results,) if isinstance(results, Value) else results
            new.update(zip(node.outputs, results, strict=True))
        graph.outputs = [new.get(v, v) for v in graph.outputs]
        graph.writes = [(target, new.get(v, v)) for target, v in graph.writes]
        return replaced

    def now(self, value: Value) -> Value:
        """The value that stands for another by now."""
        return self._new.get(value, value)

    def is_shared(self, value: Value) -> bool:
        """Whether several nodes read a value, or may, since this walk has made it."""
        if self._uses is None:
            read = [v for node in self._nodes for v in node.inputs] + self.graph.roots()
            self._uses = Counter([self._new.get(v, v) for v in read])
        return self._uses.get(value, 2) > 1

    # ------------------------------------------------------------------------------ new nodes

    def add(
        self,
        op: Op | str,
        inputs: Sequence[Value],
        params: dict[str, Any],
        shape: Shape,
        dtype: np.dtype,
        weak: bool = False,
    ) -> Value:
        """Append a node with one result."""
        op = op if isinstance(op, Op) or op == CONSTANT else OPS[op]
        meta = (shape, dtype)
        return self.graph.add(op, inputs, params, [meta], weak=weak, line=self.line)[0]

    def constant(self, number: Any, dtype: np.dtype, weak: bool = False) -> Value:
        """A number."""
        return self.add(CONSTANT, (), {"value": number}, (), dtype, weak)

    def zero(self, dtype: np.dtype) -> Value:
        """The number 0."""
        return self.constant(np.zeros((), dtype).item(), dtype)

    def size(self, length: Length) -> Value:
        """A length as a number that promotes like a Python integer."""
        return self.graph.size(length)

    def elementwise(self, op: Op | str, inputs: Sequence[Value], like: Value) -> Value:
        """An elementwise operation whose result has the dtype of ``like`` and broadcasts to it."""
        return self.add(op, inputs, {}, joint_shape(inputs, like.shape), like.dtype, like.weak)

    def reshape(self, x: Value, shape: Shape) -> Value:
        """The elements in another shape."""
        if same_shape(x.shape, shape):
            return x
        return self.add("reshape", (x,), {"shape": shape}, shape, x.dtype)

    def permute(self, x: Value, axes: Sequence[int]) -> Value:
        """The axes in another order."""
        if tuple(axes) == tuple(range(x.ndim)):
            return x
        shape = tuple(x.shape[a] for a in axes)
        return self.add("permute_dims", (x,), {"axes": tuple(axes)}, shape, x.dtype)

    def broadcast(self, x: Value, shape: Shape) -> Value:
        """``x`` repeated where ``shape`` is longer."""
        lead = len(shape) - x.ndim
        if same_shape(x.shape, shape[lead:]) and all(is_one(n) for n in shape[:lead]):
            return self.reshape(x, shape)
        return self.add("broadcast_to", (self.strong(x),), {"shape": shape}, shape, x.dtype)

    def getitem(self, x: Value, index: Sequence[Any]) -> Value:
        """Elements at a canonical index."""
        index = tuple(index)
        if all(is_full(entry, n) for entry, n in zip(index, x.shape, strict=True)):
            return x
        shape = tuple(length_of(entry) for entry in index if isinstance(entry, slice))
        return self.add("getitem", (x,), {"index": index}, shape, x.dtype)

    def astype(self, x: Value, dtype: np.dtype) -> Value:
        """``x`` with a dtype that is not weak."""
        if x.dtype == dtype and not x.weak:
            return x
        if is_convertible(x, dtype):
            return self.constant(np.asarray(x.constant).astype(dtype).item(), dtype)
        return self.add("astype", (x,), {"dtype": dtype, "copy": True}, x.shape, dtype)

    def strong(self, x: Value) -> Value:
        """``x`` promoting like an array."""
        return self.astype(x, x.dtype) if x.weak else x

    def standing_for(self, x: Value, out: Value) -> Value | None:
        """``x`` with dtype and shape of a result that has the same elements, where possible."""
        if out.weak:
            return x if x.weak and x.dtype == out.dtype else None
        return self.broadcast(self.astype(x, out.dtype), out.shape)


def is_convertible(x: Value, dtype: np.dtype) -> bool:
    """Whether a value is a number that converts to the same value of a dtype everywhere."""
    number = x.constant
    if number is None or (x.dtype.kind == "c" and dtype.kind != "c"):
        return False
    if x.dtype.kind == "f" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min <= number <= limits.max
    return True


def is_one(length: Length) -> bool:
    """Whether a length is 1 in every call: that of an axis that broadcasts."""
    return type(length) is int and length == 1


def is_full(entry: Any, length: Length) -> bool:
    """Whether a part of an index leaves an axis as it is."""
    if not isinstance(entry, slice):
        return False
    return same(entry.start, 0) and same(entry.step, 1) and same(entry.stop, length)


def length_of(entry: slice) -> Length:
    """Number of elements of a canonical slice."""
    distance = entry.stop - entry.start
    return distance if same(entry.step, 1) else distance // entry.step


def joint_shape(values: Sequence[Value], shape: Shape) -> Shape:
    """The shape of operands broadcast, whose lengths are those of ``shape`` or 1."""
    rank = max(v.ndim for v in values)
    joint: list[Length] = [1] * rank
    for value in values:
        lead = rank - value.ndim
        for k, n in enumerate(value.shape):
            if not is_one(n):
                joint[lead + k] = shape[len(shape) - rank + lead + k]
    return tuple(joint)


def join_common(graph: Graph) -> int:
    """Compute equal nodes once. Calls stay apart: they may have effects."""
    known: dict[tuple, TracedNode] = {}
    numbers: dict[Value, int] = {}

    def rule(to: Rewriting, node: TracedNode) -> tuple[Value, ...] | None:
        item = node
        if node.op not in (INPUT, CALL):
            item = known.setdefault(node_key(graph.sizes, node, numbers), node)
        if item is not node:
            return item.outputs
        for value in node.outputs:
            numbers[value] = len(numbers)
        return None

    return rewrite(graph, rule)
