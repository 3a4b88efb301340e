"""Assignment of terms to passes over the reduced axis: Note [Passes] in ``reductions``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from numgrad.codegen.library import LIBRARY
from numgrad.codegen.symbols import Symbol
from numgrad.dataclass import dataclass


@dataclass(frozen=True)
class ReductionOperand:
    """An input of an axis program: ``full`` (o, r, i), ``reduced`` (o, 1, i) or ``scalar``."""

    name: str
    role: str
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Slot:
    """One accumulator of a reduction."""

    name: str
    dtype: np.dtype
    step: str
    identity: object
    part: str  # "", ".real" or ".imag" of the reduced value

    @property
    def compensated(self) -> bool:
        """Whether partial results are added with compensation."""
        return self.step == "sum"


def step_of(kind: str, dtype: np.dtype) -> str:
    """How two partial results are put together: a function of ``accumulation``, or ``sum``."""
    if kind == "sum":
        return "sum" if dtype.kind == "f" else "add"
    if kind in ("max", "min"):
        if dtype.kind == "b":
            return "either" if kind == "max" else "both"
        if dtype.kind == "f":
            return f"{kind}imum"
        step = "larger" if kind == "max" else "smaller"
        return step if dtype.kind in "iu" else f"{step}_complex"
    return {"prod": "multiply", "any": "either", "all": "both"}[kind]


def identity(kind: str, dtype: np.dtype) -> object:
    """The result of reducing nothing, which changes no other."""
    if kind in ("max", "min"):
        if dtype.kind == "b":
            return kind == "min"
        if dtype.kind in "iu":
            return np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max
        limit = -np.inf if kind == "max" else np.inf
        return limit if dtype.kind == "f" else complex(limit, limit)
    return {"sum": 0, "prod": 1, "any": False, "all": True}[kind]


def _slots(symbol: Symbol, number: int) -> list[Slot]:
    """The accumulators of a reduction: two for a complex sum, else one."""
    kind, dtype = symbol.detail, symbol.dtype
    name = f"s{number}"
    if kind == "sum" and dtype.kind == "c":
        real = np.dtype(f"f{dtype.itemsize // 2}")
        return [Slot(name + suffix[1:2], real, "sum", 0, suffix) for suffix in (".real", ".imag")]
    return [Slot(name, dtype, step_of(kind, dtype), identity(kind, dtype), "")]


class ReductionPlan:
    """Assignment of terms to passes: Note [Passes]."""

    def __init__(
        self, output: Symbol, operands: Sequence[ReductionOperand], full: bool, keep: bool
    ) -> None:
        self.output, self.full = output, full
        self.roles = {o.name: o.role for o in operands}
        self.kind: dict[Symbol, str] = {}  # "scalar", "row" or "element"
        self.depth: dict[Symbol, int] = {}  # the pass after which a value is known
        self.order = self._classify()
        reduces = [s for s in self.order if s.op == "reduce"]
        self.levels = max((self.depth[s] for s in reduces), default=0)
        self.reduces = {
            p: [s for s in reduces if self.depth[s] == p] for p in range(1, self.levels + 1)
        }
        self.slots = {s: _slots(s, number) for number, s in enumerate(reduces)}
        self.stash: Symbol | None = None
        self.stash_pass = 0
        if full and keep:
            self._choose_stash()

    def _classify(self) -> list[Symbol]:
        order: list[Symbol] = []
        stack = [(self.output, False)]
        while stack:
            symbol, expanded = stack.pop()
            if symbol in self.kind:
                continue
            if not expanded:
                stack.append((symbol, True))
                stack.extend((a, False) for a in symbol.args)
                continue
            order.append(symbol)
            depth = max((self.depth[a] for a in symbol.args), default=0)
            kinds = {self.kind[a] for a in symbol.args}
            kind = "element" if "element" in kinds else "row" if "row" in kinds else "scalar"
            if symbol.op == "reduce":
                kind, depth = "row", depth + 1
            elif symbol.op == "input":
                role = self.roles[symbol.detail]
                kind = {"full": "element", "reduced": "row", "scalar": "scalar"}[role]
            self.kind[symbol], self.depth[symbol] = kind, depth
        return order

    @property
    def passes(self) -> list[int]:
        """Numbers of the passes over elements; the one that writes a full output is the last."""
        return list(range(1, self.levels + 1 + self.full))

    def targets(self, number: int) -> list[Symbol]:
        """The values that a pass computes for every element."""
        if number > self.levels:
            return [self.output]
        return [s.args[0] for s in self.reduces[number]]

    def elements(self, number: int) -> list[Symbol]:
        """Values a pass computes or reads element by element, those it needs from outside last."""
        known = {self.stash} if self.stash is not None and number > self.stash_pass else set()
        return self.reach(self.targets(number), "element", known)

    def reach(self, targets: Iterable[Symbol], kind: str, known: Iterable[Symbol]) -> list[Symbol]:
        """Symbols needed for ``targets``, not looking behind ``known`` or other kinds."""
        reached: dict[Symbol, None] = {}
        stack = list(targets)
        while stack:
            symbol = stack.pop()
            if symbol in reached:
                continue
            reached[symbol] = None
            if symbol not in known and self.kind[symbol] == kind and symbol.op != "reduce":
                stack.extend(symbol.args)
        return list(reached)

    def outer_values(self, number: int) -> list[Symbol]:
        """Values of the current row or column that a pass needs."""
        return [s for s in self.elements(number) if self.kind[s] == "row"]

    def scalars(self) -> list[Symbol]:
        """Values that are the same everywhere, needed by others."""
        users = [a for s in self.order if self.kind[s] != "scalar" for a in s.args]
        scalars = dict.fromkeys(s for s in [*users, self.output] if self.kind[s] == "scalar")
        return [s for s in scalars if s.op != "const"]

    def between(self, number: int, done: Iterable[Symbol]) -> list[Symbol]:
        """Row values to compute after pass ``number`` (0: at the start) for later passes."""
        later = [s for p in self.passes if p > number for s in self.outer_values(p)]
        return [s for s in dict.fromkeys(later) if self.depth[s] <= number and s not in done]

    def _choose_stash(self) -> None:
        """Keep the costliest value that two passes share in the output array."""
        seen: dict[Symbol, int] = {}
        best = 0
        for number in self.passes:
            for symbol in self.elements(number):
                if seen.setdefault(symbol, number) == number or symbol is self.output:
                    continue
                inside = self.reach([symbol], "element", ())
                cost = sum(s.op in LIBRARY and self.kind[s] == "element" for s in inside)
                if cost > best and symbol.dtype == self.output.dtype:
                    best, self.stash, self.stash_pass = cost, symbol, seen[symbol]
