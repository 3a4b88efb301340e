"""Matrix products of a graph: sums in loops where they are small, else a call in the kernel.

Products in loops fuse with what surrounds them. The others are terms ``product``, whose operands
are in memory: transposed operands are read where they are, and rows of the result are computed by
tasks as in any other loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import value_of
from numgrad.compiler.lower.lowering import lowering
from numgrad.compiler.lower.terms import FUSED, ONE, PRODUCT, VIEW, Term, Terms, count

SMALL_PRODUCT = 2
"""Two of the rows, columns and terms of a sum, up to which a matrix product is written as loops; so
are products of which one is 1."""
SMALL_KNOWN = 8
"""One of the three, up to which products are that are made of numbers in registers: in steps of
loops, and of matrices whose lengths are known."""
SMALL_MATRICES = 4
"""All three, up to which batches of products are."""
NARROW_MATRICES = 64
"""Two of the three, up to which batches of products are if the third is over four times as long:
lanes go along it, and what surrounds the product fuses with it."""


@dataclass(frozen=True)
class ProductSizes:
    """What a product multiplies: ``batch`` matrices of ``(m, k)`` with ``(k, n)``.

    ``trans`` says which operands are stored transposed, ``shared`` which are the same for the whole
    batch.
    """

    batch: Length
    m: Length
    n: Length
    k: Length
    trans: tuple[bool, bool]
    shared: tuple[bool, bool]


@lowering("matmul")
def matmul(terms: Terms, node: TracedNode, args: list[Term]) -> Term | None:
    """The matrix product; None for booleans."""
    a, b = args
    return multiplied(terms, node, a, b)


def multiplied(terms: Terms, node: TracedNode, a: Term, b: Term) -> Term | None:
    """``a @ b`` in the dtype of a node's result."""
    dtype = node.outputs[0].dtype
    if dtype.kind == "b":
        return None
    a, b = terms.cast(a, dtype), terms.cast(b, dtype)
    row, column = len(a.shape) == 1, len(b.shape) == 1
    a = terms.insert(a, (0,)) if row else a
    b = terms.insert(b, (1,)) if column else b
    lengths = (a.shape[-2], b.shape[-1], a.shape[-1])
    out = None
    least, middle, most = sorted(map(terms.sizes.hint_of, lengths))
    narrow = middle <= NARROW_MATRICES and most > 4 * middle
    batches = min(len(a.shape), len(b.shape)) > 2
    if terms.in_loop or all(value_of(n) is not None for n in lengths):
        small = least <= SMALL_KNOWN or (batches and middle <= NARROW_MATRICES)
    elif batches:
        small = most <= SMALL_MATRICES or narrow
    else:
        small = least <= 1 or middle <= SMALL_PRODUCT
    if dtype.kind == "f" and not small:
        out = _in_memory(terms, a, b)
    if out is None:
        out = _in_loops(terms, a, b)
    ends = (len(out.shape) - 2, row), (len(out.shape) - 1, column)
    return terms.drop(out, tuple(axis for axis, away in ends if away))


def _in_loops(terms: Terms, a: Term, b: Term) -> Term:
    pairs = terms.map(
        "multiply",
        [
            terms.insert(a, (len(a.shape) - 1,)),
            terms.insert(swapped(terms, b), (len(b.shape) - 2,)),
        ],
        a.dtype,
        FUSED if a.dtype.kind == "f" else None,
    )
    return terms.reduce("sum", pairs, (len(pairs.shape) - 1,))


def swapped(terms: Terms, x: Term) -> Term:
    """The last two axes in the other order."""
    rank = len(x.shape)
    shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
    return terms.view("permute", x, (*range(rank - 2), rank - 1, rank - 2), shape)


def _in_memory(terms: Terms, a: Term, b: Term) -> Term | None:
    """The term ``product``; None if batches would have to be broadcast."""
    m, n, k = a.shape[-2], b.shape[-1], a.shape[-1]
    batches = a.shape[:-2], b.shape[:-2]
    shape = (*(batches[0] or batches[1]), m, n)
    (left, trans_a), (right, trans_b) = _matrix(a), _matrix(b)
    if batches[0] and not batches[1] and not trans_a:  # one product with more rows
        m, batch, shared = count(a.shape[:-1]), ONE, (True, True)
    elif batches[0] and batches[1] and batches[0] != batches[1]:
        return None
    else:
        batch = count(batches[0] or batches[1])
        shared = (not batches[0], not batches[1])
    sizes = ProductSizes(batch, m, n, k, (trans_a, trans_b), shared)
    return terms.make(PRODUCT, (left, right), a.dtype, sizes, shape)


def _matrix(x: Term) -> tuple[Term, bool]:
    """What is in memory of an operand, and whether its matrices are stored transposed."""
    trans = False
    if x.op == VIEW and x.detail[0] == "permute":
        rank = len(x.shape)
        if x.detail[1] == (*range(rank - 2), rank - 1, rank - 2):
            x, trans = x.args[0], True
    while x.op == VIEW and x.detail[0] in ("reshape", "insert", "drop"):
        x = x.args[0]
    return x, trans
