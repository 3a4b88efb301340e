"""Loops written with ``prange`` as tasks of several threads.

Note [Chunks]
-------------
Every text of a function, be it the function itself, its gradient or its tangents, says ``prange``
where the user does. A loop of which is proved, from that text alone, that its iterations are
independent is cut into chunks, which are tasks of the thread pool; any other runs as ``range``
does, and the report says why. So no ``prange`` is a race: one whose iterations touch each other
gives what it gives in plain Python.

What an iteration sets before it reads it, and arrays that it makes, belong to the chunk, as do
tapes that all iterations use again. Reductions have a partial result for each chunk: Note [Carried
scalars of text] in ``carried_values``. An array is shared where iterations touch different
elements: Note [Disjoint iterations] in ``index_ranges``. One that is only added to, at places that
may coincide, has a private copy in each chunk (array privatisation: Allen and Kennedy, *Optimizing
Compilers for Modern Architectures*, chapter 5). Partial results are put together in the order of
the chunks, and their number follows from lengths, never from threads: results have the same bits
for any number of these.

The number is the work by ``CHUNK``, in halves of nanoseconds as estimated from the text, where an
inner loop of unknown length counts as ``UNKNOWN_TRIPS`` iterations; and so few that clearing and
adding up private copies takes a twentieth of the work or so (``COPY``). The first chunk adds to the
array itself, so a loop of one chunk has no copies, and is no launch.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from numgrad.codegen.adjoint.carried_values import CarriedScalars
from numgrad.codegen.adjoint.index_ranges import IterationSpace
from numgrad.codegen.adjoint.liveness import (
    Liveness,
    assigned_names,
    statements_in,
    summary_of,
)
from numgrad.codegen.native.syntax import nodes
from numgrad.dataclass import dataclass

CHUNK = 40_000
"""Work of a chunk at least, in halves of nanoseconds."""
COPY = 40
"""Work, in halves of nanoseconds, that is worth a private copy of an element at least."""
UNKNOWN_TRIPS = 16
"""Iterations that an inner loop has by estimate where none is known before."""
_COSTS: dict[type[ast.AST], int] = {
    ast.BinOp: 1, ast.Subscript: 1, ast.Compare: 1, ast.Call: 12, ast.Div: 8, ast.Pow: 12,
    ast.FloorDiv: 12, ast.Mod: 12,
}  # fmt: skip
_CHEAP_CALLS = ("max", "min", "abs", "int", "float", "grow")
IMPORTS = (
    "from numgrad.codegen.chunks import (",
    "    add_chunks, blocks_of, chunk_of, clear_chunk, cut_in_chunks, partial_sums,",
    ")",
    "from numba import prange",
)
"""Lines that bind what loops in chunks call."""


@dataclass
class ParallelLoop:
    """A loop that was written with ``prange``.

    Attributes
    ----------
    variable, backwards
        What counts its iterations in the text; whether it does down to 0, as in backward sweeps.
    obstacle
        What keeps it from being parallel; empty if nothing does.
    reductions, unchanged
        Carried names: with the step that puts two values together; that no iteration changes.
    sums
        Arrays with private copies.
    tapes
        Growing vectors of which each chunk has its own.
    """

    variable: str
    backwards: bool = False
    obstacle: str = ""
    reductions: dict[str, str] = field(default_factory=dict)
    unchanged: list[str] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)
    tapes: list[str] = field(default_factory=list)


class ParallelText:
    """A text with those of its loops in chunks whose iterations are independent: Note [Chunks].

    Attributes
    ----------
    text
        The text as it is compiled.
    loops
        The loops that were written with ``prange``, those in a parallel one left out.
    """

    def __init__(self, source: str) -> None:
        self.text, self.loops = source, list[ParallelLoop]()
        if "in prange(" not in source:
            return
        self.lines = source.split("\n")
        (function,) = ast.parse(source).body
        assert isinstance(function, ast.FunctionDef)
        self.liveness = Liveness(function.body)
        self.statements = list(statements_in(function.body))
        self.growing = _growing_vectors(function)
        self.places = _lines_of_names(function)
        self._edits: list[tuple[ast.For, list[str]]] = []
        self._visit(function.body)
        for loop, lines in reversed(self._edits):
            assert loop.end_lineno is not None
            self.lines[loop.lineno - 1 : loop.end_lineno] = lines
        moved = {self.growing[name].lineno - 1 for loop in self.loops for name in loop.tapes}
        lines = [line for place, line in enumerate(self.lines) if place not in moved]
        self.text = "\n".join(line.replace(" in prange(", " in range(") for line in lines)
        self.text = self.text.replace(" in tasks(", " in prange(")

    @property
    def is_parallel(self) -> bool:
        """Whether a loop is in chunks."""
        return bool(self._edits) if self.loops else False

    def _visit(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.For) and _is_prange(statement):
                loop = self._examined(statement)
                self.loops.append(loop)
                if not loop.obstacle:
                    self._edits.append((statement, self._chunked(statement, loop)))
                    continue
            for block in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
                self._visit(block)

    # --------------------------------------------------------------------------------- the proof

    def _examined(self, node: ast.For) -> ParallelLoop:
        assert isinstance(node.target, ast.Name)
        bounds = [ast.unparse(a) for a in node.iter.args]  # pyright: ignore
        loop = ParallelLoop(node.target.id, bounds[1:] == ["-1", "-1"])
        loop.obstacle = self._obstacle(node, loop)
        return loop

    def _obstacle(self, node: ast.For, loop: ParallelLoop) -> str:
        own = assigned_names(node.body) | {loop.variable}
        carried = own & (summary_of(node.body).reads - {loop.variable})
        later = sorted((own - carried) & self.liveness.after[node])
        if later:
            return f"{later[0]} is read after it"
        scalars = CarriedScalars(node.body, carried)
        if scalars.dependences:
            return f"each iteration needs {scalars.dependences[0]} of the one before"
        loop.reductions, loop.unchanged = scalars.reductions, sorted(scalars.unchanged)
        space = IterationSpace(node, carried)
        grown = _grown_vectors(node)
        for name in sorted({*space.accesses, *grown} - own):
            if name in grown:
                if not all(node.lineno <= n <= (node.end_lineno or 0) for n in self.places[name]):
                    return f"{name} grows by each iteration"
                loop.tapes.append(name)
                continue
            accesses = space.accesses[name]
            if name in space.others:
                return f"{name} is used as a whole"
            if all(access.reads for access in accesses) or space.are_disjoint(name):
                continue
            if not all(access.adds for access in accesses) or name in self.growing:
                return f"iterations may touch the same elements of {name}"
            loop.sums.append(name)
        return ""

    # ----------------------------------------------------------------------------------- the text

    def _chunked(self, node: ast.For, loop: ParallelLoop) -> list[str]:
        """The lines of a loop in chunks."""
        number = len(self._edits)
        margin = " " * node.col_offset
        chunk, chunks, size = f"chunk{number}_", f"chunks{number}_", f"size{number}_"
        space = IterationSpace(node, (*loop.reductions, *loop.unchanged))
        ranks = {name: len(space.accesses[name][0].index) for name in loop.sums}
        lengths = {name: _length(name, rank) for name, rank in ranks.items()}
        bounds = [ast.unparse(a) for a in node.iter.args]  # pyright: ignore
        trips, span = _cut(bounds, chunk, size)
        work = Estimate(space).of(node.body)
        copies = f"{COPY} * ({' + '.join(lengths.values())})" if lengths else "0"
        head = [f"{size}, {chunks} = cut_in_chunks({trips}, {work}, {CHUNK}, {copies})"]
        start, end, after = [], [], []
        for name, step in loop.reductions.items():
            neutral = {"+": "0", "*": "1"}.get(step, name)
            partial = f"{name}__sums[{chunk}]"
            both = f"{name} {step} {partial}" if step in "+*" else f"{step}({name}, {partial})"
            head += [
                f"{name}__sums = partial_sums({chunks}, {name})",
                f"for {chunk} in range({chunks}):",
                f"    {partial} = {neutral}",
            ]
            start.append(f"{name} = {partial}")
            end.append(f"{partial} = {name}")
            after += [f"for {chunk} in range({chunks}):", f"    {name} = {both}"]
        for name in loop.unchanged:
            head.append(f"{name}__in = {name}")
            start.append(f"{name} = {name}__in")
        start += [ast.unparse(self.growing[name]) for name in loop.tapes]
        block = f"block{number}_"
        for name, length in lengths.items():
            copy = f"{name}__sums"
            head.append(f"{copy} = partial_sums(max(0, {chunks} - 1) * ({length}), {name})")
            start += [
                f"clear_chunk({copy}, {chunk}, {length})",
                f"{name}__own = chunk_of({name}, {copy}, {chunk})",
            ]
            flat = f"{name}.reshape({length})" if ranks[name] > 1 else name
            after += [
                f"for {block} in tasks(blocks_of({chunks}, {length})):",
                f"    add_chunks({flat}, {copy}, {chunks}, {length}, {block})",
            ]
        body = self.lines[node.lineno : node.end_lineno]
        for name in loop.sums:
            body = [re.sub(rf"\b{name}\b", f"{name}__own", line) for line in body]
        return [
            *[margin + line for line in head],
            f"{margin}for {chunk} in tasks({chunks}):",
            *[f"{margin}    {line}" for line in start],
            f"{margin}    for {loop.variable} in range({span}):",
            *["    " + line for line in body],
            *[f"{margin}    {line}" for line in end],
            *[margin + line for line in after],
        ]


def _cut(bounds: Sequence[str], chunk: str, size: str) -> tuple[str, str]:
    """The number of a range's iterations, and the range of those of a chunk."""
    if len(bounds) == 1:
        first, stop, step = "0", bounds[0], "1"
    else:
        first, stop, step = bounds[0], bounds[1], bounds[2] if len(bounds) == 3 else "1"
    if len(bounds) == 1:
        trips = stop
    elif step == "1":
        trips = f"({stop}) - ({first})"
    elif (stop, step) == ("-1", "-1"):
        trips = f"({first}) + 1"
    else:
        trips = f"({stop} - ({first}) + {step} - (1 if {step} > 0 else -1)) // {step}"
    count = trips if trips.isidentifier() else f"({trips})"
    low, high = f"{chunk} * {size}", f"min({chunk} * {size} + {size}, {count})"
    if (first, step) == ("0", "1"):
        return trips, f"{low}, {high}"
    if step == "1":
        return trips, f"{first} + {low}, {first} + {high}"
    return trips, f"{first} + {low} * {step}, {first} + {high} * {step}, {step}"


def _length(array: str, rank: int) -> str:
    return " * ".join(f"{array}.shape[{axis}]" for axis in range(rank))


def _is_prange(node: ast.For) -> bool:
    call = node.iter
    return isinstance(call, ast.Call) and getattr(call.func, "id", "") == "prange"


def _growing_vectors(function: ast.FunctionDef) -> dict[str, ast.stmt]:
    """The growing vectors of a text, with the statements that make them."""
    return {
        target.id: s
        for s in statements_in(function.body)
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
        for target in s.targets
        if isinstance(target, ast.Name) and getattr(s.value.func, "id", "") == "growing"
    }


def _grown_vectors(node: ast.For) -> set[str]:
    """The vectors that a loop makes longer."""
    return {
        call.args[0].id
        for s in statements_in(node.body)
        if isinstance(s, ast.Expr) and isinstance(call := s.value, ast.Call)
        if getattr(call.func, "id", "") == "grow" and isinstance(call.args[0], ast.Name)
    }


def _lines_of_names(function: ast.FunctionDef) -> dict[str, set[int]]:
    """The lines in which each name is used; that in which a growing vector is made left out."""
    lines: dict[str, set[int]] = {}
    for node in nodes(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            lines.setdefault(node.id, set()).add(node.lineno)
    return lines


class Estimate:
    """Estimates the work of statements, as an expression of what is known before their loop."""

    def __init__(self, space: IterationSpace) -> None:
        self.space = space

    def of(self, statements: Sequence[ast.stmt]) -> str:
        own, parts = 0, []
        for statement in statements:
            heads = self._heads(statement)
            own += sum(_cost(node) for head in heads for node in nodes(head))
            for block in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
                if not block:
                    continue
                inner = self.of(block)
                trips = self._trips(statement)
                if trips == "1" and inner.isdecimal():
                    own += int(inner)
                else:
                    parts.append(inner if trips == "1" else f"({trips}) * ({inner})")
        return " + ".join([str(own + 1), *parts])

    @staticmethod
    def _heads(statement: ast.stmt) -> Iterator[ast.AST]:
        """The expressions of a statement itself."""
        for child in ast.iter_child_nodes(statement):
            if not isinstance(child, ast.stmt):
                yield child

    def _trips(self, statement: ast.stmt) -> str:
        """How often the block inside of a statement runs."""
        if isinstance(statement, ast.If):
            return "1"
        if isinstance(statement, ast.For):
            given = statement.iter.args  # pyright: ignore
            high = given[0] if len(given) == 1 else given[1]
            low = ast.Constant(0) if len(given) == 1 else given[0]
            if len(given) == 3 and ast.unparse(given[2]) == "-1":
                low, high = high, low
            if len(given) < 3 or ast.unparse(given[2]) in ("1", "-1"):
                known = [self.space.expanded(bound) for bound in (low, high)]
                if None not in known:
                    first, last = map(ast.unparse, known)  # pyright: ignore
                    return (
                        f"max(0, {last})" if first in ("0", "-1") else f"max(0, {last} - {first})"
                    )
        return str(UNKNOWN_TRIPS)


def _cost(node: ast.AST) -> int:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _CHEAP_CALLS:
        return 1
    return _COSTS.get(type(node), 0)
