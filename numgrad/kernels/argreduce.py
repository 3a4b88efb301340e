"""Kernels of argmax and argmin along one axis."""

from __future__ import annotations

import numpy as np

from numgrad.kernels.expr import short, type_name
from numgrad.kernels.jit import Kernel, compile_kernel

TILE = 256
"""Columns handled side by side at most."""
BLOCK = 1024
"""Elements of a row searched together."""

# A row is searched in blocks: the extreme of a block vectorises, its place is looked for only in
# the block that changes the result. The first NaN ends the search.
_ROWS = """
def kernel(x, out, outer, length):
    for index in {range}(outer):
        row = int64(index)
        start = row * length
        place = 0
        best = x[start]
        for lo in range(start, start + length, {block}):
            hi = min(lo + {block}, start + length)
            part = x[lo:hi]
            extreme = part[0]
            for k in range(part.size):
                extreme = {extreme}(extreme, part[k])
            if {better}(extreme, best) or lo == start:
                best = extreme
                place = lo - start
                for k in range(part.size):
                    if part[k] == best or ({nan}(part[k]) and {nan}(best)):
                        place += k
                        break
                if {nan}(best):
                    break
        out[row] = place
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
        best = x[start : start + columns].copy()
        for j in range(columns):
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
        names = {"extreme": "maximum" if larger else "minimum", "nan": "is_nan_float"}
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
        choose="row[j] if replace else best[j]"
        if dtype.kind == "c"
        else "select(replace, row[j], best[j])",
        **names,
    )
    header = (
        "from numba import int64, prange\n"
        "from numgrad.kernels.intrinsics import select\n"
        f"from numgrad.kernels.accumulation import {', '.join(imported)}\n"
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
