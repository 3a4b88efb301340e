"""Loops over time in segments, of which the gradient keeps the states at the starts only.

Note [Checkpoints of loops]
---------------------------
A loop over time whose iterations are reversed needs values of all of them, last first. With
``save="less"`` it runs in segments of as many iterations as there are segments, the square root of
all. What it keeps are *checkpoints*: the state at the start of each segment, that is the arrays
that the loop writes and reads, and what it carries. The backward sweep runs each segment a second
time before it reverses it (two levels of what Griewank and Walther, "Algorithm 799: revolve",
2000, do in many). A step is so computed three times in place of two, and memory is in proportion to
the square root of the number of steps.

In the loop representation the segments are a loop around the one over time, and a replayed one:
Note [Tapes] in ``placement``. In it the arrays of the state are copies that belong to the segment,
so that a segment can run again without what comes after it changing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from numgrad.codegen.adjoint.placement import Tapes
from numgrad.codegen.adjoint.reading import number
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Carried,
    Define,
    Expression,
    KernelArray,
    KernelFunction,
    KernelLoop,
    KernelStatement,
    Load,
    Store,
    Value,
    add,
    multiply,
    subtract,
    walk,
)
from numgrad.codegen.dtypes import INT64

Refuse = Callable[[int, str, str], NoReturn]
"""Raises for a line of the function, with what is the matter and what to do."""


def loops_over_time(tapes: Tapes) -> list[KernelLoop]:
    """Outermost loops of whose iterations a gradient keeps values."""
    loops = {}
    for name, loop in tapes.loops.items():
        outer = tapes.chain(loop)[0]
        if tapes.root(loop) is None and outer not in tapes.replayed and outer.home.loop is None:
            loops[outer.key] = (outer, name)
    return [loop for _, (loop, _) in sorted(loops.items())]


def put_in_segments(function: KernelFunction, tapes: Tapes, refuse: Refuse) -> list[KernelLoop]:
    """Put the loops over time of a function into segments: Note [Checkpoints of loops].

    ``tapes`` are those of its gradient as it stands. Returned are the loops over segments. A loop
    that cannot have any stays as it is if another one can.
    """
    segments = []
    problem: _NoSegments | None = None
    for loop in loops_over_time(tapes):
        try:
            segments.append(_Segments(function, loop).write())
            number(function)
        except _NoSegments as reason:
            problem = problem or reason
    if problem is not None and not segments:
        refuse(problem.line, *problem.words)
    return segments


def check_segments(segments: Sequence[KernelLoop], tapes: Tapes, refuse: Refuse) -> None:
    """Raise for a segment that cannot run again."""
    for name, loop in tapes.loops.items():
        outer = tapes.chain(loop)[0]
        if outer in segments and outer is not loop and outer not in tapes.replayed:
            refuse(
                outer.line,
                f"{name} in this loop is read from an array that changes after it",
                'use save="all"',
            )


class _NoSegments(Exception):
    """A loop that is not put into segments: what is the matter, and what to do."""

    def __init__(self, line: int, *words: str) -> None:
        super().__init__(*words)
        self.line, self.words = line, words


class _Segments:
    """Segments of one loop."""

    def __init__(self, function: KernelFunction, loop: KernelLoop) -> None:
        self.function, self.loop = function, loop
        self.count = len(function.dtypes) + len(function.arrays)
        if loop.test is not None:
            raise _NoSegments(
                loop.line,
                "the number of steps of this loop is not known before it, as of while, break and "
                'return, so that save="less" has no places for states',
                'use save="all"',
            )
        if loop.home is not function.body:
            raise _NoSegments(
                loop.line,
                'this loop is in a branch, where save="less" keeps no states',
                'write the branch in the loop, or use save="all"',
            )
        inside = list(walk(loop.body))
        own = {s.array for s in inside if isinstance(s, Allocate)}
        stored = {
            s.array for s in walk(function.body) if isinstance(s, Store) and s.place > loop.place
        }
        loaded = {s.array for s in inside if isinstance(s, Load)}
        self.state = sorted((stored & loaded) - own)
        for name in self.state:
            if function.arrays[name].grows:
                raise _NoSegments(loop.line, f"{name} grows in this loop", 'use save="all"')

    # ---------------------------------------------------------------------------- names and blocks

    def _name(self, stem: str, dtype: np.dtype, home: Block) -> str:
        """A new name of a scalar."""
        name = self._unused(stem.rstrip("_0123456789") or "v")
        self.function.dtypes[name], self.function.homes[name] = dtype, home
        return name

    def _unused(self, stem: str) -> str:
        while True:
            self.count += 1
            name = f"{stem}_{self.count}"
            if name not in self.function.dtypes and name not in self.function.arrays:
                return name

    def _put(self, block: Block, statement: KernelStatement) -> None:
        statement.home, statement.line = block, self.loop.line
        block.statements.append(statement)

    def _integer(self, stem: str, value: Value) -> str:
        """A name for an integer before the loop."""
        name = self._name(stem, INT64, self.function.body)
        self._put(self.before, Define(name, "copy", (value,)))
        return name

    def _array(self, stem: str, like: str, home: Block, more: tuple[Value, ...] = ()) -> str:
        """A new array of the shape of another one, with more axes before."""
        array = self.function.arrays[like]
        shape = (*more, *self._shape(like))
        name = self._unused(f"{like}_{stem}")
        self.function.arrays[name] = KernelArray(
            name, array.dtype, len(shape), "local", home, shape
        )
        return name

    def _shape(self, name: str) -> tuple[Value, ...]:
        array = self.function.arrays[name]
        return array.shape or tuple([Expression("shape", (name, k)) for k in range(array.ndim)])

    def _over_elements(
        self, name: str, block: Block, body: Callable[[Block, tuple[Value, ...]], None]
    ) -> None:
        """Loops over all elements of an array."""
        index: list[Value] = []
        for length in self._shape(name):
            inner = Block(None, block)
            variable = self._name("e", INT64, inner)
            loop = KernelLoop(variable, 0, length, 1, inner)
            inner.loop = loop
            self._put(block, loop)
            index.append(variable)
            block = inner
        body(block, tuple(index))

    # -------------------------------------------------------------------------------- the segments

    def write(self) -> KernelLoop:
        """Replace the loop by that over segments, which is returned."""
        function, loop = self.function, self.loop
        home = function.body
        place = home.statements.index(loop)
        self.before = Block()
        self.steps = steps = self._integer("steps", self._steps())
        size = self._integer(
            "segment_length", Expression("max", (1, Expression("isqrt", (steps,))))
        )
        count = self._integer("segments", Expression("//", (subtract(add(steps, size), 1), size)))
        body = Block(None, home)
        segment = self._name("segment", INT64, body)
        outer = KernelLoop(segment, 0, count, 1, body, line=loop.line)
        outer.home, body.loop = home, outer
        copies: dict[str, str] = {}
        for name in self.state:
            kept = self._array("checkpoints", name, home, (count,))
            self._put(self.before, Allocate(kept, "empty", function.arrays[kept].shape))
            copies[name] = self._array("segment", name, body)
            self._put(body, Allocate(copies[name], "empty", function.arrays[copies[name]].shape))
            self._over_elements(
                name, body, lambda b, i, n=name, k=kept: self._open(b, i, n, k, copies[n], segment)
            )
        self._shorten(segment, size)
        self._carry(outer)
        self._put(body, loop)
        loop.body.parent = body
        for s in walk(loop.body):
            if isinstance(s, Load | Store):
                s.array = copies.get(s.array, s.array)
        for name, own in copies.items():
            self._over_elements(name, body, lambda b, i, n=name, o=own: self._close(b, i, n, o))
        home.statements[place : place + 1] = [*self.before.statements, outer]
        for s in home.statements:
            s.home = home
        return outer

    def _open(
        self, block: Block, index: tuple[Value, ...], name: str, kept: str, copy: str, segment: str
    ) -> None:
        """Keep an element of the state, and copy it."""
        place = (segment, *index)
        value = self._name(name, self.function.arrays[name].dtype, block)
        self._put(block, Load(value, name, index, (kept, place)))
        self._put(block, Store(kept, place, value))
        self._put(block, Store(copy, index, value))

    def _close(self, block: Block, index: tuple[Value, ...], name: str, copy: str) -> None:
        """Copy an element of the state back."""
        value = self._name(name, self.function.arrays[name].dtype, block)
        self._put(block, Load(value, copy, index))
        self._put(block, Store(name, index, value))

    def _steps(self) -> Value:
        """How many iterations the loop has."""
        loop, step = self.loop, self.loop.step
        if isinstance(step, int):
            span = subtract(loop.high, loop.low) if step > 0 else subtract(loop.low, loop.high)
            if abs(step) != 1:
                span = Expression("//", (add(span, abs(step) - 1), abs(step)))
        else:
            span = subtract(0, Expression("//", (subtract(loop.low, loop.high), step)))
        return Expression("max", (0, span))

    def _shorten(self, segment: str, size: str) -> None:
        """Let the loop do the iterations of a segment."""
        loop, step = self.loop, self.loop.step
        before = multiply(segment, size)
        low = add(loop.low, multiply(before, step))
        if isinstance(step, int):
            after = add(low, multiply(size, step))
            loop.high = Expression("min" if step > 0 else "max", (loop.high, after))
        else:
            count = Expression("min", (size, subtract(self.steps, before)))
            loop.high = add(low, multiply(count, step))
        loop.low = low

    def _carry(self, outer: KernelLoop) -> None:
        """Let the loop over segments carry what the loop does."""
        for k, c in enumerate(self.loop.carried):
            dtype = self.function.dtypes[c.name]
            name = self._name(c.name, dtype, outer.body)
            end = self._name(c.name, dtype, outer.body)
            outer.carried.append(Carried(name, c.start, end if c.moves else name, c.out))
            self.loop.carried[k] = replace(c, start=name, out=end)
