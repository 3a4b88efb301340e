"""Matrix products on addresses, for generated kernels to call: Note [Products in kernels].

Imported by generated source only: importing this module imports Numba. What is called here is
compiled by ``products``; a kernel names ``products.external(...)`` among its externals.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from numgrad.codegen.intrinsics import instruction
from numgrad.codegen.linker import external_symbol
from numgrad.kernels.products.gemm import BLAS, external

# The number of threads that a launch allows: what ``numba.get_num_threads`` asks too, but that by
# an address, which keeps a kernel from being kept on disk.
thread_limit = types.ExternalFunction("get_num_threads", types.intp())


def _call_kernel(name: str, like: Any, integers: tuple[Any, ...]) -> Any:
    """Type and code of a call of a kernel of ``products``, by Numba's calling convention."""
    symbol = external_symbol(external(name, like.dtype.name))
    kinds = [types.int64] * len(integers)

    def codegen(context, builder, signature, args):
        convention = context.call_conv
        kind = convention.get_function_type(types.none, kinds)
        function = cgutils.get_or_insert_function(builder.module, kind, symbol)
        convention.call_function(builder, function, types.none, kinds, args[1:])
        return context.get_dummy_value()

    return types.none(like, *kinds), codegen


@instruction
def gemm(typingctx, like, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone):
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
    integers = (trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone)
    return _call_kernel("gemm", like, integers)


@instruction
def batched_gemm(
    typingctx, like, count, trans_a, trans_b, m, n, k,
    a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, alone,
):  # fmt: skip
    """``count`` products as of ``gemm``, of matrices ``stride_a``, ... elements apart.

    Stride 0 is for a matrix that all products share. Products that share c are added up.
    """
    integers = (
        count, trans_a, trans_b, m, n, k,
        a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, alone,
    )  # fmt: skip
    return _call_kernel("batched_gemm", like, integers)


@instruction
def parallel_gemm(typingctx, like, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    """``gemm`` with rows or columns shared out to threads where that pays: the same bits.

    Nothing of it is BLAS, whose threads would fight for cores with those of kernels. A kernel that
    calls it, outside prange, is to be called through ``threads.launch``. Complex matrices are left
    to BLAS.
    """
    integers = (trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add)
    return _call_kernel("parallel_gemm", like, integers)


@intrinsic(prefer_literal=True)
def blas_gemm(typingctx, like, bits, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    """What ``gemm`` leaves to BLAS, whose integers have ``bits``."""
    integers = (trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add)
    kinds = [types.int64] * len(integers)
    symbol = external_symbol(BLAS[like.dtype.name])

    def codegen(context, builder, signature, args):
        trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add = args[2:]
        integer, void = ir.IntType(bits.literal_value), ir.IntType(8).as_pointer()
        codes = cgutils.global_constant(builder, "trans", cgutils.make_bytearray(b"NTC"))

        def kept(value):
            place = cgutils.alloca_once_value(builder, value)
            return builder.bitcast(place, void)

        def code(trans):
            return builder.bitcast(builder.gep(codes, [trans.type(0), trans]), void)

        def number(value):
            return kept(value if value.type == integer else builder.trunc(value, integer))

        def address(value):
            return builder.inttoptr(value, void)

        one = context.get_constant_generic(builder, like.dtype, 1)
        zero = context.get_constant_generic(builder, like.dtype, 0)
        beta = builder.select(cgutils.as_bool_bit(builder, add), kept(one), kept(zero))
        # a row-major matrix is the transpose of a column-major one: c.T = op(b).T @ op(a).T
        given = (
            code(trans_b), code(trans_a), number(n), number(m), number(k), kept(one),
            address(b), number(ldb), address(a), number(lda), beta, address(c), number(ldc),
        )  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [void] * len(given))
        builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), given)
        return context.get_dummy_value()

    return types.none(like, bits, *kinds), codegen
