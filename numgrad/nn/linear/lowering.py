"""Linear maps as terms of a compiled function."""

from __future__ import annotations

from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lowering import lowering
from numgrad.compiler.lower.matrices import multiplied, swapped


@lowering("linear")
def _linear(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    """``x @ weight.T + bias``."""
    x, weight = args[:2]
    product = multiplied(terms, node, x, swapped(terms, weight))
    if product is None or len(args) == 2:
        return product
    dtype = node.outputs[0].dtype
    return terms.map("add", (product, terms.cast(args[2], dtype)), dtype)
