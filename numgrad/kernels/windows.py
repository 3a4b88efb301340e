"""Kernels of poolings over two axes, and of their gradients, whose images threads share.

The steps are in ``window_steps``. Arrays are flat; ``count`` is the number of images.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from numgrad.codegen.compile import compile_kernel
from numgrad.codegen.dtypes import short, type_name

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
