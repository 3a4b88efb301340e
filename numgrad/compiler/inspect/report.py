"""Reports of jitted functions, for people: what was compiled, and why again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.codegen import threads
from numgrad.codegen.nests.account import (
    Account,
    SourceLoop,
    VectorLoop,
    account,
    by_line,
    judge,
    source_loops,
    stored_name,
    vector_loops,
)
from numgrad.codegen.nests.nest import Nest
from numgrad.codegen.nests.polynomial import Length, text_of, value_of
from numgrad.codegen.nests.statements import Statement
from numgrad.codegen.nests.terms import BUFFER, PRODUCT, SCALAR as SCALAR_TERM, Term
from numgrad.codegen.tasks import LANES
from numgrad.codegen.threads import serial_ns
from numgrad.compiler.call import signature
from numgrad.compiler.call.signature import CallLayout, Input
from numgrad.compiler.call.source import CONTENT, IDENTITY, VALUE, Source
from numgrad.compiler.graph.graph import CALL, TracedNode
from numgrad.compiler.inspect.statistics import Statistics
from numgrad.compiler.loops.loop_program import LoopProgram
from numgrad.compiler.passes import Record
from numgrad.compiler.run.program import KernelProgram
from numgrad.compiler.run.specialise import Specialisation
from numgrad.compiler.run.steps import KernelStep, Segment
from numgrad.markup import Report

WIDTH = 100
Lines = Iterator[str]


def report(name: str, specialisations: Sequence[Specialisation], statistics: Statistics) -> Report:
    """A text on all specialisations of a function."""
    s = statistics
    lines = [
        f"{name}: {s.calls} calls, {s.traces} traces, {s.compiles} kernels "
        f"({s.cache_hits} from disk), {s.seconds:.2f} s"
    ]
    for number, specialisation in enumerate(specialisations):
        lines += ["", f"specialisation {number}, traced in {specialisation.tracing_seconds:.2f} s"]
        if specialisation.reason:
            lines.append(f"  made because {specialisation.reason}")
        lines += _indented(_of_layout(specialisation.layout))
        programs = specialisation.programs
        for phase, program in zip(("forward", "backward"), programs, strict=False):
            if isinstance(program, KernelProgram):
                lines += [f"  {phase}"] if len(programs) > 1 else []
                lines += _indented(_of_program(program))
    return Report("\n".join(lines))


def _indented(lines: Iterable[str]) -> Lines:
    return (f"  {line}" for line in lines)


def _wrapped(head: str, words: Sequence[str], sign: str = ", ") -> Lines:
    """Words after a head, as many on a line as there is room for."""
    line = head
    for k, word in enumerate(words):
        text = word + (sign.rstrip() if k < len(words) - 1 else "")
        if line != head and len(line) + len(text) > WIDTH:
            yield line.rstrip()
            line = "    "
        line += text + " "
    yield line.rstrip()


# ----------------------------------------------------------------------- arguments, guards


def _of_layout(layout: CallLayout) -> Lines:
    yield "inputs"
    yield from _indented(_of_input(entry, layout) for entry in layout.inputs)
    for line, length in layout.sizes.fixed.items():
        yield f"  length {length} is fixed, {line} reads it; a loop of any length is ng.scan"
    lengths = [g.text(lambda k: f"n{k}") for g in layout.sizes.relations()]
    around = [_in_words(source) for source in layout.guards if not source.is_code]
    if lengths or around:
        yield "guards"
        for text in lengths + around:
            yield f"  {text if len(text) < 80 else text[:76] + ' ...'}"
    else:
        yield "guards: none"


def _in_words(source: Source) -> str:
    if source.is_length:
        return f"len({source.name.removesuffix('[...]')}) == {source.value}"
    if source.treatment == IDENTITY:
        return f"{source.name} is the same {type(source.value).__name__}"
    if source.treatment == CONTENT:
        return f"{source.name} is as it was"
    return f"{source.name} == {' '.join(repr(source.value).split())}"


def _of_input(entry: Input, layout: CallLayout) -> str:
    value = entry.value
    lengths = ", ".join(str(layout.sizes.resolve(n)) for n in value.shape)
    written = ", written" if layout.inputs.index(entry) in layout.writes else ""
    origin = "" if entry.leaf is not None else ", read at each call"
    if entry.leaf is None and entry.source is None:
        origin = ", held"
    return f"{entry.name}: {value.dtype}[{lengths}]{origin}{written}"


# --------------------------------------------------------------------------------- programs


def _of_program(program: KernelProgram) -> Lines:
    yield from _of_passes(program.passes, len(program.graph.nodes))
    names = _Names(program)
    yield from names.lengths()
    for step in program.steps:
        if isinstance(step, Segment):
            yield from _of_segment(step.node)
        else:
            yield from _of_kernel(step, program, names)


def _of_passes(records: Sequence[Record], now: int) -> Lines:
    first = records[0].before if records else now
    yield f"passes: {first} nodes became {now}"
    done: dict[str, list[int]] = {}
    for record in records:
        totals = done.setdefault(record.name, [0, 0, 0])
        for k, more in enumerate((1, record.changed, record.after - record.before)):
            totals[k] += more
    for name, (runs, changed, grown) in done.items():
        yield f"  {name}: {changed} changes in {runs} runs, {grown:+d} nodes"


def _of_segment(node: TracedNode) -> Lines:
    source = f" ({node.line})" if node.line else ""
    if node.op == CALL:
        yield f"segment: a call of a Python function{source}; nothing else knows what it does"
        return
    loop = node.params["body"].compiled if "body" in node.params else None
    if isinstance(loop, LoopProgram):
        obstacle = loop.obstacle()
        if obstacle is None:
            yield f"segment: {node.name}{source} is a native loop"
        else:
            line = f" ({obstacle.line})" if obstacle.line else ""
            yield f"segment: {node.name}{source} makes its steps in Python:"
            yield f"  {obstacle.name}{line} has no form in its kernel"
        return
    yield f"segment: {node.name}{source} runs by itself; it has no form as a loop of a kernel"
    for branch in node.params.get("parts", ()):
        if isinstance(branch.compiled, KernelProgram):
            for step in branch.compiled.steps:
                if isinstance(step, Segment):
                    yield from _indented(_of_segment(step.node))


def _of_kernel(step: KernelStep, program: KernelProgram, names: _Names) -> Lines:
    variants = [
        ("parallel" if parallel else "serial")
        + (" from disk" if kernel.from_cache else "")
        + (f" by Numba ({kernel.numba_reason})" if kernel.numba_reason else "")
        for (parallel, _), kernel in step.kernels.items()
    ]
    made = f"{', '.join(variants)}, {step.seconds:.2f} s" if variants else "not compiled yet"
    yield f"kernel {step.name}: {made}"
    yield from _indented(_of_threads(step, program, names))
    written = step.written
    yield from _indented(_of_memory(step, names))
    kernel = next(iter(step.kernels.values()), None) or step.kernel()
    vectorised = vector_loops(kernel.llvm())
    between: list[Statement] = []
    nests = iter(written.nests)
    for item in written.writer.items:
        if isinstance(item, Statement) and item.term.op != PRODUCT:
            between.append(item)
            continue
        result = account(item, written.writer, program.expansion.origin)
        if isinstance(item, Statement):
            yield f"  matrix product {names.of(item.term)}"
            yield from _indented(_indented(_of_account(result, names)))
        else:
            nest = next(nests)
            alike = f", in the function of nest {nest.function}"
            yield f"  nest {nest.number}{alike if nest.function != nest.number else ''}"
            loops = _of_loops(nest, vectorised.get(f"nest_{nest.function}"), names)
            yield from _indented(_indented(_of_account(result, names)))
            yield from _indented(_indented(loops))
    if between:
        yield "  numbers, between the nests"
        nodes: dict[TracedNode, None] = {}
        for item in between:
            nodes.update(
                dict.fromkeys(account(item, written.writer, program.expansion.origin).nodes)
            )
        yield from _indented(_indented(_of_operations(list(nodes))))


def _of_threads(step: KernelStep, program: KernelProgram, names: _Names) -> Lines:
    work = step.written.work
    if not program.options.parallel or not work.picoseconds:
        yield "threads: one"
        return
    hint = names.terms.sizes.hint_of
    nanoseconds = serial_ns(hint(work.picoseconds) / 1000, hint(work.moved))
    if program.options.parallel is True:
        yield "threads: as many as allowed"
        return
    limit = 2 * threads.work_per_thread_ns()
    used = threads.worth(nanoseconds) if nanoseconds >= limit else 1
    yield (
        f"threads: one if no loop has {limit / 1000:.0f} us of estimated work; here the longest "
        f"has {nanoseconds / 1000:.3g} us, so {used}"
    )
    for computing_ns, trial in step.trials.items():
        better = "several are" if trial.several else "one is"
        yield f"  of {computing_ns / 1000:.3g} us of arithmetic both were timed: {better} better"


def _of_memory(step: KernelStep, names: _Names) -> Lines:
    written = step.written
    if written.results:
        yield from _wrapped("results: ", [names.typed(t) for t in written.results])
    handed = {t.number for t in written.results}
    temporary: dict[int, Term] = {}
    for item in written.writer.items:
        for statement in [item] if isinstance(item, Statement) else item.statements():
            term = statement.term
            source = written.writer.storage[term.number]
            if source.whole and source.memory and stored_name(term) not in handed:
                temporary[term.number] = term
    if temporary:
        yield from _wrapped("temporary arrays: ", [names.typed(t) for t in temporary.values()])


def _of_account(value: Account, names: _Names) -> Lines:
    yield from _of_operations(value.nodes)
    parts = [
        f"{verb} {', '.join(dict.fromkeys(map(names.of, terms)))}"
        for verb, terms in (("reads", value.reads), ("writes", value.writes))
        if terms
    ]
    registers = [names.of(t) for t, source in value.held if not source.memory]
    blocks = [names.of(t) for t, source in value.held if source.memory and source.lanes]
    small = [names.of(t) for t, source in value.held if source.memory and not source.lanes]
    parts += [f"registers hold {', '.join(registers)}"] * bool(registers)
    parts += [f"blocks of {LANES} hold {', '.join(blocks)}"] * bool(blocks)
    parts += [f"local arrays hold {', '.join(small)}"] * bool(small)
    yield from _wrapped("", parts, "; ")
    work = [f"{names.amount(value.moved)} bytes moved", f"{names.amount(value.flops)} flops"]
    work += [f"{names.amount(times)} {name}" for name, times in value.functions.items()]
    yield from _wrapped("about ", work, "; ")


def _of_operations(nodes: Iterable[TracedNode]) -> Lines:
    for line, operations in by_line(nodes):
        source = line.replace("\\", "/").rsplit("/", 1)[-1]
        yield from _wrapped(f"{source}: " if source else "", operations)


def _of_loops(nest: Nest, vectorised: Sequence[VectorLoop] | None, names: _Names) -> Lines:
    loops = source_loops(nest.lines)
    judge(loops, vectorised)
    for loop in loops:
        yield "  " * loop.depth + _of_loop(loop, names)


def _of_loop(loop: SourceLoop, names: _Names) -> str:
    parts = [
        f"{verb} {', '.join(map(names.at, addresses))}"
        for verb, addresses in (("reads", loop.reads), ("stores", loop.stores))
        if addresses
    ]
    text = f"{loop.header}: {'; '.join(parts)}"
    text = text if len(text) < WIDTH else text[: WIDTH - 4] + " ..."
    return f"{text.rstrip()}  [{loop.verdict}]" if loop.verdict else text.rstrip()


class _Names:
    """Names of terms and lengths of a program in a report."""

    def __init__(self, program: KernelProgram) -> None:
        self.graph, self.terms = program.graph, program.expansion.terms
        self._inputs = {
            term.number: self._input(term)
            for value in program.graph.inputs
            for term in [program.expansion.of[value]]
        }

    def _input(self, term: Term) -> str:
        if term.op not in (BUFFER, SCALAR_TERM):
            return f"t{term.number}"
        value = self.graph.inputs[term.detail]
        return self.graph.labels.get(value, f"x{term.detail}")

    def of(self, term: Term) -> str:
        """A term: the argument's name, or the name that sources use."""
        number = stored_name(term)
        return self._inputs.get(number, f"t{number}")

    def at(self, address: str) -> str:
        """The thing at an address: a term, or what a nest puts aside for itself."""
        if not address.startswith("a"):
            return address
        return self._inputs.get(int(address[1:]), f"t{address[1:]}")

    def typed(self, term: Term) -> str:
        """A term with dtype and shape."""
        shape = ", ".join(text_of(n, lambda k: f"n{k}") for n in term.shape)
        return f"{self.of(term)} {term.dtype}[{shape}]"

    def hint(self, axis: int) -> int:
        """The length of an axis in the call that was traced."""
        return self.terms.sizes.hint_of((((("axis", axis),), 1),))

    def lengths(self) -> Lines:
        """The lengths that estimates are given for."""
        axes = sorted(self.graph.sizes.axes(n for v in self.graph.inputs for n in v.shape))
        if axes:
            yield "here " + ", ".join(f"n{k} = {self.hint(k)}" for k in axes)

    def amount(self, length: Length) -> str:
        """An expression of lengths, and its value in the call that was traced."""
        value = value_of(length)
        if value is not None:
            return f"{value:,}"
        return f"{text_of(length, lambda k: f'n{k}')} = {self.terms.sizes.hint_of(length):,}"


_MODES = {1: "no_grad", 2: "recording", 3: "inference mode"}


def difference(layout: CallLayout, old: tuple, arguments: signature.Arguments, new: tuple) -> str:
    """How a call differs from those that a specialisation was made for."""
    if old[-1] != new[-1]:
        return f"the mode was {_MODES[old[-1]]}, now {_MODES[new[-1]]}"
    if old[0] != new[0]:
        return "the arguments were nested differently, or others were left to their defaults"
    for leaf, before, now in zip(arguments.leaves, old[1], new[1], strict=True):
        text = _of_leaf(leaf, before, now)
        if text:
            return text
    for source in layout.guards:
        text = _of_guard(source)
        if text:
            return text
    return _of_captured(layout) or _of_sizes(layout, arguments) or "the surroundings changed"


def _of_leaf(leaf: signature.Leaf, before: tuple, now: tuple) -> str | None:
    if before[0] != now[0] or (
        now[0] in (signature.NUMBER, signature.STATIC) and before[1] is not now[1]
    ):
        return f"argument {leaf.path} was {_kind(before)}, now {_kind(now)}"
    if now[0] == signature.STATIC:
        if signature.same(before[2], now[2]):
            return None
        return f"the static argument {leaf.path} was {before[2]!r}, now {now[2]!r}"
    if now[0] not in (signature.ARRAY, signature.TENSOR, signature.SCALAR):
        return None
    if before[1] != now[1]:
        return f"the dtype of {leaf.path} was {before[1]}, now {now[1]}"
    if before[2] != now[2]:
        return f"the shape of {leaf.path} was of the form {_shape(before[2])}, now {_shape(now[2])}"
    if before[3] != now[3]:
        return f"requires_grad of {leaf.path} was {before[3]}, now {now[3]}"
    return None


def _kind(key: tuple) -> str:
    return {signature.ARRAY: "an ndarray", signature.TENSOR: "a Tensor"}.get(
        key[0], f"a {key[0]}"
    ) + (f" ({key[1].__name__})" if key[0] in (signature.NUMBER, signature.STATIC) else "")


def _shape(pattern: tuple) -> str:
    inside = ", ".join("n" if n < 0 else str(n) for n in pattern)
    return f"({inside}{',' if len(pattern) == 1 else ''})"


def _of_guard(source: Source) -> str | None:
    try:
        value = source.read()
    except Exception:
        return f"{source.name} is gone"
    if source.treatment == VALUE and not signature.same(value, source.value):
        return f"{source.name} was {source.value!r}, now {value!r}"
    if source.treatment == IDENTITY and value is not source.value:
        return f"{source.name} is another object"
    if source.treatment == CONTENT and not source.value(value):
        return f"the array {source.name}, which plain NumPy may have read, has changed"
    return None


def _of_captured(layout: CallLayout) -> str | None:
    for entry in layout.inputs:
        if entry.leaf is None and entry.source is not None:
            try:
                value = entry.source.read()
            except Exception:
                return f"{entry.source.name} is gone"
            if entry.is_number:
                if type(value) is not type(entry.owner):
                    old, new = type(entry.owner).__name__, type(value).__name__
                    return f"{entry.source.name} was of type {old}, now of type {new}"
                continue
            if not isinstance(value, (Tensor, np.ndarray)):
                return f"{entry.source.name} was an array, now of type {type(value).__name__}"
            if not _suits(entry, value):
                return f"the array {entry.source.name} has another shape, dtype or requires_grad"
    return None


def _suits(entry: Input, item: Any) -> bool:
    value = entry.value
    if isinstance(item, Tensor) != isinstance(entry.owner, Tensor):
        return False
    if entry.tensor and item._requires_grad != entry.owner._requires_grad:
        return False
    return item.dtype == value.dtype and item.shape == entry.owner.shape


def _of_sizes(layout: CallLayout, arguments: signature.Arguments) -> str | None:
    """The first relation between lengths that does not hold."""
    sizes = layout.sizes
    lengths: dict[int, tuple[str, int]] = {}
    leaves = {leaf.path: leaf for leaf in arguments.leaves}
    for entry in layout.inputs:
        leaf = entry.leaf and leaves.get(entry.leaf.path)
        owner = entry.owner if leaf is None else leaf.array
        for k, (expected, n) in enumerate(
            zip(entry.value.shape, getattr(owner, "shape", ()), strict=True)
        ):
            expected = sizes.resolve(expected)
            axis = sizes.number(expected)
            text = f"{entry.name}.shape[{k}]"
            if axis is not None and axis not in lengths:
                lengths[axis] = (text, n)
                continue
            known = {a: m for a, (_, m) in lengths.items()}
            if sizes.axes([expected]) <= known.keys() and sizes.evaluate(expected, known) != n:
                expected_text = sizes.text(expected, lambda a: lengths[a][0])
                return f"{text} was {expected_text}, now {n}"
    values = {axis: n for axis, (_, n) in lengths.items()}
    for guard in sizes.relations():
        if not eval(guard.text(lambda a: str(values[a]))):
            return f"it was made for {guard.text(lambda a: lengths[a][0])}"
    return None
