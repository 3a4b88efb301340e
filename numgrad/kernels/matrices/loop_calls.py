"""Kernels that factor and solve real matrices for loops of compiled functions, by address."""

from numgrad.codegen.compile import KernelSource
from numgrad.codegen.device import instruction
from numgrad.kernels.matrices.systems import SMALL

_HEAD = """
import numpy as np
from numba import {dtype}, int32, int64
from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import load, store
from numgrad.kernels.matrices.elimination import factor as factor_blocks
from numgrad.kernels.matrices.small import cholesky, factor, substitute, triangle

@outlined
def read(a, address, first):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = load({dtype}, address, first + i * a.shape[1] + j, 0, 1)

@outlined
def write(a, address, first):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            store(a[i, j], address, first + i * a.shape[1] + j, 0, 1)
"""
_TEXTS = {
    "factor_matrices": """
def kernel(x, y, count, n):
    a, pivots = np.empty((n, n), np.{dtype}), np.empty(n, np.int32)
    for k in range(count):
        read(a, x, k * n * n)
        if n <= {small}:
            factor(a, pivots, 1)
        else:
            factor_blocks(a, pivots, 1)
        first = k * (n + 1) * n
        write(a, y, first)
        for i in range(n):
            store({dtype}(pivots[i]), y, first + n * n + i, 0, 1)
""",
    "solve_factored": """
def kernel(factors, places, b, y, count, n, columns, of_adjoint):
    a, x = np.empty((n, n), np.{dtype}), np.empty((n, columns), np.{dtype})
    pivots = np.empty(n, np.int32)
    for k in range(count):
        read(a, factors, k * n * n)
        read(x, b, k * n * columns)
        for i in range(n):
            pivots[i] = load(int32, places, k * n + i, 0, 1)
        substitute(a, pivots, x, of_adjoint, 1)
        write(x, y, k * n * columns)
""",
    "solve_triangle": """
def kernel(triangles, b, y, count, n, columns, form):
    a, x = np.empty((n, n), np.{dtype}), np.empty((n, columns), np.{dtype})
    for k in range(count):
        read(a, triangles, k * n * n)
        read(x, b, k * n * columns)
        triangle(a, x, form & 1 != 0, form & 2 != 0, form & 4 != 0, 1)
        write(x, y, k * n * columns)
""",
    "cholesky_factors": """
def kernel(x, y, count, n):
    a = np.empty((n, n), np.{dtype})
    for k in range(count):
        read(a, x, k * n * n)
        cholesky(a, 1)
        write(a, y, k * n * n)
""",
}


@instruction
def factor_matrices(like, x, y, count, n):
    """Store at ``y`` factors of matrices as ``small.factor`` makes them, pivots as a last row."""


@instruction
def solve_factored(like, factors, pivots, b, y, count, n, columns, of_adjoint):
    """Store at ``y`` solutions of systems for right sides of ``columns``, by factors."""


@instruction
def solve_triangle(like, triangles, b, y, count, n, columns, form):
    """Store at ``y`` solutions with triangles.

    Bits of ``form``: 1, lower; 2, transposed; 4, ones on the diagonal.
    """


@instruction
def cholesky_factors(like, x, y, count, n):
    """Store at ``y`` lower factors of matrices."""


for _call in (factor_matrices, solve_factored, solve_triangle, cholesky_factors):
    _call.external, _call.allocates = f"{__name__}:{{}}_{{}}".format, True


def native_source(function: str) -> KernelSource:
    """Source of a native function, ``<name>_<dtype>``."""
    name, dtype = function.rsplit("_", 1)
    text = _TEXTS[name]
    source = (_HEAD + text).format(dtype=dtype, small=SMALL)
    parameters = text.split("(", 1)[1].split(")", 1)[0].count(",") + 1
    return KernelSource(function, source, f"void({', '.join(['int64'] * parameters)})")
