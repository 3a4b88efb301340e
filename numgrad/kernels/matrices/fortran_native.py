"""The native compiler's definition of ``fortran.lapack``: a call by Fortran's convention."""

from __future__ import annotations

from numgrad.codegen.linker import external_symbol
from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.accesses import NotVector
from numgrad.codegen.native.instructions import InstructionContext
from numgrad.codegen.native.values import INT32, Array, Known, Number
from numgrad.kernels.matrices.fortran import external


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
