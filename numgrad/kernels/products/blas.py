"""Instructions of matrix products: those that generated kernels call, and their inner loops.

Note [Products in kernels] in ``gemm``: what is called is compiled there; a kernel names
``external(...)`` among its externals.

Inner loops of products (``tile`` and its like) are in registers, on addresses: Note [Small
products]. Addresses and distances are int64. Distances are in bytes; an axis of a matrix is given
by the distance of its elements. Each takes the type of the elements first. The loops are written as
the instructions they shall become, for compilers to have little to do: analysing, vectorising and
unrolling loops over addresses took five times as long.

``blas_gemm`` and ``lapack`` call what SciPy exports to compiled code, by Fortran's convention:
Note [External functions] in ``linker``. A matrix is column-major there: what is row-major counts as
its transpose.
"""

import numpy as np

from numgrad.codegen.device import ExternalFunction, device, instruction

# The number of threads that a launch allows: what ``numba.get_num_threads`` asks too, but that by
# an address, which keeps a kernel from being kept on disk.
thread_limit = ExternalFunction("get_num_threads", "intp()")


DTYPES = ("float32", "float64", "complex64", "complex128")
BLAS = {
    name: f"scipy.linalg.cython_blas:{letter}gemm"
    for name, letter in zip(DTYPES, "sdcz", strict=True)
}
"""Where the linker finds BLAS's gemm."""


@instruction
def gemm(like, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone):
    """``c = op(a) @ op(b)``, or ``c += op(a) @ op(b)`` if ``add``; all matrices row-major.

    Parameters
    ----------
    like
        Numba's type of the elements: float32, float64, complex64, complex128.
    trans_a, trans_b
        0: as it is; 1: transposed; 2: transposed and conjugated.
    m, n, k
        op(a) has shape (m, k), op(b) (k, n), c (m, n).
    a, b, c
        Addresses. c overlaps neither a nor b.
    lda, ldb, ldc
        Elements from one stored row to the next.
    add
        Whether to add to c.
    alone
        Whether to stay in the calling thread at all sizes, as inside prange: BLAS is not called.
    """


@instruction
def batched_gemm(
    like, count, trans_a, trans_b, m, n, k,
    a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, alone,
):  # fmt: skip
    """``count`` products as of ``gemm``, of matrices ``stride_a``, ... elements apart.

    Stride 0 is for a matrix that all products share. Products that share c are added up.
    """


@instruction
def parallel_gemm(like, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    """``gemm`` with rows or columns shared out to threads where that pays: the same bits.

    Nothing of it is BLAS, whose threads would fight for cores with those of kernels. A kernel that
    calls it, outside prange, is to be called through ``threads.launch``. Complex matrices are left
    to BLAS.
    """


@device
def _multiply(a, b, out, alone):
    gemm(
        a.dtype, a.strides[1] != a.itemsize, b.strides[1] != b.itemsize,
        out.shape[0], out.shape[1], a.shape[1],
        a.ctypes.data, max(a.strides[0], a.strides[1]) // a.itemsize,
        b.ctypes.data, max(b.strides[0], b.strides[1]) // b.itemsize,
        out.ctypes.data, out.shape[1], 0, alone,
    )  # fmt: skip


@device
def multiply(a, b, out):
    """``out = a @ b`` of matrices that are contiguous, or the transposes of such, by ``gemm``."""
    _multiply(a, b, out, 0)


@device
def multiply_alone(a, b, out):
    """The same in the calling thread."""
    _multiply(a, b, out, 1)


@device
def multiply_shared(a, b, out):
    """The same by ``parallel_gemm``."""
    parallel_gemm(
        a.dtype, a.strides[1] != a.itemsize, b.strides[1] != b.itemsize,
        out.shape[0], out.shape[1], a.shape[1],
        a.ctypes.data, max(a.strides[0], a.strides[1]) // a.itemsize,
        b.ctypes.data, max(b.strides[0], b.strides[1]) // b.itemsize,
        out.ctypes.data, out.shape[1], 0,
    )  # fmt: skip


def external(name: str, dtype: str) -> str:
    """The external that a kernel lists which calls ``name`` for a dtype."""
    return f"numgrad.kernels.products.gemm:{name}_{dtype}"


@instruction
def table_gemm(like, m, n, count, a, places, terms, b, c, ldc, add):
    """``c = product``, or ``c += product`` if ``add``, of factors that tables tell where to read.

    ``c[r, j]`` is the sum over l of ``a[places[r, 0] + terms[l, 0]] * b[terms[l, 1] + j]``: Note
    [Implicit products] in ``kernels.convolutions``. It never calls BLAS. Complex numbers are not
    for it.

    Parameters
    ----------
    like
        Numba's type of the elements: float32, float64.
    m, n, count
        Rows and columns of c, terms of a sum.
    places, terms
        Addresses of pairs of int64, distances in bytes.
    a, b, c
        Addresses. Where n is no multiple of the elements of a tile, b and c may be read, and c
        written, up to ``SPARE`` bytes behind the last column.
    ldc
        Elements from one row to the next.
    """


SPARE = 256


@instruction
def lay_out(like, source, column, rows, columns, target, across, pitch):
    """Write a matrix of contiguous columns, ``column`` bytes apart, with rows ``pitch`` apart.

    Rows have ``across`` elements, those behind the last column zero.
    """


for _call in (gemm, batched_gemm, parallel_gemm, table_gemm, lay_out):
    _call.external = external


@instruction
def stack(size):
    """Address of ``size`` bytes (a literal) on the stack of the calling function."""


@instruction
def tile(like, rows, vectors, width, a, row_a, step_a, b, row_b, count, c, row_c, left, add):
    """``c[r, j] = sum(a[r, l] * b[l, j] for l in range(count))`` in registers.

    r runs over ``rows`` (a literal), but no further than ``left``, j over as many elements as
    ``vectors`` SIMD vectors of ``width`` bytes (literals) hold. With ``add`` a sum starts from what
    c holds. Elements in rows of b and c are contiguous.
    """


@instruction
def table_tile(like, rows, vectors, width, a, places, terms, b, count, c, row_c, left, add):
    """``tile`` of factors that tables tell where to read, as ``table_gemm`` has them."""


@instruction
def broad_bytes():
    """Bytes of a row of ``broad_tile``."""


@instruction
def broad_tile(like, rows, a, row_a, step_a, b, row_b, count, c, row_c, left, add):
    """``tile`` of two vectors as wide as this CPU has them."""


@instruction
def broad_finite(like, b, row_b, count):
    """Whether ``count`` rows of ``broad_tile`` hold numbers that are finite, as 0 or 1."""


@instruction
def dots(like, rows, a, row_a, x, count, c, row_c, left, add):
    """``c[r] = sum(a[r, l] * x[l] for l in range(count))`` in several lanes.

    r runs over ``rows`` (a literal), but no further than ``left``. With ``add`` the sum is added to
    what c holds. Elements in rows of a and in x are contiguous.
    """


@instruction
def element(like, a, step_a, b, step_b, count, c, add):
    """``c = sum(a[l] * b[l] for l in range(count))``, from c on with ``add``."""


@instruction
def complex_element(like, a, step_a, sign_a, b, step_b, sign_b, count, c, add):
    """The same of complex numbers, with imaginary parts multiplied by ``sign_a``, ``sign_b``."""


@instruction
def gather(like, source, row, step, rows, columns, target, pitch):
    """Copy a matrix of ``rows`` and ``columns`` to one with contiguous rows ``pitch`` apart."""


@instruction
def gather_rows(like, width, source, row, rows, target, pitch):
    """Copy rows of ``width`` bytes (a literal), a SIMD vector, to ones ``pitch`` apart."""


@instruction
def turn(like, width, source, column, rows, target, pitch):
    """The same of a matrix whose columns are contiguous, ``column`` apart."""


@instruction
def clear(address, size):
    """Set ``size`` bytes to zero."""


LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@instruction
def lapack(like, name, *arguments):
    """Call ``name`` for the dtype ``like``.

    Arrays are given by their addresses, integers by those of copies; a letter is an integer too,
    its code, or a string.
    """


@instruction
def blas_gemm(like, bits, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    """``blas.gemm`` of row-major matrices by BLAS, whose integers have ``bits``."""


def lapack_external(name: str, dtype: np.dtype) -> str:
    """The external that a kernel lists which calls ``name`` for a dtype."""
    return f"scipy.linalg.cython_lapack:{LETTERS[dtype.name]}{name}"
