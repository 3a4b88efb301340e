"""Reading the operations of a graph as terms.

Note [Branches side by side]
----------------------------
Of small branches, and of any in a step of a loop, all are computed, and of each result the numbers
that are chosen are taken: that is faster than to leave the kernel, which takes as long as 100,000
operations, and loops can go on in vectors. Nothing tells it from running one:
an index out of range counts where its branch is chosen only, and gradients of branches are branches
of their own, so no NaN comes from one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isinf, prod
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import BOOL, FLOAT32, FLOAT64
from numgrad.codegen.nests.arrays import absorb
from numgrad.codegen.nests.polynomial import Length, constant
from numgrad.codegen.nests.terms import BUFFER, OPAQUE, SCALAR, Term, Terms, count
from numgrad.codegen.symbols import AXIS, Reader, Symbol
from numgrad.compiler.graph.graph import CONSTANT, INPUT, SIZE, Graph, TracedNode, Value
from numgrad.compiler.graph.sizes import Size, same_shape, terms_of
from numgrad.compiler.lower import lookup, matrices  # noqa: F401 (for what they declare)
from numgrad.compiler.lower.lowering import LOWERINGS, find_lowering, lowering, shape_of
from numgrad.core.axis import AxisOp
from numgrad.core.documentation import DESCRIBERS
from numgrad.core.elementwise import Elementwise, ReadingInterpreter
from numgrad.core.interpreter import interpreter
from numgrad.core.op import Op
from numgrad.core.primitive import Composite, View

MOST_NODES, LARGEST = 500, 64
"""Limits of branches computed side by side: operations of each, elements of a value."""


class Expansion:
    """The terms of every value of a graph.

    Attributes
    ----------
    of
        The term that a value is.
    inline
        Whether branches of any size are computed side by side: Note [Branches side by side].
    lengths
        Those of axes, by number, if the terms are for these only.
    opaque
        The nodes without terms of their own, which other code computes, by the number that the
        terms of their results carry.
    origin
        The node that each term was first made for, by the number of the term.
    """

    def __init__(
        self, graph: Graph, *, inline: bool = False, within: Expansion | None = None,
        given: Sequence[Term] = (), lengths: Mapping[int, int] | None = None,
        any_length: bool = False,
    ) -> None:  # fmt: skip
        sizes = graph.sizes

        def length(n: int | Size) -> Length:
            """The polynomial of a length of the graph, or its value for known lengths."""
            if lengths is None:
                return sizes.known(terms_of(n))
            return constant(sizes.evaluate(n, lengths))

        self.terms = (
            within.terms if within else Terms(sizes, length, in_loop=inline, any_length=any_length)
        )
        self.inline = within.inline if within else inline
        self.of: dict[Value, Term] = {}
        self.opaque: list[TracedNode] = []
        self.origin: list[TracedNode] = []
        self._formulas: dict[tuple, tuple[list[Symbol], Symbol]] = {}
        inputs = iter(given)
        for node in graph.nodes:
            if within and node.op == INPUT:
                self.of[node.outputs[0]] = next(inputs)
                continue
            for value, term in zip(node.outputs, self._read(node), strict=True):
                self.of[value] = term
            self.origin += [node] * (self.terms.count - len(self.origin))

    def _read(self, node: TracedNode) -> list[Term]:
        terms, out = self.terms, node.outputs
        if node.op == INPUT:
            kind = BUFFER if out[0].shape else SCALAR
            return [terms.make(kind, (), out[0].dtype, node.params["index"], self._shape(out[0]))]
        if node.op == CONSTANT:
            return [terms.constant(node.params["value"], out[0].dtype)]
        if node.op == SIZE:
            return [terms.size(terms.length(node.params["size"]), out[0].dtype)]
        args = [self.of[v] for v in node.inputs]
        if isinstance(node.op, Elementwise):
            return [terms.broadcast(self._elementwise(node, args), self._shape(out[0]))]
        if isinstance(node.op, AxisOp):
            return [self._along_axes(node, args[0])]
        if node.name == "subgraph":
            result = self._branches(node, args)
            if result is not None:
                return result
        read = find_lowering(node)
        result = None if read is None else read(terms, node, args)
        if result is not None:
            return [result] if isinstance(result, Term) else result
        self.opaque.append(node)
        number = len(self.opaque) - 1
        return [
            terms.make(OPAQUE, tuple(args), v.dtype, (number, v.number), self._shape(v))
            for v in out
        ]

    def _branches(self, node: TracedNode, args: list[Term]) -> list[Term] | None:
        """All branches, and of each result the one that is chosen; None if they are too large."""
        parts = node.params["parts"]
        if parts[0].axis is not None or not all(self._fits(piece, node) for piece in parts):
            return None
        terms, which = self.terms, args[0]
        before, checks = terms.checks, []
        results: list[Term] = []
        for k, piece in reversed([*enumerate(parts)]):
            terms.checks = []
            inner = Expansion(piece.optimized, within=self, given=args)
            values = [inner.of[v] for v in piece.optimized.outputs]
            failed, terms.checks = terms.checks, before
            if inner.opaque:
                return None
            number = terms.constant(k, which.dtype)
            last = k == len(parts) - 1
            here = terms.map("greater_equal" if last else "less_equal", (which, number), BOOL)
            if last:
                results = values
            else:
                results = [
                    lookup.where(terms, here, a, b) for a, b in zip(values, results, strict=True)
                ]
            if 0 < k < len(parts) - 1:
                here = terms.map("equal", (which, number), BOOL)
            checks += [terms.map("logical_and", (c, here), BOOL) for c in failed]
        terms.checks = before + checks
        return results

    def _fits(self, piece: Any, node: TracedNode) -> bool:
        """Whether a branch may be computed beside others: Note [Branches side by side]."""
        nodes = piece.optimized.nodes
        if len(nodes) > MOST_NODES:
            return False
        if all(_is_small(v) for each in nodes for v in each.outputs):
            return True
        return (
            self.inline
            and piece.graph.sizes is self.terms.sizes
            and all(
                same_shape(v.shape, x.shape)
                for v, x in zip(piece.graph.inputs, node.inputs, strict=True)
            )
            and self._reads_same_lengths(node)
        )

    def _reads_same_lengths(self, node: TracedNode) -> bool:
        """Whether lengths that branches read, and no operand has, are those of this graph."""
        parts = node.params["parts"]
        axes = sorted({k for piece in parts for k in piece.axes})
        own = tuple([parts[0].graph.sizes.of_axis(k) for k in axes])
        return same_shape(node.params["lengths"], own)

    def _shape(self, value: Value) -> tuple:
        return self.terms.shape(value.shape)

    def _elementwise(self, node: TracedNode, args: list[Term]) -> Term:
        op: Any = node.op
        loop, _ = op.result_types([v.operand for v in node.inputs])
        infinite: list[Term] = []
        args = [
            self._within(op, a, dtype, infinite) if v.weak and a.op != "const" else a
            for v, a, dtype in zip(node.inputs, args, loop, strict=True)
        ]
        result = self._applied(op, args, loop)
        for beyond in infinite:  # as numbers of float64, whose signs differ
            result = lookup.where(
                self.terms, beyond, self._applied(op, args, [FLOAT64] * 2), result
            )
        return self.terms.cast(result, node.outputs[0].dtype)  # operands may be wider

    def _applied(self, op: Any, args: Sequence[Term], loop: Sequence[np.dtype]) -> Term:
        """The formula of an operation, for operands in these dtypes."""
        operands = [self.terms.cast(a, dtype) for a, dtype in zip(args, loop, strict=True)]
        if op.name == "power" and loop[1].kind == "i" and operands[1].op != "const":
            self._require_no_negative(operands[1])
        known = [(a.dtype, repr(a.detail) if a.op == "const" else None) for a in operands]
        given, result = self._formulas.get((op, *known)) or self._formula(op, operands)
        self._formulas[op, *known] = given, result
        return absorb(self.terms, result, dict(zip(given, operands, strict=True)))

    def _within(self, op: Any, number: Term, dtype: np.dtype, infinite: list[Term]) -> Term:
        """A Python integer known only at a call, as ``within`` of the operation has it.

        ``infinite`` gets the condition under which it is beyond all that it is compared with.
        """
        if number.dtype.kind != "i" or dtype.kind not in "iu":
            return number
        terms, own, limits = self.terms, np.iinfo(number.dtype), np.iinfo(dtype)
        for compare, limit, beyond in (
            ("less", limits.min, limits.min - 1),
            ("greater", limits.max, limits.max + 1),
        ):
            if not own.min <= beyond <= own.max:
                continue
            outside = terms.map(compare, (number, terms.constant(limit, number.dtype)), BOOL)
            instead = op.beyond and op.beyond(beyond, limits)
            if instead is None:
                lookup.require(terms, terms.map("logical_not", (outside,), BOOL))
            elif isinf(instead):
                infinite.append(outside)
            else:
                limited = terms.constant(instead, number.dtype)
                number = lookup.where(terms, outside, limited, number)
        return number

    def _require_no_negative(self, exponent: Term) -> None:
        """Check what ``power`` does: numbers known only at a call are checked there."""
        terms = self.terms
        zero = terms.constant(0, exponent.dtype)
        lookup.require(terms, terms.map("greater_equal", (exponent, zero), BOOL))

    def _formula(self, op: Any, operands: list[Term]) -> tuple[list[Symbol], Symbol]:
        """The formula of an operation read on symbols for such operands, and these."""
        reader = Reader()
        given = [
            reader.make("const", (), a.dtype, a.detail)
            if a.op == "const"
            else reader.input(name, a.dtype)
            for name, a in zip(op.inputs, operands, strict=True)
        ]
        return given, op.read(reader, given)

    def _along_axes(self, node: TracedNode, x: Term) -> Term:
        """An operation along axes: its formula keeps them, with length 1."""
        op: Any = node.op
        terms, params = self.terms, node.params
        axes = params["axis"]
        dtype = params.get("dtype")
        if dtype is not None:
            x = terms.cast(x, np.dtype(dtype))
        reader = Reader()
        symbol = reader.input("x", x.dtype)
        environment = {symbol: x}
        given = {k: v for k, v in params.items() if k not in ("axis", "keepdims")}
        given["axis"] = AXIS
        if "keepdims" in params:
            given["keepdims"] = True
        if op.takes_n:
            kind = FLOAT32 if x.dtype in (FLOAT32, np.dtype("complex64")) else FLOAT64
            given["n"] = reader.input("n", kind)
            environment[given["n"]] = terms.size(count([x.shape[a] for a in axes]), kind)
        with interpreter(ReadingInterpreter(reader)):
            result = reader.lift(op.function(symbol, **given))
        if dtype is not None and np.dtype(dtype).kind in "iu" and result.dtype.kind in "iu":
            result = reader.cast(result, np.dtype(dtype))
        out = node.outputs[0]
        term = terms.cast(absorb(terms, result, environment, axes, x.shape), out.dtype)
        if op.keeps_shape or params.get("keepdims"):
            return terms.broadcast(term, self._shape(out))
        term = terms.broadcast(
            term, tuple([terms.length(1) if a in axes else n for a, n in enumerate(x.shape)])
        )
        return terms.drop(term, axes)


def _is_small(value: Value) -> bool:
    """Whether a value has so few elements, always, that they are numbers in registers."""
    lengths = value.shape
    return all(isinstance(n, int) for n in lengths) and prod(lengths) <= LARGEST  # pyright: ignore


@lowering("reshape")
def _reshape(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    if node.params.get("order", "C") != "C":
        return None
    return terms.reshape(args[0], shape_of(terms, node))


@lowering("permute_dims")
def _permute(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    shape = shape_of(terms, node)
    return terms.view("permute", args[0], tuple(node.params["axes"]), shape)


@lowering("broadcast_to")
def _broadcast(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    return terms.broadcast(args[0], shape_of(terms, node))


@lowering("getitem")
def _getitem(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    index = tuple(
        (terms.length(entry.start), terms.length(entry.step))
        if isinstance(entry, slice)
        else (terms.length(entry),)
        for entry in node.params["index"]
    )
    return terms.view("getitem", args[0], index, shape_of(terms, node))


@lowering("astype")
def _astype(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    return terms.cast(args[0], node.outputs[0].dtype)


@lowering("copy", "unrecorded")
def _copy(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
    return args[0]


def _part(name: str) -> Callable[..., Term]:
    def read(terms: Terms, node: TracedNode, args: list[Term]) -> Term:
        (x,) = args
        dtype = node.outputs[0].dtype
        if x.dtype.kind == "c":
            return terms.map(name, (x,), dtype)
        return x if name == "real" else terms.broadcast(terms.constant(0, dtype), x.shape)

    return read


lowering("real")(_part("real"))
lowering("imag")(_part("imag"))


_FORMS: tuple[tuple[type[Op], str, str], ...] = (
    (Elementwise, "in the loop", "an element of a loop, together with its neighbours"),
    (AxisOp, "in the loop", "loops along its axes, together with its neighbours"),
    (Composite, "its parts", "the operations it is written with"),
    (View, "in the loop", "a change of indices in the loops that read it"),
)
"""Family, what it becomes in a word, and in a sentence."""


def form(op: Op) -> tuple[str, str]:
    """The form of an operation in a compiled function, in a word and in a sentence."""
    for family, word, sentence in _FORMS:
        if isinstance(op, family):
            return word, sentence
    if op.name in LOWERINGS or op.lowering:
        return "kernel call", "loops of its own"
    return "segment", "a call between two kernels"


def _describe(op: Op) -> str:
    """The sentence about ``ng.jit`` in an operation's documentation."""
    return f"Under ``ng.jit``: {form(op)[1]}."


DESCRIBERS.append(_describe)
