"""Normalization as terms of a compiled function."""

from __future__ import annotations

from numgrad.codegen.nests.polynomial import Terms as Length
from numgrad.codegen.nests.polynomial import value_of
from numgrad.codegen.nests.terms import Term, Terms, count
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lowering import Arithmetic, column, lowering, operands


@lowering("batch_normalize")
def _batch_normalize(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    x, weight, bias = operands(node, args, 3)
    assert x is not None
    out = node.outputs[0]
    if value_of(count(x.shape)) == 0:
        return None
    of, rank = Arithmetic(terms, out.dtype), len(x.shape)
    x = of.of(x)
    axes = tuple(a for a in range(rank) if a != 1)
    size = of.length(count([x.shape[a] for a in axes]))
    mean = of("divide", terms.reduce("sum", x, axes), size)
    apart = of("subtract", x, column(terms, mean, rank, 1))
    variance = of("divide", terms.reduce("sum", of("multiply", apart, apart), axes), size)
    rstd = of("divide", 1.0, of("sqrt", of("add", variance, float(node.params["eps"]))))
    scale = rstd if weight is None else of("multiply", rstd, weight)
    result = of("multiply", apart, column(terms, scale, rank, 1))
    if bias is not None:
        result = of("add", result, column(terms, of.of(bias), rank, 1))
    return [result, mean, variance, rstd]


@lowering("normalize_by")
def _normalize_by(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, mean, variance, weight, bias = operands(node, args, 5)
    assert x is not None
    assert mean is not None
    assert variance is not None
    of, rank = Arithmetic(terms, node.outputs[0].dtype), len(x.shape)
    given = (mean, variance, weight, bias)
    if any(a is not None and a.shape != (x.shape[1],) for a in given):
        return None
    deviation = of("sqrt", of("add", variance, float(node.params["eps"])))
    scale = of("divide", 1.0 if weight is None else weight, deviation)
    apart = of("subtract", x, column(terms, of.of(mean), rank, 1))
    result = of("multiply", apart, column(terms, scale, rank, 1))
    return result if bias is None else of("add", result, column(terms, of.of(bias), rank, 1))


@lowering("normalize_groups")
def _normalize_groups(terms: Terms, node: TracedNode, args: list[Term]) -> list[Term] | None:
    x, weight, bias = operands(node, args, 3)
    assert x is not None
    params = node.params
    extents = tuple(map(terms.length, params["extents"]))
    if value_of(count(extents)) == 0:
        return None
    of = Arithmetic(terms, node.outputs[0].dtype)
    split = _split(x.shape, extents)
    if split is None:
        seen, axes, channels = terms.reshape(of.of(x), extents), (2, 3), (1, *extents[1:3], 1)
        channels = tuple([terms.length(n) if isinstance(n, int) else n for n in channels])
    else:
        seen, axes = of.of(x), tuple(range(split, len(x.shape)))
        channels = x.shape[split:]
    size = of.length(count([seen.shape[a] for a in axes]))

    def average(a: Term) -> Term:
        return of("divide", of.reduce("sum", a, axes), size)

    mean = average(seen) if params["centered"] else None
    apart = seen if mean is None else of("subtract", seen, mean)
    squares = average(of("multiply", apart, apart))
    rstd = of("divide", 1.0, of("sqrt", of("add", squares, float(params["eps"]))))
    result = of("multiply", apart, rstd)
    if weight is not None:
        result = of("multiply", result, terms.reshape(of.of(weight), channels))
    if bias is not None:
        result = of("add", result, terms.reshape(of.of(bias), channels))
    rows = terms.shape(node.outputs[1].shape)
    none = terms.broadcast(of.of(0.0), rows)
    means = none if mean is None else terms.reshape(mean, rows)
    return [terms.reshape(result, x.shape), means, terms.reshape(rstd, rows)]


def _split(shape: tuple[Length, ...], extents: tuple[Length, ...]) -> int | None:
    """From which axis on all of them are normalized together, if that is so."""
    outer, groups, channels, inner = extents
    if value_of(groups) != 1 or value_of(inner) != 1:
        return None
    for k in range(len(shape)):
        if count(shape[:k]) == outer and count(shape[k:]) == channels:
            return k
    return None
