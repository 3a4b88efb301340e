"""Where statements of a kernel keep their results."""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.codegen.emitter import Emitter
from numgrad.compiler.lower.elements import elements
from numgrad.compiler.lower.pieces import Blocks, runs
from numgrad.compiler.lower.statements import Bodies, Statement
from numgrad.compiler.lower.terms import BUFFER, PART, PRODUCT, SCATTER, Term
from numgrad.compiler.lower.tree import Item, Loop, paths
from numgrad.compiler.lower.write import SourceWriter, Storage


class StoredStatements(SourceWriter):
    """Statements of a kernel in their loops, and what each is kept in.

    Attributes
    ----------
    terms
        What the kernel computes and keeps, by number.
    outside
        What it reads of others.
    runs
        Its outermost loops, and the statements between them.
    loops_of
        By number of a term, which of these its statement is in, and the loops around it.
    """

    def __init__(
        self,
        bodies: Bodies,
        statements: Sequence[Statement],
        items: Sequence[Item],
        exported: set[int],
        emitter: Emitter,
    ) -> None:
        super().__init__(bodies, {}, emitter, {})
        self.statements, self.items = statements, items
        self.exported, self.terms = exported, bodies.stored
        self.blocks = Blocks()
        self.runs = runs(items)
        self.loops_of: dict[int, tuple[int, list[Loop]]] = {}
        self._place_statements()
        self.outside: dict[int, Term] = {}
        self._find_storage()

    def _place_statements(self) -> None:
        for number, item in enumerate(self.runs):
            if isinstance(item, list):
                self.loops_of.update({s.term.number: (number, []) for s in item})
            elif isinstance(item, Statement):
                self.loops_of[item.term.number] = (number, [])
            else:
                for statement, path in paths(item):
                    self.loops_of[statement.term.number] = (number, path)

    def _find_storage(self) -> None:
        readers: dict[int, list[Statement]] = {}
        self._searched: set[int] = set()  # read at places that are computed
        for statement in self.statements:
            for symbol in self.bodies.loads(statement):
                readers.setdefault(symbol.detail[0], []).append(statement)
                if symbol.args:
                    self._searched.add(symbol.detail[0])
        for number, term in self.bodies.terms.items():
            if number not in self.terms:
                self.outside[number] = term
                memory = term.op == BUFFER or bool(term.shape)
                name = f"a{number}" if memory else f"r{number}"
                axes = tuple(range(len(term.shape)))
                self.storage[number] = Storage(name, axes, whole=True, memory=memory)
        for statement in self.statements:
            term = statement.term
            self.storage[term.number] = self._storage(statement, readers.get(term.number, []))

    def _storage(self, statement: Statement, readers: list[Statement]) -> Storage:
        term = statement.term
        number = term.number
        item, path = self.loops_of[number]
        everything = tuple(range(len(term.shape)))
        if term.op in (PART, PRODUCT):
            owner = term.detail[0] if term.op == PART else number
            return Storage(f"a{owner}", everything, whole=True)
        elsewhere = any(self.loops_of[r.term.number][0] != item for r in readers)
        if statement.small and number not in self.exported:
            return self._storage_of_small(term, elsewhere)
        over_top = bool(path) and not {*path[0].merged}.isdisjoint(statement.reduced.values())
        looped = any(loop is not None for loop in statement.loops)
        if not (path or statement.small) or (over_top and not looped):
            return Storage(f"r{number}", (), whole=True, memory=False)
        if number in self.exported or elsewhere or over_top:
            return Storage(f"a{number}", everything, whole=True)
        return self._storage_in_nest(statement, readers, path)

    def _storage_of_small(self, term: Term, elsewhere: bool) -> Storage:
        """A place in a block for what a nest, another run or a computed index reads."""
        everything = tuple(range(len(term.shape)))
        memory = elsewhere or term.number in self._searched
        length = elements(term.shape)
        if not memory or not length:
            return Storage(f"r{term.number}", everything, memory=False)
        name, first = self.blocks.take(term.dtype, length)
        return Storage(name, everything, whole=True, first=first)

    def _storage_in_nest(
        self, statement: Statement, readers: list[Statement], path: list[Loop]
    ) -> Storage:
        """An array of what one iteration of the loops shared with all readers needs."""
        term = statement.term
        common = list(path)
        for reader in readers:
            other = self.loops_of[reader.term.number][1]
            common = [a for a, b in zip(common, other, strict=False) if a is b]
        open_loops = {loop for each in common for loop in each.merged}
        for each in reversed(path):  # a scan takes up what the loops inside of its own left
            if statement.scanned is None or each.loop == statement.scanned:
                break
            open_loops.difference_update(each.merged)
        axes = tuple(
            a
            for a, loop in enumerate(statement.loops)
            if loop is not None and loop not in open_loops
        )
        lanes = path[0].lanes and not (len(common) > 1 and common[1].rows)
        if lanes:
            memory = bool(axes or statement.reduced) or not self._same_run(statement, readers)
        else:
            memory = bool(axes) or term.op == SCATTER
        return Storage(f"a{term.number}", axes, lanes=lanes, memory=memory)

    def _same_run(self, statement: Statement, readers: Sequence[Statement]) -> bool:
        """Whether readers follow a statement without a loop in between."""
        _, path = self.loops_of[statement.term.number]
        run: list[Statement] = []
        for item in path[-1].items:
            if isinstance(item, Loop):
                run = [] if statement not in run else run
                if statement in run:
                    break
            else:
                run.append(item)
        return statement in run and all(reader in run for reader in readers)
