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
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np

from numgrad.codegen import c_library, linker
from numgrad.codegen.cache import library_digest
from numgrad.codegen.compile import Kernel, load_or_compile
from numgrad.codegen.locks import KERNELS, deferred, give_way
from numgrad.codegen.native import machine, objects
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.kernel import NativeCode, native_stamp
from numgrad.codegen.native.signature import llvm_type
from numgrad.codegen.native.team import with_team
from numgrad.codegen.native.workspace import WITH_WORKSPACE, WORKSPACE
from numgrad.codegen.nests.polynomial import Atom, Length, axis_of, value_of

_SIGNS = {"==": "eq", "!=": "ne", "<": "slt", ">=": "sge"}
_DEFINITIONS = """
define private i64 @quotient(i64 %a, i64 %b) #0 {
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
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @malloc(i64)
declare void @free(ptr)
define private void @release(ptr %place) #0 {
  %memory = load ptr, ptr %place
  call void @free(ptr %memory)
  ret void
}
"""


class CArgument(c_library.CParameter):
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
    """Writes the body of a function that returns a status, statement by statement.

    Parameters
    ----------
    lengths
        What the length of each axis is: a constant, or the name of an argument.
    workspace
        Whether memory comes from a caller: Note [Workspaces] in ``native.workspace``.

    Note [Workspaces of entries]
    ----------------------------
    Whatever lies between two kernels has its place in one block of memory, whose size follows from
    lengths alone: on the stack if that is a small constant, else allocated once a call, or taken
    from the caller's workspace, and given back wherever the function returns. So calls from several
    threads share nothing.
    """

    def __init__(self, lengths: Mapping[int, str], workspace: bool = False) -> None:
        self.lengths, self.workspace = lengths, workspace
        self.lines: list[str] = []
        self._variables: list[str] = []
        self._checks: list[str] = []
        self._blocks: list[str] = []
        self._places: list[tuple[str, Length, int]] = []
        self._names = itertools.count()

    def put(self, line: str) -> None:
        """Write an instruction without a value."""
        self.lines.append(f"  {line}")

    def let(self, text: str) -> str:
        """A name for the value of an instruction."""
        name = f"%_{next(self._names)}"
        self.put(f"{name} = {text}")
        return name

    def label(self, stem: str) -> str:
        """A name for a block."""
        return f"_{stem}{next(self._names)}"

    def begin(self, label: str) -> None:
        """Go on in a block, to which the one before leads too."""
        self.put(f"br label %{label}")
        self.open(label)

    def open(self, label: str) -> None:
        """Go on in a block, after a branch."""
        self.lines.append(f"{label}:")

    def length(self, terms: Length, lengths: Mapping[int, str] | None = None) -> str:
        """The value of a length, in axes of the function or in others."""
        known = value_of(terms)
        if known is not None:
            return str(known)
        lengths = self.lengths if lengths is None else lengths
        axis = axis_of(terms)
        if axis is not None:
            return lengths[axis[1]]
        total = "0"
        for product, coefficient in terms:
            factor = str(coefficient)
            for atom in product:
                factor = self.let(f"mul i64 {factor}, {self._atom(atom, lengths)}")
            total = self.let(f"add i64 {total}, {factor}")
        return total

    def _atom(self, atom: Atom, lengths: Mapping[int, str]) -> str:
        if atom[0] == "axis":
            return lengths[atom[1]]
        a, b = self.length(atom[1], lengths), self.length(atom[2], lengths)
        quotient = self.let(f"call i64 @quotient(i64 {a}, i64 {b})")
        if atom[0] == "//":
            return quotient
        return self.let(f"sub i64 {a}, {self.let(f'mul i64 {quotient}, {b}')}")

    # ---------------------------------------------------------------------------------- leaving

    def require(self, sign: str, left: Length, right: Length) -> None:
        """Return with a status unless a relation of lengths holds, before all else."""
        before, self.lines = self.lines, self._checks
        a, b = self.length(left), self.length(right)
        self.leave_unless(self.let(f"icmp {_SIGNS[sign]} i64 {a}, {b}"), "1", "ret i32")
        self.lines = before

    def leave_unless(self, condition: str, status: str, leave: str = "@LEAVE@") -> None:
        """Return with a status if a condition is false."""
        on, out = self.label("on"), self.label("leave")
        self.put(f"br i1 {condition}, label %{on}, label %{out}")
        self.open(out)
        self.put(f"{leave} {status}")
        self.open(on)

    # ----------------------------------------------------------------------------------- memory

    def variable(self, kind: str, count: int = 1) -> str:
        """Memory on the stack, made once a call."""
        name = f"%_{next(self._names)}"
        self._variables.append(f"  {name} = alloca [{max(1, count)} x {kind}], align 16")
        return name

    def reserve(self, size: Length, itemsize: int) -> str:
        """Memory in the workspace: Note [Workspaces of entries]."""
        name = f"%_{next(self._names)}"
        self._places.append((name, size, itemsize))
        return name

    def allocate(self, count: str) -> str:
        """Memory of so many bytes, known where it is made."""
        place = self._block()
        if self.workspace:
            given = f"ptr {place}, i64 {count}, i64 0, ptr %_context"
            memory = self.let(f"call ptr @workspace.reserve({given})")
        else:
            memory = self.let(f"call ptr @malloc(i64 {self.let(f'add i64 {count}, 1')})")
            self.put(f"store ptr {memory}, ptr {place}")
        self.leave_unless(self.let(f"icmp ne ptr {memory}, null"), "2")
        return memory

    def _block(self) -> str:
        """The place of the address of a block, which is given back at the end."""
        place = self.variable("ptr", 1 + self.workspace)
        self._variables.append(f"  store ptr null, ptr {place}")
        if self.workspace:
            self._variables.append(
                f"  call void @workspace.mark(ptr {place}, i64 1, ptr %_context)"
            )
            self._blocks.append(
                f"  call void @workspace.give_back(ptr {place}, i64 1, ptr %_context)\n"
            )
        else:
            self._blocks.append(f"  call void @release(ptr {place})\n")
        return place

    def each(self, count: str) -> tuple[str, str]:
        """Begin a loop, until ``end`` of what is returned: its index, and the label behind it."""
        place, head, step, out = self.variable("i64"), *map(self.label, ("head", "step", "out"))
        self.put(f"store i64 -1, ptr {place}")
        self.begin(head)
        index = self.let(f"add i64 {self.let(f'load i64, ptr {place}')}, 1")
        self.put(f"store i64 {index}, ptr {place}")
        self.put(f"br i1 {self.let(f'icmp slt i64 {index}, {count}')}, label %{step}, label %{out}")
        self.open(step)
        return index, f"{head} {out}"

    def end(self, loop: str) -> None:
        """End a loop."""
        head, out = loop.split()
        self.put(f"br label %{head}")
        self.open(out)

    def _memory(self) -> list[str]:
        """Lines that make the memory of all places."""
        if not self._places:
            return []
        before, self.lines = self.lines, []
        offset, offsets, known = "0", [], 0
        for _, size, itemsize in self._places:
            offsets.append(offset)
            constant = value_of(size)
            if constant is not None and offset.isdigit():
                known += -(-constant * itemsize // _LINE) * _LINE
                offset = str(known)
                continue
            elements = self.let(f"mul i64 {self.length(size)}, {itemsize}")
            lines = self.let(f"and i64 {self.let(f'add i64 {elements}, {_LINE - 1}')}, -{_LINE}")
            offset = self.let(f"add i64 {offset}, {lines}")
        if offset.isdigit() and known <= _ON_STACK:
            work = self.let(f"alloca [{max(1, known)} x i8], align {_LINE}")
        else:
            work = self.allocate(offset)
        for (name, _, _), at in zip(self._places, offsets, strict=True):
            self.put(f"{name} = getelementptr inbounds i8, ptr {work}, i64 {at}")
        lines, self.lines = self.lines, before
        return lines

    def at(self, address: str, elements: str, itemsize: int) -> str:
        """The address of an element."""
        if elements == "0":
            return address
        offset = self.let(f"mul i64 {elements}, {itemsize}")
        return self.let(f"getelementptr i8, ptr {address}, i64 {offset}")

    def load(self, source: str, dtype: np.dtype) -> list[tuple[str, str]]:
        """Types and names of a number in memory, of both parts if it is complex."""
        kind, parts = llvm_type(dtype), []
        for k in range(2 if dtype.kind == "c" else 1):
            place = self.let(f"getelementptr inbounds {kind}, ptr {source}, i64 {k}")
            parts.append((kind, self.let(f"load {kind}, ptr {place}")))
        return parts

    def store(self, parts: Sequence[tuple[str, str]], target: str) -> None:
        """Store a number, in both parts if it is complex."""
        for k, (kind, value) in enumerate(parts):
            place = self.let(f"getelementptr inbounds {kind}, ptr {target}, i64 {k}")
            self.put(f"store {kind} {value}, ptr {place}")

    def copy(self, target: str, source: str, elements: str, itemsize: int) -> None:
        """Copy the elements of an array."""
        count = self.let(f"mul i64 {elements}, {itemsize}")
        self.put(
            f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {count}, i1 false)"
        )

    # ------------------------------------------------------------------------------------ calls

    def call_kernel(self, symbol: str, slots: Sequence[tuple[str, str]]) -> None:
        """Call a kernel with what its slots hold, as types and values."""
        memory = self.variable("i64", len(slots) + self.workspace)
        if self.workspace:  # the context lies before the first slot
            self.put(f"store ptr %_context, ptr {memory}")
            memory = self.let(f"getelementptr inbounds i64, ptr {memory}, i64 1")
        for k, (kind, value) in enumerate(slots):
            place = self.let(f"getelementptr inbounds i64, ptr {memory}, i64 {k}")
            if kind == "float":
                kind, value = "double", self.let(f"fpext float {value} to double")
            elif kind in ("i8", "i16", "i32"):
                kind, value = "i64", self.let(f"sext {kind} {value} to i64")
            self.put(f"store {kind} {value}, ptr {place}")
        failed = self.let(f"call i32 @{symbol}(ptr {memory})")
        self.leave_unless(self.let(f"icmp eq i32 {failed}, 0"), "2")

    def call(self, symbol: str, arguments: Sequence[tuple[str, str]]) -> None:
        """Call another such function; return with its status unless that is 0."""
        arguments = [*arguments, *[("ptr", "%_context")] * self.workspace]
        given = ", ".join([" ".join(argument) for argument in arguments])
        status = self.let(f"call i32 @{symbol}({given})")
        self.leave_unless(self.let(f"icmp eq i32 {status}, 0"), status)

    def text(self, parameters: Sequence[tuple[str, str]], name: str, linkage: str = "") -> str:
        """The function as a whole."""
        begin, last = [], ""
        if self.workspace and linkage:
            parameters = [*parameters, ("ptr", "%_context")]
        elif self.workspace:
            begin = ["  %_context = alloca [5 x i64], align 16"]
            begin += ["  call void @workspace.begin(ptr %_context, ptr %workspace)"]
            last = "  call void @workspace.end(ptr %_context, ptr %workspace)\n"
        given = ", ".join([" ".join(parameter) for parameter in parameters])
        memory = self._memory()
        end = "".join(self._blocks) + last
        body = "\n".join([*memory, *self.lines, "  @LEAVE@ 0"])
        body = body.replace("  @LEAVE@", f"{end}  ret i32")
        head = f"define {linkage}i32 @{name}({given}) #0 {{"
        return "\n".join([head, "_entry:", *begin, *self._variables, *self._checks, body, "}", ""])


class NativeModule:
    """A C entry with all that it calls.

    Attributes
    ----------
    texts
        Functions in LLVM's language, the kernels excepted.
    kernels
        By the names of their entries for slots.
    externals
        Functions that kernels call by symbols: Note [External functions] in ``linker``.
    threads
        In how many threads loops may run: Note [Teams] in ``native.team``.
    workspace
        Whether memory comes from a caller: Note [Workspaces] in ``native.workspace``.
    """

    def __init__(self, threads: int = 1, workspace: bool = False) -> None:
        self.threads, self.workspace = threads, workspace
        self.texts: list[str] = [_DEFINITIONS, *[WORKSPACE] * workspace]
        self.kernels: dict[str, Kernel] = {}
        self.externals: set[str] = set()
        self._names: dict[tuple[str, str], str] = {}

    def kernel(
        self, source: str, signature: str, externals: Iterable[str], functions: dict[str, Any]
    ) -> str:
        """The name of a kernel's entry; raises ``Unsupported`` if others compile it."""
        name = self._names.get((source, signature))
        if name is None:
            if functions:
                raise Unsupported("it calls functions that others have compiled")
            name = self._names[source, signature] = f"packed.k{len(self.kernels)}"
            self.kernels[name] = Kernel(
                "native", source, signature, self.threads > 1, True, functions
            )
            self.externals.update(externals)
        return name

    def own_externals(self) -> set[str]:
        """Those that are written into the module, for the workspace."""
        return {x for x in self.externals if self.workspace and not x.startswith("scipy.")}

    def identity(self) -> str:
        """All that decides its machine code, besides the compiler and the CPU."""
        parts = [f"{self.threads} {self.workspace}", *self.texts, *sorted(self.externals)]
        for kernel in self.kernels.values():
            parts += [library_digest(kernel.source), kernel.source, kernel.signature]
            parts.append(str(kernel.parallel))
        for external in self.externals:
            if not external.startswith("scipy."):
                parts.append(library_digest(f"import {external.partition(':')[0]}"))
        return "\0".join(parts)

    def text(self) -> str:
        """All functions; raises ``Unsupported`` for kernels that others have to compile."""
        texts, metadata = list(self.texts), 0
        parts = [NativeCode(k).translated(self.workspace) for k in self.kernels.values()]
        if self.workspace:
            with machine.targeting(machine.target()):  # in the process these may call BLAS
                parts += objects.external_modules(self.own_externals(), True)
        for number, text in enumerate(parts):
            own = {match[1] or match[2] for match in _DEFINED.finditer(text)}
            own -= {name for name in own if name.endswith(WITH_WORKSPACE)}
            text = _NAME.sub(
                lambda m, own=own, end=number: f"@{m[1]}.k{end}" if m[1] in own else m[0], text
            )
            first, numbers = metadata, [int(m[1]) for m in _METADATA.finditer(text)]
            text = _METADATA.sub(lambda m, first=first: f"!{first + int(m[1])}", text)
            metadata = max([first, *(first + n + 1 for n in numbers)])
            texts.append(_PUBLIC.sub("define private ", text))
        whole = re.sub(_DECLARED_HERE, "", "\n".join(texts))
        return with_team(whole, self.threads, machine.triple()) if self.threads > 1 else whole


_DEFINED = re.compile(r"(?m)^define\b[^\n@]*@([-\w.$]+)\(|^@([-\w.$]+) = (?!external\b)")
_DECLARED_HERE = rf"(?m)^declare [^\n]*{WITH_WORKSPACE}\(.*\n"
_METADATA = re.compile(r"!(\d+)\b")
_NAME = re.compile(r"@([-\w.$]+)")
_PUBLIC = re.compile(r"(?m)^define (?!private )")
_LINE, _ON_STACK = 64, 1 << 14
"""Bytes of a line of caches, and of a workspace that lies on the stack at most."""

_ENGINES: list[Any] = []


def load_entry(module: NativeModule, symbols: Mapping[str, int] = MappingProxyType({})) -> int:
    """Load ``@native`` of a module with what it calls, or compile it; return its address.

    The text has the names of ``symbols`` for addresses of this process, so that others have the
    same, and find its machine code on disk. It stays as long as the process: other machine code may
    hold the address.
    """
    from llvmlite import binding

    def compiled() -> bytes:
        declared = "".join([f"@{name} = external global [0 x i8]\n" for name in symbols])
        return machine.compile_ir(declared + module.text(), key.replace("-", "_"))

    def loaded(payload: bytes) -> int:
        _ENGINES.append(machine.new_engine())  # one for each, as symbols are
        return machine.load(payload, _ENGINES[-1])["native"]

    give_way()
    with KERNELS, deferred():
        for external in module.externals - module.own_externals():
            linker.link(external)
        key = kept_name("native", module.identity(), *symbols)
        for name, address in symbols.items():
            binding.add_symbol(name, address)
        return load_or_compile(key, loaded, compiled)[0]


def kept_name(name: str, *parts: str) -> str:
    """The name of a file that keeps machine code, which depends on these texts."""
    with open(__file__, "rb") as file:
        own = file.read()
    texts = [native_stamp(), *parts]
    return f"{name}-{sha256(own + chr(0).join(texts).encode()).hexdigest()[:24]}"


_NAN = "0x7FF8000000000000"
_ADAPTERS = {
    "one": ("double", "double %_t0, ptr %_data"),
    "several": ("double", "i32 %_count, ptr %_t, ptr %_data"),
    "filter": ("i32", "ptr %_window, i64 %_size, ptr %_result, ptr %_data"),
}
"""What a callback returns and takes: Note [Callbacks] in ``compiler.native.callbacks``."""


def adapter(form: str, arguments: Sequence[CArgument], name: str, entry: str) -> str:
    """The text of a function, a callback, that calls an entry.

    ``entry`` is its address or name. Where the status is not 0 the value is NaN.
    """
    result, parameters = _ADAPTERS[form]
    lines = [f"define {result} @{name}({parameters}) #0 {{", "_entry:"]
    lines += ["  %_value = alloca double", "  %_given = load i64, ptr %_data"]
    if form == "one":
        lines += [
            "  %_t = alloca double",
            "  store double %_t0, ptr %_t",
            "  %_size = add i64 1, 0",
        ]
    elif form == "several":
        lines.append("  %_size = sext i32 %_count to i64")
    failed = "ret i32 0" if form == "filter" else f"ret double {_NAN}"
    lines += [
        "  %_same = icmp eq i64 %_size, %_given",
        "  %_any = icmp eq i64 %_given, -1",
        "  %_fits = or i1 %_same, %_any",
        "  br i1 %_fits, label %_go, label %_leave",
        "_leave:",
        f"  {failed}",
        "_go:",
    ]
    values, number = [], 0
    leading = form != "filter"
    slots = itertools.count(1)
    for argument in arguments:
        if argument.role in ("result", "workspace"):
            values.append("ptr %_value" if argument.role == "result" else "ptr null")
            continue
        leading = leading and argument.role == "number" and argument.dtype == np.float64
        for kind, value in argument.parameters():
            place = f"%_s{next(slots)}"
            lines.append(f"  {place} = getelementptr inbounds i64, ptr %_data, i64 {place[3:]}")
            if leading:  # one of the numbers that are given, perhaps
                lines += [
                    f"  %_n{number} = icmp slt i64 {number}, %_size",
                    f"  %_t{number}_at = getelementptr double, ptr %_t, i64 {number}",
                    f"  %_p{number} = select i1 %_n{number}, ptr %_t{number}_at, ptr {place}",
                ]
                place, number = f"%_p{number}", number + 1
            lines.append(f"  {value} = load {kind}, ptr {place}")
            values.append(f"{kind} {value}")
    if form == "filter":  # its first input, whose length follows if that is an argument
        values[0] = "ptr %_window"
        if arguments[1].role == "length":
            values[1] = "i64 %_size"
    lines += [
        f"  %_status = call i32 {entry}({', '.join(values)})",
        "  %_ok = icmp eq i32 %_status, 0",
        "  %_made = load double, ptr %_value",
    ]
    if form == "filter":
        lines += [
            "  store double %_made, ptr %_result",
            "  %_out = zext i1 %_ok to i32",
            "  ret i32 %_out",
        ]
    else:
        lines += [
            f"  %_out = select i1 %_ok, double %_made, double {_NAN}",
            "  ret double %_out",
        ]
    return "\n".join([*lines, "}", ""])
