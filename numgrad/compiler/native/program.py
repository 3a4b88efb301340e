"""A compiled program as a C function of pointers, numbers and lengths.

Note [Native programs]
----------------------
A program without segments is one kernel; what its Python function does around that, lengths,
copies, constants, is written as a C entry (Note [C entries] in ``codegen.c_entry``). The results
of the function are copies, so that none of them is an argument, or a view of another result.
Captured arrays are copied too: they are what they were when the function was made.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from numgrad.codegen.c_entry import (
    CArgument,
    EntryWriter,
    data_constant,
    load_entry,
    number_parts,
)
from numgrad.codegen.compile import Kernel
from numgrad.codegen.dtypes import BOOL, INT64
from numgrad.codegen.native import objects
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.nests.polynomial import Length, constant, text_of
from numgrad.codegen.nests.terms import BUFFER, CONSTANT, SCALAR, SIZE, Term, count
from numgrad.compiler.call.signature import Result
from numgrad.compiler.graph.sizes import terms_of
from numgrad.compiler.run.program import KernelProgram, stored_as
from numgrad.compiler.run.specialise import Specialisation
from numgrad.compiler.run.steps import KernelStep, Segment
from numgrad.core.tree import map_leaves, paths
from numgrad.errors import NumgradNotImplementedError

_LASTING: list[np.ndarray] = []
"""Arrays that machine code reads, which stays as long as the process."""


def lasting(array: np.ndarray) -> int:
    """The address of a copy that stays."""
    _LASTING.append(np.array(array, order="C"))
    return _LASTING[-1].ctypes.data


_WORDS = (
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while bool true false delete new private protected public "
    "template this throw catch namespace using virtual operator friend explicit export"
)
_RESERVED = frozenset(keyword.kwlist).union(_WORDS.split(" "))
"""Words of C, C++ and Python."""


def with_copied_results(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose results are copies: Note [Native programs]."""

    @functools.wraps(function)
    def copied(*args: Any, **kwargs: Any) -> Any:
        return map_leaves(_copied, function(*args, **kwargs))

    return copied


def _copied(leaf: Any) -> Any:
    """A copy of an array; a number of Python stays one."""
    array = leaf if isinstance(leaf, np.ndarray) else getattr(leaf, "_array", None)
    return leaf if array is None or getattr(array, "immutable", False) else leaf.copy()


class Port(NamedTuple):
    """An input or output; ``shape`` is None for a number."""

    name: str
    path: str
    dtype: np.dtype
    shape: tuple[Length, ...] | None

    @property
    def size(self) -> Length:
        """The number of elements."""
        return count(self.shape or ())


class Returned(NamedTuple):
    """A result of a function.

    Attributes
    ----------
    term, stored
        What it is, and what is stored for it: Note [Native programs].
    weak
        Whether Python gets a number of its own.
    """

    term: Term
    stored: Term
    weak: bool


class NativeProgram:
    """The C entry of a specialisation.

    Parameters
    ----------
    specialisation
        A function that was compiled, of copied results.
    arrays
        What its program gets for the examples.
    fixed
        Whether lengths are those of the examples.

    Attributes
    ----------
    inputs, outputs
        What the caller passes, in the order of the leaves of the arguments, and what comes out.
    returned
        For each leaf of the results what it is, None where it is a constant.
    axes
        By the number of an axis that is an argument, where its length is found: an input and an
        axis of it.
    arguments
        Those of the C function.
    relations
        Relations of lengths that the entry checks.
    """

    def __init__(
        self, specialisation: Specialisation, arrays: Sequence[Any], fixed: bool, name: str
    ) -> None:
        self.name = identifier(name, set())
        self.layout = specialisation.layout
        program = specialisation.program
        assert isinstance(program, KernelProgram)
        self.program, self.graph, self.sizes = program, program.graph, program.graph.sizes
        self._check()
        self.inputs: list[Port] = []
        self.arguments: list[CArgument] = []
        self.axes: dict[int, tuple[int, int]] = {}
        self.lengths: dict[int, int] = {}
        self.captured: dict[str, np.ndarray] = {}
        """Copies of captured arrays by their names in the entry."""
        self._sources: list[Any] = []
        """For each input of the graph its address, or the parts of a number."""
        texts = self._read_inputs(arrays, fixed)
        self.writer = EntryWriter(texts)
        relations = [] if fixed else self.sizes.relations()
        self.relations = [(r.sign, r.left, r.right) for r in relations]
        # axes of 0 or 1 elements, which broadcast, are traced by themselves
        self.relations += [(">=", (((("axis", k),), 1),), constant(2)) for k in self.axes]
        self.returned = [self._returned(result) for result in self.layout.results]
        self.outputs = list(self._ports())
        self.arguments += [
            CArgument(o.name, o.dtype, "result", len(o.shape or ())) for o in self.outputs
        ]
        for relation in self.relations:
            self.writer.require(*relation)
        self._write()
        self.address = self._load()

    # ---------------------------------------------------------------------------- what is refused

    def _check(self) -> None:
        layout = self.layout
        for step in self.program.steps:
            if isinstance(step, Segment):
                where = f", {step.node.line}" if step.node.line else ""
                self._refuse(
                    f"{step.node.name} runs outside of its kernel{where}; leave it to the caller, "
                    "or write it with operations that report() shows in loops"
                )
        if layout.writes or layout.touched or layout.gradients:
            self._refuse("it writes to its arguments or to what is around it; return what it wrote")
        if any(r.views is not None for r in layout.results):
            self._refuse("it returns a view of an array; return a copy")

    def _refuse(self, reason: str) -> NoReturn:
        raise NumgradNotImplementedError(f"native: {self.name} cannot leave Python: {reason}")

    # ---------------------------------------------------------------------------------- arguments

    def _read_inputs(self, arrays: Sequence[Any], fixed: bool) -> dict[int, str]:
        """Note inputs and C arguments; return what the length of each axis is."""
        texts: dict[int, str] = {}
        used: set[str] = set()
        entries = list(zip(self.layout.inputs, self.graph.inputs, arrays, strict=True))
        for entry, value, array in entries:
            if entry.leaf is None or fixed:  # lengths that no caller chooses
                for n, length in zip(value.shape, np.shape(array), strict=True):
                    symbol = self.sizes.number(self.sizes.resolve(n))
                    if symbol is not None:
                        self.lengths[symbol] = length
        texts.update((symbol, str(length)) for symbol, length in self.lengths.items())
        for entry, value, array in entries:
            array = np.asarray(array, value.dtype)
            shape = [terms_of(self.sizes.resolve(n)) for n in value.shape]
            given = entry.leaf is not None
            number = len(self.inputs)
            name = identifier(entry.name, used) if given else ""
            new = []
            for axis in range(len(shape) if given else 0):
                symbol = self.sizes.number(self.sizes.resolve(value.shape[axis]))
                if symbol is None or symbol in self.lengths:
                    continue
                self.lengths[symbol] = array.shape[axis]
                self.axes[symbol] = number, axis
                stem = f"{name}_length{axis}" if len(shape) > 1 else f"{name}_length"
                new.append((symbol, identifier(stem, used)))
            if not given:
                self._sources.append(self._constant(array, bool(shape)))
                continue
            is_array = bool(shape)
            port = Port(name, entry.name, value.dtype, tuple(shape) if is_array else None)
            self.inputs.append(port)
            argument = CArgument(name, value.dtype, "array" if is_array else "number", len(shape))
            self.arguments.append(argument)
            self._sources.append(f"%{name}" if is_array else argument.parameters())
            for symbol, text in new:
                self.arguments.append(CArgument(text, INT64, "length"))
                texts[symbol] = f"%{text}"
        return texts

    def _constant(self, array: np.ndarray, is_array: bool) -> Any:
        """The name of a copy of a captured array, or a captured number."""
        if not is_array:
            return number_parts(array[()], array.dtype)
        name = f"@captured.{len(self.captured)}"
        self.captured[name] = np.array(array, order="C")
        return name

    def _ports(self) -> Iterator[Port]:
        """The results that are numbers or arrays."""
        used = {argument.name for argument in self.arguments}
        listed = paths(self.layout.nesting, "result")
        for path, returned in zip(listed, self.returned, strict=True):
            if returned is not None:
                term = returned.term
                yield Port(identifier(path, used), path, term.dtype, tuple(term.shape) or None)

    def _returned(self, result: Result) -> Returned | None:
        """What a result is; None if that is a constant such as None or a string."""
        while result.same is not None:
            result = self.layout.results[result.same]
        expansion = self.program.expansion
        if result.size is not None:
            term = expansion.terms.size(terms_of(result.size), INT64)
            return Returned(term, term, True)
        if result.origin is not None:
            term = expansion.of[result.origin]
            return Returned(term, term, result.origin.weak)
        if result.number is None or result.value is None:
            return None
        roots = [expansion.of[v] for v in self.graph.roots()]
        stored = stored_as(roots)[result.number]
        return Returned(roots[result.number], stored, result.value.weak)

    # --------------------------------------------------------------------------------- the entry

    def _write(self) -> None:
        """Write the call of the kernel, and what is stored besides."""
        writer = self.writer
        places: dict[int, str] = {}
        later: list[tuple[Term, Port]] = []
        stored = [r.stored for r in self.returned if r is not None]
        for port, term in zip(self.outputs, stored, strict=True):
            if term.op in (BUFFER, SCALAR, CONSTANT, SIZE) or term.number in places:
                later.append((term, port))
            else:
                places[term.number] = f"%{port.name}"
        self.step = next((s for s in self.program.steps if isinstance(s, KernelStep)), None)
        if self.step is not None:
            self._call(self.step, places)
        for term, port in later:
            target = f"%{port.name}"
            if term.op == SIZE:
                writer.store([("i64", writer.length(term.detail))], target)
            elif term.op == CONSTANT:
                writer.store(
                    number_parts(np.asarray(term.detail, term.dtype)[()], term.dtype), target
                )
            elif term.op == SCALAR:
                writer.store(self._sources[term.detail], target)
            else:
                source = self._sources[term.detail] if term.op == BUFFER else places[term.number]
                writer.copy(target, source, port.size, port.dtype)

    def _call(self, step: KernelStep, places: dict[int, str]) -> None:
        writer, written = self.writer, step.written
        checks = []
        for term in written.results:
            if term.number not in places:  # whether an operation refuses its operands
                assert term.dtype == BOOL
                assert not term.shape
                places[term.number] = writer.let("alloca i64")
                checks.append(places[term.number])
        slots: list[tuple[str, str]] = []
        for term in (*written.arrays, *written.results):
            source = places[term.number] if term.number in places else self._sources[term.detail]
            slots.append(("ptr", source))
            slots += [("i64", writer.length(n)) for n in term.shape or (constant(1),)]
        for term in written.scalars:
            slots += self._sources[term.detail]
        slots += [("i64", writer.lengths[int(name[1:])]) for name in written.lengths]
        writer.call(slots)
        for place in checks:
            failed = writer.let(f"load i8, ptr {place}")
            writer.leave_unless(writer.let(f"icmp eq i8 {failed}, 0"), 3)

    @cached_property
    def kernel(self) -> Kernel | None:
        """The kernel that the entry calls, if any."""
        if self.step is None:
            return None
        written = self.step.written
        source, emitter = written.source(parallel=False), written.emitter
        return Kernel(self.step.name, source, written.signature(), False, True, emitter.namespace)

    @property
    def externals(self) -> Collection[str]:
        """The kernels that this one calls."""
        return () if self.step is None else self.step.written.emitter.externals

    def _load(self) -> int:
        text = self.writer.text(self.arguments)
        for name, array in self.captured.items():
            text = re.sub(rf"{name}\b", f"inttoptr (i64 {lasting(array)} to ptr)", text)
        try:
            return load_entry(text, self.kernel, self.externals)
        except Unsupported as reason:
            self._refuse(str(reason))

    def modules(self, symbol: str) -> list[str]:
        """LLVM's language of the entry, under a name, and of all that it calls, for the target."""
        text = self.writer.text(self.arguments).replace("@native(", f"@{symbol}(")
        for name, array in self.captured.items():
            text += data_constant(name, array)
        try:
            if self.kernel is not None:
                text = f"{objects.kernel_module(self.kernel)}\n{text}"
            return [text, *objects.external_modules(self.externals)]
        except Unsupported as reason:
            self._refuse(str(reason))

    # -------------------------------------------------------------------------------- description

    @property
    def about(self) -> dict[str, Any]:
        """The signature, as ``ExportedFunction`` reads it."""
        names = {k: text.removeprefix("%") for k, text in self.writer.lengths.items()}

        def text(terms: Length) -> str:
            return text_of(terms, names.__getitem__)

        def listed(ports: Sequence[Port]) -> list[dict[str, Any]]:
            return [
                {
                    "name": p.name,
                    "path": p.path,
                    "dtype": p.dtype.name,
                    "shape": None if p.shape is None else list(map(text, p.shape)),
                }
                for p in ports
            ]

        outputs = listed(self.outputs)
        weak = [r.weak for r in self.returned if r is not None]
        for output, python in zip(outputs, weak, strict=True):
            output["python"] = python
        return {
            "name": self.name,
            "arguments": [
                {"name": a.name, "dtype": a.dtype.name, "role": a.role, "rank": a.rank}
                for a in self.arguments
            ],
            "inputs": listed(self.inputs),
            "outputs": outputs,
            "lengths": {names[k]: list(place) for k, place in self.axes.items()},
            "relations": [[text(left), sign, text(right)] for sign, left, right in self.relations],
        }


def identifier(path: str, used: set[str]) -> str:
    """A name in C for a path such as ``x[0]['w']``, that is not used yet."""
    stem = re.sub(r"\W+", "_", path).strip("_") or "x"
    stem = f"x{stem}" if stem[0].isdigit() else stem
    name, number = stem, 1
    while name in used or name in _RESERVED:
        number += 1
        name = f"{stem}_{number}"
    used.add(name)
    return name
