"""The native compiler's definitions of the instructions of ``fortran``."""

from __future__ import annotations

from numgrad.codegen.linker import external_symbol
from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.accesses import NotVector
from numgrad.codegen.native.instructions import InstructionContext
from numgrad.codegen.native.values import (
    INT32,
    Array,
    Known,
    Number,
    constant,
    scalar_type,
)
from numgrad.kernels.fortran import external
from numgrad.kernels.products.gemm import BLAS


def lapack(
    body: InstructionContext, like: Known, name: Known, *given: Array | Number | Known
) -> None:
    if body.lanes is not None:
        raise NotVector("a native function")
    f = body.f

    def address(value: Array | Number | Known) -> str:
        if isinstance(value, Array):
            return value.data
        if isinstance(value, Known):
            return f.module.constant(f'[1 x i8] c"{value.value}"')
        place = f.slot("i32")
        f.effect(f"store i32 {do.cast(f, value, INT32).part}, ptr {place}")
        return place

    places = [address(value) for value in given]
    symbol = external_symbol(external(name.value, body.dtype_of(like)))
    function = f.module.declare(symbol, "void", ["ptr"] * len(places))
    f.effect(f"call void {function}({', '.join(f'ptr {place}' for place in places)})")


def blas_gemm(
    body: InstructionContext, like: Known, bits: Number, trans_a: Number, trans_b: Number,
    m: Number,
    n: Number, k: Number, a: Number, lda: Number, b: Number, ldb: Number, c: Number, ldc: Number,
    add: Number,
) -> None:  # fmt: skip
    if body.lanes is not None:
        raise NotVector("a native function")
    f, dtype = body.f, body.dtype_of(like)
    codes = f.module.constant('[3 x i8] c"NTC"')

    def code(trans: Number) -> str:
        return f.pure(f"getelementptr i8, ptr {codes}, i64 {trans.part}")

    def number(x: Number) -> str:
        kind = f"i{bits.literal}"
        text = x.part if bits.literal == 64 else f.pure(f"trunc i64 {x.part} to {kind}")
        place = f.slot(kind)
        f.effect(f"store {kind} {text}, ptr {place}")
        return place

    def known(value: int) -> str:
        kind = scalar_type(dtype)
        parts = constant(value, dtype).parts
        return f.module.constant(
            f"[{len(parts)} x {kind}] [{', '.join(f'{kind} {part}' for part in parts)}]"
        )

    def address(x: Number) -> str:
        return f.pure(f"inttoptr i64 {x.part} to ptr")

    one = known(1)
    beta = f.pure(f"select i1 {do.truth(f, add).part}, ptr {one}, ptr {known(0)}")
    # a row-major matrix is the transpose of a column-major one: c.T = op(b).T @ op(a).T
    given = (
        code(trans_b), code(trans_a), number(n), number(m), number(k), one,
        address(b), number(ldb), address(a), number(lda), beta, address(c), number(ldc),
    )  # fmt: skip
    function = f.module.declare(external_symbol(BLAS[dtype.name]), "void", ["ptr"] * len(given))
    f.effect(f"call void {function}({', '.join(f'ptr {text}' for text in given)})")
