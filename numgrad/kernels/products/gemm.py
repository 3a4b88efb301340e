"""Matrix products that generated kernels call, compiled once for each dtype.

Note [Products in kernels]
--------------------------
A kernel that calls ``blas.gemm`` contains a call and nothing more: what multiplies is a kernel of
its own, compiled and kept on disk like any other, and made known to the linker by its name. All
kernels share it, so that a product costs them next to nothing to compile.

``gemm`` chooses by sizes, at run time. Products of more than ``SMALL`` multiplications are BLAS's
gemm, which SciPy exports to compiled code. It uses threads of its own, and its results have the
same bits for a fixed number of threads only. Everything below that runs in the calling thread, and
so do products of real matrices with a vector, for which OpenBLAS is slower at all sizes: Note
[Small products].

``parallel_gemm`` does the same with the threads of kernels, and never calls BLAS for real matrices:
two pools of threads spin against each other for the cores (NumPy and SciPy even bring an OpenBLAS
each). On two threads it was measured as fast as OpenBLAS or faster up to 500 x 500 x 500.

Note [Small products]
---------------------
A BLAS call asks for buffers and copies both matrices before it multiplies. ``tile`` (``tiles``)
holds a piece of the result in registers while it runs along the axis that is summed, and reads the
factors where they lie; measured 5 times faster than OpenBLAS at 16 x 16 x 16, 3 times at 32 and 1.2
times at 128 x 256 x 256 on one thread. A piece has two of the widest vectors of the CPU, and eight
rows where 32 registers hold them, else four; columns that fit into one vector have pieces of eight
rows. Where rows of the second factor are shorter than a piece, or it is transposed, parts of it are
copied to the stack first, squares of a transposed one turned in registers. A piece that reaches
over the last column is moved back, and what it has too much is not kept; rows that the last one
lacks are computed twice.

Each element of a result is added up in the order of the summed axis by the same instructions,
wherever it lies; only with a vector, where rows are contiguous, in several lanes. Blocks of rows
or columns of a small product, computed apart, have the bits of the whole.
"""

import numpy as np

from numgrad.codegen.compile import Kernel, KernelSource
from numgrad.codegen.threads import WORK_PER_THREAD_NS
from numgrad.kernels.products.blas import BLAS, external

PLAIN = 64
"""Multiplications up to which elements are computed one by one."""
SMALL = 64**3
"""Multiplications up to which BLAS is not asked; OpenBLAS uses several threads above the same."""
SMALL_COMPLEX = 64
VECTOR_BYTES = 32
"""Size of the vectors that products with a vector are added up in; bits depend on it."""
SLIM_ROWS = 8
"""Rows of a tile of one vector: as many sums as hide how long an addition takes."""
PANEL_BYTES = 1 << 14
"""Size of a copied piece of the second factor, half of a small first cache: as many terms are
added up before memory sees a sum."""
TALL = 128
"""Rows that a copied piece of the second factor is used for: those of the first stay in cache."""
PAYS = 16
"""Rows from which that copy pays."""
LONG = 1024
"""The same where a sum runs in several lanes."""

MULTIPLY_NS = {"float32": 0.02, "float64": 0.04}
"""Nanoseconds that a multiplication takes, about."""

_PARAMETERS = {"gemm": 13, "batched_gemm": 17, "parallel_gemm": 12, "table_gemm": 10, "lay_out": 7}


def compile_function(function: str) -> Kernel:
    """The kernel of that function, for this CPU."""
    return native_source(function).compile()


def native_source(function: str) -> KernelSource:
    """Source of the native function ``<name>_<dtype>``, name being one of ``blas``.

    Exported code has no BLAS: its own tiles compute products of any size.
    """
    from numgrad.codegen.native import machine

    alone = machine.is_exporting()
    name, dtype = function.rsplit("_", 1)
    parallel = name == "parallel_gemm" and dtype in MULTIPLY_NS
    if name == "batched_gemm":
        template, externals = _BATCHED, [external("gemm", dtype)]
    elif name in ("table_gemm", "lay_out"):
        template, externals = _TABLES if name == "table_gemm" else _LAY_OUT, []
    elif name == "parallel_gemm":
        template, externals = _PARALLEL if parallel else _PASSED_ON, [external("gemm", dtype)]
    else:
        if dtype.startswith("complex"):
            template = _IMPORTS + _HEADER + _COMPLEX
        else:
            template = _IMPORTS + _WITH_VECTOR + _HEADER + _REAL
        template += "" if alone else _LARGE
        externals = [] if alone else [BLAS[dtype]]
    size = np.dtype(dtype).itemsize
    rows, width = tile_shape()
    source = template.format(
        dtype=dtype,
        size=size,
        plain=PLAIN,
        small=2**62 if alone else SMALL_COMPLEX if dtype.startswith("complex") else SMALL,
        depth=PANEL_BYTES // (2 * width),
        tall=TALL,
        pays=PAYS,
        long=LONG,
        rows=rows,
        width=width,
        narrow=width // size,
        wide=2 * width // size,
        row=4 * VECTOR_BYTES // size,
        row_width=VECTOR_BYTES,
        panel=PANEL_BYTES,
        slim=SLIM_ROWS,
        half=max(width // 2, 16),
        edge=max(2 * rows * width, SLIM_ROWS * width, 4 * VECTOR_BYTES),
        bits=_integer_bits(),
        share=int(WORK_PER_THREAD_NS / MULTIPLY_NS.get(dtype, 1.0)),
    )
    signature = f"void({', '.join(['int64'] * _PARAMETERS[name])})"
    return KernelSource(function, source, signature, externals, parallel=parallel)


def tile_shape() -> tuple[int, int]:
    """Rows of a tile on this CPU, and bytes of each of its two vectors: Note [Small products]."""
    from numgrad.codegen.native import machine

    bits = machine.vector_bits()
    many = bits == 512 or machine.is_arm()  # 32 registers
    return 8 if many else 4, bits // 8


def _integer_bits() -> int:
    """Width of the integers that SciPy's BLAS takes."""
    from scipy.__config__ import CONFIG

    blas = CONFIG.get("Build Dependencies", {}).get("blas", {})
    return 64 if blas.get("cython blas ilp64") else 32


_IMPORTS = """
from numba import {dtype}
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.device import outlined
from numgrad.kernels.products.blas import blas_gemm
from numgrad.kernels.products.blas import clear, complex_element, dots, element, gather
from numgrad.kernels.products.blas import gather_rows, stack, tile, turn
"""

# a matrix is given by the distances, in bytes, of its rows and of the elements in a row
_HEADER = """
def kernel(trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone):
    if m <= 0 or n <= 0:
        return
    row_a, step_a = lda * {size}, {size}
    if trans_a:
        row_a, step_a = step_a, row_a
    row_b, step_b = ldb * {size}, {size}
    if trans_b:
        row_b, step_b = step_b, row_b
    row_c = ldc * {size}
    work = m * n * k
    # what BLAS takes: rows do not overlap, sizes have a width
    fits = (
        lda >= (m if trans_a else k) and ldb >= (k if trans_b else n) and ldc >= n
        and max(m, n, k, lda, ldb, ldc) < 2**31
    )
"""

# a function of its own, which a second thread compiles
_WITH_VECTOR = """
@outlined
def with_vector(column, m, n, k, a, row_a, step_a, b, row_b, c, row_c, add):
    no_inline()
    if column:
        for i in range(0, m, 4):
            for low in range(0, k, {long}):
                dots(
                    {dtype}, 4, a + i * row_a + low * {size}, row_a, b + low * {size},
                    min({long}, k - low), c + i * row_c, row_c, m - i, add or low > 0,
                )
        return
    edge = stack({edge})
    rest = n % {row}
    last = c + (n - rest) * {size}
    for low in range(0, k, {depth}):
        count = min({depth}, k - low)
        more = add or low > 0
        x, rows = a + low * step_a, b + low * row_b
        for left in range(0, n - {row} + 1, {row}):
            tile(
                {dtype}, 1, 4, {row_width}, x, 0, step_a, rows + left * {size}, row_b, count,
                c + left * {size}, 0, 1, more,
            )
        if rest:
            kept = edge + ({row} - rest) * {size}
            gather({dtype}, last, 0, {size}, 1, rest, kept, 0)
            tile(
                {dtype}, 1, 4, {row_width}, x, 0, step_a, rows + (n - {row}) * {size}, row_b,
                count, edge, 0, 1, more,
            )
            gather({dtype}, kept, 0, {size}, 1, rest, last, 0)
"""

_REAL = """
    if work <= {plain}:
        for i in range(m):
            for j in range(n):
                element(
                    {dtype}, a + i * row_a, step_a, b + j * step_b, row_b, k,
                    c + i * row_c + j * {size}, add,
                )
        return

    # a product with a vector, as either a times a column or a row times b
    column = n == 1 and step_a == {size} and row_b == {size}
    row = not column and m == 1 and step_b == {size} and n >= {row}
    if column or row:
        pass
    elif m == 1 and row_b == {size} and step_a == {size}:
        a, b, m, row_a, row_c, column = b, a, n, step_b, {size}, True
    elif n == 1 and row_a == {size} and row_c == {size} and m >= {row}:
        a, b, n, step_a, row_b, row = b, a, m, row_b, step_a, True
    if column or row:
        with_vector(column, m, n, k, a, row_a, step_a, b, row_b, c, row_c, add)
        return

    edge = stack({edge})
    if alone or work <= {small} or not fits:
        panel = stack({panel})
        for low in range(0, k, {depth}):
            count = min({depth}, k - low)
            more = add or low > 0
            for top in range(0, m, {tall}):
                bottom = min(top + {tall}, m)
                for left in range(0, n, {wide}):
                    columns = min({wide}, n - left)
                    double = columns > {narrow}
                    span, height = ({wide}, {rows}) if double else ({narrow}, {slim})
                    line = span * {size}
                    factor, pitch = b + low * row_b + left * step_b, row_b
                    kept = edge
                    # whether a tile may read beyond narrow rows: others follow
                    last = (low + count - 1) * row_b + line
                    inside = step_b == {size} and last <= (k - 1) * row_b + n * {size}
                    if n >= span:
                        kept += (span - columns) * {size}
                        factor -= (span - columns) * step_b
                        copied = step_b != {size} or bottom - top >= {pays}
                        if copied:
                            for part in range(span // {narrow}):
                                source = factor + part * {narrow} * step_b
                                there = panel + part * {width}
                                if step_b != {size}:
                                    turn({dtype}, {width}, source, step_b, count, there, line)
                                else:
                                    gather_rows(
                                        {dtype}, {width}, source, row_b, count, there, line
                                    )
                    else:
                        copied = not inside
                        if copied:
                            clear(panel, count * line)
                            gather({dtype}, factor, row_b, step_b, count, columns, panel, line)
                    if copied:
                        factor, pitch = panel, line
                    for i in range(top, bottom, height):
                        some = min(height, m - i)
                        x, target = a + i * row_a + low * step_a, c + i * row_c + left * {size}
                        place, distance = edge, line
                        if columns == span:
                            place, distance = target, row_c
                        elif more:
                            gather({dtype}, target, row_c, {size}, some, columns, kept, line)
                        if double:
                            tile(
                                {dtype}, {rows}, 2, {width}, x, row_a, step_a, factor, pitch,
                                count, place, distance, some, more,
                            )
                        else:
                            tile(
                                {dtype}, {slim}, 1, {width}, x, row_a, step_a, factor, pitch,
                                count, place, distance, some, more,
                            )
                        if columns < span:
                            gather({dtype}, kept, line, {size}, some, columns, target, row_c)
        return
"""

_COMPLEX = """
    if alone or work <= {small} or not fits:
        sign_a = -1 if trans_a == 2 else 1
        sign_b = -1 if trans_b == 2 else 1
        for i in range(m):
            for j in range(n):
                complex_element(
                    {dtype}, a + i * row_a, step_a, sign_a, b + j * step_b, row_b, sign_b, k,
                    c + i * row_c + j * {size}, add,
                )
        return
"""

_LARGE = """
    blas_gemm({dtype}, {bits}, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add)
"""

_BATCHED = """
from numba import {dtype}
from numgrad.kernels.products.blas import gemm

def kernel(
    count, trans_a, trans_b, m, n, k,
    a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, alone,
):
    if count <= 0 and stride_c == 0:  # a sum of nothing
        k, count = 0, 1
    if stride_b == 0 and stride_a == m * lda and stride_c == m * ldc and not trans_a:
        m, count = m * count, min(count, 1)  # one factor is shared: the others in one
    elif (
        stride_c == 0 and stride_a == k * lda and stride_b == k * ldb and trans_a and not trans_b
    ):
        k, count = k * count, min(count, 1)  # products added up are one with longer sums
    for i in range(count):
        gemm(
            {dtype}, trans_a, trans_b, m, n, k,
            a + i * stride_a * {size}, lda, b + i * stride_b * {size}, ldb,
            c + i * stride_c * {size}, ldc, add or (i > 0 and stride_c == 0), alone,
        )
"""

_TABLES = """
from numba import {dtype}
from numgrad.kernels.products.blas import table_tile

def kernel(m, n, count, a, places, terms, b, c, ldc, add):
    row_c = ldc * {size}
    for low in range(0, max(count, 1), {depth}):
        some, pairs, more = min({depth}, count - low), terms + low * 16, add or low > 0
        if m <= 2 and n > {wide}:
            for left in range(0, n, 2 * {wide}):
                table_tile(
                    {dtype}, 2, 4, {width}, a, places, pairs, b + left * {size}, some,
                    c + left * {size}, row_c, m, more,
                )
            continue
        for left in range(0, n, {wide}):
            factor, columns = b + left * {size}, min({wide}, n - left)
            if columns > {narrow}:
                for i in range(0, m, {rows}):
                    table_tile(
                        {dtype}, {rows}, 2, {width}, a, places + i * 16, pairs, factor, some,
                        c + i * row_c + left * {size}, row_c, m - i, more,
                    )
            elif columns * {size} > {half}:
                for i in range(0, m, {slim}):
                    table_tile(
                        {dtype}, {slim}, 1, {width}, a, places + i * 16, pairs, factor, some,
                        c + i * row_c + left * {size}, row_c, m - i, more,
                    )
            else:
                for i in range(0, m, {slim}):
                    table_tile(
                        {dtype}, {slim}, 1, {half}, a, places + i * 16, pairs, factor, some,
                        c + i * row_c + left * {size}, row_c, m - i, more,
                    )
"""

_LAY_OUT = """
from numba import {dtype}
from numgrad.kernels.products.blas import clear, gather, turn

def kernel(source, column, rows, columns, target, across, pitch):
    for row in range(rows if columns < across else 0):
        clear(target + row * pitch, across * {size})
    for left in range(0, columns, {narrow}):
        some, there = min({narrow}, columns - left), target + left * {size}
        first = source + left * column
        if some == {narrow}:
            turn({dtype}, {width}, first, column, rows, there, pitch)
        else:
            gather({dtype}, first, {size}, column, rows, some, there, pitch)
"""

# blocks are never so narrow that they would be taken for vectors, which have other bits
_PARALLEL = """
from numba import {dtype}, prange
from numgrad.kernels.products.blas import gemm, thread_limit

def kernel(trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    tall = m >= n
    length, group = (m, 4) if tall else (n, {wide})
    groups = length // group
    threads = thread_limit()
    # a thread that wakes late leaves some to others
    tasks = min(2 * threads, min(m * n * k // {share}, groups))
    if threads < 2 or tasks < 2:
        gemm({dtype}, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, 1)
        return
    step_a = {size} if trans_a else lda * {size}
    step_b = ldb * {size} if trans_b else {size}
    for index in prange(tasks):
        low = groups * index // tasks * group
        high = length if index == tasks - 1 else groups * (index + 1) // tasks * group
        if tall:
            gemm(
                {dtype}, trans_a, trans_b, high - low, n, k,
                a + low * step_a, lda, b, ldb, c + low * ldc * {size}, ldc, add, 1,
            )
        else:
            gemm(
                {dtype}, trans_a, trans_b, m, high - low, k,
                a, lda, b + low * step_b, ldb, c + low * {size}, ldc, add, 1,
            )
"""

# complex products have no loops here that threads could share
_PASSED_ON = """
from numba import {dtype}
from numgrad.kernels.products.blas import gemm

def kernel(trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    gemm({dtype}, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, 0)
"""
