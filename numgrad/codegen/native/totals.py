"""Numbers that a loop in lanes accumulates: each lane its own, put together in halves."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native.accesses import Lanes, NotVector
from numgrad.codegen.native.function import FunctionBody
from numgrad.codegen.native.instructions import INSTRUCTIONS
from numgrad.codegen.native.source import library_function
from numgrad.codegen.native.syntax import assigned, cached_on_node, read_first, uses
from numgrad.codegen.native.values import (
    Known,
    Number,
    constant,
    in_lanes,
    kind_of,
    scalar_type,
)


@dataclass
class Total:
    """A name that a loop accumulates, as ``name = step(name, value)``.

    Attributes
    ----------
    value
        An expression; the two factors of ``add_product``, whose step is to add.
    step
        Puts two partial results together.
    first
        The value that changes nothing; None if the total before the loop does.
    """

    name: str
    value: ast.expr
    step: Callable[[Number, Number], Number]
    first: Any
    slots: tuple[str, ...] = ()
    dtype: Any = None

    def identity(self, dtype: np.dtype, before: Number) -> Number:
        return before if self.first is None else constant(self.first, dtype)


_AUGMENTED: dict[type, tuple[str, Any]] = {
    ast.Add: ("+", 0), ast.BitOr: ("|", 0), ast.BitXor: ("^", 0), ast.Mult: ("*", 1),
}  # fmt: skip
_INSTRUCTED = {
    "add_any_order": -0.0, "multiply_any_order": 1.0,
    "ordered_maximum": None, "ordered_minimum": None,
}  # fmt: skip
_LIBRARY = {"maximum", "minimum", "larger", "smaller", "either", "both"}
_INTEGERS = {"add": 0, "multiply": 1}


def totals_of(body: FunctionBody, statements: Sequence[ast.stmt]) -> dict[int, Total]:
    """The statements that accumulate; all other names must be made anew in each iteration."""
    changed = set(assigned(statements))
    carried = changed & read_first(statements)
    totals: dict[int, Total] = {}
    for place, statement in enumerate(statements):
        total = _total(body, statement)
        if total is not None and total.name in carried:
            totals[place] = total
    names = [total.name for total in totals.values()]
    if len(set(names)) < len(names) or set(names) != carried:
        raise NotVector("an iteration needs the one before")
    for place, statement in enumerate(statements):
        read = reads(_value_of(statement, totals.get(place)))
        if read & carried:
            raise NotVector("an iteration needs the one before")
    private = changed - carried
    if private & body.variables:
        raise NotVector("a name is used outside of its loop")
    return totals


@cached_on_node
def reads(node: ast.AST) -> frozenset[str]:
    """The names that a statement reads."""
    return frozenset([name for name, writes in uses(node) if not writes])


def _value_of(statement: ast.stmt, total: Total | None) -> ast.AST:
    return statement if total is None else total.value


def _total(body: FunctionBody, statement: ast.stmt) -> Total | None:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        known = _AUGMENTED.get(type(statement.op))
        if known is None:
            return None
        op, first = known
        return Total(
            statement.target.id, statement.value, lambda a, b: do.binary(body.f, op, a, b), first
        )
    if not (
        isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Call)
        and len(statement.value.args) in (2, 3)
    ):
        return None
    name = statement.targets[0].id
    first, *values = statement.value.args
    if not (isinstance(first, ast.Name) and first.id == name):
        return None
    called = body.value(statement.value.func)
    function = called.value if isinstance(called, Known) else None
    known = getattr(function, "__name__", "") or getattr(function, "_name", "")
    if len(values) == 2:
        both = ast.Tuple(values, ast.Load())
        plus = INSTRUCTIONS["add_any_order"]
        return Total(name, both, partial(plus, body), -0.0) if known == "add_product" else None
    (value,) = values
    if known in _INSTRUCTED:
        return Total(name, value, lambda a, b: INSTRUCTIONS[known](body, a, b), _INSTRUCTED[known])
    if known in _LIBRARY or known in _INTEGERS:
        library = library_function(function.py_func, False)  # pyright: ignore

        def step(a: Number, b: Number) -> Number:
            return body.as_number(body.call_function(library, [a, b]))

        return Total(name, value, step, _INTEGERS.get(known))
    return None


def start_total(body: FunctionBody, total: Total, count: int) -> None:
    """Give each lane its place, which nothing has been added to."""
    f = body.f
    before = body.as_number(body.get(total.name))
    total.dtype = before.dtype
    integers = total.first in (0, 1) and isinstance(total.first, int)
    if before.dtype.kind == "c" or (integers and before.dtype.kind == "f"):
        raise NotVector("the order of a sum matters")
    first = in_lanes(total.identity(before.dtype, before), count, f)
    kind = kind_of(first)
    slot = f.slot(kind)
    f.effect(f"store {kind} {first.part}, ptr {slot}")
    total.slots = (slot,)


def add_to_total(body: FunctionBody, total: Total, lanes: Lanes) -> None:
    """Run a statement that accumulates, in the lanes of the mask."""
    f = body.f
    kind = f"<{lanes.count} x {scalar_type(total.dtype)}>"
    before = Number(total.dtype, (f.value(f"load {kind}, ptr {total.slots[0]}"),), lanes.count)
    if isinstance(total.value, ast.Tuple):
        factors = [in_lanes(body.number(x), lanes.count, f) for x in total.value.elts]
        after = INSTRUCTIONS["add_product"](body, before, *factors)
    else:
        value = body.number(total.value)
        if value.dtype != total.dtype:
            if value.dtype.kind == "f" or total.dtype.kind == "f":
                raise NotVector("a total of another type")
            value = do.cast(f, value, total.dtype)
        after = do.cast(f, total.step(before, in_lanes(value, lanes.count, f)), total.dtype)
    text = after.part
    if lanes.mask:
        text = f.value(
            f"select <{lanes.count} x i1> {lanes.mask}, {kind} {text}, {kind} {before.part}"
        )
    f.effect(f"store {kind} {text}, ptr {total.slots[0]}")


def end_total(body: FunctionBody, total: Total, count: int) -> None:
    """Put the lanes together in halves, and to what was there before."""
    f = body.f
    scalar = scalar_type(total.dtype)
    part = f.value(f"load <{count} x {scalar}>, ptr {total.slots[0]}")
    value = do.reduce_halves(f, Number(total.dtype, (part,), count), total.step)
    before = body.as_number(body.get(total.name))
    body.set(total.name, do.cast(f, total.step(before, value), total.dtype))
