"""Kernels of convolutions over two axes, and of their gradients, through BLAS.

Note [Convolution through products]
-----------------------------------
A convolution is a matrix product of the weights ``(outputs, channels * kernel)`` and *columns*
``(channels * kernel, places)``: for each place of the output what the kernel covers there. Its
gradients are products with the transposes of either, the one for the input added back to where the
columns came from.

Columns are made for a *block* of samples and a *strip* of output rows at a time, so that they stay
in cache. Within a block samples lie side by side, along the last axis: ``(channel, row, place,
sample)``. Whatever the stride, dilation and padding, what is copied are runs of at least that many
elements, where the rows of small images alone would be too short to copy fast. A block of one
sample is used as it lies in memory.

Threads share blocks. Products inside are kept below the size from which OpenBLAS uses threads of
its own, which would wait for each other; results therefore are bitwise the same for any number of
threads. Convolutions with too many weights for that run on one thread, with large strips and
products that BLAS shares out.

All arrays are flat; sizes come as one array, in the order of ``SIZES``. One-dimensional
convolutions have one row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.kernels.expr import short, type_name
from numgrad.kernels.jit import compile_kernel

SIZES = (
    "samples", "channels", "height", "width", "outputs", "kernel_rows", "kernel_columns",
    "stride_rows", "stride_columns", "before_rows", "before_columns", "step_rows", "step_columns",
    "groups", "out_rows", "out_columns", "block", "strip", "chunks",
)  # fmt: skip
"""``before``: padding in front; ``step``: dilation; ``block``: samples; ``strip``: output rows;
``chunks``: of the blocks, what threads share."""

_HEADER = """
import numpy as np
from numba import {type}, int64, prange
from numgrad.kernels.jit import outlined

@outlined
def interleave(x, start, distance, samples, length, out):
    # out[p, s] = x[s, p]
    whole = samples - samples % 4
    for s in range(0, whole, 4):
        a = x[start + s * distance : start + s * distance + length]
        b = x[start + (s + 1) * distance : start + (s + 1) * distance + length]
        c = x[start + (s + 2) * distance : start + (s + 2) * distance + length]
        d = x[start + (s + 3) * distance : start + (s + 3) * distance + length]
        y = out[s:]
        for p in range(length):
            k = p * samples
            y[k] = a[p]
            y[k + 1] = b[p]
            y[k + 2] = c[p]
            y[k + 3] = d[p]
    for s in range(whole, samples):
        a = x[start + s * distance : start + s * distance + length]
        y = out[s:]
        for p in range(length):
            y[p * samples] = a[p]

@outlined
def separate(x, start, distance, samples, length, extra, out):
    # out[s, p] = x[p, s] + extra
    for s in range(samples):
        a = x[s:]
        y = out[start + s * distance : start + s * distance + length]
        for p in range(length):
            y[p] = {type}(a[p * samples] + extra)
"""

_RUNS = """
@outlined
def {name}(x, columns, samples, top, rows, sizes):
    height, width, kernel_rows, kernel_columns = sizes[2], sizes[3], sizes[5], sizes[6]
    stride_rows, stride_columns = sizes[7], sizes[8]
    before_rows, before_columns, step_rows, step_columns = sizes[9], sizes[10], sizes[11], sizes[12]
    places = sizes[15]
    channels = sizes[1] // sizes[13]
    line = places * samples
    at = 0
    for c in range(channels):
        for i in range(kernel_rows):
            for j in range(kernel_columns):
                shift = j * step_columns - before_columns
                lo = min(places, max(0, -(shift // stride_columns)))
                hi = min(places, max(lo, (width - 1 - shift) // stride_columns + 1))
                count = hi - lo
                for r in range(rows):
                    row = (top + r) * stride_rows + i * step_rows - before_rows
                    part = columns[at : at + line]
                    at += line
                    if row < 0 or row >= height:
                        {outside}
                        continue
                    start = ((c * height + row) * width + lo * stride_columns + shift) * samples
                    {margins}
                    part = part[lo * samples : hi * samples]
                    if stride_columns == 1:
                        run = x[start : start + count * samples]
                        for k in range(run.size):
                            {copy}
                    elif samples == 1:
                        for k in range(count):
                            {step}
                    else:
                        for q in range(count):
                            left = start + q * stride_columns * samples
                            run = x[left : left + samples]
                            line_part = part[q * samples : (q + 1) * samples]
                            for k in range(run.size):
                                {copy_line}
"""

_UNFOLD = _RUNS.format(
    name="unfold",
    outside="part[:] = 0",
    margins="part[: lo * samples] = 0\n                    part[hi * samples :] = 0",
    copy="part[k] = run[k]",
    step="part[k] = x[start + k * stride_columns]",
    copy_line="line_part[k] = run[k]",
)
_FOLD = _RUNS.format(
    name="fold",
    outside="pass",
    margins="pass",
    copy="run[k] += part[k]",
    step="x[start + k * stride_columns] += part[k]",
    copy_line="run[k] += line_part[k]",
)

_UNPACK = """
    samples, channels, height, width = sizes[0], sizes[1], sizes[2], sizes[3]
    outputs, kernel_size = sizes[4], sizes[5] * sizes[6]
    groups, out_rows, out_columns = sizes[13], sizes[14], sizes[15]
    block, strip = sizes[16], sizes[17]
    group_channels, group_outputs = channels // groups, outputs // groups
    covered = group_channels * kernel_size
    area = out_rows * out_columns
    image = height * width
    pointwise = (
        kernel_size == 1 and sizes[7] == 1 and sizes[8] == 1 and sizes[9] == 0 and sizes[10] == 0
        and area == image and strip >= out_rows
    )
    group = task % groups
    first = task // groups * block
    count = min(block, samples - first)
    length = group_channels * image
    x_start = (first * channels + group * group_channels) * image
    y_start = (first * outputs + group * group_outputs) * area
    weights = w[group * group_outputs * covered : (group + 1) * group_outputs * covered].reshape(
        group_outputs, covered
    )
    largest = min(strip, out_rows) * out_columns * count
    alone = count == 1 and strip >= out_rows
"""

_FORWARD = (
    """
@outlined
def convolve(x, w, bias, out, sizes, task):"""
    + _UNPACK
    + """
    if count == 1:
        inputs = x[x_start : x_start + length]
    else:
        inputs = np.empty(length * count, x.dtype)
        interleave(x, x_start, channels * image, count, length, inputs)
    columns = inputs if pointwise else np.empty(covered * largest, x.dtype)
    y = out[y_start : y_start + group_outputs * area]
    if not alone:
        y = np.empty(group_outputs * largest, x.dtype)
    for top in range(0, out_rows, strip):
        rows = min(strip, out_rows - top)
        places = rows * out_columns
        width_all = places * count
        if not pointwise:
            unfold(inputs, columns, count, top, rows, sizes)
        np.dot(
            weights,
            columns[: covered * width_all].reshape(covered, width_all),
            y[: group_outputs * width_all].reshape(group_outputs, width_all),
        )
        for o in range(group_outputs):
            extra = bias[group * group_outputs + o] if bias.size else {type}(0)
            part = y[o * width_all : (o + 1) * width_all]
            if not alone:
                start = y_start + o * area + top * out_columns
                separate(part, start, outputs * area, count, places, extra, out)
            elif bias.size:
                for k in range(part.size):
                    part[k] += extra

def kernel(x, w, bias, out, sizes):
    for index in {range}(sizes[18]):
        convolve(x, w, bias, out, sizes, int64(index))
"""
)

_GRADIENT = (
    """
@outlined
def pull(g, x, w, gx, gw, sizes, task):"""
    + _UNPACK
    + """
    inputs = gx[:0]
    if {for_weight}:
        if count == 1:
            inputs = x[x_start : x_start + length]
        else:
            inputs = np.empty(length * count, g.dtype)
            interleave(x, x_start, channels * image, count, length, inputs)
        product = np.empty((group_outputs, covered), g.dtype)
        total = gw[group * group_outputs * covered : (group + 1) * group_outputs * covered]
    if {for_input}:
        added = gx[x_start : x_start + length]
        if count > 1:
            added = np.empty(length * count, g.dtype)
        added[:] = 0
    columns = inputs
    if {for_input} or not pointwise:
        columns = np.empty(covered * largest, g.dtype)
    y = g[y_start : y_start + group_outputs * area]
    if not alone:
        y = np.empty(group_outputs * largest, g.dtype)
    for top in range(0, out_rows, strip):
        rows = min(strip, out_rows - top)
        places = rows * out_columns
        width_all = places * count
        if not alone:
            for o in range(group_outputs):
                start = y_start + o * area + top * out_columns
                part = y[o * width_all : (o + 1) * width_all]
                interleave(g, start, outputs * area, count, places, part)
        pulled = y[: group_outputs * width_all].reshape(group_outputs, width_all)
        if {for_weight}:
            seen = inputs
            if not pointwise:
                unfold(inputs, columns, count, top, rows, sizes)
                seen = columns
            np.dot(pulled, seen[: covered * width_all].reshape(covered, width_all).T, product)
            flat = product.ravel()
            for k in range(flat.size):
                total[k] += flat[k]
        if {for_input}:
            np.dot(
                weights.T, pulled, columns[: covered * width_all].reshape(covered, width_all)
            )
            fold(added, columns, count, top, rows, sizes)
    if {for_input}:
        if count > 1:
            separate(added, x_start, channels * image, count, length, {type}(0), gx)

def kernel(g, x, w, gx, gw, sizes):
    # gw: (chunks, weights), zeros; the sum goes to the first
    tasks = -(-sizes[0] // sizes[16]) * sizes[13]
    chunks = sizes[18]
    for index in {range}(chunks):
        chunk = int64(index)
        part = gw[chunk]
        for task in range(chunk * tasks // chunks, (chunk + 1) * tasks // chunks):
            pull(g, x, w, gx, part, sizes, task)
    if {for_weight}:
        for chunk in range(1, chunks):
            gw[0] += gw[chunk]
"""
)


@cache
def convolution_kernel(dtype: np.dtype, parallel: bool, nogil: bool) -> Callable[..., None]:
    """Convolution: called with x, w, bias (may be empty), out, sizes."""
    return _compile("convolution", _UNFOLD + _FORWARD, dtype, 4, parallel, nogil)


@cache
def convolution_gradient_kernel(
    dtype: np.dtype, mask: int, parallel: bool, nogil: bool
) -> Callable[..., None]:
    """Gradients for input (1) and weights (2): called with g, x, w, gx, gw, sizes.

    What the mask does not need may be empty; ``gw`` has a row of zeros for each chunk.
    """
    text = _UNFOLD * bool(mask & 2) + _FOLD * bool(mask & 1) + _GRADIENT
    options = {"for_input": bool(mask & 1), "for_weight": bool(mask & 2)}
    return _compile(f"convolution_gradient{mask}", text, dtype, 4, parallel, nogil, **options)


def _compile(
    name: str,
    text: str,
    dtype: np.dtype,
    flat: int,
    parallel: bool,
    nogil: bool,
    **options: object,
) -> Callable[..., None]:
    source = (_HEADER + text).format(
        type=type_name(dtype), range="prange" if parallel else "range", **options
    )
    array = type_name(dtype)
    arrays = [f"{array}[::1]"] * flat + [f"{array}[:,::1]"] * bool(options)
    signature = f"void({', '.join(arrays)}, int64[::1])"
    flags = "_p" * parallel + "_n" * nogil
    kernel = compile_kernel(
        f"{name}_{short(dtype)}{flags}", source, signature, parallel=parallel, nogil=nogil
    )
    return kernel.entry
