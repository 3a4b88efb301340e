"""The operations, one module a field; importing this package fills the table ``OPS``."""

from numgrad.ops import (
    arithmetic as arithmetic,
    compare as compare,
    complex as complex,
    cumulative as cumulative,
    einsum as einsum,
    exponential as exponential,
    extend as extend,
    index as index,
    join as join,
    linalg as linalg,
    matmul as matmul,
    reduce as reduce,
    search as search,
    shape as shape,
    special as special,
    trigonometric as trigonometric,
)
