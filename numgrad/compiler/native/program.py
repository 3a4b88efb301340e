"""A compiled program as a C function of pointers, numbers and lengths.

Note [Native programs]
----------------------
What the Python function of a program does around its kernels, loops and branches is written as a
C entry (Notes [C entries] in ``codegen.c_entry``, [Steps in machine code] in ``steps``). The
results of the function are copies, so that none of them is an argument, or a view of another
result. Captured arrays are copied too: they are what they were when the function was made.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np

from numgrad.codegen.c_entry import (
    CArgument,
    EntryWriter,
    adapter,
    data_constant,
    load_entry,
    number_parts,
)
from numgrad.codegen.dtypes import INT64
from numgrad.codegen.native import objects
from numgrad.codegen.native.ir import Unsupported
from numgrad.codegen.nests.polynomial import Length, atoms_of, constant, text_of
from numgrad.codegen.nests.terms import Term, count
from numgrad.compiler.call.signature import Result
from numgrad.compiler.graph.graph import TracedNode
from numgrad.compiler.graph.sizes import terms_of
from numgrad.compiler.native.names import user_name
from numgrad.compiler.native.steps import NativeSteps, ProgramWriter
from numgrad.compiler.run.program import KernelProgram, stored_as
from numgrad.compiler.run.specialise import Specialisation
from numgrad.core.tree import map_leaves, paths
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError, NumgradValueError

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
    "template this throw catch namespace using virtual operator friend explicit export asm and_eq "
    "bitand bitor compl not_eq or_eq xor xor_eq const_cast dynamic_cast reinterpret_cast "
    "static_cast decltype alignas alignof constexpr noexcept nullptr mutable protected typeid "
    "typename wchar_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t "
    "intptr_t uintptr_t NULL EOF errno stdin stdout stderr INFINITY NAN linux unix"
)
_RESERVED = frozenset(keyword.kwlist).union(_WORDS.split(" "))
"""Words of C, C++ and Python, types and macros of C's headers."""


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


MOST_THREADS = 1024


def check_options(threads: Any, workspace: Any) -> None:
    """Raise unless these are a number of threads and a flag that go together."""
    if not isinstance(workspace, bool):
        raise NumgradTypeError(f"native: workspace is True or False, got {workspace!r}")
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer):
        raise NumgradTypeError(f"native: threads is an integer, got {threads!r}")
    if not 1 <= threads <= MOST_THREADS:
        raise NumgradValueError(f"native: threads is from 1 to {MOST_THREADS}, got {threads}")
    if workspace and threads > 1:
        raise NumgradValueError(
            "native: a function with a workspace allocates nothing, and threads have memory of "
            "their own; threads=1 or workspace=False"
        )


class PortTerms(NamedTuple):
    """An input or output; ``shape`` is None for a number."""

    name: str
    path: str
    dtype: np.dtype
    shape: tuple[Length, ...] | None


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
    threads
        In how many threads large loops may run: Note [Teams] in ``codegen.native.team``.
    workspace
        Whether the caller may give memory: Note [Workspaces] in ``codegen.native.workspace``.

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
        self, specialisation: Specialisation, arrays: Sequence[Any], fixed: bool, name: str,
        threads: int = 1, workspace: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.free = identifier(name, set()), not fixed
        self.layout = specialisation.layout
        program = specialisation.program
        assert isinstance(program, KernelProgram)
        self.program, self.graph, self.sizes = program, program.graph, program.graph.sizes
        self._check()
        self.inputs: list[PortTerms] = []
        self.arguments: list[CArgument] = []
        self.axes: dict[int, tuple[int, int]] = {}
        self.lengths: dict[int, int] = {}
        self.captured: dict[str, np.ndarray] = {}
        """Copies of captured arrays by their names in the entry."""
        self._sources: list[Any] = []
        """For each input of the graph its address, or the parts of a number."""
        texts = self._read_inputs(arrays, fixed)
        self.writer = EntryWriter(texts, workspace)
        steps = NativeSteps(
            self._refused, lambda array: self._constant(array, True), int(threads), workspace
        )
        self.module = steps.module
        relations = [] if fixed else self.sizes.relations()
        self.relations = [
            (r.sign, r.left, r.right)
            for r in relations  # lengths that are found while it runs suit any number
            if {a[1] for a in atoms_of(r.left) | atoms_of(r.right)} <= texts.keys()
        ]
        # axes of 0 or 1 elements, which broadcast, are traced by themselves
        self.relations += [(">=", (((("axis", k),), 1),), constant(2)) for k in self.axes]
        self.returned = [self._returned(result) for result in self.layout.results]
        self.outputs = list(self._ports())
        self.arguments += [
            CArgument(o.name, o.dtype, "result", len(o.shape or ())) for o in self.outputs
        ]
        if workspace:
            self.arguments.append(CArgument("workspace", INT64, "workspace"))
        for relation in self.relations:
            self.writer.require(*relation)
        self._write(steps)

    # ---------------------------------------------------------------------------- what is refused

    def _check(self) -> None:
        layout = self.layout
        leaves = [layout.inputs[k].leaf for k in layout.writes]
        donated = all(leaf is not None and leaf.donated for leaf in leaves)
        if not donated or layout.touched or layout.gradients or layout.state is not None:
            self._refuse(
                "it writes to what is around it, or to an argument that is not donated (donate=...)"
            )
        if any(r.views is not None for r in layout.results):
            self._refuse("it returns a view of an array; return a copy")

    def _refuse(self, reason: str) -> NoReturn:
        raise NumgradNotImplementedError(f"native: {self.name} cannot leave Python: {reason}")

    def _refused(self, node: TracedNode | None, reason: str) -> NumgradNotImplementedError:
        """The error of an operation that has no form in machine code."""
        where = f" at {node.line}" if node is not None and node.line else ""
        what = "its kernel" if node is None else user_name(node)
        return NumgradNotImplementedError(
            f"native: {self.name} cannot leave Python: {what}{where} {reason}"
        )

    # ---------------------------------------------------------------------------------- arguments

    def _read_inputs(self, arrays: Sequence[Any], fixed: bool) -> dict[int, str]:
        """Note inputs and C arguments; return what the length of each axis is."""
        texts: dict[int, str] = {}
        used = {"workspace"}
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
            port = PortTerms(name, entry.name, value.dtype, tuple(shape) if is_array else None)
            self.inputs.append(port)
            role = "array" if is_array else "number"
            role = "inout" if len(self._sources) in self.layout.writes else role
            argument = CArgument(name, value.dtype, role, len(shape))
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

    def _ports(self) -> Iterator[PortTerms]:
        """The results that are numbers or arrays."""
        used = {argument.name for argument in self.arguments}
        listed = paths(self.layout.nesting, "result")
        for path, returned in zip(listed, self.returned, strict=True):
            if returned is not None:
                term = returned.term
                yield PortTerms(identifier(path, used), path, term.dtype, tuple(term.shape) or None)

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

    def _write(self, steps: NativeSteps) -> None:
        """Write the entry: the steps, and what is stored besides."""
        stored = [r.stored for r in self.returned if r is not None]
        results = [(term, f"%{port.name}") for port, term in zip(self.outputs, stored, strict=True)]
        roots = stored_as([self.program.expansion.of[v] for v in self.graph.roots()])
        writer, copies = self.writer, []
        for position, term in zip(
            self.layout.writes, roots[len(self.graph.outputs) :], strict=True
        ):  # which nothing reads any more once all is computed
            size = count(term.shape)
            place = writer.reserve(size, term.dtype.itemsize)
            results.append((term, place))
            copies.append((self._sources[position], place, size, term.dtype.itemsize))
        ProgramWriter(steps, self.program, writer, self._sources).write(results)
        for target, place, size, itemsize in copies:
            writer.copy(target, place, writer.length(size), itemsize)
        parameters = [p for argument in self.arguments for p in argument.parameters()]
        self.module.texts.append(self.writer.text(parameters, "native"))

    def _text(self) -> str:
        """The entry with its kernels, for the CPU that code is made for."""
        try:
            return self.module.text()
        except Unsupported as reason:
            self._refuse(str(reason))

    @cached_property
    def address(self) -> int:
        """Where the entry is, once it is loaded."""
        symbols = {name[1:]: lasting(array) for name, array in self.captured.items()}
        try:
            return load_entry(self.module, symbols)
        except Unsupported as reason:
            self._refuse(str(reason))

    def modules(self, symbol: str, forms: Sequence[str] = ()) -> list[str]:
        """LLVM's language of the entry, under a name, of all that it calls, and of adapters."""
        parts = [self._text().replace("@native(", f"@{symbol}("), *self._beside(symbol, forms)]
        others = self.module.externals - self.module.own_externals()
        return ["\n".join(parts), *objects.external_modules(others)]

    def identity(self, symbol: str, forms: Sequence[str] = ()) -> list[str]:
        """All that decides machine code of ``modules``, besides the compiler and the CPU."""
        return [self.module.identity(), symbol, *self._beside(symbol, forms)]

    def _beside(self, symbol: str, forms: Sequence[str]) -> Iterator[str]:
        for name, array in self.captured.items():
            yield data_constant(name, array)
        for form in forms:
            yield adapter(form, self.arguments, f"{symbol}_{form}", f"@{symbol}")

    # -------------------------------------------------------------------------------- description

    @property
    def about(self) -> dict[str, Any]:
        """The signature, as ``ExportedFunction`` reads it."""
        names = {k: text.removeprefix("%") for k, text in self.writer.lengths.items()}

        def text(terms: Length) -> str:
            return text_of(terms, names.__getitem__)

        def listed(ports: Sequence[PortTerms]) -> list[dict[str, Any]]:
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
            "threads": self.module.threads,
            "free": self.free,
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
    stem = re.sub(r"\W+", "_", path, flags=re.ASCII).strip("_") or "x"
    stem = f"x{stem}" if stem[0].isdigit() else stem
    name, number = stem, 1
    while name in used or name in _RESERVED:
        number += 1
        name = f"{stem}_{number}"
    used.add(name)
    return name
