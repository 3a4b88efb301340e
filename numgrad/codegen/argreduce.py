"""Kernels of argmax and argmin along one axis.

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

# Extremes of blocks vectorise; the place is looked for only in the block that holds the result. The
# first block with a NaN ends the search.
_ROWS = """
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

_COLUMNS = """
def kernel(x, out, outer, length, inner):
    tiles = -(-inner // {tile})
    for index in {range}(outer * tiles):
        task = int64(index)
        block = task // tiles
        left = (task - block * tiles) * {tile}
        columns = min({tile}, inner - left)
        start = block * length * inner + left
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
        names = {
            "extreme": "ordered_maximum" if larger else "ordered_minimum",
            "nan": "is_nan_float",
        }
        names["better"] = f"{word}_float_first"
    elif dtype.kind == "c":
        names = {"extreme": f"{word}_complex", "nan": "is_nan"}
        names["better"] = f"{word}_complex_first"
    else:
        names = {"extreme": word, "nan": "never", "better": f"{word}_first"}
        if dtype.kind == "b":
            names["extreme"] = "either" if larger else "both"
    imported = sorted(set(names.values()))
    text = (_COLUMNS if columns else _ROWS).format(
        range="prange" if parallel else "range",
        tile=TILE,
        block=BLOCK,
        integer="int32" if dtype == np.float32 else "int64",
        choose="row[j] if replace else best[j]"
        if dtype.kind == "c"
        else "select(replace, row[j], best[j])",
        **names,
    )
    header = (
        "import numpy as np\nfrom numba import int32, int64, prange\n"
        "from numgrad.codegen.intrinsics import select\n"
        f"from numgrad.codegen.accumulation import {', '.join(imported)}\n"
    )
    sizes = ", ".join(["int64"] * (3 if columns else 2))
    flags = ("_c" if columns else "_r") + ("_p" if parallel else "")
    return compile_kernel(
        f"{kind}_{short(dtype)}{flags}",
        header + text,
        f"void({type_name(dtype)}[::1], int64[::1], {sizes})",
        parallel=parallel,
        nogil=parallel,
    )
