"""Native code of the instructions of ``objects``."""

from __future__ import annotations

from numgrad.codegen.native import arithmetic as do, memory
from numgrad.codegen.native.instructions import InstructionContext
from numgrad.codegen.native.values import INT32, INT64, Number


def poke(body: InstructionContext, value: Number, address: Number) -> None:
    zero = Number(INT64, ("0",), literal=0)
    value = body.as_number(value)
    element = memory.at_address(body.f, value.dtype, address, zero, ("peek", address.part), "")
    memory.write(body.f, element, value, None)


def scratch(body: InstructionContext, words: Number) -> Number:
    slot = body.f.slot(f"[{int(words.literal)} x i64], align 16")  # pyright: ignore
    return Number(INT64, (body.f.pure(f"ptrtoint ptr {slot} to i64"),))


def call_packed(body: InstructionContext, function: Number, slots: Number) -> Number:
    f = body.f
    code, pointer = (
        f.pure(f"inttoptr i64 {do.cast(f, x, INT64).part} to ptr") for x in (function, slots)
    )
    return Number(INT32, (f.value(f"call i32 {code}(ptr {pointer})"),))
