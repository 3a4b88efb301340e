"""Kernels of sweeps along one axis: cumulative sums and products, their gradients, argmax.

Note [Gradient of cumprod]
--------------------------
With ``y[k] = x[0] ... x[k]`` the gradient is ``gx[j] = sum over k >= j of g[k] conj(dy[k]/dx[j])``.
Without zeros that is ``sum(g[k] conj(y[k])) / conj(x[j])``, but a division fails for zeros and
loses accuracy where ``y`` over- or underflows. Instead ``dy[k]/dx[j] = y[j-1] x[j+1] ... x[k]``, so

    gx[j] = conj(y[j-1]) t[j],    t[j] = g[j] + conj(x[j+1]) t[j+1],

one sweep from the end, without a division, right for any number of zeros.

The sweep has a template: compiled by ``nests`` (``ng.jit`` of value and gradient, CPU time of one
thread against eager code) it takes 0.8 along rows of 1000 x 512, but 6 to 7.5 along columns.

Note [Why argmax has a template]
--------------------------------
``ng.jit`` of argmax, whose loops ``nests`` writes, takes 0.4 to 0.8 of the eager call up to
128 x 128 (most of that is the call), 1.1 (``axis=1``) to 1.5 (``axis=0``) for 1000 x 512, and 1.9
to 3.1 for the first call (CPU time, one thread, tracing included).
"""

from __future__ import annotations

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import short, type_name

TILE = 256
"""Columns handled side by side at most."""
BLOCK = 256
"""Elements of a row searched together."""

_TASK = """
    tiles = -(-inner // {tile})
    for index in {range}(outer * tiles):
        task = int64(index)
        block = task // tiles
        left = (task - block * tiles) * {tile}
        columns = min({tile}, inner - left)
        start = block * length * inner + left
"""


def cumulative_kernel(
    kind: str, in_dtype: np.dtype, out_dtype: np.dtype, columns: bool, parallel: bool
) -> Kernel:
    """Compile a cumulative sum or product.

    Parameters
    ----------
    kind
        ``"cumsum"``, ``"cumprod"``, or ``"cumsum_reversed"``, which starts from the end and is the
        gradient of ``"cumsum"``.
    in_dtype, out_dtype
        Of operand and result; elements are converted, then accumulated in ``out_dtype``.
    columns
        Whether elements of the axis lie apart; otherwise ``inner`` is 1.
    parallel
        Whether to share rows or tiles of columns among threads.

    Returns
    -------
    Kernel
        ``entry(x, out, outer, length[, inner])`` with raveled arrays that do not overlap.
    """
    # imported by who makes a kernel: ``import numgrad`` needs no generator of loops
    from numgrad.codegen.nests.arrays import ArrayTerms, array_kernel
    from numgrad.codegen.nests.terms import SCAN

    terms = ArrayTerms(3 if columns else 2)
    x = terms.operand(in_dtype)
    step = "prod" if kind == "cumprod" else "sum"
    y = terms.make(SCAN, (terms.cast(x, out_dtype),), out_dtype, (step, 1), x.shape)
    if kind == "cumsum_reversed":
        terms.reverse(x, 1)
        terms.reverse(y, 1)
    name = f"{kind}_{short(in_dtype)}_{short(out_dtype)}{'_c' if columns else '_r'}"
    text = array_kernel(name, terms, [y], parallel=parallel)
    return text.compile(parallel=parallel, nogil=parallel)


_CUMPROD_ROWS = """
def kernel(g, x, y, out, outer, length):
    for index in {range}(outer):
        row = int64(index)
        start = row * length
        g_row = g[start : start + length]
        x_row = x[start : start + length]
        y_row = y[start : start + length]
        out_row = out[start : start + length]
        t = {zero}
        for step in range(length - 1):
            k = length - 1 - step
            t = {type}(g_row[k] + t)
            out_row[k] = {type}({y_before} * t)
            t = {type}({x_here} * t)
        if length > 0:
            out_row[0] = {type}(g_row[0] + t)
"""

_CUMPROD_COLUMNS = (
    """
def kernel(g, x, y, out, outer, length, inner):"""
    + _TASK
    + """
        t = np.zeros(columns, {numpy})
        for step in range(length - 1):
            lo = start + (length - 1 - step) * inner
            g_row = g[lo : lo + columns]
            x_row = x[lo : lo + columns]
            y_row = y[lo - inner : lo - inner + columns]
            out_row = out[lo : lo + columns]
            for j in range(columns):
                value = {type}(g_row[j] + t[j])
                out_row[j] = {type}({y_at} * value)
                t[j] = {type}({x_at} * value)
        if length > 0:
            g_row = g[start : start + columns]
            out_row = out[start : start + columns]
            for j in range(columns):
                out_row[j] = {type}(g_row[j] + t[j])
"""
)


def cumprod_backward_kernel(dtype: np.dtype, columns: bool, parallel: bool) -> Kernel:
    """Compile the gradient of a cumulative product: Note [Gradient of cumprod].

    Parameters
    ----------
    dtype
        Of all arrays, float or complex.
    columns
        Whether elements of the axis lie apart; otherwise ``inner`` is 1.
    parallel
        Whether to share rows or tiles of columns among threads.

    Returns
    -------
    Kernel
        ``entry(g, x, y, out, outer, length[, inner])`` with raveled arrays.
    """

    def conjugate(text: str) -> str:
        return f"np.conj({text})" if dtype.kind == "c" else text

    text = (_CUMPROD_COLUMNS if columns else _CUMPROD_ROWS).format(
        range="prange" if parallel else "range",
        tile=TILE,
        type=type_name(dtype),
        numpy=f"np.{dtype.name}",
        zero=f"{type_name(dtype)}(0)",
        y_before=conjugate("y_row[k - 1]"),
        x_here=conjugate("x_row[k]"),
        y_at=conjugate("y_row[j]"),
        x_at=conjugate("x_row[j]"),
    )
    header = (
        "import numpy as np\n"
        "from numba import int8, int16, int32, int64, uint8, uint16, uint32, uint64, prange\n"
        "from numba import boolean, float32, float64, complex64, complex128\n"
    )
    arrays = [f"{type_name(dtype)}[::1]"] * 4
    return _compile(f"cumprod_backward_{short(dtype)}", header + text, arrays, columns, parallel)


# Extremes of blocks vectorise; the place is looked for only in the block that holds the result. The
# first block with a NaN ends the search.
_ARG_ROWS = """
def kernel(x, out, outer, length):
    for index in {range}(outer):
        row = int64(index)
        start = row * length
        stop = start + length
        first = start
        best = x[start]
        bad = {integer}(0)
        for lo in range(start, stop, {block}):
            part = x[lo : min(lo + {block}, stop)]
            extreme = part[0]
            for k in range(part.size):
                extreme = {extreme}(extreme, part[k])
                bad |= {integer}({nan}(part[k]))
            if bad != 0:
                first = lo
                break
            if {better}(extreme, best):
                best = extreme
                first = lo
        part = x[first : min(first + {block}, stop)]
        place = 0
        while place < part.size - 1:
            if {nan}(part[place]) if bad != 0 else part[place] == best:
                break
            place += 1
        out[row] = first - start + place
"""

_ARG_COLUMNS = (
    """
def kernel(x, out, outer, length, inner):"""
    + _TASK
    + """\
        corner = block * inner + left
        place = out[corner : corner + columns]
        first = x[start : start + columns]
        best = np.empty({tile}, x.dtype)
        for j in range(columns):
            best[j] = first[j]
            place[j] = 0
        for k in range(1, length):
            lo = start + k * inner
            row = x[lo : lo + columns]
            for j in range(columns):
                replace = {better}(row[j], best[j])
                place[j] = select(replace, k, place[j])
                best[j] = {choose}
"""
)


def argreduce_kernel(kind: str, dtype: np.dtype, columns: bool, parallel: bool) -> Kernel:
    """Compile the search for the first extreme element along an axis; NaN counts as extreme.

    Parameters
    ----------
    kind
        ``"argmax"`` or ``"argmin"``; complex numbers are ordered lexicographically.
    dtype
        Of the operand.
    columns
        Whether elements of the searched axis lie apart; otherwise ``inner`` is 1.
    parallel
        Whether to share rows or tiles of columns among threads.

    Returns
    -------
    Kernel
        ``entry(x, out, outer, length[, inner])`` with raveled ``x`` and int64 ``out``; ``length``
        is at least 1.
    """
    larger = kind == "argmax"
    word = "larger" if larger else "smaller"
    if dtype.kind == "f":
        extreme = "ordered_maximum" if larger else "ordered_minimum"
        names = {"extreme": extreme, "nan": "is_nan_float", "better": f"{word}_float_first"}
    elif dtype.kind == "c":
        extreme, better = f"{word}_complex", f"{word}_complex_first"
        names = {"extreme": extreme, "nan": "is_nan", "better": better}
    else:
        names = {"extreme": word, "nan": "never", "better": f"{word}_first"}
        if dtype.kind == "b":
            names["extreme"] = "either" if larger else "both"
    swap = "row[j] if replace else best[j]"
    text = (_ARG_COLUMNS if columns else _ARG_ROWS).format(
        range="prange" if parallel else "range",
        tile=TILE,
        block=BLOCK,
        integer="int32" if dtype == np.float32 else "int64",
        choose=swap if dtype.kind == "c" else "select(replace, row[j], best[j])",
        **names,
    )
    header = (
        "import numpy as np\nfrom numba import int32, int64, prange\n"
        "from numgrad.codegen.intrinsics import select\n"
        f"from numgrad.codegen.accumulation import {', '.join(sorted(set(names.values())))}\n"
    )
    arrays = [f"{type_name(dtype)}[::1]", "int64[::1]"]
    return _compile(f"{kind}_{short(dtype)}", header + text, arrays, columns, parallel)


def _compile(name: str, text: str, arrays: list[str], columns: bool, parallel: bool) -> Kernel:
    sizes = ["int64"] * (3 if columns else 2)
    flags = ("_c" if columns else "_r") + ("_p" if parallel else "")
    signature = f"void({', '.join([*arrays, *sizes])})"
    return compile_kernel(name + flags, text, signature, parallel=parallel, nogil=parallel)
