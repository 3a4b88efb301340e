"""Kernels of eager operations: terms over arrays that are handed over flat, in a fixed order.

Lengths of axes are arguments, in order, after all others; so one kernel serves every shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.compile import KernelSource
from numgrad.codegen.dtypes import type_name
from numgrad.codegen.emitter import Emitter
from numgrad.codegen.nests.block_products import ProductCode
from numgrad.codegen.nests.kernel import KernelWriter
from numgrad.codegen.nests.polynomial import Length, add, constant, evaluate, multiply
from numgrad.codegen.nests.terms import (
    BUFFER,
    ONE,
    SCALAR,
    VIEW,
    Term,
    Terms,
    count,
    first_stored,
    reachable,
)
from numgrad.codegen.symbols import REDUCERS, Operand, Reader, Symbol, in_order

USUAL_LENGTH = 1000
"""The length of an axis that loops are arranged for."""
_NO_PRODUCTS = ProductCode("", "", str, {}, 0)


class UnknownLengths:
    """Lengths of axes of which nothing is known."""

    def hint_of(self, terms: Length) -> int:
        """The value of a polynomial for axes of the usual length."""
        return evaluate(terms, _UsualLengths())

    def exceeds(self, length: Length, number: int) -> bool:
        """Whether a length is certain to be more than a number."""
        return False


class _UsualLengths(dict[int, int]):
    def __missing__(self, axis: int) -> int:
        return USUAL_LENGTH


class ArrayTerms(Terms):
    """Makes terms over arrays of some axes, which are as long as the kernel is told.

    Parameters
    ----------
    rank
        Number of axes.
    units
        Which of them have length 1.

    Attributes
    ----------
    whole
        The shape of which axis ``k`` is as long as argument ``k`` says.
    """

    def __init__(self, rank: int, units: Sequence[bool] = ()) -> None:
        super().__init__(UnknownLengths(), constant)
        self.whole: tuple[Length, ...] = tuple(
            [ONE if any(units[k : k + 1]) else (((("axis", k),), 1),) for k in range(rank)]
        )
        self.operands: list[Term] = []
        self.numbers: list[Term] = []

    def operand(self, dtype: np.dtype, axes: Sequence[int] | None = None) -> Term:
        """The next array that the kernel takes, with length 1 along other axes than its own.

        Without any it is the next number.
        """
        if axes is None:
            axes = range(len(self.whole))
        if not axes:
            number = self.make(SCALAR, (), dtype, len(self.numbers))
            self.numbers.append(number)
            return number
        shape = tuple([self.whole[a] for a in axes])
        operand = self.make(BUFFER, (), dtype, len(self.operands), shape)
        self.operands.append(operand)
        return self.insert(operand, tuple([a for a in range(len(self.whole)) if a not in axes]))

    def index(self, axes: Sequence[int]) -> Term:
        """The index along axes in C order, with length 1 along others."""
        place = self.iota(tuple([self.whole[a] for a in axes]))
        others = tuple([a for a in range(len(self.whole)) if a not in axes])
        return self.insert(self.cast(place, np.dtype(np.uint64)), others)

    def reverse(self, x: Term, axis: int) -> None:
        """Let the elements of an array in memory lie in reversed order along an axis."""
        strides: list[Length] = [count(x.shape[a + 1 :]) for a in range(len(x.shape))]
        offset = multiply(add(x.shape[axis], ONE, -1), strides[axis])
        strides[axis] = multiply(strides[axis], constant(-1))
        x.layout = tuple(strides), offset


class ArrayKernelWriter(KernelWriter):
    """Writes the kernel of an eager operation.

    Parameters
    ----------
    terms
        Those of the operation, with all operands.
    results
        What it computes.
    emitter
        Writes functions of single elements.
    once
        Terms that are kept in memory besides, as long as they are read.
    """

    def __init__(
        self,
        terms: ArrayTerms,
        results: Sequence[Term],
        emitter: Emitter,
        once: Sequence[Term] = (),
    ) -> None:
        self.operands, self.numbers = terms.operands, terms.numbers
        self.returned, self.rank = results, len(terms.whole)
        stored = list(first_stored([*results, *once]).values())
        exported = {t.number for t in results}
        super().__init__(terms, stored, exported, emitter, _NO_PRODUCTS, tiled=True, inline=True)

    def _parameters(self) -> list[str]:
        super()._parameters()
        self.arrays, self.results = list(self.operands), list(self.returned)
        self.scalars, self.lengths = list(self.numbers), [f"n{k}" for k in range(self.rank)]
        names = [f"x{t.number}" for t in (*self.arrays, *self.results)]
        return [*names, *(f"r{t.number}" for t in self.scalars), *self.lengths]


def array_kernel(
    name: str,
    terms: ArrayTerms,
    results: Sequence[Term],
    *,
    parallel: bool,
    emitter: Emitter | None = None,
    once: Sequence[Term] = (),
) -> KernelSource:
    """The text of the kernel of an eager operation.

    Returns
    -------
    KernelSource
        Its entry point takes the operands and the results, contiguous and with one axis, then
        numbers and the lengths of the axes.
    """
    written = ArrayKernelWriter(terms, results, emitter or Emitter(), once).write()
    arguments = [f"{type_name(t.dtype)}[::1]" for t in (*written.arrays, *written.results)]
    arguments += [type_name(t.dtype) for t in written.scalars]
    return KernelSource(
        f"{name}{'_p' if parallel else ''}",
        written.source(parallel=parallel),
        f"void({', '.join([*arguments, *['int64'] * len(written.lengths)])})",
        sorted(written.emitter.externals),
        written.emitter.namespace,
    )


# ------------------------------------------------------------------------- formulas of arrays

Axes = Sequence[Sequence[int]]
"""For each axis that a formula of whole arrays names, the axes of the terms that it stands for."""


class ArrayReader(Reader):
    """Builds the graph of a formula of whole arrays, whose axes have numbers."""

    def function(self, func: Callable, args: tuple, kwargs: dict) -> Symbol:
        axes = kwargs.get("axis")
        if kwargs.get("keepdims") is True and isinstance(axes, tuple):
            x = self.lift(args[0])
            if func is np.mean:
                size = self.make("size", (), x.dtype, axes)
                return self.ufunc(np.divide, self._along(axes, "sum", x), size)
            if func in REDUCERS:
                return self._along(axes, REDUCERS[func], x)
        return super().function(func, args, kwargs)

    def _along(self, axes: tuple[int, ...], kind: str, x: Symbol) -> Symbol:
        reduced = self.reduce(kind, x)
        return self.make("reduce", reduced.args, reduced.dtype, (kind, axes))


def absorb(
    terms: Terms,
    result: Symbol,
    environment: dict[Symbol, Term],
    axes: Sequence[int] = (),
    shape: tuple[Length, ...] = (),
    places: Axes = (),
) -> Term:
    """The term of a symbol, given those of the inputs; reductions keep their axes.

    What is reduced has the given ``shape``: along ``axes``, or those that the formula names.
    """
    for symbol in in_order([result], environment):  # pyright: ignore
        args = [environment[a] for a in symbol.args]
        if symbol.op == "const":
            term = terms.constant(symbol.detail, np.dtype(symbol.dtype))
        elif symbol.op == "size":
            along = [k for a in symbol.detail for k in places[a]]
            term = terms.size(count([shape[k] for k in along]), symbol.dtype)
        elif symbol.op == "reduce":
            kind, along, whole = symbol.detail, tuple(axes), shape
            if isinstance(kind, tuple):
                kind, named = kind
                along = tuple([k for a in named for k in places[a]])
                own = args[0].shape or (terms.length(1),) * len(shape)
                whole = tuple([n if k in along else own[k] for k, n in enumerate(shape)])
            full = terms.broadcast(args[0], whole)
            term = terms.insert(terms.reduce(kind, full, along), along) if along else full
        elif symbol.op == "cast":
            term = terms.cast(args[0], symbol.dtype)
        else:
            term = terms.map(symbol.op, args, symbol.dtype, symbol.detail)
        environment[symbol] = term
    return environment[result]


def formula_terms(
    terms: Terms,
    function: Callable[..., Any],
    operands: Sequence[Term | None],
    options: Mapping[str, Any],
    shape: tuple[Length, ...],
    places: Axes,
) -> list[Term | None]:
    """The results of a formula of whole arrays; ``shape`` is what its operands broadcast to."""
    reader = ArrayReader()
    symbols = [None if x is None else reader.input(str(k), x.dtype) for k, x in enumerate(operands)]
    environment: dict[Any, Term] = {
        s: x for s, x in zip(symbols, operands, strict=True) if x is not None
    }
    results = function(*symbols, **options)
    return [
        None if y is None else absorb(terms, reader.lift(y), environment, (), shape, places)
        for y in (results if isinstance(results, tuple) else (results,))
    ]


def formula_kernel(
    name: str,
    function: Callable[..., Any],
    operands: Sequence[Operand | None],
    results: Sequence[Operand],
    units: Sequence[bool],
    dtype: np.dtype,
    options: Mapping[str, Any],
    *,
    parallel: bool,
) -> tuple[KernelSource, list[bool]]:
    """The text of the kernel of a formula, and which results there are.

    Parameters
    ----------
    operands, results
        None for an operand that there is none of.
    units
        Which axes have length 1.
    """
    terms = ArrayTerms(len(units), units)
    given = [
        None if own is None
        else terms.index(own.axes) if own.is_index
        else terms.operand(np.dtype(own.dtype or dtype), own.axes)
        for own in operands
    ]  # fmt: skip
    places = [(k,) for k in range(len(units))]
    computed = formula_terms(terms, function, given, options, terms.whole, places)
    stored = []
    for term, own in zip(computed, results, strict=True):
        if term is not None:
            shape = tuple([n if k in own.axes else ONE for k, n in enumerate(terms.whole)])
            stored.append(_base(terms.broadcast(terms.cast(term, dtype), shape)))

    once = _of_fewer_axes(stored)
    text = array_kernel(name, terms, stored, parallel=parallel, once=once)
    return text, [term is not None for term in computed]


def _of_fewer_axes(results: Sequence[Term]) -> list[Term]:
    """Terms that are read for several elements of others, which are computed once."""
    repeated = {
        a.number: a
        for term in reachable(results)
        for a in term.args
        if term.is_map and a.is_map and a.shape != term.shape and any(n != ONE for n in a.shape)
    }
    return list(repeated.values())


def _base(term: Term) -> Term:
    """The term of which a result has the elements in the same order."""
    while term.op == VIEW and term.detail[0] in ("insert", "drop") and not term.args[0].in_memory:
        term = term.args[0]
    return term
