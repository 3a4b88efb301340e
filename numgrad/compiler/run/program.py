"""A compiled graph: kernels, what runs between them, and the Python function around all of it.

Note [Steps]
------------
Generated kernels end where other code has to run: an operation without a lowering,
a call of a Python function. Everything that does not wait for such a *segment* goes into one
kernel, then come the segments whose operands are ready, then the next kernel. The function that
calls them in order is generated, so that a call decides nothing but whether the work is worth
several threads.

Note [Watched programs]
-----------------------
A profile exchanges the functions that a program calls. The function around the kernels is held by
dispatchers and by tapes, so it stays and gets other code, which calls a copy of it that is watched;
kernels and segments it finds by name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from numgrad.codegen import threads
from numgrad.codegen.dtypes import BOOL
from numgrad.codegen.locks import ENTRIES
from numgrad.codegen.memory import LARGE, collection_later, large
from numgrad.codegen.nests.kernel import KernelWriter
from numgrad.codegen.nests.polynomial import Length, text_of, value_of
from numgrad.codegen.nests.terms import (
    BUFFER,
    CHOOSE,
    CONSTANT,
    OPAQUE,
    SCALAR,
    SIZE,
    VIEW,
    Term,
    count,
    first_stored,
    reachable,
)
from numgrad.codegen.threads import MEMORY_NS
from numgrad.compiler.graph import evaluate
from numgrad.compiler.graph.graph import CALL, Graph
from numgrad.compiler.graph.kernel_sweeps import hand_over_states
from numgrad.compiler.graph.sizes import lengths_in
from numgrad.compiler.lower.expand import Expansion
from numgrad.compiler.lower.matrices import PRODUCTS
from numgrad.compiler.passes import optimize
from numgrad.compiler.run.steps import KernelStep, Segment, first_call
from numgrad.core.elementwise import formula_emitter
from numgrad.dataclass import dataclass
from numgrad.errors import NumgradAssertionError, NumgradTypeError, NumgradValueError, generated


def compile_graph(graph: Graph, options: Options | None = None) -> KernelProgram:
    """The program that computes ``graph``; kernels are compiled when they are first called."""
    with collection_later():
        return KernelProgram(graph, options or Options())


PROGRAMS: WeakSet[KernelProgram] = WeakSet()
"""Every program that is alive."""


class KernelProgram:
    """A graph made ready to run.

    Attributes
    ----------
    steps
        Kernels and segments in order.
    shell
        The source of the function around them.
    checked
        Numbers of the results of kernels that must be false.
    run
        Takes the inputs of the graph (C-contiguous ndarrays, numbers); returns its outputs and what
        is to be written to inputs.
    """

    def __init__(self, graph: Graph, options: Options) -> None:
        self.graph, self.options = graph, options
        self.passes = optimize(graph, contract=options.contract)
        hand_over_states(graph, graph.roots())
        self.expansion = Expansion(graph)
        self.steps: list[KernelStep | Segment] = []
        self._namespace: dict[str, Any] = {
            "empty": np.empty,
            "large": large,
            "full": np.full,
            "array": np.array,
        }
        self._lengths: dict[int, str] = {}
        self.shell = self._write_shell()
        exec(compile(self.shell, generated(f"{options.name} compiled"), "exec"), self._namespace)
        self.run: Callable[..., tuple[Any, ...]] = self._namespace["run"]
        PROGRAMS.add(self)

    @property
    def source(self) -> str:
        """The source of every kernel and of the function around them."""
        parts = [
            f"# kernel {step.name}\n{step.written.source(parallel=False)}"
            for step in self.steps
            if isinstance(step, KernelStep)
        ]
        return "\n\n".join([*parts, self.shell])

    # ------------------------------------------------------------------------------------- stages

    def _stages(self, terms: Sequence[Term]) -> dict[int, int]:
        """The number of groups of segments after which each term can be computed.

        Calls of Python functions, which may have effects, keep their order.
        """
        mapping: dict[int, int] = {}

        def settle(results: Sequence[Term]) -> None:
            for term in reachable(results, mapping):
                mapping[term.number] = max((mapping[a.number] for a in term.args), default=0)

        latest = 0
        for node in self.expansion.opaque:
            operands = [self.expansion.of[v] for v in node.inputs]
            settle(operands)
            stage = 1 + max((mapping[t.number] for t in operands), default=0)
            if node.op == CALL:
                stage = latest = max(stage, latest)
            mapping.update((self.expansion.of[v].number, stage) for v in node.outputs)
        settle(terms)
        return mapping

    def _read_late(self, stored: Sequence[Term], stages: dict[int, int]) -> list[str]:
        """Copies of inputs that a call writes to and something reads after it."""
        of, opaque = self.expansion.of, self.expansion.opaque
        numbers = {t.number for t in stored}
        lines: dict[str, None] = {}
        for position, node in enumerate(opaque):
            written = [of[v] for v in node.params.get("writes", ())]
            if not written:
                continue
            stage = stages[of[node.outputs[0]].number]
            late = [t for t in stored if stages[t.number] >= stage]
            read = {t.number for term in late for t in _read_directly(term, numbers)}
            read.update(of[v].number for other in opaque[position + 1 :] for v in other.inputs)
            read.update(of[v].number for v in self.graph.roots())
            lines.update(
                (f"    x{t.detail} = array(x{t.detail})", None) for t in written if t.number in read
            )
        return list(lines)

    def _checks(self) -> dict[int, Term]:
        """Conditions that must be false, by the stage at which they are known: a number each."""
        terms = self.expansion.terms
        stages = self._stages(terms.checks)
        mapping: dict[int, Term] = {}
        for term in terms.checks:
            stage = stages[term.number]
            known = mapping.get(stage)
            mapping[stage] = term if known is None else terms.map("logical_or", (known, term), BOOL)
        return mapping

    def _joins(self, roots: Sequence[Term]) -> dict[int, tuple[Term, list[Term]]]:
        """Results that are put together from parts, each computed at its place."""
        read = {a.number for term in reachable(roots) for a in term.args}
        return {
            term.number: (term, self.expansion.terms.parts(term))
            for term in roots
            if term.op == CHOOSE and term.detail[0] == "join" and term.number not in read
        }

    def _write_shell(self) -> str:
        graph, expansion = self.graph, self.expansion
        results = [expansion.of[v] for v in graph.roots()]
        roots = stored_as(results)
        effects = [expansion.of[v] for node in expansion.opaque for v in node.outputs]
        checks = self._checks()
        self.checked = {t.number for t in checks.values()}
        effects += checks.values()
        self._flat: set[int] = set()  # numbers that segments return as arrays of one element
        self._joined = self._joins(roots)
        parts = [p for _, value in self._joined.values() for p in value]
        targets = [*(t for t in roots if t.number not in self._joined), *parts, *effects]
        needed = reachable(targets)
        stored = first_stored(targets)
        stages = self._stages(needed)
        for _, value in self._joined.values():
            stages.update(
                dict.fromkeys((p.number for p in value), max(stages[p.number] for p in value))
            )
        last = max((stages[t.number] for t in needed), default=0)
        segments: dict[int, list[Segment]] = {}
        for node in expansion.opaque:
            made = [expansion.of[v] for v in node.outputs]
            segment = Segment(node, graph.sizes, made)
            segments.setdefault(stages[made[0].number], []).append(segment)
            if segment.flat:
                self._flat.update(t.number for t in made)
        self._exported = {t.number for t in (*roots, *checks.values())}
        for term in needed:
            if term.op == OPAQUE:
                self._exported.update(a.number for a in term.args)
        ready: dict[int, list[Term]] = {}
        for term in stored.values():
            stage = stages[term.number]
            ready.setdefault(stage, []).append(term)
            self._exported.update(
                t.number for t in _read_directly(term, stored) if stages[t.number] < stage
            )
        body: list[str] = []
        inputs = ", ".join(f"x{k}" for k in range(len(graph.inputs)))
        self._namespace["fail"] = partial(_fail, graph)
        for stage in range(last + 1):
            for segment in segments.get(stage, ()):
                body += self._segment(segment)
            if stage in ready:
                body += self._kernel(ready[stage])
            if stage in checks:
                body.append(f"    if t{checks[stage].number}[0]:")
                body.append(f"        fail({inputs})")
        lines = [f"def run({inputs}):"]
        returned = self._returned(roots, results)
        lines += self._read_late(list(stored.values()), stages)
        lines += self._read_lengths(body, returned)
        lines += body
        lines.append(f"    return ({', '.join(returned)}{',' if len(returned) == 1 else ''})")
        return "\n".join(lines) + "\n"

    def _returned(self, roots: list[Term], results: list[Term]) -> list[str]:
        """The results, in memory of their own, those saved for a backward excepted."""
        texts: list[str] = []
        returned: set[int] = set()
        own = len(self.graph.outputs) - self.graph.kept
        for k, (t, r) in enumerate(zip(roots, results, strict=True)):
            text = self._result(t)
            again = t.number in returned or self._is_written(t)
            returned.add(t.number)
            if k < own and again and t.shape and t.op not in (BUFFER, CONSTANT):
                text = f"{text}.copy()"
            texts.append(text if t is r else f"{text}.reshape({self._extents(r)})")
        return texts

    def _is_written(self, term: Term) -> bool:
        """Whether a term is what a call left in the memory of an input."""
        if term.op != OPAQUE:
            return False
        return bool(self.expansion.opaque[term.detail[0]].params.get("writes"))

    def _read_lengths(self, body: list[str], returned: list[str]) -> list[str]:
        mapping: dict[int, str] = {}
        sizes = self.graph.sizes
        for k, value in enumerate(self.graph.inputs):
            for axis, length in enumerate(value.shape):
                number = sizes.number(length)
                if number is not None:
                    mapping.setdefault(number, f"x{k}.shape[{axis}]")
        return [f"    n{k} = {mapping[k]}" for k in sorted(self._lengths)]

    def _text(self, length: Length) -> str:
        def name(k: int) -> str:
            self._lengths[k] = f"n{k}"
            return f"n{k}"

        return text_of(length, name)

    def _extents(self, term: Term) -> str:
        parts = [self._text(n) for n in term.shape]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def _shape(self, term: Term) -> str:
        if not term.shape:
            return "1"
        parts = [self._text(n) for n in term.shape]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    # -------------------------------------------------------------------------------------- steps

    def _name(self, term: Term) -> str:
        """The variable that holds a term."""
        return f"x{term.detail}" if term.op in (BUFFER, SCALAR) else f"t{term.number}"

    def _argument(self, term: Term) -> str:
        """A term as an argument of a kernel: an array, or a number."""
        name = self._name(term)
        if term.shape or (term.op == SCALAR and self.graph.inputs[term.detail].weak):
            return name
        return f"{name}.item()"

    def _dtype(self, dtype: np.dtype) -> str:
        name = f"dtype_{dtype.name}"
        self._namespace[name] = dtype
        return name

    def _kernel(self, ready: list[Term]) -> list[str]:
        """Allocate results and call a kernel."""
        numbers = {t.number for t in ready}
        exported = numbers & self._exported
        joined = [
            whole
            for whole, parts in self._joined.values()
            if any(p.number in numbers for p in parts)
        ]
        contract = self.options.contract
        writer = KernelWriter(
            self.expansion.terms, ready, exported, formula_emitter(), PRODUCTS, joined, contract
        )
        written = writer.write()
        number = sum(isinstance(step, KernelStep) for step in self.steps)
        step = KernelStep(f"jit_{self.options.name}_{number}", written, self.options.cache)
        self.steps.append(step)
        for term in ready:
            term.in_memory = term.in_memory or term.number in exported
        lines = [f"    t{t.number} = {self._allocated(t)}" for t in written.results]
        passed = [self._argument(t) for t in written.arrays]
        passed += [f"t{t.number}" for t in written.results]
        passed += [self._argument(t) for t in written.scalars]
        for name in written.lengths:
            self._lengths[int(name[1:])] = name
        arguments = ", ".join([*passed, *written.lengths])
        entry = f"k{number}"
        self._namespace[entry] = partial(first_call, step, self._namespace, entry)
        everywhere = self.options.parallel is True
        self._namespace[f"launch{number}"] = step.share if everywhere else step.launch
        limit = threads.least_ns()
        work = written.work
        if self.options.parallel is False or not work.picoseconds:
            lines.append(f"    {entry}({arguments})")
        elif everywhere:
            lines.append(f"    launch{number}(1e18, 0, {arguments})")
        else:  # small, wherever its arrays are
            work_ns = f"1e-3 * ({self._text(work.picoseconds)})"
            lines.append(f"    work, moved = {work_ns}, {self._text(work.moved)}")
            lines.append(f"    if work + moved * {MEMORY_NS} < {limit:.6g}:")
            lines.append(f"        {entry}({arguments})")
            lines.append("    else:")
            lines.append(f"        launch{number}(work, moved, {arguments})")
        return lines

    def _allocated(self, term: Term) -> str:
        """Memory for a result."""
        plain = f"empty({self._shape(term)}, {self._dtype(term.dtype)})"
        size, least = count(term.shape), LARGE // term.dtype.itemsize
        known = value_of(size)
        if known is not None and known < least:
            return plain
        return f"{plain} if {self._text(size)} < {least} else large{plain.removeprefix('empty')}"

    def _segment(self, segment: Segment) -> list[str]:
        """Call an operation on ndarrays."""
        self.steps.append(segment)
        number = len(self.steps)
        node = segment.node
        self._namespace[f"s{number}"] = segment.run
        axes = sorted(self.graph.sizes.axes(lengths_in(node.params)))
        for k in axes:
            self._lengths[k] = f"n{k}"
        lengths = "{" + ", ".join(f"{k}: n{k}" for k in axes) + "}"
        operands = [
            self._array(self.expansion.of[v])
            if segment.flat
            else self._operand(self.expansion.of[v], v.weak)
            for v in node.inputs
        ]
        results = "".join(f"t{t.number}, " for t in segment.results)
        call = f"s{number}(({''.join(g + ', ' for g in operands)}), {lengths})"
        return [f"    {results}= {call}" if results else f"    {call}"]

    def _operand(self, term: Term, weak: bool) -> str:
        if term.op == CONSTANT:
            name = f"c{term.number}"
            value = term.detail
            self._namespace[name] = (
                value if weak or value is None else np.asarray(value, term.dtype)
            )
            return name
        if term.op == SIZE:
            return self._text(term.detail)
        if term.shape or (term.op == OPAQUE and term.number not in self._flat):
            return f"{self._name(term)}.item()" if weak else self._name(term)
        if term.op == SCALAR:
            return f"array({self._name(term)})" if not weak else self._name(term)
        return f"{self._name(term)}.reshape(())"

    def _array(self, term: Term) -> str:
        """A term as an array; a number as one of one element."""
        if term.op == CONSTANT:
            name = f"d{term.number}"
            self._namespace[name] = np.array([term.detail], term.dtype)
            return name
        name = self._text(term.detail) if term.op == SIZE else self._name(term)
        if term.op in (SIZE, SCALAR):
            return f"array({name}, {self._dtype(term.dtype)}, ndmin=1)"
        if not term.shape and term.op == OPAQUE and term.number not in self._flat:
            return f"{name}.reshape(1)"
        return name

    def _result(self, term: Term) -> str:
        """The result for a term: nothing that the caller handed in."""
        if self.options.flat and not term.shape:
            return self._array(term)
        name = self._name(term)
        if term.op == CONSTANT:
            value = repr(term.detail) if np.isfinite(term.detail) else f"float('{term.detail}')"
            return f"array({value}, {self._dtype(term.dtype)})[()]"
        if term.op == SIZE:
            return f"array({self._text(term.detail)})[()]"
        if term.op == SCALAR:
            return f"array({name}, {self._dtype(term.dtype)})[()]"
        if term.op == BUFFER:
            return f"array({name})"
        if term.shape:
            return name
        whole = term.op == OPAQUE and term.number not in self._flat
        return f"{name}[()]" if whole else f"{name}[0]"


def stored_as(results: Sequence[Term]) -> list[Term]:
    """The terms that are stored for results; a reshaped term is stored as the original."""
    outputs: list[Term] = []
    returned = {t.number for t in results}
    for term in results:
        base = term
        while base.op == VIEW and base.detail[0] in ("reshape", "insert", "drop"):
            base = base.args[0]
        free = not (base.op in (BUFFER, SCALAR, CONSTANT, SIZE) or base.number in returned)
        outputs.append(base if free and base.shape and term.shape else term)
        returned.add(outputs[-1].number)
    return outputs


def _read_directly(term: Term, stored: Container[int]) -> Iterator[Term]:
    """The terms that the computation of a stored term reads."""
    stack, visited = list(term.args), set()
    while stack:
        x = stack.pop()
        if x.number in visited:
            continue
        visited.add(x.number)
        yield x
        if x.number not in stored and not x.in_memory:
            stack.extend(x.args)


def _fail(graph: Graph, *inputs: Any) -> None:
    """Raise the error that an operation has for these inputs, as running them one by one does."""
    evaluate.compile_graph(graph).run(*inputs)
    raise NumgradAssertionError("a compiled function saw an error that its operations do not raise")


# ----------------------------------------------------------------------------------------- options


@dataclass(frozen=True)
class Options:
    """Options of a backend.

    Attributes
    ----------
    name
        Name of the function, for sources and reports.
    parallel
        ``"auto"``, or whether loops run in several threads.
    contract
        Whether multiplications and additions of several operations may become one instruction.
    cache
        Whether kernels are kept on disk.
    donated
        Which inputs of the graph may be overwritten.
    flat
        Whether results that are numbers are arrays of one element.
    """

    name: str = "function"
    parallel: bool | str = "auto"
    contract: bool = False
    cache: bool = True
    donated: tuple[int, ...] = ()
    flat: bool = False

    def __post_init__(self) -> None:
        if self.parallel not in ("auto", True, False):
            raise NumgradValueError(
                f'jit: parallel is "auto", True or False, got {self.parallel!r}'
            )
        for name in ("contract", "cache"):
            if not isinstance(getattr(self, name), bool):
                raise NumgradTypeError(f"jit: {name} is a bool, got {getattr(self, name)!r}")


class Program(Protocol):
    """A graph made to run.

    Backends may add ``report() -> str``, ``source`` (a string), and ``steps``, of which some have
    ``kernels``, a dictionary of kernels compiled so far.
    """

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Outputs of the graph, then what it writes, for C-contiguous arrays and numbers."""
        ...


class ProgramWatch(NamedTuple):
    """Functions that watch: each makes, of a function, one to be called in its place.

    Attributes
    ----------
    run
        ``run(program, function)``, for the whole of a program.
    segment
        ``segment(program, segment, function)``
    kernel
        ``kernel(program, step, skipped, function)``; of the arguments the first ``skipped`` are not
        the kernel's.
    """

    run: Callable[..., Any]
    segment: Callable[..., Any]
    kernel: Callable[..., Any]


_watch: ProgramWatch | None = None
_plain: WeakKeyDictionary[KernelProgram, dict[str, Any]] = WeakKeyDictionary()
"""Functions that watched programs called before, and their code."""


def watch(how: ProgramWatch | None) -> None:
    """Watch all programs from now on, or with None no longer."""
    global _watch
    with ENTRIES:
        _watch = how
        for program in list(PROGRAMS):
            recode(program)


def recode(program: KernelProgram) -> None:
    """Let a program be watched, if programs are, and else not."""
    with ENTRIES:
        names = program._namespace
        plain = _plain.pop(program, None)
        if plain is not None:
            code = program.run.__code__ = plain.pop("watched")
            # a call in another thread may be just before it
            names.update(plain, watched=FunctionType(code, names, "run"))
            plain.clear()
        if _watch is None or not isinstance(program.run, FunctionType):
            return
        code = program.run.__code__
        plain = _plain[program] = {name: names[name] for name, *_ in _calls(program)}
        for name, step, skipped in _calls(program):
            if isinstance(step, Segment):
                names[name] = _watch.segment(program, step, step.general)
            else:
                called = _Replacing(names, name, plain)
                names[name] = called.watched = _watch.kernel(program, step, skipped, called)
        names["watched"] = _watch.run(program, FunctionType(code, names, "run"))
        plain["watched"] = code
        parameters = ", ".join(code.co_varnames[: code.co_argcount])
        scope: dict[str, Any] = {}
        source = f"def run({parameters}):\n    return watched({parameters})\n"
        exec(compile(source, generated("watched program"), "exec"), scope)
        program.run.__code__ = scope["run"].__code__


def _calls(program: KernelProgram) -> Iterator[tuple[str, KernelStep | Segment, int]]:
    """Names that a program calls, what is behind each, and arguments before the kernel's own."""
    kernels = 0
    for position, step in enumerate(program.steps):
        if isinstance(step, Segment):
            yield f"s{position + 1}", step, 0
        else:
            yield f"k{kernels}", step, 0
            yield f"launch{kernels}", step, 2
            kernels += 1


class _Replacing:
    """A function that may replace itself by another, as one does that compiles a kernel first."""

    def __init__(self, names: dict[str, Any], name: str, plain: dict[str, Any]) -> None:
        self.names, self.name, self.plain = names, name, plain
        self.watched: Any = None

    def __call__(self, *arguments: Any) -> None:
        (self.plain.get(self.name) or self.names[self.name])(*arguments)
        current = self.names[self.name]
        if current is not self.watched and self.name in self.plain:
            self.plain[self.name], self.names[self.name] = current, self.watched
