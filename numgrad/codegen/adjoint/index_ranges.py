"""Places of arrays that the iterations of a loop touch, and whether these are disjoint.

Note [Disjoint iterations]
--------------------------
An index is a polynomial of the iteration's number ``k``, of the variables of inner loops, and of
values that all iterations share. Where along some axis every access of an array has an index
``A * k + R`` with the same ``A``, and the least and the greatest of all ``R`` are less than ``A``
apart, different iterations touch different elements (a strong test of subscripts: Allen and
Kennedy, *Optimizing Compilers for Modern Architectures*, section 3.3). Bounds of inner loops bound
their variables, as in ``a[k * n + j]`` for ``j`` in ``range(n)``. What is not such a polynomial is
not disjoint.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from numgrad.codegen.adjoint.liveness import (
    assigned_names,
    read_names,
    statements_in,
    targets_of,
)
from numgrad.codegen.native.syntax import nodes
from numgrad.codegen.nests.polynomial import Length, add, constant, multiply, substitute
from numgrad.dataclass import dataclass

_DEEPEST = 40
_TRIPS = re.compile(r"n\d+_")
"""Names of numbers of iterations."""


@dataclass(frozen=True)
class Access:
    """A use of an element: its index, whether it is read or added to, the inner loops around."""

    index: tuple[ast.expr, ...]
    reads: bool
    adds: bool
    loops: tuple[ast.For, ...]


class NotAffine(Exception):
    """An index that is no polynomial."""


class IterationSpace:
    """Facts about names and indices in the body of a loop.

    Attributes
    ----------
    accesses
        By array, the uses of its elements.
    others
        Names that stand alone: scalars, and arrays that are used as a whole.
    """

    def __init__(self, loop: ast.For, carried: Iterable[str]) -> None:
        assert isinstance(loop.target, ast.Name)
        self.variable = loop.target.id
        self.nonnegative = {self.variable} if _from_zero(loop) else set[str]()
        self.accesses: dict[str, list[Access]] = {}
        self.others: set[str] = set()
        self.changing = assigned_names(loop.body) | {self.variable}
        makers = _single_assignments(loop.body)
        self.makers = {name: value for name, value in makers.items() if name not in carried}
        self._collect(loop.body, ())

    # ---------------------------------------------------------------------------------- accesses

    def _collect(self, statements: Sequence[ast.stmt], loops: tuple[ast.For, ...]) -> None:
        for statement in statements:
            if isinstance(statement, ast.For):
                self._reads(statement.iter, loops)
                self._collect(statement.body, (*loops, statement))
            elif isinstance(statement, ast.If | ast.While):
                self._reads(statement.test, loops)
                self._collect(statement.body, loops)
                self._collect(statement.orelse, loops)
            elif isinstance(statement, ast.Assign | ast.AugAssign):
                self._reads(statement.value, loops)
                for target in targets_of(statement):
                    self._write(target, statement, loops)
            elif isinstance(statement, ast.Expr) and _is_growth(statement.value):
                self._reads(statement.value.args[1], loops)  # pyright: ignore
            else:
                self._reads(statement, loops)

    def _reads(self, node: ast.AST, loops: tuple[ast.For, ...]) -> None:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            self._note(node, loops, reads=True, adds=False)
            self._reads(node.slice, loops)
        elif isinstance(node, ast.Attribute) and node.attr == "shape":
            return
        elif isinstance(node, ast.Name):
            self.others.add(node.id)
        else:
            for child in ast.iter_child_nodes(node):
                self._reads(child, loops)

    def _write(self, target: ast.expr, statement: ast.stmt, loops: tuple[ast.For, ...]) -> None:
        if not isinstance(target, ast.Subscript):
            return
        op = statement.op if isinstance(statement, ast.AugAssign) else None
        self._note(target, loops, reads=False, adds=isinstance(op, ast.Add | ast.Sub))
        self._reads(target.slice, loops)

    def _note(
        self, node: ast.Subscript, loops: tuple[ast.For, ...], *, reads: bool, adds: bool
    ) -> None:
        assert isinstance(node.value, ast.Name)
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        access = Access(tuple(index), reads, adds, loops)
        self.accesses.setdefault(node.value.id, []).append(access)

    # -------------------------------------------------------------------------------- polynomials

    def is_shared(self, node: ast.expr) -> bool:
        """Whether an expression has the same value in all iterations, and reads no memory."""
        if any(isinstance(n, ast.Subscript) and not _is_length(n) for n in nodes(node)) or any(
            isinstance(n, ast.Call) and not _is_plain(n) for n in nodes(node)
        ):
            return False
        return not read_names(node) & self.changing

    def expanded(self, node: ast.expr) -> ast.expr | None:
        """An expression in words that are known before the loop, None if there is none."""
        for _ in range(_DEEPEST):
            if self.is_shared(node):
                return node
            inner = [n.id for n in nodes(node) if isinstance(n, ast.Name) and n.id in self.changing]
            if not inner or any(name not in self.makers for name in inner):
                return None
            node = _Replacement({name: self.makers[name] for name in inner}).visit(
                ast.parse(ast.unparse(node), mode="eval").body
            )
        return None

    def terms(self, node: ast.expr, variables: Iterable[str]) -> Length:
        """An integer expression as a polynomial; ``NotAffine`` if it is none."""
        return self._terms(node, {self.variable, *variables}, 0)

    def _terms(self, node: ast.expr, variables: set[str], depth: int) -> Length:
        if depth > _DEEPEST:
            raise NotAffine
        match node:
            case ast.Constant() if isinstance(node.value, int):
                return constant(int(node.value))
            case ast.Name() if node.id in variables:
                return _atom(node.id)
            case ast.Name() if node.id in self.makers:
                return self._terms(self.makers[node.id], variables, depth + 1)
            case ast.UnaryOp(op=ast.USub()):
                return multiply(constant(-1), self._terms(node.operand, variables, depth + 1))
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
                left = self._terms(node.left, variables, depth + 1)
                right = self._terms(node.right, variables, depth + 1)
                if isinstance(node.op, ast.Mult):
                    return multiply(left, right)
                return add(left, right, -1 if isinstance(node.op, ast.Sub) else 1)
            case ast.IfExp():  # an index that may count from the end
                low = self._terms(node.body, variables, depth + 1)
                if _is_wrap(node) and self.is_nonnegative(low):
                    return low
            case ast.Call() if _named(node, "max") and len(node.args) == 2:
                length = self._terms(node.args[1], variables, depth + 1)
                if _is_zero(node.args[0]) and self.is_nonnegative(length):
                    return length
        if not self.is_shared(node):
            raise NotAffine
        text = ast.unparse(node)
        if _is_count(node):
            self.nonnegative.add(text)
        return _atom(text)

    def is_nonnegative(self, terms: Length) -> bool:
        """Whether a polynomial is not below 0, as far as is plain."""
        return all(
            c > 0 and all(atom[1] in self.nonnegative for atom in product) for product, c in terms
        )

    def bounds(self, loop: ast.For, variables: Sequence[str]) -> tuple[Length, Length]:
        """The least and the greatest value of an inner loop's variable."""
        given = [self.terms(a, variables) for a in loop.iter.args]  # pyright: ignore
        one = constant(1)
        if len(given) == 1:
            return (), add(given[0], one, -1)
        step = loop.iter.args[2] if len(given) == 3 else ast.Constant(1)  # pyright: ignore
        number = ast.literal_eval(step) if _is_number(step) else 0
        if number > 0:
            return given[0], add(given[1], one, -1)
        if number < 0:
            return add(given[1], one), given[0]
        raise NotAffine

    # ---------------------------------------------------------------------------------- the test

    def are_disjoint(self, array: str) -> bool:
        """Whether different iterations touch different elements: Note [Disjoint iterations]."""
        accesses = self.accesses[array]
        rank = len(accesses[0].index)
        return any(self._is_split_along(axis, accesses) for axis in range(rank))

    def _is_split_along(self, axis: int, accesses: Sequence[Access]) -> bool:
        known = self.nonnegative
        try:
            parts = [self._part(access.index[axis], access.loops) for access in accesses]
        except NotAffine:
            return False
        finally:
            self.nonnegative = known
        factor = parts[0][0]
        if any(one[0] != factor for one in parts) or not factor:
            return False
        if all(c < 0 for _, c in factor):
            factor = multiply(constant(-1), factor)
        # in each pair, A - (greatest of one - least of other) - 1 is not negative
        ends = set((low, high) for _, low, high in parts)
        margin = add(factor, constant(1), -1)
        return all(
            self.is_nonnegative(add(add(margin, high, -1), low))
            for _, high in ends
            for low, _ in ends
        )

    def _part(self, index: ast.expr, loops: Sequence[ast.For]) -> tuple[Length, Length, Length]:
        """The factor of ``k`` in an index, and the least and greatest value of the rest."""
        variables = [loop.target.id for loop in loops]  # pyright: ignore
        ranges = []
        for place, loop in enumerate(loops):
            try:
                low, high = self.bounds(loop, variables[:place])
            except NotAffine:
                low = high = None
            ranges.append((low, high))
            if low is not None and self.is_nonnegative(low):
                self.nonnegative = self.nonnegative | {variables[place]}
        terms = self.terms(index, variables)
        factor: Length = ()
        rest: Length = ()
        for product, c in terms:
            count = sum(atom[1] == self.variable for atom in product)
            if count > 1:
                raise NotAffine
            others = tuple(atom for atom in product if atom[1] != self.variable)
            if count:
                factor = add(factor, ((others, c),))
            else:
                rest = add(rest, ((others, c),))
        if any(atom[1] in variables for product, _ in factor for atom in product):
            raise NotAffine
        return (
            factor,
            self._extreme(rest, variables, ranges, 0),
            self._extreme(rest, variables, ranges, 1),
        )

    def _extreme(
        self, rest: Length, variables: Sequence[str], ranges: Sequence[tuple], side: int
    ) -> Length:
        """The least (side 0) or greatest value of a polynomial of inner loops' variables."""
        for name, bounds in reversed(list(zip(variables, ranges, strict=True))):
            parts: dict[int, Length] = {-1: (), 1: ()}
            free: Length = ()
            for product, c in rest:
                count = sum(atom[1] == name for atom in product)
                if not count:
                    free = add(free, ((product, c),))
                    continue
                others = [atom for atom in product if atom[1] != name]
                if count > 1 or any(atom[1] not in self.nonnegative for atom in others):
                    raise NotAffine
                sign = 1 if c > 0 else -1
                parts[sign] = add(parts[sign], ((product, c),))
            for sign, terms in parts.items():
                if terms:
                    bound = bounds[side if sign > 0 else 1 - side]
                    if bound is None:
                        raise NotAffine
                    free = add(free, substitute(terms, {("axis", name): bound}))
            rest = free
        if any(atom[1] == self.variable for product, _ in rest for atom in product):
            raise NotAffine  # a bound that changes with the iteration
        return rest


def _atom(name: str) -> Length:
    return (((("axis", name),), 1),)


def _is_growth(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _named(node, "grow")


def _named(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name


def _is_plain(node: ast.Call) -> bool:
    return any(_named(node, name) for name in ("max", "min", "abs", "int"))


def _is_length(node: ast.Subscript) -> bool:
    return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


def _is_count(node: ast.expr) -> bool:
    """Whether an expression is a length, or a number of iterations."""
    match node:
        case ast.Subscript():
            return _is_length(node)
        case ast.Name():
            return _TRIPS.fullmatch(node.id) is not None
        case ast.Call():
            return _named(node, "max") and any(map(_is_zero, node.args))
    return False


def _from_zero(loop: ast.For) -> bool:
    """Whether a loop's variable is not negative, as is plain from its bounds."""
    given = loop.iter.args  # pyright: ignore
    backwards = len(given) == 3 and ast.unparse(given[1]) == ast.unparse(given[2]) == "-1"
    return len(given) == 1 or (len(given) == 2 and _is_zero(given[0])) or backwards


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _is_number(node: ast.expr) -> bool:
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(number, ast.Constant) and type(number.value) is int


def _is_wrap(node: ast.IfExp) -> bool:
    """Whether a choice is ``a if a >= 0 else ...``."""
    test = node.test
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.GtE)
        and _is_zero(test.comparators[0])
        and ast.dump(test.left) == ast.dump(node.body)
    )


def _single_assignments(statements: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """The expressions of names that are assigned at one place, alone, or everywhere alike."""
    makers: dict[str, ast.expr] = {}
    several: set[str] = set()
    for statement in statements_in(statements):
        for target in targets_of(statement):
            if not isinstance(target, ast.Name):
                continue
            value = statement.value if isinstance(statement, ast.Assign) else None
            is_alone = isinstance(statement, ast.Assign) and target in statement.targets
            known = makers.get(target.id)
            is_same = known is not None and value is not None and _alike(known, value)
            if value is None or not is_alone or (known is not None and not is_same):
                several.add(target.id)
            else:
                makers[target.id] = value
    return {name: value for name, value in makers.items() if name not in several}


def _alike(a: ast.expr, b: ast.expr) -> bool:
    return ast.dump(a) == ast.dump(b)


class _Replacement(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node)
