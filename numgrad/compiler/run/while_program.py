"""A loop that ends when its carry says so, as a program."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from numgrad.compiler.graph.shapes import length_arrays
from numgrad.compiler.run.loop_program import Body, LoopProgram, longer


class WhileProgram(LoopProgram):
    """A loop until the carry says that it is over."""

    def run_until(
        self, operands: Sequence[np.ndarray], lengths: Sequence[int]
    ) -> tuple[list[np.ndarray], int]:
        """The last carry, and how many steps were made."""
        body = self.body
        c = body.carries
        assert body.until is not None
        arrays = [np.array(a, order="C") for a in operands[:c]]
        outside = [np.asarray(a, order="C") for a in operands[c:]]
        known = dict(zip(body.axes, lengths, strict=True))
        if not arrays[body.until]:
            return arrays, 0
        if self.written is None:
            return self._until(arrays, [*outside, *length_arrays(body.axes, known)])
        _, sizes = self._sizes_for([*arrays, *outside], known)
        done, steps = 0, sizes.steps
        made = [np.empty_like(a) for a in arrays]
        while True:
            begin = time.perf_counter()
            failed, count = self._call([*arrays, *outside], made, steps, False, sizes.given)
            if failed >= 0:
                return self._until(arrays, [*outside, *length_arrays(body.axes, known)])
            done += int(count)
            arrays, made = made, arrays
            if not arrays[body.until]:
                return arrays, done
            sizes.steps = steps = longer(steps, time.perf_counter() - begin)

    def _until(
        self, arrays: list[np.ndarray], outside: list[np.ndarray]
    ) -> tuple[list[np.ndarray], int]:
        """Run a program for each step."""
        until, done = self.body.until, 0
        assert until is not None
        while arrays[until]:
            arrays = [np.asarray(a) for a in self.step.run(*arrays, *outside)]
            done += 1
        return arrays, done


def run_until(body: Body, operands: Sequence[np.ndarray], lengths: Sequence[int]) -> list:
    """All steps on ndarrays: the last carry, then how many there were."""
    if body._program is None:
        body._program = WhileProgram(body)
    arrays, count = body._program.run_until(operands, lengths)
    return [*arrays, np.asarray(count)]
