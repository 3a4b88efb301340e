"""Formulas read as terms: of one element, along axes, and of whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.nests.arrays import ArrayTerms, KernelText, array_kernel
from numgrad.codegen.nests.polynomial import Terms as Length
from numgrad.codegen.nests.terms import ONE, VIEW, Term, Terms, count, reachable
from numgrad.codegen.symbols import REDUCERS, Reader, Symbol, in_order

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
    operands: Sequence[tuple[int, ...] | None],
    results: Sequence[tuple[int, ...]],
    units: Sequence[bool],
    dtype: np.dtype,
    options: Mapping[str, Any],
    *,
    parallel: bool,
) -> tuple[KernelText, list[bool]]:
    """The text of the kernel of a formula, and which results there are.

    Parameters
    ----------
    operands, results
        The axes that each has; of a number ``()``; None for an operand that there is none of.
    units
        Which axes have length 1.
    """
    terms = ArrayTerms(len(units), units)
    given = [None if axes is None else terms.operand(dtype, axes) for axes in operands]
    places = [(k,) for k in range(len(units))]
    computed = formula_terms(terms, function, given, options, terms.whole, places)
    stored = []
    for term, axes in zip(computed, results, strict=True):
        if term is not None:
            shape = tuple([n if k in axes else ONE for k, n in enumerate(terms.whole)])
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
