"""Numba's definitions of the instructions of ``blas``."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from numgrad.codegen.linker import external_symbol
from numgrad.kernels.products.gemm import BLAS, external


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


def gemm(typingctx, like, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone):
    integers = (trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add, alone)
    return _call_kernel("gemm", like, integers)


def batched_gemm(
    typingctx, like, count, trans_a, trans_b, m, n, k,
    a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, alone,
):  # fmt: skip
    integers = (
        count, trans_a, trans_b, m, n, k,
        a, lda, stride_a, b, ldb, stride_b, c, ldc, stride_c, add, alone,
    )  # fmt: skip
    return _call_kernel("batched_gemm", like, integers)


def parallel_gemm(typingctx, like, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
    integers = (trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add)
    return _call_kernel("parallel_gemm", like, integers)


def blas_gemm(typingctx, like, bits, trans_a, trans_b, m, n, k, a, lda, b, ldb, c, ldc, add):
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
