"""Functions with a C signature around a kernel, as text in LLVM's language, and loaded.

Note [C entries]
----------------
A C entry takes pointers, numbers and lengths, puts them into the slots that the kernel reads (Note
[Native entries] in ``native.kernel``), and returns a status: 0, or a key of ``MESSAGES``. A complex
number is two arguments, its parts, since C compilers pass it in different ways. Results are written
where pointers say; there are no other effects, so it may run in several threads at once.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen import c_library, linker
from numgrad.codegen.compile import Kernel
from numgrad.codegen.native import machine
from numgrad.codegen.native.kernel import NativeCode
from numgrad.codegen.native.signature import llvm_type
from numgrad.codegen.nests.polynomial import Atom, Length, value_of

_SIGNS = {"==": "eq", "!=": "ne", "<": "slt", ">=": "sge"}
_DEFINITIONS = """
define private i64 @quotient(i64 %a, i64 %b) {
  %q = sdiv i64 %a, %b
  %r = srem i64 %a, %b
  %inexact = icmp ne i64 %r, 0
  %signs = xor i64 %r, %b
  %opposite = icmp slt i64 %signs, 0
  %below = and i1 %inexact, %opposite
  %one = zext i1 %below to i64
  %floor = sub i64 %q, %one
  ret i64 %floor
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


class CArgument(c_library.CArgument):
    """An argument of a C entry."""

    def parameters(self) -> list[tuple[str, str]]:
        """Types and names of the parameters in LLVM's language."""
        if self.is_pointer:
            return [("ptr", f"%{self.name}")]
        kind = llvm_type(self.dtype)
        if self.dtype.kind == "c":
            return [(kind, f"%{self.name}_real"), (kind, f"%{self.name}_imag")]
        return [(kind, f"%{self.name}")]


def literal(value: Any, kind: str) -> str:
    """A number as a constant of a type."""
    if kind in ("float", "double"):
        number = np.float32(value) if kind == "float" else float(value)
        return "0x" + struct.pack(">d", float(number)).hex().upper()
    return str(int(value))


def number_parts(value: Any, dtype: np.dtype) -> list[tuple[str, str]]:
    """Types and texts of a constant number, of both parts if it is complex."""
    kind = llvm_type(dtype)
    parts = [value.real, value.imag] if dtype.kind == "c" else [value]
    return [(kind, literal(part, kind)) for part in parts]


def data_constant(name: str, array: np.ndarray) -> str:
    """The definition of an array in memory that is read only."""
    data = array.tobytes()
    text = "".join([chr(b) if 31 < b < 127 and b not in b'\\"' else f"\\{b:02X}" for b in data])
    return f'{name} = private constant [{len(data)} x i8] c"{text}", align 64\n'


class EntryWriter:
    """Writes the body of a C entry, statement by statement.

    Parameters
    ----------
    lengths
        What the length of each axis is: a constant, or the name of an argument.
    """

    def __init__(self, lengths: Mapping[int, str]) -> None:
        self.lengths = lengths
        self.lines: list[str] = []
        self._names = itertools.count()

    def let(self, text: str) -> str:
        """A name for the value of an instruction."""
        name = f"%_{next(self._names)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def length(self, terms: Length) -> str:
        """The value of a length."""
        known = value_of(terms)
        if known is not None:
            return str(known)
        total = "0"
        for product, coefficient in terms:
            factor = str(coefficient)
            for atom in product:
                factor = self.let(f"mul i64 {factor}, {self._atom(atom)}")
            total = self.let(f"add i64 {total}, {factor}")
        return total

    def _atom(self, atom: Atom) -> str:
        if atom[0] == "axis":
            return self.lengths[atom[1]]
        a, b = self.length(atom[1]), self.length(atom[2])
        quotient = self.let(f"call i64 @quotient(i64 {a}, i64 {b})")
        if atom[0] == "//":
            return quotient
        return self.let(f"sub i64 {a}, {self.let(f'mul i64 {quotient}, {b}')}")

    def require(self, sign: str, left: Length, right: Length) -> None:
        """Return with a status unless a relation of lengths holds."""
        a, b = self.length(left), self.length(right)
        self.leave_unless(self.let(f"icmp {_SIGNS[sign]} i64 {a}, {b}"), 1)

    def leave_unless(self, condition: str, status: int) -> None:
        """Return with a status if a condition is false."""
        number = next(self._names)
        self.lines += [
            f"  br i1 {condition}, label %_on{number}, label %_leave{number}",
            f"_leave{number}:",
            f"  ret i32 {status}",
            f"_on{number}:",
        ]

    def call(self, slots: Sequence[tuple[str, str]]) -> None:
        """Call the kernel with what its slots hold, as types and values."""
        memory = self.let(f"alloca [{max(1, len(slots))} x i64], align 16")
        for k, (kind, value) in enumerate(slots):
            place = self.let(f"getelementptr inbounds i64, ptr {memory}, i64 {k}")
            if kind == "float":
                kind, value = "double", self.let(f"fpext float {value} to double")
            elif kind in ("i8", "i16", "i32"):
                kind, value = "i64", self.let(f"sext {kind} {value} to i64")
            self.lines.append(f"  store {kind} {value}, ptr {place}")
        failed = self.let(f"call i32 @packed(ptr {memory})")
        self.leave_unless(self.let(f"icmp eq i32 {failed}, 0"), 2)

    def store(self, parts: Sequence[tuple[str, str]], target: str) -> None:
        """Store a number, in both parts if it is complex."""
        for k, (kind, value) in enumerate(parts):
            place = self.let(f"getelementptr inbounds {kind}, ptr {target}, i64 {k}")
            self.lines.append(f"  store {kind} {value}, ptr {place}")

    def copy(self, target: str, source: str, size: Length, dtype: np.dtype) -> None:
        """Copy the elements of an array."""
        count = self.let(f"mul i64 {self.length(size)}, {dtype.itemsize}")
        self.lines.append(
            f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)"
        )

    def text(self, arguments: Sequence[CArgument]) -> str:
        """The function as a whole."""
        given = [" ".join(p) for argument in arguments for p in argument.parameters()]
        head = f"define i32 @native({', '.join(given)}) #0 {{"
        return "\n".join([_DEFINITIONS, head, "_entry:", *self.lines, "  ret i32 0", "}", ""])


_numbers = itertools.count()


def load_entry(text: str, kernel: Kernel | None = None, externals: Iterable[str] = ()) -> int:
    """Compile the text of an entry, with the kernel that it calls; return its address.

    The machine code stays as long as the process: other machine code may hold the address. Raises
    ``Unsupported`` for a kernel that calls functions which others have compiled.
    """
    whole = text
    if kernel is not None:
        code = NativeCode(kernel)
        for external in externals:
            linker.link(external)
        whole = f"{code.translated()}\n{text}"
    payload = machine.compile_ir(whole, f"native{next(_numbers)}")
    return machine.load(payload)["native"]


def adapter(
    address: int,
    arguments: Sequence[CArgument],
    given: Sequence[str],
    head: str,
    end: Sequence[str],
) -> str:
    """The text of a function that calls an entry.

    ``given`` are lines that make the values ``%<name>`` of arguments, ``head`` is the declaration
    and ``end`` what follows, where ``%_ok`` tells whether the call went well.
    """
    values = [" ".join(p) for argument in arguments for p in argument.parameters()]
    return "\n".join(
        [
            head,
            "_entry:",
            *given,
            f"  %_function = inttoptr i64 {address} to ptr",
            f"  %_status = call i32 %_function({', '.join(values)})",
            "  %_ok = icmp eq i32 %_status, 0",
            *end,
            "}",
            "",
        ]
    )
