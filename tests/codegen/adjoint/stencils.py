"""Random stencils in time, as text: grids of one to three axes whose arrays are exchanged.

`StencilWriter(seed).write()` gives the same stencil for the same seed. Rows are long enough for
vectors, some for several strips of them; values stay near one.
"""

from __future__ import annotations

import linecache
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Stencil:
    """The text of a stencil, and what it takes: arrays ``u k w``, ``steps``, ``dt``.

    Attributes
    ----------
    shape, steps, dtype
        Of the arrays, and how many steps are taken.
    writes
        Arrays that it overwrites.
    """

    seed: int
    text: str
    shape: tuple[int, ...]
    steps: int
    dtype: str
    writes: tuple[str, ...]
    arguments = ("u", "k", "w", "steps", "dt")

    @property
    def single(self) -> bool:
        return self.dtype == "f4"

    def function(self) -> Callable[..., Any]:
        """The stencil as a Python function whose source can be read."""
        file = f"<stencil {self.seed}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        space: dict[str, Any] = {"np": np, "math": math}
        exec(compile(self.text, file, "exec"), space)
        return space["stencil"]

    def draw(self, attempt: int = 0) -> list[Any]:
        rng = np.random.default_rng([self.seed, attempt])
        arrays = [rng.uniform(-1.0, 1.0, self.shape) for _ in range(3)]
        if self.dtype.startswith("c"):
            arrays = [a + 1j * rng.uniform(-1.0, 1.0, self.shape) for a in arrays]
        return [*[a.astype(self.dtype) for a in arrays], self.steps, 0.1]


class StencilWriter:
    """Draws a stencil."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.axes = self.random.choice([1, 1, 2, 2, 2, 3])
        self.names = "ijl"[: self.axes]
        self.reach = self.random.choice([1, 1, 2])
        self.edges = [self.random.choice(["inside", "inside", "wrap", "clamp"]) for _ in self.names]
        self.time = self.random.choice(
            ["swap", "swap", "rotate", "in place", "copy back", "staggered", "if swap"]
        )
        self.dtype = self.random.choice(["f8"] * 6 + ["f4", "c16"])

    def write(self) -> Stencil:
        long = self.random.choice([17, 24, 33, 41] + ([300, 530] if self.axes == 1 else []))
        outer = [self.random.choice([4, 5, 6]) for _ in self.names[1:]]
        if self.axes == 3:
            long = 19
        shape = (*outer, long)
        lines = [f"{', '.join(f'n{x}' for x in self.names)}, = u.shape"]
        body, writes = self._steps()
        lines += body
        text = "def stencil(u, k, w, steps, dt):\n" + "\n".join(f"    {x}" for x in lines) + "\n"
        steps = 2 if long > 100 else self.random.choice([1, 2, 3, 5])
        return Stencil(self.seed, text, shape, steps, self.dtype, writes)

    # ------------------------------------------------------------------------------------- places

    def _at(self, array: str, *offsets: int) -> str:
        return f"{array}[{', '.join(map(self._place, self.names, self.edges, offsets))}]"

    @staticmethod
    def _place(name: str, edge: str, offset: int) -> str:
        if not offset:
            return name
        moved = f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
        if edge == "wrap":
            return f"({moved}) % n{name}" if offset > 0 else moved
        if edge == "clamp":
            return f"min({moved}, n{name} - 1)" if offset > 0 else f"max({moved}, 0)"
        return moved

    def _neighbour(self, array: str, most: int | None = None) -> str:
        offsets = [0] * self.axes
        reach = self.reach if most is None else most
        for axis in self.random.sample(range(self.axes), self.random.choice([1, self.axes])):
            offsets[axis] = self.random.randint(-reach, reach)
        return self._at(array, *offsets)

    # -------------------------------------------------------------------------------- expressions

    def _sum(self, array: str) -> str:
        count = self.random.randint(2, 5)
        return " + ".join(
            f"{self.random.choice([0.3, -0.2, 0.15])} * {self._neighbour(array)}"
            for _ in range(count)
        )

    def _update(self, target: str, source: str, other: str, depth: int) -> list[str]:
        """The statements of an element."""
        here = (0,) * self.axes
        own, k = self._at(source, *here), self._at("k", *here)
        lines = [f"lap = {self._sum(source)}"]
        value = self.random.choice([
            f"0.8 * {own} + dt * lap",
            f"{own} * (1.0 - dt * {own}) + dt * {k} * lap",
            f"0.5 * {own} + math.sin(lap.real)" if self.dtype[0] == "c"
            else f"0.5 * {own} + dt * math.sin(lap) * {k}",
            f"0.7 * {self._at(other, *here)} + dt * {k} * lap * {self._neighbour('w')}",
        ])  # fmt: skip
        kind = self.random.choice(["", "", "if", "sum", "twice"])
        if kind == "if":
            real = ".real" if self.dtype[0] == "c" else ""
            lines += [
                f"if {self._neighbour(source)}{real} > 0.1:",
                f"    slope = {own} - {self._neighbour(source)}",
                "else:",
                f"    slope = 0.3 * {self._neighbour(source)}",
                f"{self._at(target, *here)} = {value} + dt * slope",
            ]
        elif kind == "sum":
            lines += [f"{self._at(target, *here)} = {value}", f"total += dt * {own} * lap"]
        elif kind == "twice":
            lines += [
                f"{self._at(target, *here)} = {value}",
                f"{self._at(target, *here)} += 0.1 * {self._neighbour('w')}",
            ]
        else:
            lines += [f"{self._at(target, *here)} = {value}"]
        return [f"{'    ' * depth}{x}" for x in lines]

    def _grid(self, target: str, source: str, other: str) -> list[str]:
        lines = []
        for depth, (name, edge) in enumerate(zip(self.names, self.edges, strict=True)):
            low, high = (
                (self.reach, f"n{name} - {self.reach}") if edge == "inside" else (0, f"n{name}")
            )
            lines.append(f"{'    ' * depth}for {name} in range({low}, {high}):")
        return lines + self._update(target, source, other, self.axes)

    def _steps(self) -> tuple[list[str], tuple[str, ...]]:
        writes: tuple[str, ...] = ()
        start, ends, result = ["total = 0.0"], [], "a"
        pairs = [("b", "a", "b")]
        if self.time in ("swap", "if swap"):
            start += ["a = u.copy()", self.random.choice(["b = a.copy()", "b = np.zeros_like(u)"])]
            ends = ["a, b = b, a"]
            if self.time == "if swap":
                ends = ["if t % 3 != 1:", "    a, b = b, a"]
        elif self.time == "rotate":
            start += ["a = u.copy()", "b = w.copy()", "c = u.copy()"]
            pairs = [("c", "a", "b")]
            ends = [self.random.choice(["a, b, c = c, a, b", "a, b, c = b, c, a"])]
        elif self.time == "in place":
            pairs, result, writes = [("u", "u", "u")], "u", ("u",)
        elif self.time == "copy back":
            start += ["a = u.copy()", "b = u.copy()"]
            ends = ["a[:] = b"]
        else:
            start += ["a = u.copy()", "b = w.copy()"]
            pairs = [("a", "b", "a"), ("b", "a", "b")]
        lines = [*start, "for t in range(steps):"]
        for pair in pairs:
            lines += [f"    {x}" for x in self._grid(*pair)]
        lines += [f"    {x}" for x in ends]
        lines += [f"return total, {result}.copy()" if not writes else "return total"]
        return lines, writes
