"""A drawn program: its text, its arguments, the constructs that it uses."""

from __future__ import annotations

import ast
import linecache
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

Key = TypeVar("Key")
SIZES = {"n": 5, "m": 4, "l": 3}  # lengths of axes
SHAPES = {1: ("n",), 2: ("n", "m"), 3: ("n", "m", "l"), 4: ("l", "n", "m", "l")}


@dataclass(frozen=True)
class Program:
    """The text of a random function, and what it takes.

    Attributes
    ----------
    arguments
        ``x y z d e``: float arrays of 1, 1, 2, 3, 4 dimensions; ``f g``: complex ones; ``q``:
        indices; ``b``: bools; ``k``: an int; ``a h``: floats.
    writes
        Those that it writes into.
    single
        Arrays are of single precision.
    """

    seed: int
    text: str
    arguments: tuple[str, ...]
    writes: tuple[str, ...]
    single: bool

    def function(self) -> Callable[..., Any]:
        """The program as a Python function whose source can be read."""
        file = f"<drawn program {self.seed}>"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        space: dict[str, Any] = {"np": np, "math": math, "prange": range, "LEVEL": 0.6}
        exec(compile(self.text, file, "exec"), space)
        return space["program"]

    def draw(self, attempt: int = 0) -> list[Any]:
        """Arguments, of one of several layouts in memory."""
        rng = np.random.default_rng([self.seed, attempt])
        out: list[Any] = []
        for name in self.arguments:
            if name in "xyzdefg":
                shape = tuple(
                    SIZES[c]
                    for c in SHAPES[{"x": 1, "y": 1, "z": 2, "d": 3, "e": 4, "f": 1, "g": 2}[name]]
                )
                out.append(self.array(rng, shape, name in "fg"))
            elif name == "q":
                out.append(rng.integers(0, 3, SIZES["n"]))
            elif name == "b":
                out.append(rng.random(SIZES["n"]) < 0.5)
            elif name == "k":
                out.append(int(rng.integers(0, 3)))
            else:
                out.append(float(rng.uniform(0.3, 1.2)))
        return out

    def array(self, rng: np.random.Generator, shape: tuple[int, ...], complex_: bool) -> np.ndarray:
        dtype = {(0, 0): "f8", (0, 1): "c16", (1, 0): "f4", (1, 1): "c8"}[self.single, complex_]
        layout = rng.choice(["C", "C", "F", "strided", "reversed"])
        values = rng.uniform(-1.2, 1.2, shape) + (
            1j * rng.uniform(-1.2, 1.2, shape) if complex_ else 0.0
        )
        if layout == "strided":
            memory = np.zeros(tuple(2 * length for length in shape), dtype)
            out = memory[tuple(slice(None, None, 2) for _ in shape)]
        elif layout == "reversed":
            out = np.zeros(shape, dtype)[::-1]
        else:
            out = np.zeros(shape, dtype, order=str(layout))
        out[...] = values
        return out


def covering(programs: Iterable[Key], constructs: Callable[[Key], Collection[str]]) -> list[Key]:
    """Programs in an order in which each has most of the constructs that none before it has.

    Greedy set cover: a few at the front have nearly all that the whole list has.
    """
    uses = {each: set(constructs(each)) for each in programs}
    missing = set().union(*uses.values())
    order: list[Key] = []
    while missing:
        order.append(max(uses, key=lambda each: len(uses[each] & missing)))
        missing -= uses[order[-1]]
    return [*order, *(each for each in uses if each not in order)]


def features(text: str) -> Counter[str]:
    """How often a program uses each kind of statement and expression, with how they nest."""
    seen: Counter[str] = Counter()

    def visit(node: ast.AST, loops: tuple[str, ...]) -> None:
        kind = type(node).__name__
        if isinstance(node, ast.For):
            call = node.iter
            label = getattr(getattr(call, "func", None), "id", "")
            kind = "prange" if label == "prange" else label
            args = getattr(call, "args", [])
            if label == "range":
                kind += {1: "", 2: " from", 3: " step"}[len(args)]
            seen[f"loops {len(loops) + 1}"] += 1
        elif isinstance(node, ast.While):
            kind = "while"
            seen[f"loops {len(loops) + 1}"] += 1
        elif isinstance(node, ast.AugAssign):
            kind = f"{type(node.target).__name__} {type(node.op).__name__}="
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            kind = f"{type(target).__name__} ="
            if len(node.targets) > 1:
                kind = "chained ="
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                kind = "swap ="
        elif isinstance(node, ast.Call):
            kind = ast.unparse(node.func)
            if "." in kind and kind.split(".")[0] not in ("np", "math"):
                kind = "." + kind.split(".")[1]
        elif isinstance(node, ast.Subscript):
            kind = (
                "slice"
                if any(isinstance(n, ast.Slice) for n in ast.walk(node.slice))
                else "element"
            )
            if any(isinstance(n, ast.Subscript) for n in ast.walk(node.slice)):
                kind = "indirect element"
        elif isinstance(node, (ast.BoolOp, ast.BinOp, ast.UnaryOp)):
            kind = type(node.op).__name__
        elif isinstance(node, ast.Attribute):
            kind = "." + node.attr
        if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
            kind += f" in {loops[-1]}" if loops else ""
        seen[kind] += 1
        inner = (*loops, kind.split()[0]) if isinstance(node, (ast.For, ast.While)) else loops
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(ast.parse(text), ())
    return seen
