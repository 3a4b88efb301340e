"""Instructions of ``chunks`` in LLVM's language."""

from __future__ import annotations

from typing import Any

from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.values import Array, Known, Number, integer


def partial_sums(body: Any, count: Number, like: Number | Array) -> Array:
    """A vector of ``count`` elements of the dtype of a number or an array."""
    return body.allocate([count, Known(like.dtype)], zero=False)


def chunk_of(body: Any, whole: Array, sums: Array, chunk: Number) -> Array:
    """The private copy of a chunk, in the shape of an array; of the first one the array itself."""
    f = body.f
    offset = do.binary(f, "*", do.binary(f, "-", chunk, integer(1)), integer(whole.dtype.itemsize))
    for length in whole.shape:
        offset = do.binary(f, "*", offset, length)
    own = f.pure(f"getelementptr i8, ptr {sums.data}, i64 {offset.part}")
    first = do.compare(f, "<", chunk, integer(1))
    data = f.pure(f"select i1 {first.part}, ptr {whole.data}, ptr {own}")
    roots = [a.root if isinstance(a.root, frozenset) else {a.root} for a in (whole, sums)]
    return Array(whole.dtype, data, whole.shape, None, frozenset().union(*roots))
