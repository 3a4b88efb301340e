"""Kernels of the linear layer, ``x @ w.T + b``, and of its gradients.

Products are those of ``linalg``: Note [Products]. The bias is added while the product is in cache,
and its gradient, the column sums of ``g``, is taken in the same kernel as the other two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.dtypes import type_name
from numgrad.kernels.products.linalg import compile_product, conjugated, product_source, suffix

_ADD_BIAS = """
@device
def add_bias(b, out):
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(b.size):
            row[j] += b[j]
"""

# rows are added up in blocks, so that rounding errors grow with the number of blocks alone
_COLUMN_SUMS = """
@device
def column_sums(g, out):
    for j in range(out.size):
        out[j] = 0
    part = np.empty_like(out)
    for lo in range(0, g.shape[0], {block}):
        for j in range(out.size):
            part[j] = 0
        for i in range(lo, min(lo + {block}, g.shape[0])):
            row = g[i]
            for j in range(out.size):
                part[j] += row[j]
        for j in range(out.size):
            out[j] += part[j]
"""
BLOCK = 128


@cache
def linear_kernel(dtype: np.dtype, bias: bool, how: str, nogil: bool) -> Callable[..., None]:
    """``x @ w.T + b``: called with matrices x and w, b if there is one, and out."""
    lines = [product_source(dtype, how)]
    if bias:
        lines += [
            _ADD_BIAS,
            "def kernel(x, w, b, out):",
            "    multiply(x, w.T, out)",
            "    add_bias(b, out)",
        ]
    else:
        lines += ["def kernel(x, w, out):", "    multiply(x, w.T, out)"]
    matrix, vector = f"{type_name(dtype)}[:,::1]", f"{type_name(dtype)}[::1]"
    types = [matrix, matrix, *[vector] * bias, matrix]
    name = f"linear{'_bias' if bias else ''}{suffix(how)}"
    source, signature = "\n".join([*lines, ""]), f"void({', '.join(types)})"
    return compile_product(name, source, signature, dtype, nogil=nogil, parallel=how == "shared")


@cache
def linear_backward_kernel(
    dtype: np.dtype, mask: int, how: str, nogil: bool
) -> Callable[..., None]:
    """Gradients in ``mask``: called with g, then w and gx, then x and gw, then gb."""
    matrix, vector = f"{type_name(dtype)}[:,::1]", f"{type_name(dtype)}[::1]"
    names, types, body = ["g"], [matrix], []
    if mask & 1:
        names += ["w", "gx"]
        types += [matrix, matrix]
        before, w = conjugated(dtype, "w")
        body += [*before, f"multiply(g, {w}, gx)"]
    if mask & 2:
        names += ["x", "gw"]
        types += [matrix, matrix]
        before, x = conjugated(dtype, "x")
        body += [*before, f"multiply(g.T, {x}, gw)"]
    source = product_source(dtype, how)
    if mask & 4:
        names.append("gb")
        types.append(vector)
        body.append("column_sums(g, gb)")
        source += _COLUMN_SUMS.format(block=BLOCK)
    lines = (f"    {line}" for line in body)
    source += "\n".join(["", f"def kernel({', '.join(names)}):", *lines, ""])
    name, signature = f"linear_backward{mask}{suffix(how)}", f"void({', '.join(types)})"
    return compile_product(name, source, signature, dtype, nogil=nogil, parallel=how == "shared")
