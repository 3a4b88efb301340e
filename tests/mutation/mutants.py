"""Mutants of formulas: where they are drawn, what cosmic-ray changes there, what is left alone."""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

SCOPE = [
    "numgrad/operations",
    "numgrad/optim",
    "numgrad/nn",
    "numgrad/stats",
    "numgrad/compiler/passes",
    "numgrad/autograd/engine",
    "numgrad/autograd/forward",
]
"""Formulas and their gradients, optimizers, schedules, losses, distributions, passes, engine."""
APART = [
    "numgrad/nn/parallel", "numgrad/nn/lowerings.py", "numgrad/nn/module", "numgrad/nn/applied.py",
    "numgrad/optim/zero_redundancy_optimizer.py",
]  # fmt: skip
"""Of these: what is no formula, and what tests of several processes are about."""

_SWAPS = [
    "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul", "FloorDiv_Div", "Mod_Mul",
    "BitAnd_BitOr", "BitOr_BitAnd", "LShift_RShift", "RShift_LShift",
]  # fmt: skip
_COMPARISONS = [
    "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "Gt_LtE",
    "Is_IsNot", "IsNot_Is",
]  # fmt: skip
OPERATORS = [
    *(f"core/ReplaceBinaryOperator_{name}" for name in _SWAPS),
    *(f"core/ReplaceComparisonOperator_{name}" for name in _COMPARISONS),
    "core/ReplaceUnaryOperator_Delete_USub",
    "core/ReplaceUnaryOperator_Delete_Not",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/NumberReplacer",
    "core/ZeroIterationForLoop",
]
"""One other operator for each: what fails at once, such as ``x << y`` of floats, tells nothing."""


@cache
def text_of(path: str) -> str:
    """The text of a file, as it was when first asked for: the checkout may be edited meanwhile."""
    return (ROOT / path).read_text()


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    operator: str
    occurrence: int
    line: int

    def code(self) -> str:
        """The text of the file with the change."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        changed = mutate_code(text_of(self.path), get_operator(self.operator)(), self.occurrence)
        assert changed is not None
        return changed

    def lines(self) -> tuple[str, str]:
        """The first line that differs, before and after."""
        before, after = text_of(self.path).split("\n"), self.code().split("\n")
        pairs = zip(before, after, strict=False)
        return next((a.strip(), b.strip()) for a, b in pairs if a != b)

    def key(self) -> str:
        """How a list of accepted mutants names it: not by its place, which moves."""
        before, after = self.lines()
        return f"{self.path} | {before} | {after}"


def files() -> list[Path]:
    """All files that mutants are drawn from."""
    found = [f for folder in SCOPE for f in sorted((ROOT / folder).rglob("*.py"))]
    return [f for f in found if not any(part in f.as_posix() for part in APART)]


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a file, but for annotations, messages of errors, and declarations."""
    from cosmic_ray.ast import Visitor, get_ast
    from cosmic_ray.plugins import get_operator

    name = path.relative_to(ROOT).as_posix()
    text = text_of(name)
    tree, lines = ast.parse(text), text.split("\n")
    apart = {*_lines_apart(tree), *_lines_of_samples(tree)}
    found: list[Mutant] = []
    operators = {each: get_operator(each)() for each in OPERATORS}
    met = dict.fromkeys(OPERATORS, 0)

    class Collect(Visitor):
        def visit(self, node):
            for each, operator in operators.items():
                for start, _ in operator.mutation_positions(node):
                    if start[0] not in apart and not _means_the_same(lines, start, each, met[each]):
                        found.append(Mutant(name, each, met[each], start[0]))
                    met[each] += 1
            return node

    Collect().walk(get_ast(text))
    return found


def _means_the_same(
    lines: list[str], start: tuple[int, int], operator: str, occurrence: int
) -> bool:
    """Whether it is an assertion of ``zip`` that is dropped, or a -2 for -1 in ``reshape``."""
    line = lines[start[0] - 1]
    before, after = line[: start[1]], line[start[1] :]
    if operator == "core/NumberReplacer" and "reshape(" in before:
        return (
            before.endswith("-") and re.match(r"1[^\w.]", after) is not None and occurrence % 2 == 0
        )
    return before.endswith("strict=")


def _lines_apart(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Raise() | ast.ImportFrom() | ast.Assert():
                yield from range(node.lineno, node.end_lineno + 1)
            case ast.FunctionDef():
                if node.body:  # annotations and defaults, which signatures of NumPy's decide
                    yield from range(node.lineno, node.body[0].lineno)
                for decorator in node.decorator_list:  # samples for tests
                    yield from range(decorator.lineno, decorator.end_lineno + 1)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="kink"))):  # these are samples too
                yield from range(node.lineno, node.end_lineno + 1)
            case ast.AnnAssign(value=None):
                yield from range(node.lineno, node.end_lineno + 1)
            case ast.AnnAssign():
                if node.annotation.end_lineno == node.value.lineno:
                    yield node.lineno


def _lines_of_samples(tree: ast.Module) -> Iterator[int]:
    """Constants that samples of declarations alone use."""
    samples = [d for node in tree.body for d in getattr(node, "decorator_list", [])]
    inside = {n.id for d in samples for n in ast.walk(d) if isinstance(n, ast.Name)}
    apart = {n for d in samples for n in ast.walk(d)}
    uses = Counter(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in apart)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in inside and uses[name] == 1:
                yield from range(node.lineno, (node.end_lineno or 0) + 1)


def draw(count: int, seed: int, only: str = "") -> list[Mutant]:
    """Mutants at random, a file as often as it has lines."""
    rng = random.Random(seed)
    places = [f for f in files() if only in f.as_posix()]
    weights = [len(f.read_text()) for f in places]
    known: dict[Path, list[Mutant]] = {}
    drawn: dict[Mutant, None] = {}
    while len(drawn) < count:
        path = rng.choices(places, weights)[0]
        if path not in known:
            known[path] = mutants_of(path)
        if known[path]:
            drawn[rng.choice(known[path])] = None
    return list(drawn)
