"""Matrix products on addresses, for generated kernels to call: Note [Products in kernels].

What is called here is compiled by ``products``; a kernel names ``products.external(...)`` among its
externals.
"""

from numgrad.codegen.device import ExternalFunction, device, instruction
from numgrad.kernels.products.gemm import external

# The number of threads that a launch allows: what ``numba.get_num_threads`` asks too, but that by
# an address, which keeps a kernel from being kept on disk.
thread_limit = ExternalFunction("get_num_threads", "intp()")


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


for _call in (gemm, batched_gemm, parallel_gemm):
    _call.external = external
