"""Values of a kernel while it is translated: numbers, alone or a lane each, arrays, tuples."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from numgrad.codegen.native.ir import FunctionWriter

BOOL, INT32, INT64, UINT64, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = (
    np.dtype(name)
    for name in (
        "bool", "int32", "int64", "uint64", "float32", "float64", "complex64", "complex128",
    )
)  # fmt: skip


@dataclass(slots=True, unsafe_hash=True)  # not frozen, which takes three times as long to make
class Number:
    """A number, or ``lanes`` of them side by side.

    Attributes
    ----------
    parts
        Operands of LLVM's: one, of complex numbers the real and the imaginary part.
    lanes
        0 for a single number.
    literal
        The Python number that it is known to be.
    step
        Of an int64 in lanes that is no vector yet: ``parts`` is that of the first lane, and the
        others follow ``step`` apart.
    """

    dtype: np.dtype
    parts: tuple[str, ...]
    lanes: int = 0
    literal: Any = None
    step: Number | None = None

    @property
    def part(self) -> str:
        """The operand of a number that is not complex."""
        return self.parts[0]


@dataclass(frozen=True, slots=True)
class Array:
    """An array in memory.

    Attributes
    ----------
    strides
        In bytes; None if it is contiguous.
    root
        What it is a part of, or a set of such: arrays of different roots do not overlap.
    """

    dtype: np.dtype
    data: str
    shape: tuple[Number, ...]
    strides: tuple[Number, ...] | None
    root: str | frozenset[str]


@dataclass(frozen=True, slots=True)
class GrowingVector:
    """A vector that grows: where its address and its length are kept, and the memory it owns."""

    dtype: np.dtype
    data: str
    length: str
    owned: str


@dataclass(slots=True, unsafe_hash=True)
class Known:
    """A Python object that the text names: a type, a function, a module, a constant."""

    value: Any


Value = Number | Array | GrowingVector | Known | tuple | None

_KINDS = {"b": "i1", "f4": "float", "f8": "double"}


def part_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of a part of a complex number; other dtypes are their own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


@cache
def scalar_type(dtype: np.dtype) -> str:
    """LLVM's type of a number, or of a part of a complex one."""
    dtype = part_dtype(dtype)
    if dtype.kind in "iu":
        return f"i{8 * dtype.itemsize}"
    return "i1" if dtype.kind == "b" else _KINDS[f"f{dtype.itemsize}"]


def memory_type(dtype: np.dtype) -> str:
    """LLVM's type of a number, or of a part of a complex one, in memory."""
    return "i8" if dtype.kind == "b" else scalar_type(dtype)


def kind_of(x: Number) -> str:
    """LLVM's type of a number or of its parts."""
    return vector_type(scalar_type(x.dtype), x.lanes)


def vector_type(kind: str, lanes: int) -> str:
    """LLVM's type of a number, or of several."""
    return f"<{lanes} x {kind}>" if lanes else kind


def constant_text(value: Any, dtype: np.dtype) -> str:
    """A number as an operand."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        value = int(value) & ((1 << bits) - 1)
        return str(value - (1 << bits) if value >> (bits - 1) else value)
    if dtype.itemsize < 8 or type(value) is not float:
        with np.errstate(all="ignore"):
            value = float(dtype.type(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def constant(value: Any, dtype: np.dtype) -> Number:
    """A number known now."""
    if dtype.kind == "c":
        value = complex(value)
        part = part_dtype(dtype)
        texts = (constant_text(value.real, part), constant_text(value.imag, part))
        return Number(dtype, texts, literal=value)
    if dtype.kind == "f" and (dtype.itemsize < 8 or type(value) is not float):
        with np.errstate(all="ignore"):
            value = dtype.type(value).item()
    return Number(dtype, (constant_text(value, dtype),), 0, value)


@lru_cache(10_000)
def integer(value: int) -> Number:
    """An int64 known now."""
    return constant(value, INT64)


def splat(text: str, kind: str, lanes: int, f: FunctionWriter) -> str:
    """The same operand in all lanes."""
    if not text.startswith("%"):
        return f"splat ({kind} {text})"
    vector = vector_type(kind, lanes)
    first = f.pure(f"insertelement {vector} poison, {kind} {text}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return f.pure(f"shufflevector {vector} {first}, {vector} poison, {zeros}")


def in_lanes(x: Number, lanes: int, f: FunctionWriter) -> Number:
    """A number as a vector."""
    if x.step is not None:
        places = ", ".join(f"i64 {k}" for k in range(x.lanes))
        kind = kind_of(x)
        first = splat(x.part, "i64", x.lanes, f)
        step = splat(x.step.part, "i64", x.lanes, f)
        offsets = f"<{places}>" if x.step.literal == 1 else f.pure(f"mul {kind} {step}, <{places}>")
        return Number(x.dtype, (f.pure(f"add {kind} {first}, {offsets}"),), x.lanes)
    if x.lanes or not lanes:
        return x
    kind = scalar_type(x.dtype)
    return Number(x.dtype, tuple(splat(p, kind, lanes, f) for p in x.parts), lanes)
