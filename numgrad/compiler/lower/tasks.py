"""Nests called for each of their tasks, and what these computed put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from numgrad.codegen.reduction_loops import numpy_name
from numgrad.codegen.reduction_plan import step_of
from numgrad.codegen.tasks import TASK
from numgrad.compiler.graph.polynomial import Terms as Length
from numgrad.compiler.graph.polynomial import add, constant, multiply, value_of
from numgrad.compiler.lower.nest import Nest
from numgrad.compiler.lower.statements import Statement
from numgrad.compiler.lower.storage import StoredStatements
from numgrad.compiler.lower.terms import PART, Term, count
from numgrad.compiler.lower.write import text


@dataclass
class Work:
    """What one loop, or matrix product, takes.

    Attributes
    ----------
    picoseconds
        Of arithmetic in one thread.
    moved
        Bytes of the arrays that it reads and writes.
    """

    picoseconds: Length = ()
    moved: Length = ()


class TaskWriter(StoredStatements):
    """Writes the calls of nests."""

    def _call(self, nest: Nest, kept: list[str]) -> Work:
        """Run a nest."""
        k, loop = nest.number, nest.loop
        produced = {s.term.number for s in loop.statements()}
        rows = {f"a{s.term.number}": s for s in nest.rows}
        for name in nest.arguments:
            if name.startswith("s_"):
                continue
            number = int(name[1:])
            inside = number in produced and number not in self.exported
            if name.startswith("n") or not (name in rows or inside):
                self.arguments[name] = None
        self.need(loop.length)
        self.need(nest.per_iteration)
        total, inner = text(loop.length), text(nest.per_iteration)
        value = value_of(nest.per_iteration)
        row = " + ".join(text(count(s.term.shape)) for s in nest.rows)
        for s in nest.rows:
            self.need(count(s.term.shape))
        self.put(1, f"total{k} = {total}")
        if nest.serial:
            self.put(1, f"step{k}, tasks{k} = max(total{k}, 1), 1")
        else:
            least = "" if value is None or row else str(-(-TASK // max(value, 1)))
            if not least:
                least = f"{self.use('least_step', 'codegen.tasks')}({inner}, {row or 0})"
            cut = self.use("cut_in_lanes" if loop.lanes else "cut", "codegen.tasks")
            self.put(1, f"step{k}, tasks{k} = {cut}(total{k}, {least})")
        partial = (*nest.scalars, *nest.rows)
        depth = 1
        if partial:  # one task computes the results where they belong
            self.put(1, f"if tasks{k} == 1:")
            results = [f"r{s.term.number}" for s in nest.scalars]
            self.put(2, self._task(nest, results, "0", f"total{k}", nest.arguments))
            self.put(1, "else:")
            depth = 2
        alike: dict[tuple[str, str], list[Statement]] = {}
        for s in nest.scalars:
            kind = step_of(s.term.detail[0], s.term.dtype), numpy_name(s.term.dtype)
            alike.setdefault(kind, []).append(s)
        place = {
            s.term.number: (f"p{group[0].term.number}", column)
            for group in alike.values()
            for column, s in enumerate(group)
        }
        for group in (*alike.values(), *([s] for s in nest.rows)):
            n, dtype = group[0].term.number, numpy_name(group[0].term.dtype)
            size = self._columns(group, nest)
            self.put(depth, f"p{n} = np.empty((tasks{k} + 1, {size}), {dtype})")
            if group[0] in nest.rows:
                self.put(depth, f"q{n} = int64(p{n}.ctypes.data)")
        self.put(depth, f"for task{k} in @RANGE@(tasks{k}):")
        given = [self._row(rows[a].term, k) if a in rows else a for a in nest.arguments]
        of_task = [place[s.term.number] for s in nest.scalars]
        results = [f"{name}[task{k}, {column}]" for name, column in of_task]
        stop = f"min(task{k} * step{k} + step{k}, total{k})"
        self.put(depth + 1, self._task(nest, results, f"task{k} * step{k}", stop, given))
        for group in (*alike.values(), *([s] for s in nest.rows)):
            self._finish(depth, group, k, nest)
        for s in nest.scalars:
            self._hand_out(s.term.number, f"r{s.term.number}")
        moved = self._moved([int(name[1:]) for name in nest.arguments if name[0] == "a"])
        return Work(multiply(loop.length, nest.work_ps), moved)

    def _task(
        self, nest: Nest, results: list[str], start: str, stop: str, given: Sequence[str]
    ) -> str:
        """The call of a nest for one task."""
        call = f"nest_{nest.number}({', '.join([start, stop, *given])})"
        return f"{', '.join(results)} = {call}" if results else call

    def _row(self, term: Term, k: int) -> str:
        """Where a task keeps its partial sums."""
        size = text(multiply(count(term.shape), constant(term.dtype.itemsize)))
        return f"q{term.number} + task{k} * ({size})"

    def _columns(self, group: Sequence[Statement], nest: Nest) -> str:
        """How many numbers a task keeps of results that are put together in the same way."""
        return text(count(group[0].term.shape)) if group[0] in nest.rows else str(len(group))

    def _finish(self, depth: int, group: Sequence[Statement], k: int, nest: Nest) -> None:
        """Put the partial results of tasks together."""
        term = group[0].term
        n, size = term.number, self._columns(group, nest)
        many = group[0] in nest.rows
        step = step_of(term.detail[0], term.dtype)
        join = self.use(f"join_{'rows' if many else 'few'}_{step}", "codegen.accumulation")
        if many:
            whole = f"x{n}.reshape({size})" if n in self.exported else f"x{n}"
            self.put(depth, f"{join}(p{n}, tasks{k}, {size}, {whole})")
            return
        self.put(depth, f"{join}(p{n}, tasks{k}, {size})")
        for column, s in enumerate(group):
            self.put(depth, f"r{s.term.number} = p{n}[0, {column}]")

    def _hand_out(self, number: int, value: str) -> None:
        """A number is known."""
        term = self.terms[number]
        if term.op == PART:
            whole, shape, axis, start = term.detail
            place = ", ".join(text(start) if a == axis else "0" for a in range(len(shape)))
            self.need(start)
            self.put(1, f"x{whole}[{place}] = {value}")
            return
        self.names[self.bodies.load(term, ())] = value
        if number in self.exported:
            first = ", ".join(["0"] * max(len(term.shape), 1))
            self.put(1, f"x{number}[{first}] = {value}")

    def _moved(self, numbers: Iterable[int]) -> Length:
        """What the arrays of some terms hold, each once."""
        total: Length = ()
        for term in {n: self.terms.get(n) or self.outside.get(n) for n in numbers}.values():
            if term is not None:
                size = multiply(count(term.shape), constant(term.dtype.itemsize))
                total = add(total, size)
        return total
