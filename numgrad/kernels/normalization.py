"""Kernels of normalization layers: of groups of channels within an example, and of whole channels.

Note [Extents of normalization]
-------------------------------
Arrays are contiguous and seen as ``(outer, groups, channels, inner)``. Layer and RMS normalization
treat every element of a row as a channel of its own (``groups == inner == 1``), group normalization
has several channels of ``inner`` elements in a group; one *row* is ``channels * inner`` elements,
with one mean and one standard deviation. Batch normalization has ``groups == 1``, and statistics of
each channel over ``outer`` and ``inner``. Weights belong to channels (all those of all groups).

Where ``inner`` is 1 the channels lie side by side in SIMD lanes (*columns*), else the elements of
one channel do (*planes*); each kernel exists in both forms.

Note [Order of sums in normalization]
-------------------------------------
A run of contiguous elements is summed in blocks of ``BLOCK``; within a block LLVM may reorder, in a
function compiled by itself, so that every caller adds alike. Sums over ``outer`` take ``ROWS`` rows
(columns), or one plane, at a time, and then these parts in order. Threads share rows, planes or
blocks of rows, whole ones: results are bitwise the same for any number of threads.

Note [Layers by hand and by lowering]
-------------------------------------
The lowerings of layers (``nn.lowerings``), as ``ng.jit`` of one layer runs them, against eager
calls, whose kernels are by hand: CPU time on one thread for 16 x 16, 128 x 128 and 1000 x 512, and
of the first call, tracing included; of the value, and of the gradient of its sum:

=============  ==================  =====  ==================  =====
layer          value               first  gradient            first
=============  ==================  =====  ==================  =====
layer_norm     0.25, 0.42, 0.80     1.10  0.06, 0.12, 0.34     0.77
cross_entropy  0.29, 0.57, 1.05     0.77  0.06, 0.23, 0.85     0.60
dropout        0.83, 1.02, 0.97     1.21  0.10, 0.15, 0.20     0.97
linear         1.06, 1.09, 1.00     1.13  0.11, 0.47, 0.90     1.01
=============  ==================  =====  ==================  =====

The kernels stay all the same: a lowering gives the value; the gradient is compiled from a formula
of several operations, for which an eager call would need a compiled graph of its own. Targets that
are no integers and empty operands have no lowering.
"""

from functools import cache

import numpy as np

from numgrad.codegen.compile import Kernel, compile_kernel
from numgrad.codegen.dtypes import short, type_name

BLOCK = 1024
"""Contiguous elements that are summed in any order."""
ROWS = 64
"""Rows that are summed one after the other, in columns."""

_HEADER = """
import numpy as np
from numba import {type}, int64, prange
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.intrinsics import add_any_order, sqrt
from numgrad.codegen.device import outlined
"""

_SUMS = """
@outlined
def {name}({arguments}):
    no_inline()
    {totals}
    for lo in range(0, x.shape[0], {block}):
        {views}
        {parts}
        for k in range(x_part.shape[0]):
            {steps}
        {additions}
    return {result}
"""


def _sums(name: str, dtype: np.dtype, arrays: str, scalars: str, terms: list[str]) -> str:
    """A function that sums each of ``terms`` over contiguous arrays, ``x`` among them.

    A term reads element ``k`` of an array as ``<array>_part[k]``.
    """
    zero = f"{type_name(dtype)}(0)"
    count = range(len(terms))
    return _SUMS.format(
        name=name,
        arguments=", ".join([*arrays.split(), *scalars.split()]),
        block=BLOCK,
        totals="; ".join(f"total_{n} = {zero}" for n in count),
        views="; ".join(f"{a}_part = {a}[lo : lo + {BLOCK}]" for a in arrays.split()),
        parts="; ".join(f"part_{n} = {zero}" for n in count),
        steps="; ".join(
            f"part_{n} = add_any_order(part_{n}, {t})" for n, t in enumerate(terms)
        ),
        additions="; ".join(f"total_{n} += part_{n}" for n in count),
        result=", ".join(f"total_{n}" for n in count),
    )  # fmt: skip


def _compile(
    name: str, text: str, dtype: np.dtype, arrays: list[str], rest: list[str], parallel: bool
) -> Kernel:
    """Compile a kernel of raveled ``arrays`` (``*`` marks a matrix) and scalars of types ``rest``.

    ``{range}`` in the text is the loop that threads share, ``{type}`` the type of the elements.
    """
    own = type_name(dtype)
    text = text.replace("{range}", "prange" if parallel else "range").replace("{type}", own)
    shapes = ["[:,::1]" if a.startswith("*") else "[::1]" for a in arrays]
    names = ", ".join([*(a.lstrip("*") for a in arrays), *(r.split()[1] for r in rest)])
    signature = ", ".join([*(own + s for s in shapes), *(r.split()[0] for r in rest)])
    return compile_kernel(
        f"{name}_{short(dtype)}{'_p' if parallel else ''}",
        _HEADER.format(type=own) + text.replace("{arguments}", names),
        f"void({signature.replace('{type}', own)})",
        parallel=parallel,
        nogil=parallel,
    )


_EXTENTS = ["int64 outer", "int64 groups", "int64 channels", "int64 inner"]

# ---------------------------------------------------------------------- one row at a time

_ROW = """
def kernel({arguments}):
    length = channels * inner
    for index in {range}(outer * groups):
        row = int64(index)
        first = row % groups * channels
        w = weight[first : first + channels]
        start = row * length
        x = x_all[start : start + length]
"""

_ROW_FORWARD = """
        out = out_all[start : start + length]
        m = row_total(x) / {type}(length)
        r = {type}(1) / sqrt(row_squares(x, m) / {type}(length) + eps)
        mean[row] = m
        rstd[row] = r
        b = bias[first : first + channels]
"""

_ROW_FORWARD_RMS = """
        out = out_all[start : start + length]
        r = {type}(1) / sqrt(row_squares(x) / {type}(length) + eps)
        rstd[row] = r
"""


@cache
def rows_kernel(dtype: np.dtype, centered: bool, columns: bool, parallel: bool) -> Kernel:
    """Compile ``(x - mean) / std * weight + bias`` of each row; not ``centered``: ``x / rms * w``.

    Returns
    -------
    Kernel
        ``entry(x, weight, [bias,] out, [mean,] rstd, eps, outer, groups, channels, inner)`` with
        raveled arrays; those in brackets if ``centered``.
    """
    if centered:
        helpers = _sums("row_total", dtype, "x", "", ["x_part[k]"])
        helpers += _sums("row_squares", dtype, "x", "m", ["(x_part[k] - m) * (x_part[k] - m)"])
        body, value, shift = _ROW_FORWARD, "(x[k] - m)", " + b[{at}]"
    else:
        helpers = _sums("row_squares", dtype, "x", "", ["x_part[k] * x_part[k]"])
        body, value, shift = _ROW_FORWARD_RMS, "x[k]", ""
    if columns:
        body += f"""
        for k in range(length):
            out[k] = {value} * r * w[k]{shift.format(at="k")}
"""
    else:
        value, shift = value.replace("x[k]", "x_plane[k]"), shift.format(at="c")
        body += f"""
        for c in range(channels):
            x_plane = x[c * inner : (c + 1) * inner]
            out_plane = out[c * inner : (c + 1) * inner]
            w_c = w[c]
            {"b_c = b[c]" if centered else "pass"}
            for k in range(inner):
                out_plane[k] = {value} * r * w_c{" + b_c" if centered else ""}
"""
    arrays = ["x_all", "weight", "bias", "out_all", "mean", "rstd"]
    if not centered:
        arrays = ["x_all", "weight", "out_all", "rstd"]
    name = f"{'layer' if centered else 'rms'}_rows_{'columns' if columns else 'planes'}"
    rest = ["{type} eps", *_EXTENTS]
    return _compile(name, helpers + _ROW + body, dtype, arrays, rest, parallel)


@cache
def rows_backward_kernel(dtype: np.dtype, centered: bool, columns: bool, parallel: bool) -> Kernel:
    """Compile the gradient of ``x`` for ``rows_kernel``.

    With ``n = g weight`` and ``h = (x - mean) / std`` it is ``(n - mean(n) - h mean(n h)) / std``
    in each row; without centering, ``mean(n)`` and the mean of ``x`` are left out.

    Returns
    -------
    Kernel
        ``entry(g, x, weight, [mean,] rstd, gx, outer, groups, channels, inner)``.
    """
    of_x = "x_part[k] - m" if centered else "x_part[k]"
    n = "g_part[k] * w_part[k]" if columns else "g_part[k]"
    terms = [f"{n} * ({of_x})", *([n] if centered else [])]
    helpers = _sums(
        "row_sums", dtype, "x g w" if columns else "x g", "m" if centered else "", terms
    )
    here, m = ("(x[k] - m)", ", m") if centered else ("x[k]", "")
    results = "along, whole" if centered else "along"
    body = f"""
        g = g_all[start : start + length]
        gx = gx_all[start : start + length]
        r = rstd[row]
        {"m = mean[row]" if centered else "pass"}
"""
    finish = """
        along = along * r * r / {type}(length)
"""
    if centered:
        finish += "        whole = whole / {type}(length)\n"
    less = " - whole" if centered else ""
    if columns:
        body += f"""
        {results} = row_sums(x, g, w{m})
{finish}
        for k in range(length):
            gx[k] = r * (g[k] * w[k]{less} - {here} * along)
"""
    else:
        zeros = "; ".join(f"{name} = {{type}}(0)" for name in results.split(", "))
        more = "\n            ".join(f"{name} += w[c] * {name}_c" for name in results.split(", "))
        copies = ", ".join(f"{name}_c" for name in results.split(", "))
        plane = "c * inner : (c + 1) * inner"
        body += f"""
        {zeros}
        for c in range(channels):
            {copies} = row_sums(x[{plane}], g[{plane}]{m})
            {more}
{finish}
        for c in range(channels):
            x_plane = x[{plane}]
            g_plane = g[{plane}]
            gx_plane = gx[{plane}]
            w_c = w[c]
            for k in range(inner):
                gx_plane[k] = r * (g_plane[k] * w_c{less} - {here.replace("x[", "x_plane[")} * along)
"""  # noqa: E501
    arrays = ["g_all", "x_all", "weight", *(["mean"] if centered else []), "rstd", "gx_all"]
    name = f"{'layer' if centered else 'rms'}_backward_{'columns' if columns else 'planes'}"
    return _compile(name, helpers + _ROW + body, dtype, arrays, _EXTENTS, parallel)


# ----------------------------------------------------------------------- sums of each channel

_PARTS_PLANES = """
def kernel({arguments}):
    width = groups * channels
    parts = np.empty(({terms}, outer, width), np.{type})
    for index in {range}(outer * width):
        plane = int64(index)
        n = plane // width
        c = plane - n * width
        row = plane // channels
        lo = plane * inner
        hi = lo + inner
        {found} = plane_sums({given})
        {store}
"""

_PARTS_COLUMNS = """
def kernel({arguments}):
    width = groups * channels
    parts = np.zeros(({terms}, -(-outer // {rows}), width), np.{type})
    for index in {range}(-(-outer // {rows})):
        block = int64(index)
        for row in range(block * {rows} * groups, min(outer, (block + 1) * {rows}) * groups):
            first = row % groups * channels
            last = first + channels
            lo = row * channels
            hi = lo + channels
            {views}
            for k in range(channels):
                {steps}
"""

_PARTS_END = """
    for term in range({terms}):
        total = out[term]
        for c in range(width):
            total[c] = 0
        for n in range(parts.shape[1]):
            part = parts[term, n]
            for c in range(width):
                total[c] += part[c]
"""

# For each kind: arrays of all elements, arrays of statistics, where those are found (by channel or
# by row), the terms of an element, and the factor of each term in a plane.
_KINDS = {
    "total": ("x", "", "c", ["X"], [""]),
    "squares": ("x", "mean", "c", ["(X - MEAN) * (X - MEAN)"], [""]),
    "channel_gradients": ("x g", "mean", "c", ["G", "G * (X - MEAN)"], ["", ""]),
    "row_gradients": ("x g", "mean rstd", "row", ["G", "G * (X - MEAN){r}"], ["", " * rstd[row]"]),
    "rms_gradients": ("x g", "rstd", "row", ["G * X{r}"], [" * rstd[row]"]),
}


@cache
def channel_sums_kernel(kind: str, dtype: np.dtype, columns: bool, parallel: bool) -> Kernel:
    """Compile sums of terms for each channel.

    Parameters
    ----------
    kind
        ``"total"`` of ``x``; ``"squares"`` of ``x - mean``; ``"channel_gradients"``, ``g`` and
        ``g (x - mean)``, for statistics of channels; ``"row_gradients"``, ``g`` and
        ``g (x - mean) rstd``, and ``"rms_gradients"``, ``g x rstd``, for statistics of rows.
    dtype
        Of all arrays, float32 or float64.
    columns
        Whether ``inner`` is 1.
    parallel
        Whether to share planes or blocks of rows among threads.

    Returns
    -------
    Kernel
        ``entry(x, [g,] [mean,] [rstd,] out, outer, groups, channels, inner)`` with raveled arrays
        and ``out`` of shape (number of terms, number of channels).
    """
    full, statistics, where, terms, factors = _KINDS[kind]
    arrays, known = full.split(), statistics.split()
    names = {"X": "x[k]", "G": "g[k]", "MEAN": "mean[k]"}
    text = _PARTS_COLUMNS if columns else _PARTS_PLANES
    if columns:
        if where == "row":
            names["MEAN"] = "mean"
            terms = [term.format(r=" * rstd") for term in terms]
            views = [f"{name} = {name}_all[row]" for name in known]
        else:
            views = [f"{name} = {name}_all[first:last]" for name in known]
        views += [f"{name} = {name}_all[lo:hi]" for name in arrays]
        views += [f"part_{n} = parts[{n}, block, first:last]" for n in range(len(terms))]
        steps = [f"part_{n}[k] += {_filled(t, names)}" for n, t in enumerate(terms)]
        text = text.replace("{views}", "; ".join(views)).replace("{steps}", "; ".join(steps))
        helpers = ""
    else:
        names = {"X": "x_part[k]", "G": "g_part[k]", "MEAN": "mean"}
        scalars = "mean" if "mean" in known else ""
        terms = [_filled(term.format(r=""), names) for term in terms]
        helpers = _sums("plane_sums", dtype, full, scalars, terms)
        given = [f"{a}_all[lo:hi]" for a in arrays] + [f"mean_all[{where}]"] * bool(scalars)
        sums = [f"sum_{n}" for n in range(len(terms))]
        scales = [factor.replace("rstd", "rstd_all") for factor in factors]
        store = [f"parts[{n}, n, c] = sum_{n}{s}" for n, s in enumerate(scales)]
        text = text.replace("{found}", ", ".join(sums)).replace("{store}", "; ".join(store))
        text = text.replace("{given}", ", ".join(given))
    text = (text + _PARTS_END).replace("{terms}", str(len(terms))).replace("{rows}", str(ROWS))
    return _compile(
        f"{kind}_{'columns' if columns else 'planes'}",
        helpers + text,
        dtype,
        [*(f"{name}_all" for name in (*arrays, *known)), "*out"],
        _EXTENTS,
        parallel,
    )


def _filled(term: str, names: dict[str, str]) -> str:
    for name, text in names.items():
        term = term.replace(name, text)
    return term


# ------------------------------------------------------------------- each element by its channel

_MAPS = {
    "scale": ("x", "mean scale shift", "(X - MEAN) * SCALE + SHIFT"),
    "combine": ("x g", "mean scale slope shift", "G * SCALE + (X - MEAN) * SLOPE + SHIFT"),
}

_MAP_PLANES = """
def kernel({arguments}):
    width = groups * channels
    for index in {range}(outer * width):
        plane = int64(index)
        c = plane % width
        lo = plane * inner
        hi = lo + inner
        {views}
        for k in range(inner):
            out[k] = {value}
"""

_MAP_COLUMNS = """
def kernel({arguments}):
    width = groups * channels
    for index in {range}(-(-outer // {rows})):
        block = int64(index)
        for row in range(block * {rows}, min(outer, (block + 1) * {rows})):
            lo = row * width
            hi = lo + width
            {views}
            for k in range(width):
                out[k] = {value}
"""


@cache
def channel_map_kernel(kind: str, dtype: np.dtype, columns: bool, parallel: bool) -> Kernel:
    """Compile a map of elements with coefficients of their channels.

    ``"scale"`` is ``(x - mean) scale + shift``, ``"combine"`` is
    ``g scale + (x - mean) slope + shift``.

    Returns
    -------
    Kernel
        ``entry(x, [g,] mean, scale, [slope,] shift, out, outer, groups, channels, inner)`` with
        raveled arrays.
    """
    full, coefficients, value = _MAPS[kind]
    arrays, known = full.split(), coefficients.split()
    views = [f"{name} = {name}_all[lo:hi]" for name in (*arrays, "out")]
    if columns:
        views += [f"{name} = {name}_all" for name in known]
    else:
        views += [f"{name} = {name}_all[c]" for name in known]
    names = {name.upper(): f"{name}[k]" for name in arrays}
    names |= {name.upper(): f"{name}[k]" if columns else name for name in known}
    text = (_MAP_COLUMNS if columns else _MAP_PLANES).replace("{rows}", str(ROWS))
    text = text.replace("{views}", "; ".join(views)).replace("{value}", _filled(value, names))
    return _compile(
        f"channel_{kind}_{'columns' if columns else 'planes'}",
        text,
        dtype,
        [f"{name}_all" for name in (*arrays, *known, "out")],
        _EXTENTS,
        parallel,
    )
