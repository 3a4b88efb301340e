"""Where arrays are made, and where what is kept of an iteration lies.

Note [Tapes]
------------
What is kept of each iteration of a loop lies in a vector, a tape, at the iteration's number. Where
loops are in loops, that is the number among all iterations of the nest, if the inner ones are as
long in each of the outer ones; else a tape is a stack, with the place where the inner loop's part
begins (``base``). A *replayed* loop runs the forward part of an iteration again at the start of the
reversed iteration, so that tapes of the loops in it are as long as one iteration.
"""

from __future__ import annotations

from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    KernelBranch,
    KernelFunction,
    KernelLoop,
    Value,
    blocks_of,
    names_in,
    walk,
)
from numgrad.codegen.adjoint.text import Line, Texts


def raise_allocations(function: KernelFunction) -> None:
    """Move allocations out of branches, as names of arrays are those of a whole iteration.

    One whose shape is computed in the branch stays there.
    """
    _raise_in(function, function.body)


def _raise_in(function: KernelFunction, block: Block) -> None:
    statements = []
    for s in block.statements:
        for inner in blocks_of(s):
            _raise_in(function, inner)
        if isinstance(s, KernelBranch):
            for side in (s.then, s.other):
                movable = [
                    a
                    for a in side.statements
                    if isinstance(a, Allocate)
                    and not any(
                        function.homes[n].is_within(side) for v in a.shape for n in names_in(v)
                    )
                ]
                for a in movable:
                    a.home = block
                    function.arrays[a.array].home = block
                side.statements = [a for a in side.statements if a not in movable]
                statements += movable
        statements.append(s)
    block.statements = statements


def stays_in_branch(function: KernelFunction) -> list[Allocate]:
    """Allocations that are in branches."""
    return [
        s
        for s in walk(function.body)
        if isinstance(s, Allocate)
        and s.home is not function.body
        and (s.home.loop is None or s.home is not s.home.loop.body)
    ]


class Tapes:
    """Where kept values lie: Note [Tapes].

    Attributes
    ----------
    loops
        The loop of whose iterations each kept name is.
    replayed
        Loops that are replayed.
    """

    def __init__(self, function: KernelFunction, texts: Texts, replayed: set[KernelLoop]) -> None:
        self.function, self.texts, self.replayed = function, texts, replayed
        self.loops: dict[str, KernelLoop] = {}

    def root(self, loop: KernelLoop | None) -> KernelLoop | None:
        """The replayed loop around this one."""
        while loop is not None:
            loop = loop.home.loop
            if loop in self.replayed:
                return loop
        return None

    def chain(self, loop: KernelLoop) -> list[KernelLoop]:
        """The loops whose iterations a tape of this loop counts, outermost first."""
        root, around = self.root(loop), [loop]
        outer = loop.home.loop
        while outer is not root:
            assert outer is not None
            around.append(outer)
            outer = outer.home.loop
        return around[::-1]

    def is_inner(self, loop: KernelLoop) -> bool:
        return len(self.chain(loop)) > 1

    def is_rectangular(self, loop: KernelLoop) -> bool:
        """Whether the length of the loop's tapes is known before its outermost loop."""
        chain = self.chain(loop)
        homes = self.function.homes

        def is_inside(value: Value) -> bool:
            return any(homes[name].is_within(chain[0].body) for name in names_in(value))

        return all(
            one.test is None and not any(map(is_inside, (one.low, one.high, one.step)))
            for one in chain
        )

    def stacks(self, root: KernelLoop | None) -> list[KernelLoop]:
        """Loops with tapes that are stacks, up to a replayed loop."""
        loops = {
            loop.key: loop
            for loop in self.loops.values()
            if self.is_inner(loop) and self.root(loop) is root and not self.is_rectangular(loop)
        }
        return [loops[key] for key in sorted(loops)]

    def is_bounded(self, loop: KernelLoop) -> bool:
        """Whether room for all iterations of a while loop can be made before it."""
        return loop.test is not None and loop.at_most is not None and not self.is_inner(loop)

    def place(self, loop: KernelLoop) -> str:
        """Where the tapes of a loop have the values of the current iteration."""
        chain = self.chain(loop)
        if len(chain) == 1:
            return f"k{loop.key}_"
        if not self.is_rectangular(loop):
            return f"base{loop.key}_ + k{loop.key}_"
        place = f"k{chain[0].key}_"
        for inner in chain[1:]:
            place = f"({place}) * n{inner.key}_ + k{inner.key}_"
        return place

    def element(self, name: str, loop: KernelLoop) -> str:
        """Keep a name, and return where its value of the current iteration lies."""
        self.loops[name] = loop
        return f"tape_{name}[{self.place(loop)}]"

    def rooms(self, loop: KernelLoop) -> list[Line]:
        """The lines before a loop that make room for values of a rectangular nest."""
        lines: list[Line] = []
        done: set[int] = set()
        for name, owner in self.loops.items():
            chain = self.chain(owner)
            if chain == [loop] and self.is_bounded(loop):
                assert loop.at_most is not None
                lines.append(f"grow(tape_{name}, {self.texts.value(loop.at_most)})")
            elif chain[0] is loop and self.is_rectangular(owner):
                for one in chain:
                    if one.key not in done:
                        done.add(one.key)
                        lines.append(f"n{one.key}_ = {self.texts.trips(one)}")
                size = " * ".join(f"n{one.key}_" for one in chain)
                lines.append(f"grow(tape_{name}, {size})")
        return lines
