"""Dropout as terms of a compiled function."""

from __future__ import annotations

import numpy as np

from numgrad.codegen.dtypes import BOOL
from numgrad.codegen.nests.terms import Term, Terms
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.lower.lookup import where
from numgrad.compiler.lower.lowering import Arithmetic, lowering
from numgrad.kernels.dropout import BITS

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_UINT64 = np.dtype(np.uint64)


@lowering("dropout")
def _dropout(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    """Note [Random numbers by position] in ``kernels.dropout``."""
    x, seed = args
    p, group = node.params["p"], node.params["group"]
    if not isinstance(p, int | float):
        return None
    bits = Arithmetic(terms, _UINT64)

    def mixed(z: Term) -> Term:
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            z = bits("multiply", bits("bitwise_xor", z, bits("right_shift", z, shift)), factor)
        return bits("bitwise_xor", z, bits("right_shift", z, 31))

    place = terms.iota(x.shape, divisor=terms.length(group))
    state = bits("add", mixed(bits.of(seed)), bits("multiply", place, _STEP))
    number = bits("right_shift", mixed(state), 11)
    kept = terms.map("greater_equal", (number, bits.of(round(p * 2**BITS))), BOOL)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    if x.dtype.kind == "c":
        of = Arithmetic(terms, np.dtype(f"f{x.dtype.itemsize // 2}"))
        parts = [
            of("multiply", terms.map(part, (x,), of.dtype), scale) for part in ("real", "imag")
        ]
        scaled = terms.map("from_parts", parts, x.dtype)
    else:
        scaled = Arithmetic(terms, x.dtype)("multiply", x, scale)
    return where(terms, kept, scaled, terms.constant(x.dtype.type(0).item(), x.dtype))
