"""Register of operations written as terms: the compiler's own, and those that modules bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np

from numgrad.codegen.nests.polynomial import Length
from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import TracedNode

Lowering = Callable[[Terms, TracedNode, list[Term]], Term | list[Term] | None]
"""Writes a node with terms as operands; None where other code has to compute it."""

LOWERINGS: dict[str, Lowering] = {}
"""Lowerings known by now, by name of the operation."""


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Declare how the operations of these names are written as terms."""

    def declare(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return declare


def find_lowering(node: TracedNode) -> Lowering | None:
    """The lowering of a node; the module that its operation names is imported for it."""
    if node.name in LOWERINGS or isinstance(node.op, str) or node.op.lowering is None:
        return LOWERINGS.get(node.name)
    import_module(node.op.lowering)
    return LOWERINGS[node.name]


def shape_of(terms: Terms, node: TracedNode) -> tuple[Length, ...]:
    """The shape of what a node computes."""
    return terms.shape(node.outputs[0].shape)


def operands(node: TracedNode, args: Sequence[Term], number: int) -> list[Term | None]:
    """The operands of a node, with None for those it goes without."""
    absent = node.params.get("absent", ())
    rest = iter(args)
    return [None if k in absent else next(rest, None) for k in range(number)]


class Arithmetic:
    """Arithmetic on terms of one dtype."""

    def __init__(self, terms: Terms, dtype: np.dtype) -> None:
        self.terms, self.dtype = terms, dtype

    def __call__(self, op: str, *args: Term | float) -> Term:
        """A function of terms and numbers."""
        return self.terms.map(op, [self.of(a) for a in args], self.dtype)

    def of(self, value: Term | float) -> Term:
        """A term of the dtype."""
        if isinstance(value, Term):
            return self.terms.cast(value, self.dtype)
        return self.terms.constant(value, self.dtype)

    def length(self, length: Length) -> Term:
        """A length as a number."""
        return self.terms.size(length, self.dtype)

    def reduce(self, kind: str, x: Term, axes: Sequence[int]) -> Term:
        """A reduction that keeps its axes with length 1."""
        axes = tuple(axes)
        return self.terms.insert(self.terms.reduce(kind, x, axes), axes) if axes else x


def column(terms: Terms, x: Term, rank: int, axis: int) -> Term:
    """One number for each position along an axis of something with ``rank`` axes."""
    return terms.insert(x, tuple(a for a in range(rank) if a != axis))
