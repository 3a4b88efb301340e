"""A loop that ends when its carry says so and collects what its steps give, as a program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.compiler.graph.shapes import length_arrays
from numgrad.compiler.run.loop_program import FIRST, Body, LoopProgram, longer

MOST_BYTES = 1 << 22
"""Bytes of what is collected in one call of the kernel, and of what a program remembers."""

Walk = tuple[int, list[np.ndarray]]
"""How many steps a loop made, and what these gave, along a first axis."""


class AdaptiveLoopProgram(LoopProgram):
    """A loop until the carry says that it is over, which collects.

    Note [Walks remembered]
    -----------------------
    How many steps there are is known when they are made, and only then is there a place for what
    they gave: the operation that counts and the one that collects are two, and another one collects
    for the gradient. So a program remembers the last walk, if that is small, with the operands it
    was for: where these come again, bit by bit, nothing is computed.
    """

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self._last: tuple[Any, Walk] | None = None

    def walk(self, operands: Sequence[np.ndarray], lengths: Sequence[int]) -> Walk:
        """All steps, of which there is one at least."""
        arrays = [np.asarray(a, order="C") for a in operands]
        found = self._walk(arrays, lengths)
        kept = sum(a.nbytes for a in (*arrays, *found[1])) <= MOST_BYTES
        self._last = (_bits(arrays), found) if kept else None
        return found

    def rows(self, operands: Sequence[np.ndarray], lengths: Sequence[int]) -> list[np.ndarray]:
        """What the steps of a walk give, which may be the last one."""
        last = self._last  # another thread may put another one in its place
        if last is not None and last[0] == _bits(operands):
            return last[1][1]
        return self.walk(operands, lengths)[1]

    def _walk(self, arrays: list[np.ndarray], lengths: Sequence[int]) -> Walk:
        body = self.body
        c = body.carries
        assert body.until is not None
        known = dict(zip(body.axes, lengths, strict=True))
        if self.written is None:
            return self._walk_in_turn(arrays, known)
        carry, outside = [a.copy() for a in arrays[:c]], arrays[c:]
        _, sizes = self._sizes_for([*carry, *outside], known)
        chunks: list[list[np.ndarray]] = []
        done, steps = 0, sizes.steps
        while True:
            begin = time.perf_counter()
            made = self._made(sizes.shapes, steps, False)
            failed, count = self._call([*carry, *outside], made, steps, False, sizes.given)
            if failed >= 0:
                return self._walk_in_turn(arrays, known)
            count = int(count)
            chunks.append([a[:count] for a in made[c:]])
            done, carry = done + count, made[:c]
            taken = time.perf_counter() - begin
            row = sum(a.nbytes for a in made[c:]) // steps
            most = min(longer(count, taken), max(MOST_BYTES // max(row, 1), FIRST))
            sizes.steps = steps = max(1, min(done + done // 4, most))
            if not carry[body.until]:
                if len(chunks) == 1:
                    return done, chunks[0]
                return done, [np.concatenate(x) for x in zip(*chunks, strict=True)]

    def _walk_in_turn(self, arrays: list[np.ndarray], known: dict[int, int]) -> Walk:
        """Run a program for each step."""
        body = self.body
        c, until = body.carries, body.until
        assert until is not None
        carry = arrays[:c]
        outside = [*arrays[c:], *length_arrays(body.axes, known)]
        rows: list[list[np.ndarray]] = []
        while True:
            found = [np.asarray(a) for a in self.step.run(*carry, *outside)]
            carry = found[:c]
            rows.append(found[c:])
            if not carry[until]:
                return len(rows), [np.stack(x) for x in zip(*rows, strict=True)]


def _bits(arrays: Sequence[np.ndarray]) -> list[tuple]:
    """What tells arrays of known dtypes from others."""
    return [(a.shape, a.tobytes()) for a in arrays]


def program_of(body: Body) -> AdaptiveLoopProgram:
    """The program of a body, made once."""
    if body._program is None:
        body._program = AdaptiveLoopProgram(body)
    return body._program
