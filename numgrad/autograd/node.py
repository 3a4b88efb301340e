"""One recorded operation of the graph."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from numgrad.autograd.saved import Guard, stale
from numgrad.autograd.variable import Tensor, Version, shared_version, version_of
from numgrad.errors import NumgradRuntimeError
from numgrad.op.base import Call

next_sequence = count().__next__
"""Numbers that rise with time: nodes and in-place writes draw from the same series."""


def mark_written(tensor: Tensor) -> None:
    """Count a write to the memory of ``tensor``."""
    version = shared_version(tensor)
    version.count += 1
    version.last = next_sequence()


class Node:
    """A recorded call: what it was, where gradients go, and what its backward needs.

    ``edges`` holds, for each operand, the place its gradient goes to: the ``Node`` that made it,
    a pair ``(node, k)`` for output ``k`` of a node with several, a leaf ``Tensor``, or None.
    ``saved`` is in the order of ``call.saves(mask)``: Tensors for operands (checked by version),
    the bare array for the output (a Tensor would make a cycle); None once freed. Sequence numbers
    rise towards the outputs, so a heap of them orders a backward.
    """

    __slots__ = ("__weakref__", "call", "edges", "extras", "mask", "outputs", "saved", "sequence")

    def __init__(self, call: Call, mask: int, edges: tuple, saved: tuple | None) -> None:
        self.call = call
        self.mask = mask
        self.edges = edges
        self.saved = saved
        self.sequence = next_sequence()
        self.outputs = None  # {slot: Version} of outputs somebody may write to
        self.extras = None

    def name(self) -> str:
        """The operation's name in CamelCase followed by ``Backward``."""
        words = self.call.op.name.split("_")
        return "".join(w[:1].upper() + w[1:] for w in words) + "Backward"

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    @property
    def next_functions(self) -> tuple:
        """Where the gradient of each operand goes: ``(node, output_nr)``, or ``(None, 0)``."""
        return tuple(_function(edge) for edge in self.edges)

    def watch_output(self, slot: int, version: Version) -> None:
        """Check ``version`` before this node's saved output is used."""
        if self.outputs is None:
            self.outputs = {}
        self.outputs[slot] = version

    def unpack(self) -> list[Any]:
        """The saved values as arrays and numbers, after checking that they are unchanged."""
        saved = self.saved
        if saved is None:
            raise freed(self)
        values: list[Any] = []
        for value in saved:
            kind = type(value)
            if kind is Tensor:
                version = version_of(value)
                if version is not None and version.last > self.sequence:
                    stale(self.name(), value._array.shape, "an operand", version.count)
                value = value._array
            elif kind is Guard:
                value.check(self.name())
                value = value.array
            values.append(value)
        if self.outputs is not None:
            self._check_outputs()
        return values

    def unpack_tensors(self) -> dict[str, Any]:
        """The saved values by name, operands as the Tensors they were: for ``create_graph``."""
        values = self.unpack()
        named: dict[str, Any] = {}
        names = self.call.saves(self.mask)
        for name, kept, value in zip(names, self.saved or (), values, strict=True):
            if type(kept) is Tensor:
                value = kept
            elif type(kept) is Guard and kept.tensor is not None:
                value = kept.tensor
            elif name == "y":
                if isinstance(value, tuple):
                    value = tuple(Tensor(v, True, self, i + 1) for i, v in enumerate(value))
                else:
                    value = Tensor(value, True, self)
            elif isinstance(value, np.ndarray):
                value = Tensor(value)
            named[name] = value
        return named

    def _check_outputs(self) -> None:
        if self.outputs and "y" in self.call.saves(self.mask):
            for version in self.outputs.values():
                if version.last > self.sequence:
                    stale(self.name(), (), "its own result", version.count)


def freed(node: Node) -> NumgradRuntimeError:
    """The error of a second backward."""
    return NumgradRuntimeError(
        f"{node.name()}: what its backward needs was freed by an earlier backward; call the first "
        "one with retain_graph=True to go through the graph again"
    )


def _function(edge: Any) -> tuple:
    if edge is None:
        return (None, 0)
    if type(edge) is tuple:
        return edge
    if type(edge) is Node:
        return (edge, 0)
    return (accumulator(edge), 0)


class AccumulateGrad:
    """The end of an edge at a leaf: adds what arrives to ``variable.grad``."""

    __slots__ = ("__weakref__", "variable")
    next_functions: tuple = ()

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        return "AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


_accumulators: Any = None


def accumulator(leaf: Tensor) -> AccumulateGrad:
    """The leaf's one accumulator, made when somebody looks at it."""
    global _accumulators
    if _accumulators is None:
        from weakref import WeakValueDictionary

        _accumulators = WeakValueDictionary()
    found = _accumulators.get(id(leaf))
    if found is None:
        found = _accumulators[id(leaf)] = AccumulateGrad(leaf)
    return found
