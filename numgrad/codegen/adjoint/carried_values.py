"""Classes of the scalars that an iteration takes over from the one before it.

Note [Carried scalars of text]
------------------------------
A name that an iteration reads before it sets it is carried. Where its value at the end of each
iteration is the one at its start, iterations are independent of each other in it: that is what the
cotangent of a sum is. Where it is that value with something added, or multiplied, or the larger or
smaller of both, and nothing else reads it, it is a reduction (Allen and Kennedy, *Optimizing
Compilers for Modern Architectures*, section 5.9). An abstract interpretation of the body follows
the value from name to name, through branches and inner loops. What it cannot follow is a
dependence. So is ``e = max(x, e)``, where a NaN of ``x`` is forgotten with the next one: only
``max(e, x)`` is the same in any grouping.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeGuard

_EXTREME = re.compile(r"(max|min|maximum|minimum|fmax|fmin)(_[a-z]\d+)?")
_CASTS = ("float32", "float64", "complex64", "complex128", "float", "complex", "int")


class _Share(NamedTuple):
    """The carried value of ``name``, combined with others by ``step`` if that is not empty."""

    name: str
    step: str = ""


class _Mixture(NamedTuple):
    """A value that follows from carried ones in different ways: to read it is to read these."""

    names: frozenset[str]


class _Zero:
    """The number zero."""


_ZERO = _Zero()
_State = _Share | _Mixture | _Zero | None
_Names = dict[str, _State]


class CarriedScalars:
    """The carried names of a loop's body, each with what iterations make of it.

    Attributes
    ----------
    unchanged
        Those that no iteration changes.
    reductions
        By name, the step that puts two values together: "+", "*", or a function's name.
    dependences
        All others.
    """

    def __init__(self, body: Sequence[ast.stmt], carried: Iterable[str]) -> None:
        names = sorted(carried)
        ends = self._ends(body, names)
        self.unchanged = {name for name in names if ends.get(name) == _Share(name)}
        others = [name for name in names if name not in self.unchanged]
        if self.unchanged:  # which are values like any other
            ends = self._ends(body, others)
        self.reductions: dict[str, str] = {}
        self.dependences: list[str] = []
        for name in others:
            state = ends.get(name)
            if not isinstance(state, _Share) or state.name != name:
                self.dependences.insert(0, name)
            elif name in self._read:
                self.dependences.append(name)
            else:
                self.reductions[name] = state.step

    def _ends(self, body: Sequence[ast.stmt], names: Sequence[str]) -> _Names:
        """Return what carried names are at the end of an iteration."""
        self._read: set[str] = set()
        self._breaks: list[list[_Names]] = []
        return self._block(body, {name: _Share(name) for name in names}) or {}

    # ------------------------------------------------------------------------------- expressions

    def _use(self, state: _State) -> None:
        """Note that a value is read for something else than a reduction."""
        if isinstance(state, _Share):
            self._read.add(state.name)
        elif isinstance(state, _Mixture):
            self._read |= state.names

    def _value(self, node: ast.expr, names: _Names) -> _State:
        match node:
            case ast.Name():
                return names.get(node.id)
            case ast.Constant():
                zero = not isinstance(node.value, bool) and node.value == 0
                return _ZERO if zero else None
            case ast.BinOp():
                return self._combined(node, names)
            case ast.Call():
                return self._called(node, names)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._use(self._value(child, names))
        return None

    def _combined(self, node: ast.BinOp, names: _Names) -> _State:
        left, right = self._value(node.left, names), self._value(node.right, names)
        match node.op:
            case ast.Add():
                if isinstance(left, _Zero):
                    return right
                if isinstance(right, _Zero):
                    return left
                return self._step("+", left, right)
            case ast.Sub() if not isinstance(right, _Share | _Mixture):
                return left if isinstance(right, _Zero) else self._step("+", left, right)
            case ast.Mult():
                return self._step("*", left, right)
            case ast.Div() if not isinstance(right, _Share | _Mixture):
                return self._step("*", left, right)
        self._use(left)
        self._use(right)
        return None

    def _step(self, step: str, a: _State, b: _State) -> _State:
        """The result of a step that is one of a reduction if one operand is carried."""
        for one, other in ((a, b), (b, a)):
            if isinstance(one, _Share) and not isinstance(other, _Share | _Mixture):
                if one.step in ("", step):
                    return _Share(one.name, step)
                break
        self._use(a)
        self._use(b)
        return None

    def _called(self, node: ast.Call, names: _Names) -> _State:
        if _is_conjugate(node) and _is_conjugate(inner := node.args[0]):  # of holomorphic tangents
            return self._value(inner.args[0], names)
        values = [self._value(a, names) for a in node.args]
        function = node.func
        name = getattr(function, "id", "")
        is_extreme = _EXTREME.fullmatch(name) and len(values) == 2
        if is_extreme and not (name in ("max", "min") and isinstance(values[1], _Share | _Mixture)):
            return self._step(name, *values)
        word = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        if word in _CASTS and values and all(isinstance(v, _Zero) for v in values):
            return _ZERO
        for value in values:
            self._use(value)
        return None

    # -------------------------------------------------------------------------------- statements

    def _block(self, statements: Sequence[ast.stmt], names: _Names) -> _Names | None:
        """The values after statements; None where their end is not reached."""
        now: _Names | None = dict(names)
        for statement in statements:
            if now is None:
                break
            now = self._statement(statement, now)
        return now

    def _statement(self, statement: ast.stmt, names: _Names) -> _Names | None:
        match statement:
            case ast.Assign():
                self._assign(statement, names)
            case ast.AugAssign():
                self._change(statement, names)
            case ast.If():
                self._use(self._value(statement.test, names))
                sides = [self._block(s, names) for s in (statement.body, statement.orelse)]
                return _joined(*sides)
            case ast.For():
                self._use(self._value(statement.iter, names))
                return self._loop(statement, names)
            case ast.While():
                return self._loop(statement, names)
            case ast.Break() | ast.Continue():  # as if what follows might not run
                self._breaks[-1].append(dict(names))
                return None
            case ast.Expr():
                self._use(self._value(statement.value, names))
        return names

    def _assign(self, statement: ast.Assign, names: _Names) -> None:
        (target,) = statement.targets
        if not isinstance(target, ast.Tuple):
            self._set(target, self._value(statement.value, names), names)
            return
        assert isinstance(statement.value, ast.Tuple | ast.Call)
        if isinstance(statement.value, ast.Call):
            values = [self._value(statement.value, names)] * len(target.elts)
        else:
            values = [self._value(v, names) for v in statement.value.elts]
        for one, value in zip(target.elts, values, strict=True):
            self._set(one, value, names)

    def _set(self, target: ast.expr, value: _State, names: _Names) -> None:
        if isinstance(target, ast.Name):
            names[target.id] = value
            return
        self._use(value)
        assert isinstance(target, ast.Subscript)
        self._use(self._value(target.slice, names))

    def _change(self, statement: ast.AugAssign, names: _Names) -> None:
        target = statement.target
        if isinstance(target, ast.Name):
            whole = ast.BinOp(ast.Name(target.id, ast.Load()), statement.op, statement.value)
            names[target.id] = self._value(whole, names)
        else:
            self._set(target, self._value(statement.value, names), names)

    def _loop(self, loop: ast.For | ast.While, names: _Names) -> _Names:
        head: _Names = dict(names)
        while True:
            if isinstance(loop, ast.While):
                self._use(self._value(loop.test, head))
            inner = dict(head)
            if isinstance(loop, ast.For):
                self._set(loop.target, None, inner)
            self._breaks.append([])
            end = self._block(loop.body, inner)
            ends = self._breaks.pop()
            more: _Names = head
            for one in (end, *ends):
                more = _joined(more, one) or more
            if more == head:
                return head
            head = more


def _is_conjugate(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "conj"


def _joined(a: _Names | None, b: _Names | None) -> _Names | None:
    """Join the facts of two sides of the control flow."""
    if a is None or b is None:
        return b if a is None else a
    return {name: _either(a.get(name), b.get(name)) for name in {**a, **b}}


def _either(a: _State, b: _State) -> _State:
    if a == b:
        return a
    if isinstance(a, _Share) and isinstance(b, _Share) and a.name == b.name and "" in (a[1], b[1]):
        return _Share(a.name, a.step or b.step)
    names: set[str] = set()
    for state in (a, b):
        if isinstance(state, _Share):
            names.add(state.name)
        elif isinstance(state, _Mixture):
            names |= state.names
    return _Mixture(frozenset(names)) if names else None
