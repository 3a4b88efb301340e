"""Calls of functions of ``ng.kernel`` and of their sweeps as machine code.

Note [Symbolic calls of texts]
------------------------------
What a call does with arrays (Note [Calls of texts] in ``codegen.adjoint.text_calls``) is written
here, not done: an array is an address and lengths, and a length that follows from integers of the
arguments is computed by instructions, as is whether the sweep of a seed has to run again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.compiled import Text
from numgrad.codegen.adjoint.text_calls import TextCalls
from numgrad.codegen.c_entry import EntryWriter, NativeModule, number_parts
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.native.signature import llvm_type
from numgrad.codegen.nests.terms import count
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.sizes import terms_of
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradKernelError

_ON_STACK = 256
"""Bytes of an array of a constant number of elements that lies on the stack."""


class SymbolicInteger:
    """An integer that is known when the machine code runs."""

    def __init__(self, writer: EntryWriter, text: str) -> None:
        self.writer, self.text = writer, text

    def _of(self, instruction: str, other: Any, turned: bool = False) -> SymbolicInteger:
        if not isinstance(other, SymbolicInteger | int | np.integer):
            raise Unsupported("a length that follows from numbers that are no integers")
        a, b = self.text, integer_text(other)
        a, b = (b, a) if turned else (a, b)
        return SymbolicInteger(self.writer, self.writer.let(f"{instruction} i64 {a}, {b}"))

    def _divided(self, a: str, b: str) -> SymbolicInteger:
        quotient = self.writer.let(f"call i64 @quotient(i64 {a}, i64 {b})")
        return SymbolicInteger(self.writer, quotient)

    def _compared(self, how: str, other: Any) -> SymbolicInteger:
        flag = self.writer.let(f"icmp {how} i64 {self.text}, {integer_text(other)}")
        return SymbolicInteger(self.writer, self.writer.let(f"zext i1 {flag} to i64"))

    def _selected(self, how: str, other: Any) -> SymbolicInteger:
        b = integer_text(other)
        flag = self.writer.let(f"icmp {how} i64 {self.text}, {b}")
        text = self.writer.let(f"select i1 {flag}, i64 {self.text}, i64 {b}")
        return SymbolicInteger(self.writer, text)

    def __add__(self, other: Any) -> SymbolicInteger:
        return self._of("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> SymbolicInteger:
        return self._of("sub", other)

    def __rsub__(self, other: Any) -> SymbolicInteger:
        return self._of("sub", other, True)

    def __mul__(self, other: Any) -> SymbolicInteger:
        return self._of("mul", other)

    __rmul__ = __mul__

    def __neg__(self) -> SymbolicInteger:
        return 0 - self

    def __floordiv__(self, other: Any) -> SymbolicInteger:
        return self._divided(self.text, integer_text(other))

    def __rfloordiv__(self, other: Any) -> SymbolicInteger:
        return self._divided(integer_text(other), self.text)

    def __mod__(self, other: Any) -> SymbolicInteger:
        return self - self // other * other

    def __and__(self, other: Any) -> SymbolicInteger:
        return self._of("and", other)

    def __lshift__(self, other: Any) -> SymbolicInteger:
        return self._of("shl", other)

    def __rlshift__(self, other: Any) -> SymbolicInteger:
        return self._of("shl", other, True)

    def __lt__(self, other: Any) -> SymbolicInteger:
        return self._compared("slt", other)

    def __le__(self, other: Any) -> SymbolicInteger:
        return self._compared("sle", other)

    def __gt__(self, other: Any) -> SymbolicInteger:
        return self._compared("sgt", other)

    def __ge__(self, other: Any) -> SymbolicInteger:
        return self._compared("sge", other)

    def __eq__(self, other: object) -> Any:
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("ne", other)

    __hash__ = None  # pyright: ignore

    def __bool__(self) -> bool:
        raise Unsupported("a length that depends on a comparison of numbers")

    def least(self, other: Any) -> SymbolicInteger:
        """The smaller one."""
        return self._selected("slt", other)

    def most(self, other: Any) -> SymbolicInteger:
        """The larger one."""
        return self._selected("sgt", other)

    def whole(self) -> SymbolicInteger:
        """Itself."""
        return self


def integer_text(value: Any) -> str:
    """An integer in LLVM's language."""
    return value.text if isinstance(value, SymbolicInteger) else str(int(value))


@dataclass
class SymbolicNumber:
    """A number, by types and names of its parts."""

    parts: list[tuple[str, str]]


@dataclass
class SymbolicArray:
    """An array in memory; a number if it has no axes."""

    writer: EntryWriter
    address: str
    shape: tuple[Any, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def item(self) -> Any:
        """The number that it is."""
        parts = self.writer.load(self.address, self.dtype)
        if self.dtype.kind not in "iub":
            return SymbolicNumber(parts)
        ((kind, name),) = parts
        if kind != "i64":
            extend = "sext" if self.dtype.kind == "i" else "zext"
            name = self.writer.let(f"{extend} {kind} {name} to i64")
        return SymbolicInteger(self.writer, name)

    def elements(self) -> str:
        """How many elements it has."""
        total: Any = 1
        for n in self.shape:
            total = total * n
        return integer_text(total)


class NativeTextCalls(TextCalls):
    """Note [Symbolic calls of texts]."""

    def __init__(
        self, writer: EntryWriter, module: NativeModule, constant: Callable[[np.ndarray], str]
    ) -> None:
        self.writer, self.module, self.constant = writer, module, constant

    def make(self, maker: str, shape: Sequence[Any], dtype: np.dtype) -> Any:
        """Memory on the stack if it is known to be small."""
        writer, array = self.writer, SymbolicArray(self.writer, "", tuple(shape), np.dtype(dtype))
        size = array.elements()
        if size.isdigit() and int(size) * array.dtype.itemsize <= _ON_STACK:
            nbytes = str(int(size) * array.dtype.itemsize)
            array.address = writer.variable("i8", max(1, int(nbytes)))
        else:
            nbytes = writer.let(f"mul i64 {size}, {array.dtype.itemsize}")
            array.address = writer.allocate(nbytes)
        if maker == "zeros":
            writer.put(
                f"call void @llvm.memset.p0.i64(ptr {array.address}, i8 0, i64 {nbytes}, i1 false)"
            )
        elif maker != "empty":
            raise Unsupported(f"an array made by {maker}")
        return array

    def copy(self, array: Any) -> Any:
        """Copy an argument."""
        result = self.make("empty", array.shape, array.dtype)
        self.fill(result, array)
        return result

    def fill(self, array: Any, value: Any) -> None:
        """Copy an array of the same shape, or a number."""
        if not isinstance(value, SymbolicArray):
            kind = array.dtype.type(value)
            self.writer.store(number_parts(kind, array.dtype), array.address)
            return
        self._check_like(array, value)
        self.writer.copy(array.address, value.address, array.elements(), array.dtype.itemsize)

    def _check_like(self, array: SymbolicArray, value: SymbolicArray) -> None:
        is_number = not value.ndim and array.elements() == "1"
        if value.dtype != array.dtype or not (is_number or value.ndim == array.ndim):
            raise Unsupported("a derivative of another dtype or shape than what it is of")

    def _parts_of(self, array: SymbolicArray) -> tuple[str, str]:
        """The type of the parts of elements, and how many there are."""
        size = array.elements()
        if array.dtype.kind == "c":
            size = self.writer.let(f"mul i64 {size}, 2")
        return llvm_type(array.dtype), size

    def add(self, array: Any, value: Any) -> None:
        """Add an array of the same shape."""
        self._check_like(array, value)
        writer, (kind, size) = self.writer, self._parts_of(array)
        k, loop = writer.each(size)
        place, other = (
            writer.let(f"getelementptr {kind}, ptr {a}, i64 {k}")
            for a in (array.address, value.address)
        )
        a, b = (writer.let(f"load {kind}, ptr {x}") for x in (place, other))
        writer.put(f"store {kind} {writer.let(f'fadd {kind} {a}, {b}')}, ptr {place}")
        writer.end(loop)

    def contiguous(self, array: Any) -> Any:
        """The place of a captured array."""
        array = np.ascontiguousarray(array)
        return SymbolicArray(self.writer, self.constant(array), array.shape, array.dtype)

    def number(self, array: Any) -> Any:
        """The same memory without axes."""
        return SymbolicArray(self.writer, array.address, (), array.dtype)

    def row(self, array: Any) -> Any:
        """The same memory with an axis."""
        return SymbolicArray(self.writer, array.address, (1,), array.dtype)

    def length(self, value: Any) -> Any:
        """A length, 0 at least."""
        return value.most(0) if isinstance(value, SymbolicInteger) else super().length(value)

    def trips(self, low: Any, high: Any, step: Any) -> Any:
        """The number of steps of a loop."""
        if isinstance(step, SymbolicInteger):
            raise Unsupported("a loop whose step is an argument")
        if not any(isinstance(n, SymbolicInteger) for n in (low, high)):
            return super().trips(low, high, step)
        distance = high - low if step > 0 else low - high
        return self.length((distance + (abs(step) - 1)) // abs(step))

    def holds(self, condition: Any) -> bool:
        """Leave with a status if a condition is false."""
        flag = self.writer.let(f"icmp ne i64 {integer_text(condition)}, 0")
        self.writer.leave_unless(flag, "3")
        return True

    def any(self, array: Any) -> bool:
        """Leave with a status if an element is not zero."""
        writer, (kind, size) = self.writer, self._parts_of(array)
        k, loop = writer.each(size)
        value = writer.let(
            f"load {kind}, ptr {writer.let(f'getelementptr {kind}, ptr {array.address}, i64 {k}')}"
        )
        writer.leave_unless(writer.let(f"icmp eq {kind} {value}, 0"), "3")
        writer.end(loop)
        return False

    def run(self, text: Text, values: Sequence[Any]) -> None:
        """Call the kernel of a text."""
        source = text.whole[0] if self.module.threads > 1 else text.serial
        symbol = self.module.kernel(source, text.signature, text.whole[1], {})
        slots: list[tuple[str, str]] = []
        for (dtype, rank), value in zip(text.kinds, values, strict=True):
            if rank:
                shape = value.shape or (1,)
                slots.append(("ptr", value.address))
                slots += [("i64", integer_text(n)) for n in shape]
            elif isinstance(value, SymbolicInteger):
                slots.append(("i64", value.text))
            elif isinstance(value, SymbolicNumber):
                slots += value.parts
            else:
                slots += number_parts(dtype.type(value), dtype)
        self.writer.call_kernel(symbol, slots)

    def scaled(self, arrays: Sequence[Any], seed: Any, again: Callable[[], list[Any]]) -> list[Any]:
        """Decide when it runs whether the sweep runs again."""
        writer = self.writer
        ((kind, number),) = writer.load(seed.address, seed.dtype)
        labels = (writer.label(x) for x in ("judge", "scale", "again", "done"))
        judge, scale, repeat, done = labels
        one = writer.let(f"fcmp oeq {kind} {number}, 1.0")
        writer.put(f"br i1 {one}, label %{done}, label %{judge}")
        writer.open(judge)
        finite = "true"
        for array in arrays:
            own, size = self._parts_of(array)
            total = writer.variable(own)
            writer.put(f"store {own} 0.0, ptr {total}")
            k, loop = writer.each(size)
            place = writer.let(f"getelementptr {own}, ptr {array.address}, i64 {k}")
            before = writer.let(f"load {own}, ptr {total}")
            after = writer.let(f"fadd {own} {before}, {writer.let(f'load {own}, ptr {place}')}")
            writer.put(f"store {own} {after}, ptr {total}")
            writer.end(loop)
            value = writer.let(f"load {own}, ptr {total}")
            nothing = writer.let(f"fsub {own} {value}, {value}")  # NaN of what is not finite
            finite = writer.let(f"and i1 {finite}, {writer.let(f'fcmp oeq {own} {nothing}, 0.0')}")
        writer.put(f"br i1 {finite}, label %{scale}, label %{repeat}")
        writer.open(scale)
        for array in arrays:
            own, size = self._parts_of(array)
            factor = number
            if own != kind:
                factor = writer.let(
                    f"fp{'trunc' if own == 'float' else 'ext'} {kind} {number} to {own}"
                )
            k, loop = writer.each(size)
            place = writer.let(f"getelementptr {own}, ptr {array.address}, i64 {k}")
            value = writer.let(f"fmul {own} {writer.let(f'load {own}, ptr {place}')}, {factor}")
            writer.put(f"store {own} {value}, ptr {place}")
            writer.end(loop)
        writer.put(f"br label %{done}")
        writer.open(repeat)
        for array, other in zip(arrays, again(), strict=True):
            writer.copy(array.address, other.address, array.elements(), array.dtype.itemsize)
        writer.begin(done)
        return list(arrays)


def call_of_kernel(owner: Any, node: TracedNode) -> None:
    """Write what a function of ``ng.kernel``, or a sweep or derivative of one, computes."""
    op: Any = node.op
    kernel = op if hasattr(op, "definition") else op.kernel
    writer, of = owner.writer, owner.program.expansion.of
    program = copy.copy(kernel.program(node.inputs[: kernel.count]))
    program.calls = NativeTextCalls(writer, owner.steps.module, owner.steps.constant)
    args: list[Any] = []
    for value in node.inputs:
        term = of[value]
        if value.dtype == object:
            args.append(owner.states[term.number])
            continue
        lengths = [terms_of(owner.sizes.resolve(n)) for n in value.shape]
        shape = [SymbolicInteger(writer, writer.length(n)) for n in lengths]
        args.append(SymbolicArray(writer, owner.place(term), tuple(shape), value.dtype))
    try:
        results = op.computed_by(program, args, node.params)
    except (TypeError, NumgradKernelError) as error:
        raise Unsupported("a length of it follows from numbers in other ways than sums") from error
    for value, result in zip(node.outputs, results, strict=True):
        term = of[value]
        if value.dtype == object:
            owner.states[term.number] = result
            continue
        elements = writer.length(count([terms_of(owner.sizes.resolve(n)) for n in value.shape]))
        writer.copy(owner.result(term), result.address, elements, value.dtype.itemsize)
