"""The backward sweep of a function, as lines of the kernel language.

Note [Backward sweep]
---------------------
The sweep goes through the statements from the last to the first. What it needs of the forward
sweep's values is, in this order of preference: still there (arguments, results of statements
outside of loops, elements that nobody overwrites); computed again, at the start of the reversed
iteration, from what is there; kept, one value for each iteration of its loop (what a loop carries,
what an inner loop resulted in, elements that are overwritten). No array is ever put back.

A cotangent is called as its value with ``__b``. The first contribution in its block assigns, where
it is not in a branch or loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from numgrad.codegen.adjoint.activity import Activity, CotangentBlocks
from numgrad.codegen.adjoint.operations import LABELS, Operations
from numgrad.codegen.adjoint.overwrites import Overwrites
from numgrad.codegen.adjoint.placement import Tapes
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Carried,
    Define,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    blocks_of,
    names_in,
    walk,
)
from numgrad.codegen.adjoint.text import Line, Texts, zero


def bar(name: str) -> str:
    """The name of the cotangent."""
    return f"{name}__b"


class Contribution:
    """A line that adds to the cotangent of a name."""

    def __init__(self, name: str, value: str) -> None:
        self.name, self.value = name, value

    def __str__(self) -> str:
        return f"{bar(self.name)} += {self.value}"


def contributions(lines: Iterable[Line]) -> Iterator[str]:
    """The names that nested lines contribute to."""
    for line in lines:
        if isinstance(line, list):
            yield from contributions(line)
        elif isinstance(line, Contribution):
            yield line.name


def _depth(statements: Iterable[KernelStatement]) -> int:
    """How deep loops are nested in statements."""
    return max(
        [
            isinstance(s, KernelLoop) + _depth([one for b in blocks_of(s) for one in b.statements])
            for s in statements
        ],
        default=0,
    )


def _depth_of_text(lines: Iterable[Line]) -> int:
    """How deep loops are nested in nested lines."""
    deepest = before = 0
    for line in lines:
        if isinstance(line, list):
            deepest = max(deepest, before + _depth_of_text(line))
        else:
            before = int(str(line).startswith(("for ", "while ")))
    return deepest


def makers_of(function: KernelFunction) -> dict[str, KernelStatement | Carried]:
    """The statement, or carried value, that gives each name its value."""
    makers: dict[str, KernelStatement | Carried] = {}
    for s in walk(function.body):
        if isinstance(s, Define | Load):
            makers[s.name] = s
        elif isinstance(s, KernelBranch):
            makers.update({name: s for name, _, _ in s.joined})
        elif isinstance(s, KernelLoop):
            makers[s.variable] = s
            for c in s.carried:
                makers[c.out] = s
                if c.name != s.variable:
                    makers[c.name] = c
    return makers


class Backward:
    """The backward sweep of a function: Note [Backward sweep].

    Attributes
    ----------
    needed
        By block, the names that the reversed block reads.
    read_again
        Elements that reversed blocks read once more, of arrays that a replay has to fill before.
    touched
        Names with a cotangent.
    recompute
        Gives the lines that compute what a reversed block needs again.
    sunk
        The sides of branches that statements before them are reversed in: Note [Sinking] in
        ``activity``.
    fused
        Loops whose iterations are reversed one by one, with the lines that give the cotangents of
        what they carry before the loop: Note [Fused sweeps] in ``fused``. ``reversals`` has the
        lines that end each iteration; ``early`` the names to whose cotangents these add.
    """

    def __init__(
        self,
        function: KernelFunction,
        operations: Operations,
        activity: Activity,
        replayed: set[KernelLoop],
        recompute: Callable[[Backward, Block], list[Line]],
        fused: Mapping[KernelLoop, list[Line]],
    ) -> None:
        self.recompute = recompute
        self.function, self.operations = function, operations
        self.texts = Texts(function, operations)
        self.activity, self.fused = activity, fused
        self.sunk = CotangentBlocks(function, activity)
        self.overwritten = Overwrites(function)
        self.tapes = Tapes(function, self.texts, {*replayed, *fused})
        self.needed: dict[Block, set[str]] = defaultdict(set)
        self.touched: set[str] = set()
        self.reversals: dict[KernelLoop, list[Line]] = {}
        self.early: set[str] = set()
        self.read_again: set[Load] = set()
        lines = self._reversed(function.body)
        self.lines = self._opened(function.body, lines)

    @cached_property
    def is_mostly_fused(self) -> bool:
        """Whether loops are nested deeper in fused ones than in those that are reversed later.

        Nests that are deeper count as more work, as how often loops run is not known.
        """
        return any(_depth([loop]) > _depth_of_text(self.lines) for loop in self.fused)

    # ---------------------------------------------------------------------------- what is needed

    def need(self, *values: Value) -> None:
        """Note that the backward sweep reads values."""
        for value in values:
            for name in names_in(value):
                block = self.function.homes[name]
                if not self._is_there(block) and name != block.loop.variable:  # pyright: ignore
                    self.needed[block].add(name)

    def _is_there(self, block: Block) -> bool:
        """Whether the values of a block are there when it is reversed."""
        return block.loop is None or block.loop in self.fused

    def is_gone(self, load: Load) -> bool:
        """Whether the backward sweep cannot read the element itself."""
        if load.copy is not None:
            return False
        home = self.function.arrays[load.array].home
        if home is not None and home.loop is not None:
            loop = load.home.loop
            root = loop if loop in self.tapes.replayed else self.tapes.root(loop)
            if home.loop is not root:  # of the arrays of all iterations only the last is there
                return True
        return self.overwritten(load)

    def has_cotangent(self, array: str) -> bool:
        return self.function.arrays[array].differentiable and array in self.activity

    # -------------------------------------------------------------------------------- the sweep

    def _reversed(self, block: Block) -> list[Line]:
        out: list[Line] = []
        for statement in reversed(block.statements):
            if not (isinstance(statement, Define | Load) and statement.name in self.sunk.blocks):
                self._reverse(statement, out)
        for statement in self.sunk.statements[block]:
            self._reverse(statement, out)
        return out

    def _reverse(self, statement: KernelStatement, out: list[Line]) -> None:
        match statement:
            case Define():
                self._reverse_define(statement, out)
            case Load():
                if statement.name in self.touched and statement.name in self.activity:
                    place = self._cotangent_at(statement)
                    out.append(f"{place} += {bar(statement.name)}")
            case Store():
                self._reverse_store(statement, out)
            case KernelBranch():
                self._reverse_branch(statement, out)
            case KernelLoop():
                self._reverse_loop(statement, out)

    def add(self, out: list[Line], value: Value, text: str) -> None:
        """Add to the cotangent of a value, if it has one."""
        if isinstance(value, str) and value in self.activity:
            self.touched.add(value)
            out.append(Contribution(value, text))

    def _reverse_define(self, s: Define, out: list[Line]) -> None:
        if s.name not in self.activity or s.name not in self.touched:
            return
        function = self.function
        dtypes = [function.dtype_of(o) for o in s.operands]
        words = {c: self.texts.value(o) for c, o in zip(LABELS, s.operands, strict=False)}
        values: dict[str, Value] = dict(zip(LABELS, s.operands, strict=False)) | {"t": s.name}
        for k, operand in enumerate(s.operands):
            if operand not in self.activity:
                continue
            is_sum = function.homes[str(operand)].loop is not s.home.loop
            template = self.operations.partial(
                s.operation, k, dtypes, function.dtypes[s.name], s.operands, is_sum
            )
            if template is None:
                continue
            for label, value in values.items():
                if f"{{{label}}}" in template:
                    self.need(value)
            self.add(out, operand, template.format(**words, t=s.name, g=bar(s.name)))

    def _cotangent_at(self, s: Load | Store) -> str:
        self.need(*s.index)
        return self.texts.element(bar(s.array), s.index)

    def _reverse_store(self, s: Store, out: list[Line]) -> None:
        if not self.has_cotangent(s.array):
            return
        place = self._cotangent_at(s)
        self.add(out, s.value, place)
        if not s.add:
            out.append(f"{place} = {zero(self.function.arrays[s.array].dtype)}")

    def _reverse_branch(self, s: KernelBranch, out: list[Line]) -> None:
        sides: list[list[Line]] = []
        for k, side in enumerate((s.then, s.other)):
            lines: list[Line] = []
            for name, *values in s.joined:
                if name in self.touched:
                    self.add(lines, values[k], bar(name))
            sides.append(self._opened(side, lines + self._reversed(side)))
        if not any(sides):
            return
        self.need(s.condition)
        condition = self.texts.value(s.condition)
        if sides[0]:
            out += [f"if {condition}:", sides[0]]
            if sides[1]:
                out += ["else:", sides[1]]
        else:
            out += [f"if not {condition}:", sides[1]]

    def _reverse_fused(self, s: KernelLoop, out: list[Line]) -> None:
        """Reverse one iteration; the forward sweep has the lines in its loop."""
        carried = [c for c in s.carried if c.name in self.activity]
        self.touched |= {c.name for c in carried}
        lines: list[Line] = []
        for c in carried:
            self.add(lines, c.end, bar(c.out))
        lines = self._opened(s.body, lines + self._reversed(s.body))
        homes = self.function.homes
        self.early |= {n for n in contributions(lines) if not homes[n].is_within(s.body)}
        self.reversals[s] = lines
        for c in carried:
            self.add(out, c.start, bar(c.out))

    def _reverse_loop(self, s: KernelLoop, out: list[Line]) -> None:
        if s in self.fused:
            self._reverse_fused(s, out)
            return
        carried = [c for c in s.carried if c.name in self.activity]
        self.touched |= {c.name for c in carried}
        copies: list[Line] = []
        lines: list[Line] = []
        for c in carried:
            if c.moves:
                copies.append(f"{bar(c.name)}_end = {bar(c.name)}")
                self.add(lines, c.end, f"{bar(c.name)}_end")
        lines += self._reversed(s.body)
        moving = [c.name for c in carried if c.moves]
        if not lines and not moving:
            for c in carried:
                if c.out in self.touched:
                    self.add(out, c.start, bar(c.out))
            return
        passing = {c.name for c in carried if not c.moves}
        body = self._opened(s.body, lines, moving, passing)
        self.need(s.low, s.high, s.step)
        if s.test is not None:
            self.need(s.count)
        for c in carried:
            before = bar(c.out) if c.out in self.touched else zero(self.function.dtypes[c.name])
            out.append(f"{bar(c.name)} = {before}")
        key = s.key
        out.append(f"n{key}_ = {self.texts.trips(s)}")
        if s in self.tapes.stacks(self.tapes.root(s)):
            out += [f"pos{key}_ -= n{key}_", f"base{key}_ = pos{key}_"]
        inner = [self.texts.counted(s, s.variable), *copies, *body]
        word = "prange" if s.parallel else "range"
        out += [f"for k{key}_ in {word}(n{key}_ - 1, -1, -1):", inner]
        for c in carried:
            self.add(out, c.start, bar(c.name))

    def _opened(
        self,
        block: Block,
        out: list[Line],
        moving: Iterable[str] = (),
        passing: Iterable[str] = (),
    ) -> list[Line]:
        """The reversed block with what it needs at its start: values, cotangents of zero."""
        homes, sunk = self.function.homes, self.sunk.blocks
        moving = list(moving)
        own = {n for n in self.touched if (sunk.get(n) or homes[n]) is block}
        names = (own - set(passing)) | set(moving)
        names -= self.early
        started: set[str] = set()
        zeros: list[Line] = []

        def start(name: str) -> None:
            started.add(name)
            zeros.append(f"{bar(name)} = {zero(self.function.dtypes[name])}")

        for k, line in enumerate(out):
            if isinstance(line, Contribution):
                if line.name in names and line.name not in started:
                    started.add(line.name)
                    out[k] = f"{bar(line.name)} = {line.value}"
            elif isinstance(line, list):
                for name in contributions(line):
                    if name in names and name not in started:
                        start(name)
        for name in moving:
            if name not in started:
                start(name)
        if self._is_there(block):
            return zeros + out
        local: list[Line] = []
        for s in block.statements:
            if isinstance(s, Allocate) and self.has_cotangent(s.array):
                self.need(*s.shape)
                local.append(self._zeros_like(s))
        return self.recompute(self, block) + local + zeros + out

    def _zeros_like(self, s: Allocate) -> str:
        like = Allocate(s.array, "growing" if s.maker == "growing" else "zeros", s.shape)
        return self.texts.allocation(bar(s.array), like)
