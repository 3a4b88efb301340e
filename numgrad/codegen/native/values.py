"""Values of a kernel while it is translated, and the memory that iterations of a loop access."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from numgrad.codegen.native.ir import FunctionWriter, Unsupported

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
        real_dtype = part_dtype(dtype)
        texts = (constant_text(value.real, real_dtype), constant_text(value.imag, real_dtype))
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


class NotVector(Unsupported):
    """A loop that is not written in lanes; it is written as it stands."""


Root = Any
"""The memory that an access is to: of an array its root."""


def may_overlap(a: Root, b: Root) -> bool:
    """Whether arrays of two roots may be the same or overlap."""
    if a == b:
        return True
    if not (isinstance(a, frozenset) or isinstance(b, frozenset)):
        return False
    return not _roots(a).isdisjoint(_roots(b))


def one_of(a: Array, b: Array) -> str | frozenset[str]:
    """The root of an array that is a part of either."""
    return a.root if a.root == b.root else _roots(a.root) | _roots(b.root)


def _roots(root: Root) -> frozenset[Root]:
    return root if isinstance(root, frozenset) else frozenset((root,))


class NearParts(NotVector):
    """A loop in lanes if some parts of an array are so many bytes apart, or more."""

    def __init__(self, distances: dict[tuple[str, str], int]) -> None:
        super().__init__("an array is used at other places than it is written")
        self.distances = distances


LARGEST = 16
"""Bytes of the widest element."""


class LanePlace(NamedTuple):
    """Where the lanes read or write.

    Attributes
    ----------
    computed
        Whether it is not at equal distances.
    row
        Whether it is at elements beside each other.
    """

    base: str
    offset: str
    step: str
    computed: bool
    row: bool

    def at_index_of(self, other: LanePlace) -> bool:
        """Whether each lane has one index here and there, of arrays that begin anywhere."""
        same = (self.offset, self.step) == (other.offset, other.step)
        return same and not (self.computed or other.computed)


@dataclass
class Lanes:
    """The lanes of the innermost loop while its body is translated.

    Attributes
    ----------
    accesses
        Where the body reads and writes memory: ``(array, writes, place)``.
    apart
        Whether parts of one array that begin at different places are known to be as far apart as
        the lanes go.
    around
        How many loops are around this one.
    mask
        Which lanes are in the loop, an operand; empty if all are.
    rest
        How many lanes ``mask`` has, an operand, if these are the first ones; else empty.
    block
        The block of instructions that every iteration runs, where there are no others.
    """

    count: int
    apart: bool = False
    around: int = 0
    mask: str = ""
    rest: str = ""
    block: str = ""
    accesses: list[tuple[Any, bool, LanePlace]] = field(default_factory=list)

    def first(self, mask: str, count: str) -> Lanes:
        """The first lanes: those of a mask."""
        return Lanes(self.count, self.apart, self.around, mask, count)

    def check(self) -> None:
        """Refuse a body whose iterations may read what others have written."""
        written: dict[Any, dict[LanePlace, None]] = {}
        for root, writes, offset in self.accesses:
            if writes:
                written.setdefault(root, {})[offset] = None
        for root, _, offset in self.accesses:
            if any(
                root != other and may_overlap(root, other) and not offset.at_index_of(p)
                for other, places in written.items()
                for p in places
            ):
                raise NotVector("an array may be one that is written at another place")
        near: dict[tuple[str, str], int] = {}
        for root, writes, offset in self.accesses:
            for other in written.get(root, ()):
                if other == offset:
                    continue
                if not (offset.at_index_of(other) and offset.row):
                    raise NotVector("an array is used at other places than it is written")
                near[offset.base, other.base] = self.count * LARGEST
            if root in written and not writes and offset.computed:
                raise NotVector("several lanes may add to one place")
        if near and not self.apart:
            raise NearParts(near)
