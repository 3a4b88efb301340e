"""Rows of tables as terms of a compiled function."""

from __future__ import annotations

from numgrad.codegen.dtypes import BOOL, INT64
from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lookup import gather, positions, scatter, spread, where
from numgrad.compiler.lower.lowering import lowering, shape_of


@lowering("embedding")
def _embedding(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    weight, indices = args
    place = positions(terms, indices, weight.shape[0], wrap=False)
    if place is None:
        return None
    shape = shape_of(terms, node)
    return gather(terms, weight, spread(terms, place, 0, shape), 0, len(indices.shape), shape)


@lowering("embedding_backward")
def _embedding_backward(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    x, indices = args
    params, shape = node.params, shape_of(terms, node)
    place = positions(terms, indices, shape[0], wrap=False)
    if params["scaled"] or place is None:
        return None
    place = spread(terms, place, 0, x.shape)
    if params["padding_idx"] is not None:
        row = terms.constant(int(params["padding_idx"]), INT64)
        if params["padding_idx"] < 0:
            row = terms.map("add", (row, terms.size(shape[0], INT64)), INT64)
        padding = terms.map("equal", (place, row), BOOL)
        x = where(terms, padding, terms.constant(x.dtype.type(0).item(), x.dtype), x)
    return scatter(terms, x, place, 0, len(indices.shape), shape)
