"""Kernels of products of vectors and matrices, and of their gradients.

Note [Products]
---------------
Matrix times matrix is ``blas.gemm``, which compiled functions call too; a matrix whose transpose is
contiguous is passed as that and transposed inside, which costs nothing. Very small matrices
(``TINY`` multiplications) are multiplied by plain loops.

Real products up to ``OWN`` multiplications never reach BLAS: the threads of kernels share them, or
one does them. BLAS's threads wait for each other, spinning; where another process used a core,
OpenBLAS took 24 ms for 100 x 100 x 100 in place of 0.06. Up to there our loops take at most a fifth
longer on one thread, and their bits do not depend on the number of threads. Larger products gain
more from BLAS's blocks than they lose.

Products with a vector are loops of our own: BLAS's order of additions depends on its number of
threads. Rows are summed in blocks of ``BLOCK`` elements, in several SIMD lanes, short ones side by
side; ``vector @ matrix`` adds scaled rows, four at a time, to tiles of the result. Each element of
a result is computed by the same instructions whatever the number of threads.

The linear layer ``x @ w.T + b``: the bias is added while the product is in cache, and its gradient,
the column sums of ``g``, is taken in the same kernel as the other two.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.kernels.products.gemm import SMALL, external

TINY = 64
"""Multiplications up to which plain loops are faster than a call."""
OWN = 2**25
"""Multiplications up to which real products are not left to BLAS: Note [Products]."""
MULTIPLY_NS = 0.05
"""Nanoseconds that a multiplication takes, about."""
NOGIL_NS = 100_000.0
"""Work from which on other Python threads may run beside it."""
BLOCK = 1024
TILE = 512
ROWS = 32
SHORT = 8
"""Elements up to which rows are summed side by side, not each in several lanes."""

_HEADER = """
import numpy as np
from numba import {type}, prange
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.intrinsics import add_any_order
from numgrad.codegen.device import device, outlined
"""

_LOOPS = """
@device
def multiply(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = {type}(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total
"""

_CALL = """
from numgrad.kernels.products.blas import {multiply} as multiply
"""
_MULTIPLY = {"": "multiply", "alone": "multiply_alone", "shared": "multiply_shared"}

_CONJUGATE = """
@device
def conjugate(a, out):
    for i in range(a.shape[0]):
        row, to = a[i], out[i]
        for j in range(row.size):
            to[j] = np.conj(row[j])
"""


def product_source(dtype: np.dtype, how: str) -> str:
    """Source of what every kernel begins with, and of ``multiply(a, b, out)``.

    ``how`` is ``tiny`` for plain loops, ``alone`` for loops in the calling thread, ``shared`` for
    the same in several threads, or empty for what ``blas.gemm`` chooses.
    """
    name = type_name(dtype)
    return (
        _HEADER.format(type=name)
        + (_LOOPS.format(type=name) if how == "tiny" else _CALL.format(multiply=_MULTIPLY[how]))
        + (_CONJUGATE if dtype.kind == "c" else "")
    )


def choose_product(
    kernel: Callable[[str, bool], Callable[..., None]],
    dtype: np.dtype,
    sizes: tuple[int, int, int],
    products: int = 1,
) -> Callable[..., None]:
    """How products of ``sizes`` (m, k, n) are computed: ``kernel(how, nogil)``, made when needed.

    ``products`` is how many of them the kernel computes. Note [Products].
    """
    m, inner, n = sizes
    work = m * inner * n
    work_ns = work * products * MULTIPLY_NS
    if work <= TINY:
        return kernel("tiny", False)
    if work <= SMALL or work > OWN or dtype.kind == "c":
        return kernel("", work_ns > NOGIL_NS)
    alone, shared = partial(kernel, "alone"), partial(kernel, "shared", True)
    return threads.choose(partial(alone, work_ns > NOGIL_NS), shared, work_ns)


def compile_product(
    name: str, source: str, signature: str, dtype: np.dtype, **options: Any
) -> Callable:
    """Entry point of a kernel for a dtype; its options are part of its name."""
    flags = "".join(f"_{k[0]}" for k, v in options.items() if v)
    externals = []
    if "import multiply" in source:
        shared = "import multiply_shared" in source
        externals.append(external("parallel_gemm" if shared else "gemm", dtype.name))
    return compile_kernel(
        f"{name}_{short(dtype)}{flags}", source, signature, externals=externals, **options
    ).entry


def conjugated(dtype: np.dtype, matrix: str) -> tuple[list[str], str]:
    """Lines that conjugate a contiguous matrix, and the name of the result."""
    if dtype.kind != "c":
        return [], matrix
    name = f"conjugate_of_{matrix}"
    return [
        f"{name} = np.empty({matrix}.shape, {matrix}.dtype)",
        f"conjugate({matrix}, {name})",
    ], name


def suffix(how: str) -> str:
    """The end of the name of a kernel that multiplies so."""
    return f"_{how}" if how else ""


@cache
def product_kernel(dtype: np.dtype, ta: bool, tb: bool, how: str, nogil: bool) -> Callable:
    """Matrix product: called with a, b, out; ``ta``, ``tb``: given as their transposes."""
    a, b = "a.T" if ta else "a", "b.T" if tb else "b"
    source = product_source(dtype, how) + f"\ndef kernel(a, b, out):\n    multiply({a}, {b}, out)\n"
    array = f"{type_name(dtype)}[:,::1]"
    name = f"product{'_ta' if ta else ''}{'_tb' if tb else ''}{suffix(how)}"
    signature = f"void({array}, {array}, {array})"
    return compile_product(name, source, signature, dtype, nogil=nogil, parallel=how == "shared")


@cache
def product_backward_kernel(
    dtype: np.dtype, mask: int, ta: bool, tb: bool, how: str, nogil: bool
) -> Callable:
    """Gradients of a matrix product in ``mask``: called with g, then b and ga, then a and gb."""
    names, lines = ["g"], []
    if mask & 1:
        names += ["b", "ga"]
        before, b = conjugated(dtype, "b")
        lines += [*before, f"multiply(g, {b}{'' if tb else '.T'}, ga)"]
    if mask & 2:
        names += ["a", "gb"]
        before, a = conjugated(dtype, "a")
        lines += [*before, f"multiply({a}{'' if ta else '.T'}, g, gb)"]
    source = product_source(dtype, how) + "\n".join(
        ["", f"def kernel({', '.join(names)}):", *(f"    {line}" for line in lines), ""]
    )
    signature = f"void({', '.join([f'{type_name(dtype)}[:,::1]'] * len(names))})"
    name = f"product_backward{mask}{'_ta' if ta else ''}{'_tb' if tb else ''}{suffix(how)}"
    return compile_product(name, source, signature, dtype, nogil=nogil, parallel=how == "shared")


@cache
def batched_kernel(
    dtype: np.dtype, ta: bool, tb: bool, how: str, nogil: bool, parallel: bool
) -> Callable:
    """Products of stacks of matrices: called with a, b, out, and the places of the factors."""
    a, b = "a[ia[i]].T" if ta else "a[ia[i]]", "b[ib[i]].T" if tb else "b[ib[i]]"
    source = product_source(dtype, how) + (
        "\ndef kernel(a, b, out, ia, ib):\n"
        f"    for i in {'prange' if parallel else 'range'}(out.shape[0]):\n"
        f"        multiply({a}, {b}, out[i])\n"
    )
    array = f"{type_name(dtype)}[:,:,::1]"
    name = f"batched{'_ta' if ta else ''}{'_tb' if tb else ''}{suffix(how)}"
    signature = f"void({array}, {array}, {array}, int64[::1], int64[::1])"
    return compile_product(name, source, signature, dtype, nogil=nogil, parallel=parallel)


_ADD_TO = """
@device
def add_to(part, out):
    for j in range(part.shape[0]):
        row, total = part[j], out[j]
        for k in range(row.size):
            total[k] += row[k]
"""


@cache
def batched_backward_kernel(
    dtype: np.dtype, mask: int, ta: bool, tb: bool, shared: int, how: str, parallel: bool
) -> Callable:
    """Gradients of stacked products: called with g, then b and ga, then a and gb, then ia, ib.

    ``shared`` has the bits of the operands whose matrices go into several products; their gradients
    are added to zeros, by one thread.
    """
    names, lines = ["g"], []
    for bit, target, other, at in ((1, "ga", "b", "ia"), (2, "gb", "a", "ib")):
        if not mask & bit:
            continue
        names += [other, target]
        before, matrix = conjugated(dtype, f"one_{other}")
        lines += [f"one_{other} = {other}[i{other}[i]]", *before]
        matrix += "" if (tb if other == "b" else ta) else ".T"
        pair = f"g[i], {matrix}" if bit == 1 else f"{matrix}, g[i]"
        if shared & bit:
            shape = f"({target}.shape[1], {target}.shape[2])"
            lines.append(f"part_{target} = np.empty({shape}, {target}.dtype)")
            lines.append(f"multiply({pair}, part_{target})")
            lines.append(f"add_to(part_{target}, {target}[{at}[i]])")
        else:
            lines.append(f"multiply({pair}, {target}[i])")
    source = product_source(dtype, how) + "\n".join(
        [
            _ADD_TO if shared else "",
            f"def kernel({', '.join([*names, 'ia', 'ib'])}):",
            f"    for i in {'prange' if parallel else 'range'}(g.shape[0]):",
            *(f"        {line}" for line in lines),
            "",
        ]
    )
    arrays = [f"{type_name(dtype)}[:,:,::1]"] * len(names)
    name = f"batched_backward{mask}{shared}{'_ta' if ta else ''}{'_tb' if tb else ''}"
    return compile_product(
        name + suffix(how),
        source,
        f"void({', '.join([*arrays, 'int64[::1]', 'int64[::1]'])})",
        dtype,
        parallel=parallel,
    )


# ------------------------------------------------------------------------------------- vectors

_DOT = """
@device
def dot(a, b):
    total = {type}(0)
    for lo in range(0, a.size, {block}):
        p, q = a[lo : lo + {block}], b[lo : lo + {block}]
        part = {type}(0)
        for k in range(p.size):
            part = add_any_order(part, {type}(p[k] * q[k]))
        total += part
    return total
"""

_DOT_COMPLEX = """
@device
def dot(a, b):
    total = {type}(0)
    for lo in range(0, a.size, {block}):
        p, q = a[lo : lo + {block}], b[lo : lo + {block}]
        real = {part}(0)
        imag = {part}(0)
        for k in range(p.size):
            c = p[k].real
            d = {minus}p[k].imag
            e = q[k].real
            f = q[k].imag
            real = add_any_order(real, {part}({part}(c * e) - {part}(d * f)))
            imag = add_any_order(imag, {part}({part}(c * f) + {part}(d * e)))
        total += {type}(complex(real, imag))
    return total
"""

_ROWS = """
@outlined
def rows(a, x, out, lo, hi):
    no_inline()
    if x.size > {short}:
        for i in range(lo, hi):
            out[i] = dot(a[i], x)
        return
    for i in range(lo, hi):
        out[i] = a[i, 0] * x[0]
    for k in range(1, x.size):
        for i in range(lo, hi):
            out[i] += a[i, k] * x[k]

def kernel(a, x, out):
    count = a.shape[0]
    for index in {range}(-(-count // {tile})):
        lo = index * {tile}
        rows(a, x, out, lo, min(lo + {tile}, count))
"""


def _dot(dtype: np.dtype, conjugated: bool) -> str:
    """Source of ``dot(a, b)``, of ``conj(a)`` if so declared."""
    name = type_name(dtype)
    header = _HEADER.format(type=name)
    if dtype.kind != "c":
        return header + _DOT.format(type=name, block=BLOCK)
    real = f"float{dtype.itemsize * 4}"
    text = _DOT_COMPLEX.format(type=name, part=real, minus="-" if conjugated else "", block=BLOCK)
    return f"{header}from numba import {real}\n{text}"


@cache
def dot_kernel(dtype: np.dtype) -> Callable:
    """Product of two vectors: called with a, b and a result of one element."""
    source = _dot(dtype, False) + "\ndef kernel(a, b, out):\n    out[0] = dot(a, b)\n"
    array = f"{type_name(dtype)}[::1]"
    return compile_product("dot", source, f"void({array}, {array}, {array})", dtype)


@cache
def matrix_vector_kernel(dtype: np.dtype, conjugated: bool, parallel: bool) -> Callable:
    """``a @ x``, or ``conj(a) @ x``: called with a, x, out."""
    source = _dot(dtype, conjugated) + _ROWS.format(
        range="prange" if parallel else "range",
        tile=ROWS,
        short=SHORT if dtype.kind == "f" else 0,
    )
    vector = f"{type_name(dtype)}[::1]"
    signature = f"void({type_name(dtype)}[:,::1], {vector}, {vector})"
    name = "matrix_vector_conj" if conjugated else "matrix_vector"
    return compile_product(name, source, signature, dtype, parallel=parallel, nogil=parallel)


_VECTOR_MATRIX = """
@outlined
def add_rows(x, a, out, left, right):
    no_inline()
    part = out[left:right]
    for j in range(right - left):
        part[j] = 0
    length = a.shape[0]
    whole = length - length % 4
    for k in range(0, whole, 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        a0, a1 = a[k, left:right], a[k + 1, left:right]
        a2, a3 = a[k + 2, left:right], a[k + 3, left:right]
        for j in range(right - left):
            low = {type}({type}(x0 * {a0}) + {type}(x1 * {a1}))
            high = {type}({type}(x2 * {a2}) + {type}(x3 * {a3}))
            part[j] = {type}(part[j] + {type}(low + high))
    for k in range(whole, length):
        x0 = x[k]
        a0 = a[k, left:right]
        for j in range(right - left):
            part[j] = {type}(part[j] + {type}(x0 * {a0}))

def kernel(x, a, out):
    columns = a.shape[1]
    for index in {range}(-(-columns // {tile})):
        left = index * {tile}
        add_rows(x, a, out, left, min(left + {tile}, columns))
"""


@cache
def vector_matrix_kernel(dtype: np.dtype, conjugated: bool, parallel: bool) -> Callable:
    """``x @ a``, or ``x @ conj(a)``: called with x, a, out."""
    name = type_name(dtype)
    rows = {f"a{k}": f"np.conj(a{k}[j])" if conjugated else f"a{k}[j]" for k in range(4)}
    source = _HEADER.format(type=name) + _VECTOR_MATRIX.format(
        type=name, range="prange" if parallel else "range", tile=TILE, **rows
    )
    signature = f"void({name}[::1], {name}[:,::1], {name}[::1])"
    title = "vector_matrix_conj" if conjugated else "vector_matrix"
    return compile_product(title, source, signature, dtype, parallel=parallel, nogil=parallel)


@cache
def outer_kernel(dtype: np.dtype, first: bool, second: bool, parallel: bool) -> Callable:
    """``x[:, None] * y``, either conjugated: called with x, y, out."""
    name = type_name(dtype)
    x = "np.conj(x[i])" if first else "x[i]"
    y = "np.conj(y[j])" if second else "y[j]"
    source = _HEADER.format(type=name) + (
        "\ndef kernel(x, y, out):\n"
        f"    for i in {'prange' if parallel else 'range'}(x.size):\n"
        f"        value = {x}\n        row = out[i]\n"
        "        for j in range(y.size):\n"
        f"            row[j] = {name}(value * {y})\n"
    )
    signature = f"void({name}[::1], {name}[::1], {name}[:,::1])"
    title = f"outer{int(first)}{int(second)}"
    return compile_product(title, source, signature, dtype, parallel=parallel, nogil=parallel)


@cache
def scaled_kernel(dtype: np.dtype, conjugated: bool) -> Callable:
    """``g[0] * conj(x)``: called with g, x, out."""
    name = type_name(dtype)
    x = "np.conj(x[j])" if conjugated else "x[j]"
    source = _HEADER.format(type=name) + (
        "\ndef kernel(g, x, out):\n    value = g[0]\n    for j in range(x.size):\n"
        f"        out[j] = {name}(value * {x})\n"
    )
    return compile_product("scaled", source, f"void({', '.join([f'{name}[::1]'] * 3)})", dtype)


# several narrow rows are added to at a time, as one of up to WIDE elements
_ADD_BIAS = """
@device
def add_bias(b, out):
    n = b.size
    together = max(1, min({wide} // max(n, 1), out.shape[0]))
    width, elements = together * n, out.reshape(out.size)
    repeated = np.empty(width, b.dtype)
    for i in range(together):
        for j in range(n):
            repeated[i * n + j] = b[j]
    for lo in range(0, elements.size, max(width, 1)):
        row = elements[lo:lo + width]
        for j in range(row.size):
            row[j] += repeated[j]
"""

# rows are added up in blocks, so that rounding errors grow with the number of blocks alone
_COLUMN_SUMS = """
@device
def column_sums(g, out):
    n = out.size
    together = max(1, min({wide} // max(n, 1), g.shape[0]))
    width, elements = together * n, g.reshape(g.size)
    part = np.empty(width, out.dtype)
    for j in range(n):
        out[j] = 0
    for first in range(0, elements.size, max({block} * width, 1)):
        for j in range(width):
            part[j] = 0
        for lo in range(first, min(first + {block} * width, elements.size), max(width, 1)):
            row = elements[lo:lo + width]
            for j in range(row.size):
                part[j] += row[j]
        for i in range(together):
            for j in range(n):
                out[j] += part[i * n + j]
"""
BIAS_BLOCK = 128
WIDE = 64


@cache
def linear_kernel(dtype: np.dtype, bias: bool, how: str, nogil: bool) -> Callable[..., None]:
    """``x @ w.T + b``: called with matrices x and w, b if there is one, and out."""
    lines = [product_source(dtype, how)]
    if bias:
        lines += [
            _ADD_BIAS.format(wide=WIDE),
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
        source += _COLUMN_SUMS.format(block=BIAS_BLOCK, wide=WIDE)
    lines = (f"    {line}" for line in body)
    source += "\n".join(["", f"def kernel({', '.join(names)}):", *lines, ""])
    name, signature = f"linear_backward{mask}{suffix(how)}", f"void({', '.join(types)})"
    return compile_product(name, source, signature, dtype, nogil=nogil, parallel=how == "shared")
