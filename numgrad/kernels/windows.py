"""Kernels of convolutions and poolings over two axes, and of their gradients.

Convolutions go through products of matrices; of poolings threads share the images. The steps are in
``window_steps``. Arrays are flat; ``count`` is the number of images.

Note [Convolution through products]
-----------------------------------
A convolution is a matrix product of the weights ``(outputs, channels * kernel)`` and *columns*
``(channels * kernel, places)``: for each place of the output what the kernel covers there. Its
gradients are products with the transposes of either, the one for the input added back to where the
columns came from.

Columns are made for a *block* of samples and a *strip* of output rows, or a *segment* of one row,
at a time, so that they stay in cache. Within a block samples lie side by side, along the last axis:
``(channel, row, place, sample)``. Whatever the stride, dilation and padding, what is copied are
runs of at least that many elements, where the rows of small images alone would be too short to copy
fast. A block of one sample is used as it lies in memory.

Threads share blocks. Products inside are kept below the size from which OpenBLAS uses threads of
its own, which would wait for each other; results therefore are bitwise the same for any number of
threads (``blas.gemm`` does not even ask BLAS for those). Convolutions with too many weights for
that run on one thread, with large strips and products that BLAS shares out.

The steps are in ``convolution_steps``. All arrays are flat; sizes come as one array, in the order
of ``SIZES``. One-dimensional convolutions have one row.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name
from numgrad.kernels.products.gemm import external

SIZES = (
    "samples", "channels", "height", "width", "outputs", "kernel_rows", "kernel_columns",
    "stride_rows", "stride_columns", "before_rows", "before_columns", "step_rows", "step_columns",
    "groups", "out_rows", "out_columns", "block", "strip", "chunks", "segment",
)  # fmt: skip
"""``before``: padding in front; ``step``: dilation; ``block``: samples; ``strip``: output rows;
``segment``: places of a row; ``chunks``: of the blocks, what threads share."""

_FORWARD = """
from numba import int64, prange
from numgrad.kernels.window_steps import convolve

def kernel(x, w, bias, out, sizes):
    for index in {range}(sizes[18]):
        convolve(x, w, bias, out, sizes, int64(index))
"""

_GRADIENT = """
from numba import int64, prange
from numgrad.kernels.window_steps import pull

def kernel(mask, g, x, w, gx, gw, sizes):
    tasks = -(-sizes[0] // sizes[16]) * sizes[13]
    chunks = sizes[18]
    for index in {range}(chunks):
        chunk = int64(index)
        part = gw[chunk] if mask & 2 else gx
        for task in range(chunk * tasks // chunks, (chunk + 1) * tasks // chunks):
            pull(mask, g, x, w, gx, part, sizes, task)
    if mask & 2:
        for chunk in range(1, chunks):
            for k in range(gw.shape[1]):
                gw[0, k] += gw[chunk, k]
"""


@cache
def convolution_kernel(dtype: np.dtype, parallel: bool, nogil: bool) -> Callable[..., None]:
    """Convolution: called with x, w, bias, out, sizes."""
    signature = "void({0}, {0}, {0}, {0}, int64[::1])"
    return _compile("convolution", _FORWARD, signature, dtype, parallel, nogil)


@cache
def convolution_gradient_kernel(
    dtype: np.dtype, parallel: bool, nogil: bool
) -> Callable[..., None]:
    """Gradients for input (1 in the mask) and weights (2).

    Called with mask, g, x, w, gx, gw, sizes. What the mask does not need may be empty. ``gw`` has a
    row of zeros for each chunk; the first gets the sum.
    """
    signature = "void(int64, {0}, {0}, {0}, {0}, {1}, int64[::1])"
    return _compile("convolution_gradient", _GRADIENT, signature, dtype, parallel, nogil)


def _compile(
    name: str, text: str, signature: str, dtype: np.dtype, parallel: bool, nogil: bool
) -> Callable[..., None]:
    array = type_name(dtype)
    kernel = compile_kernel(
        f"{name}_{short(dtype)}{'_p' * parallel}{'_n' * nogil}",
        text.format(range="prange" if parallel else "range"),
        signature.format(f"{array}[::1]", f"{array}[:,::1]"),
        parallel=parallel,
        nogil=nogil,
        externals=[external("gemm", dtype.name)],
    )
    return kernel.entry


_SOURCE = """
from numba import int64, prange
from numgrad.kernels.window_steps import {step}

def kernel({arguments}, count):
    for index in {range}(count):
        {step}({arguments}, int64(index))
"""

_SIGNATURES = {
    "largest": (
        "x, y, indices, rows, columns, steps, width, area",
        "{0}, {0}, int64[::1], int64[:,::1], int64[:,::1], int64[::1], int64, int64",
    ),
    "put_back": ("g, indices, gx, area, outputs", "{0}, int64[::1], {0}, int64, int64"),
    "average": (
        "x, y, rows, columns, width, area",
        "{0}, {0}, int64[:,::1], int64[:,::1], int64, int64",
    ),
    "spread": (
        "g, gx, rows, columns, width, area",
        "{0}, {0}, int64[:,::1], int64[:,::1], int64, int64",
    ),
}


@cache
def pooling_kernel(step: str, dtype: np.dtype, parallel: bool) -> Callable[..., None]:
    """One of the steps for all images: called with its arguments and their number."""
    arguments, types = _SIGNATURES[step]
    source = _SOURCE.format(step=step, arguments=arguments, range="prange" if parallel else "range")
    kernel = compile_kernel(
        f"pool_{step}_{short(dtype)}{'_p' * parallel}",
        source,
        f"void({types.format(f'{type_name(dtype)}[::1]')}, int64)",
        parallel=parallel,
        nogil=parallel,
    )
    return kernel.entry
