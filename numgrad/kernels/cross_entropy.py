"""Kernels of the cross entropy of logits with class indices.

Note [Cross entropy in two passes]
----------------------------------
Logits are seen as ``(outer, classes, inner)``. The forward pass reads a row twice, the second time
from cache: for its maximum ``m``, then for ``s = sum(exp(x - m))``. It keeps both, two numbers a
row, and no probabilities: the backward pass reads the logits once more and writes
``exp(x - m) / s`` times a factor, which moves less memory than an array of probabilities that is
written here and read there. ``m`` and ``s`` are kept apart because ``x - (m + log(s))`` would lose
the last digits of large logits.

*Rows* (``inner == 1``) go through functions that are compiled by themselves, as in Note [Blocks of
a reduction]; many short ones at once, so that vectors are filled. *Columns* are handled in tiles,
one class after the other. Results are bitwise the same for any number of threads. Targets are
checked before anything is written.

The negative log-likelihood of class indices picks logarithms in place of computing them.

Note [Cross entropy by formula]
-------------------------------
Two ways to have the same from the generator of loops were measured against these kernels, CPU time
of value and gradient on one thread, float32 and float64. By an array formula (Note [Array formulas]
in ``codegen.array_formulas``), which compares every class with the target: rows 1.2 to 1.4 at
16 x 16, 1.15 to 1.5 at 128 x 128, 1.08 to 1.3 at 1000 x 512; images 0.64 to 0.68 at 32 x 32 x 512,
but 1.3 where they are small; the negative log-likelihood 1.2 to 1.6. By the terms of the lowering,
which gather logits of the target: 1.1 to 1.3 at 1000 x 512, images 1.5 to 2.1, the negative
log-likelihood 1.4 to 1.55 and 0.95 to 1.2. So the kernels stay.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

TILE = 256
"""Columns handled side by side at most."""
BLOCK = 1024
"""Elements of a row, or losses, that are summed without a wider accumulator."""
SHORT = 64
"""Classes up to which the exponentials of several rows are taken in one loop."""

HEADER = """
import numpy as np
from numba import float32, float64, int32, int64, prange
from numgrad.codegen.accumulation import is_nan_float, ordered_maximum, no_inline
from numgrad.codegen.intrinsics import add_any_order, maximum, select
from numgrad.codegen.device import outlined
from numgrad.kernels.vmath.exponential import exp_{bits}
from numgrad.kernels.vmath.logarithm import log_{bits}

NAN = {numpy}(np.nan)
LOWEST = {numpy}(-np.inf)
ZERO = {numpy}(0)


@outlined
def largest(row):
    no_inline()
    best = LOWEST
    bad = {integer}(0)
    for k in range(row.size):
        best = ordered_maximum(best, row[k])
        bad |= {integer}(is_nan_float(row[k]))
    return NAN if bad != 0 else best


@outlined
def sum_of_exponentials(row, shift):
    no_inline()
    total = 0.0
    for lo in range(0, row.size, {block}):
        part = row[lo : min(lo + {block}, row.size)]
        subtotal = ZERO
        for k in range(part.size):
            subtotal = add_any_order(subtotal, exp_{bits}(part[k] - shift))
        total += float64(subtotal)
    return {type}(total)


@outlined
def pass_over_short_rows(part, shifts, sums, logarithms, classes, scratch):
    # exponentials and logarithms of several rows side by side
    no_inline()
    whole = classes - classes % 4
    for r in range(shifts.size):
        row = part[r * classes : r * classes + classes]
        apart = scratch[r * classes : r * classes + classes]
        b0, b1, b2, b3 = LOWEST, LOWEST, LOWEST, LOWEST
        for k in range(0, whole, 4):
            x0, x1, x2, x3 = row[k], row[k + 1], row[k + 2], row[k + 3]
            b0, b1 = select(x0 > b0, x0, b0), select(x1 > b1, x1, b1)
            b2, b3 = select(x2 > b2, x2, b2), select(x3 > b3, x3, b3)
        for k in range(whole, classes):
            b0 = select(row[k] > b0, row[k], b0)
        b0, b2 = select(b1 > b0, b1, b0), select(b3 > b2, b3, b2)
        best = select(b2 > b0, b2, b0)
        for k in range(classes):
            apart[k] = row[k] - best
        shifts[r] = best
    for k in range(scratch.size):
        scratch[k] = exp_{bits}(scratch[k])
    for r in range(shifts.size):
        terms = scratch[r * classes : r * classes + classes]
        t0, t1, t2, t3 = ZERO, ZERO, ZERO, ZERO
        for k in range(0, whole, 4):
            t0, t1 = t0 + terms[k], t1 + terms[k + 1]
            t2, t3 = t2 + terms[k + 2], t3 + terms[k + 3]
        for k in range(whole, classes):
            t0 += terms[k]
        sums[r] = (t0 + t1) + (t2 + t3)
    for r in range(shifts.size):
        logarithms[r] = log_{bits}(sums[r])


@outlined
def sum_of_distances(row, shift, weight):
    no_inline()
    total = 0.0
    if weight.size == 0:
        for k in range(row.size):
            total = add_any_order(total, float64(row[k] - shift))
    else:
        for k in range(row.size):
            total = add_any_order(total, float64((row[k] - shift) * weight[k]))
    return {type}(total)


@outlined
def sum_of(values):
    no_inline()
    total = 0.0
    for lo in range(0, values.size, {block}):
        part = values[lo : min(lo + {block}, values.size)]
        subtotal = 0.0
        for k in range(part.size):
            subtotal = add_any_order(subtotal, float64(part[k]))
        total += subtotal
    return total


@outlined
def weight_of_targets(target, weight, classes, ignored):
    # their weight, and the position of one that is no class, or -1
    no_inline()
    total = 0.0
    for k in range(target.size):
        t = target[k]
        if t == ignored:
            continue
        if t < 0 or t >= classes:
            return total, k
        total += 1.0 if weight.size == 0 else float64(weight[t])
    return total, -1
"""

# ``result`` holds the reduced loss and the weight it was divided by; ``reduction`` is 0 for losses
# one by one, 1 for their sum, 2 for their mean.
FINISH = """
    if reduction != 0:
        divisor = counted if reduction == 2 else 1.0
        result[0] = {type}(sum_of(losses) / divisor)
        result[1] = {type}(divisor)
    return -1
"""

_START = """
    counted, bad = weight_of_targets(target, weight, classes, ignored)
    if bad >= 0:
        return bad
    even = {type}(smoothing / classes) if classes > 0 else ZERO
    sharp = {type}(1.0 - smoothing)
    whole = {type}(classes) if weight.size == 0 else {type}(sum_of(weight))
"""

_BACKWARD_START = """
    even = {type}(smoothing / classes)
    sharp = {type}(1.0 - smoothing)
    whole = {type}(classes) if weight.size == 0 else {type}(sum_of(weight))
    divisor = result[1] if reduction != 0 else {type}(1)
"""

_FORWARD_ROWS = (
    """

def kernel(
    x, target, weight, losses, shifts, sums, result, outer, classes, inner, ignored, smoothing,
    reduction
):"""
    + _START
    + """
    if classes <= {short}:
        step = {block} // max(classes, 1)
        for index in {range}(-(-outer // step)):
            lo = int64(index) * step
            hi = min(lo + step, outer)
            scratch = np.empty((hi - lo) * classes, {numpy})
            pass_over_short_rows(
                x[lo * classes : hi * classes], shifts[lo:hi], sums[lo:hi], losses[lo:hi],
                classes, scratch
            )
    else:
        for index in {range}(outer):
            k = int64(index)
            row = x[k * classes : k * classes + classes]
            shifts[k] = largest(row)
            sums[k] = sum_of_exponentials(row, shifts[k])
            losses[k] = log_{bits}(sums[k])
    for index in {range}(outer):
        k = int64(index)
        t = target[k]
        if t == ignored:
            losses[k] = ZERO
        else:
            row = x[k * classes : k * classes + classes]
            logarithm = losses[k]
            w = {type}(1) if weight.size == 0 else weight[t]
            loss = sharp * w * (logarithm - (row[t] - shifts[k]))
            if smoothing > 0:
                loss += even * (whole * logarithm - sum_of_distances(row, shifts[k], weight))
            losses[k] = loss
"""
    + FINISH
)

_FORWARD_COLUMNS = (
    """

def kernel(
    x, target, weight, losses, shifts, sums, result, outer, classes, inner, ignored, smoothing,
    reduction
):"""
    + _START
    + """
    tiles = -(-inner // {tile})
    for index in {range}(outer * tiles):
        task = int64(index)
        block = task // tiles
        left = (task - block * tiles) * {tile}
        columns = min({tile}, inner - left)
        start = block * classes * inner + left
        corner = block * inner + left
        shift = shifts[corner : corner + columns]
        total = np.zeros(columns, np.float64)
        apart = np.zeros(columns, np.float64)
        for j in range(columns):
            shift[j] = LOWEST
        for c in range(classes):
            row = x[start + c * inner : start + c * inner + columns]
            for j in range(columns):
                shift[j] = maximum(shift[j], row[j])
        for c in range(classes):
            row = x[start + c * inner : start + c * inner + columns]
            for j in range(columns):
                total[j] += float64(exp_{bits}(row[j] - shift[j]))
            if smoothing > 0:
                share = {type}(1) if weight.size == 0 else weight[c]
                for j in range(columns):
                    apart[j] += float64(share * (row[j] - shift[j]))
        for j in range(columns):
            k = corner + j
            t = target[k]
            if t == ignored:
                losses[k] = ZERO
            else:
                sums[k] = {type}(total[j])
                logarithm = log_{bits}(sums[k])
                w = {type}(1) if weight.size == 0 else weight[t]
                loss = sharp * w * (logarithm - (x[start + t * inner + j] - shift[j]))
                if smoothing > 0:
                    loss += even * (whole * logarithm - {type}(apart[j]))
                losses[k] = loss
"""
    + FINISH
)

_BACKWARD_ROWS = (
    """

def kernel(
    x, target, weight, g, shifts, sums, result, out, outer, classes, inner, ignored, smoothing,
    reduction
):"""
    + _BACKWARD_START
    + """
    for index in {range}(outer):
        k = int64(index)
        t = target[k]
        to = out[k * classes : k * classes + classes]
        if t == ignored:
            for c in range(classes):
                to[c] = ZERO
        else:
            row = x[k * classes : k * classes + classes]
            scale = (g[k] if reduction == 0 else g[0]) / divisor
            w = {type}(1) if weight.size == 0 else weight[t]
            shift = shifts[k]
            factor = scale * (sharp * w + even * whole) / sums[k]
            for c in range(classes):
                to[c] = exp_{bits}(row[c] - shift) * factor
            if smoothing > 0:
                share = scale * even
                if weight.size == 0:
                    for c in range(classes):
                        to[c] -= share
                else:
                    for c in range(classes):
                        to[c] -= share * weight[c]
            to[t] -= scale * sharp * w
"""
)

_BACKWARD_COLUMNS = (
    """

def kernel(
    x, target, weight, g, shifts, sums, result, out, outer, classes, inner, ignored, smoothing,
    reduction
):"""
    + _BACKWARD_START
    + """
    tiles = -(-inner // {tile})
    for index in {range}(outer * tiles):
        task = int64(index)
        block = task // tiles
        left = (task - block * tiles) * {tile}
        columns = min({tile}, inner - left)
        start = block * classes * inner + left
        corner = block * inner + left
        shift = shifts[corner : corner + columns]
        factor = np.empty(columns, {numpy})
        scale = np.empty(columns, {numpy})
        for j in range(columns):
            k = corner + j
            t = target[k]
            if t == ignored:
                scale[j] = ZERO
                factor[j] = ZERO
            else:
                scale[j] = (g[k] if reduction == 0 else g[0]) / divisor
                w = {type}(1) if weight.size == 0 else weight[t]
                factor[j] = scale[j] * (sharp * w + even * whole) / sums[k]
        for c in range(classes):
            lo = start + c * inner
            row = x[lo : lo + columns]
            to = out[lo : lo + columns]
            share = even if weight.size == 0 else even * weight[c]
            for j in range(columns):
                value = exp_{bits}(row[j] - shift[j]) * factor[j] - share * scale[j]
                to[j] = value
        for j in range(columns):
            t = target[corner + j]
            if t == ignored:
                for c in range(classes):
                    out[start + c * inner + j] = ZERO
            else:
                w = {type}(1) if weight.size == 0 else weight[t]
                out[start + t * inner + j] -= scale[j] * sharp * w
"""
)


def compile_loss(
    name: str, source: str, dtype: np.dtype, arguments: str, *, parallel: bool = False
) -> Callable[..., Any]:
    """Compile a kernel; ``arguments`` has a letter for each: Array, Target, Size, Float."""
    single = dtype == np.float32
    text = (HEADER + source).format(
        bits="f32" if single else "f64",
        block=BLOCK,
        integer="int32" if single else "int64",
        numpy=f"np.{dtype.name}",
        range="prange" if parallel else "range",
        short=SHORT,
        tile=TILE,
        type=type_name(dtype),
    )
    types = {"A": f"{type_name(dtype)}[::1]", "T": "int64[::1]", "S": "int64", "F": "float64"}
    kind = "void" if "backward" in name else "int64"
    return compile_kernel(
        f"{name}_{short(dtype)}{'_p' if parallel else ''}",
        text,
        f"{kind}({', '.join(types[a] for a in arguments)})",
        parallel=parallel,
        nogil=parallel,
    ).entry


@cache
def cross_entropy_kernel(dtype: np.dtype, columns: bool, parallel: bool) -> Callable[..., Any]:
    """Compile the losses of logits.

    Returns
    -------
    callable
        ``entry(x, target, weight, losses, shifts, sums, result, outer, classes, inner, ignored,
        smoothing, reduction)`` with raveled arrays of ``dtype`` and int64 targets; an empty weight
        is none. It gives the position of the first target that is no class, or -1.
    """
    source, tag = (_FORWARD_COLUMNS, "c") if columns else (_FORWARD_ROWS, "r")
    return compile_loss(f"cross_entropy_{tag}", source, dtype, "ATAAAAASSSSFS", parallel=parallel)


@cache
def cross_entropy_backward_kernel(
    dtype: np.dtype, columns: bool, parallel: bool
) -> Callable[..., Any]:
    """Compile the gradient of ``cross_entropy_kernel``.

    Returns
    -------
    callable
        ``entry(x, target, weight, g, shifts, sums, result, out, outer, classes, inner, ignored,
        smoothing, reduction)``; ``g`` has one element, or one for each loss if ``reduction`` is 0.
    """
    source, tag = (_BACKWARD_COLUMNS, "c") if columns else (_BACKWARD_ROWS, "r")
    name = f"cross_entropy_backward_{tag}"
    return compile_loss(name, source, dtype, "ATAAAAAASSSSFS", parallel=parallel)


_PICK = (
    """

def kernel(x, target, weight, losses, result, outer, classes, inner, ignored, reduction):
    counted, bad = weight_of_targets(target, weight, classes, ignored)
    if bad >= 0:
        return bad
    for block in range(outer):
        for j in range(inner):
            k = block * inner + j
            t = target[k]
            if t == ignored:
                losses[k] = ZERO
            else:
                w = {type}(1) if weight.size == 0 else weight[t]
                losses[k] = -(x[(block * classes + t) * inner + j] * w)
"""
    + FINISH
)

_PICK_BACKWARD = """

def kernel(target, weight, g, result, out, outer, classes, inner, ignored, reduction):
    divisor = result[1] if reduction != 0 else {type}(1)
    for block in range(outer):
        for j in range(inner):
            k = block * inner + j
            t = target[k]
            if t != ignored:
                scale = (g[k] if reduction == 0 else g[0]) / divisor
                w = {type}(1) if weight.size == 0 else weight[t]
                out[(block * classes + t) * inner + j] = -(scale * w)
"""


@cache
def likelihood_kernel(dtype: np.dtype) -> Callable[..., Any]:
    """Compile the losses of logarithms of probabilities.

    Returns
    -------
    callable
        ``entry(x, target, weight, losses, result, outer, classes, inner, ignored, reduction)``.
    """
    return compile_loss("nll_loss", _PICK, dtype, "ATAAASSSSS")


@cache
def likelihood_backward_kernel(dtype: np.dtype) -> Callable[..., Any]:
    """Compile the gradient of ``likelihood_kernel``.

    Returns
    -------
    callable
        ``entry(target, weight, g, result, out, outer, classes, inner, ignored, reduction)``;
        ``out`` holds zeros.
    """
    return compile_loss("nll_loss_backward", _PICK_BACKWARD, dtype, "TAAAASSSSS")
