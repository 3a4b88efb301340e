"""Values of the forward sweep, computed again at the start of a reversed block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from numgrad.codegen.adjoint.backward import Backward
from numgrad.codegen.adjoint.cuts import smallest_cut
from numgrad.codegen.adjoint.placement import Tapes
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Define,
    Ensure,
    KernelBranch,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    names_in,
)
from numgrad.codegen.adjoint.rotations import cycle_of, cycle_text
from numgrad.codegen.adjoint.text import Line, Texts


class NoReplay(Exception):
    """Running an iteration of a loop again would read what has been overwritten since."""

    def __init__(self, loop: KernelLoop) -> None:
        super().__init__(loop)
        self.loop = loop


class Recomputation:
    """Recomputation of the names that a block needs, from what is there and what is kept.

    Attributes
    ----------
    wanted
        By block, the names that are computed again; ``arrays`` are filled again, in a replay.
    cut
        The names of this block that are kept.
    """

    def __init__(self, backward: Backward, block: Block) -> None:
        self.backward, self.top = backward, block
        self.function, self.texts, self.tapes = backward.function, backward.texts, backward.tapes
        loop = block.loop
        is_replay = loop in self.tapes.replayed and loop is not None and block is loop.body
        self.replay = loop if is_replay else None
        self.wanted: dict[Block, set[str]] = defaultdict(set)
        self.arrays: set[str] = set()
        self.wanted[block] = backward.needed[block]
        self.cut: set[str] = set()
        if self.replay is None:
            self.cut = smallest_cut(
                block, backward.needed[block], backward.is_gone, backward.operations
            )
        self.lines = self._lines()

    def _lines(self) -> list[Line]:
        lines: list[Line] = []
        size = -1
        while size != (size := sum(map(len, self.wanted.values())) + len(self.arrays)):
            if self.replay is not None:
                self._want_of_replay(self.replay)
            lines = self._block(self.top)
            loop = self.top.loop
            if loop is not None and self.top is loop.body:
                lines = self._carried(loop) + lines
        if self.replay is not None:
            lines = [f"pos{loop.key}_ = 0" for loop in self.tapes.stacks(self.replay)] + lines
        return lines

    def _want_of_replay(self, replay: KernelLoop) -> None:
        """Want what loops inside of a replayed one keep, and the arrays that they read."""
        for name, loop in self.tapes.loops.items():
            if self.tapes.root(loop) is replay:
                self.wanted[self.function.homes[name]].add(name)
        for load in self.backward.read_again:
            if load.home.is_within(replay.body):
                self._read(load)

    def _is_own(self, array: str) -> bool:
        """Whether an array is one of the replayed iteration."""
        home = self.function.arrays[array].home
        return self.replay is not None and home is not None and home.is_within(self.replay.body)

    def _read(self, load: Load) -> None:
        if self._is_own(load.array) and load.copy is None:
            self.arrays.add(load.array)

    def _want(self, *values: Value | None) -> None:
        for value in values:
            for name in names_in(value):
                block = self.function.homes[name]
                if not block.is_within(self.top):
                    self.backward.need(name)
                elif block.loop is None or name != block.loop.variable:
                    self.wanted[block].add(name)

    def _carried(self, loop: KernelLoop) -> list[Line]:
        """Values that a loop carries, at the start of an iteration."""
        lines: list[Line] = []
        for c in loop.carried:
            if c.name not in self.wanted[loop.body] or c.name == loop.variable:
                continue
            step = c.step
            if c.name in self.cut:
                text = self.tapes.element(c.name, loop)
            elif not c.moves:
                self._want(c.start)
                text = self.texts.value(c.start)
            elif step is not None:
                self._want(c.start)
                text = f"{self.texts.value(c.start)} + {self.texts.value(step)} * k{loop.key}_"
            elif (cycle := cycle_of(loop, c)) is not None:
                self._want(*cycle)
                text = cycle_text([self.texts.value(v) for v in cycle], f"k{loop.key}_")
            else:
                text = self.tapes.element(c.name, loop)
            lines.append(f"{c.name} = {text}")
        return lines

    def _block(self, block: Block) -> list[Line]:
        out: list[Line] = []
        for s in reversed(block.statements):
            out[:0] = self._again(s, block)
        return out

    def _again(self, s: KernelStatement, block: Block) -> list[Line]:
        """The statement, if what it gives is wanted."""
        match s:
            case Define() if s.name in self.wanted[block]:
                if s.name in self.cut and block is self.top:
                    return [f"{s.name} = {self._kept_element(s.name, block)}"]
                self._want(*s.operands)
                return [self.texts.statement(s), *self._keeping(s.name)]
            case Load() if s.name in self.wanted[block]:
                return self._load_again(s, block)
            case KernelBranch():
                return self._branch_again(s, block)
            case KernelLoop():
                return self._loop_again(s, block)
            case Store() if self.replay is not None and s.array in self.arrays:
                self._want(*s.index, s.value)
                return [self.texts.statement(s)]
            case Allocate() if self.replay is not None and s.array in self.arrays:
                self._want(*s.shape)
                return [self.texts.statement(s)]
            case Ensure() if self.replay is not None and s.array in self.arrays:
                self._want(s.length)
                return [self.texts.statement(s)]
        return []

    def _kept_element(self, name: str, block: Block) -> str:
        assert block.loop is not None
        return self.tapes.element(name, block.loop)

    def _keeping(self, name: str) -> list[Line]:
        """The line that keeps a value, in a replay."""
        loop = self.tapes.loops.get(name)
        if loop is not None and self.replay is not None and self.tapes.root(loop) is self.replay:
            return [f"{self.tapes.element(name, loop)} = {name}"]
        return []

    def _load_again(self, s: Load, block: Block) -> list[Line]:
        if s.copy is not None and not (s.name in self.cut and block is self.top):
            array, index = s.copy
            self._want(*index)
            return [f"{s.name} = {self.texts.element(array, index)}", *self._keeping(s.name)]
        is_deep = self.replay is not None and block.loop is not self.replay
        if is_deep:
            home = self.function.arrays[s.array].home
            from_outside = home is not None and home.loop is not None
            if not self._is_own(s.array) and (self.backward.overwritten(s) or from_outside):
                assert self.replay is not None
                raise NoReplay(self.replay)
        elif self.backward.is_gone(s) or (s.name in self.cut and block is self.top):
            return [f"{s.name} = {self._kept_element(s.name, block)}"]
        if self.replay is not None:
            self._read(s)
        self.backward.read_again.add(s)
        self._want(*s.index)
        return [self.texts.statement(s), *self._keeping(s.name)]

    def _branch_again(self, s: KernelBranch, block: Block) -> list[Line]:
        sides: list[list[Line]] = []
        joined = [j for j in s.joined if j[0] in self.wanted[block]]
        for k, side in enumerate((s.then, s.other)):
            ends: list[Line] = []
            for name, *values in joined:
                self._want(values[k])
                ends.append(f"{name} = {self.texts.value(values[k])}")
            sides.append(self._block(side) + ends)
        if not any(sides):
            return []
        self._want(s.condition)
        lines = branch_lines(self.texts.value(s.condition), sides)
        for name, *_ in joined:
            lines += self._keeping(name)
        return lines

    def _loop_again(self, s: KernelLoop, block: Block) -> list[Line]:
        outs = [c for c in s.carried if c.out in self.wanted[block]]
        if self.replay is None:
            return [f"{c.out} = {self._kept_element(c.out, block)}" for c in outs]
        for c in outs:
            self.wanted[s.body].add(c.name)
        body: list[Line] = []
        size = -1
        while size != (size := sum(map(len, self.wanted.values())) + len(self.arrays)):
            body = self._block(s.body)
            if s.test is not None and (body or outs):
                self._want(s.condition)
                self._block(s.test)
            for c in s.carried:
                in_test = s.test is not None and c.name in self.wanted[s.test]
                if c.name in self.wanted[s.body] or in_test:
                    self._want(c.start, c.end)
        if not body and not outs and s not in self.tapes.loops.values():
            return []
        self._want(s.low, s.high, s.step, s.at_most)
        names = {c.name for c in s.carried if c.name in self.wanted[s.body] or c.name == s.variable}
        test = self._block(s.test) if s.test is not None else []
        lines = loop_lines(self.texts, self.tapes, s, body, test, names)
        for c in outs:
            lines += [f"{c.out} = {c.name}", *self._keeping(c.out)]
        return lines


def recomputed_lines(backward: Backward, block: Block) -> list[Line]:
    """The lines that compute what a reversed block needs again."""
    return Recomputation(backward, block).lines


def branch_lines(condition: str, sides: list[list[Line]]) -> list[Line]:
    """An ``if`` of which one side may be empty."""
    if not sides[0]:
        return [f"if not {condition}:", sides[1]]
    lines: list[Line] = [f"if {condition}:", sides[0]]
    return [*lines, "else:", sides[1]] if sides[1] else lines


def loop_lines(
    texts: Texts,
    tapes: Tapes,
    s: KernelLoop,
    body: list[Line],
    test: list[Line],
    names: Collection[str] | None = None,
    *,
    keeps: bool = True,
) -> list[Line]:
    """A loop of the forward sweep, with room for what it keeps.

    ``names`` are those of what it carries; all if None.
    """
    key = s.key
    own = [n for n, loop in tapes.loops.items() if loop is s] if keeps else []
    carried = [c for c in s.carried if names is None or c.name in names]
    lines = texts.assignment([c.name for c in carried], [texts.value(c.start) for c in carried])
    if keeps:
        lines += tapes.rooms(s)
    is_flat = tapes.is_rectangular(s)
    is_stack = tapes.is_inner(s) and bool(own) and not is_flat
    starts = [f"{tapes.element(c.name, s)} = {c.name}" for c in carried if c.name in own]
    inner = [*starts, *body, *texts.ends(carried)]
    if s.test is None:
        lines.append(f"n{key}_ = {texts.trips(s)}")
        if is_stack:
            lines += [f"base{key}_ = pos{key}_", f"pos{key}_ += n{key}_"]
        if not is_flat:
            count = f"pos{key}_" if is_stack else f"n{key}_"
            lines += [f"grow(tape_{t}, {count})" for t in own]
        word = "prange" if s.parallel else "range"
        lines += [f"for k{key}_ in {word}(n{key}_):", [texts.counted(s, s.variable), *inner]]
        return lines
    if not tapes.is_bounded(s):
        inner = [*[f"grow(tape_{t}, {tapes.place(s)} + 1)" for t in own], *inner]
    if is_stack:
        lines.append(f"base{key}_ = pos{key}_")
    counter = f"k{key}_ = {s.variable}"
    condition = texts.value(s.condition)
    if test:
        lines += ["while True:", [counter, *test, f"if not {condition}:", ["break"], *inner]]
    else:
        lines += [f"while {condition}:", [counter, *inner]]
    if is_stack:
        lines.append(f"pos{key}_ = base{key}_ + {s.variable}")
    return lines
