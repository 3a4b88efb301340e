"""Expressions of a kernel's text, translated to numbers and arrays."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from numgrad.codegen.native import arithmetic as do, memory, values
from numgrad.codegen.native.instructions import power_of_floats
from numgrad.codegen.native.ir import FunctionWriter, Unsupported
from numgrad.codegen.native.source import SourceFunction
from numgrad.codegen.native.syntax import cached_on_node, nodes

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Pow: "**",
}  # fmt: skip
_COMPARISONS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class ExpressionWriter:
    """Translates expressions of a function.

    Attributes
    ----------
    names
        What local names stand for; ``slots`` are those in memory: Note [Variables] in ``syntax``.
    lanes
        While the body of a loop, or a function that it calls, is written in lanes.
    """

    def __init__(self, f: FunctionWriter, function: SourceFunction, has_fma: bool) -> None:
        self.f, self.function, self.has_fma = f, function, has_fma
        self.names: dict[str, values.Value] = {}
        self.slots: dict[str, tuple[tuple[str, ...], np.dtype]] = {}
        self.variables: frozenset[str] = frozenset()
        self._outer: dict[str, values.Value] = {}  # what names that are not local stand for
        self.lanes: values.Lanes | None = None

    def get(self, name: str) -> values.Value:
        """The value of a name."""
        if name in self.slots:
            parts, dtype = self.slots[name]
            kind = values.scalar_type(dtype)
            return values.Number(dtype, tuple(self.f.value(f"load {kind}, ptr {p}") for p in parts))
        if name in self.names:
            value = self.names[name]
            return self.current(value) if isinstance(value, values.GrowingVector) else value
        if name in self.variables:
            raise Unsupported(f"{name} is read before it is set")
        value = self._outer.get(name)
        if value is None:
            value = self._outer[name] = self.known(self.function.look_up(name))
        return value

    def current(self, vector: values.GrowingVector) -> values.Array:
        """The array that a growing vector is now."""
        data = self.f.value(f"load ptr, ptr {vector.data}")
        length = values.Number(values.INT64, (self.f.value(f"load i64, ptr {vector.length}"),))
        return values.Array(vector.dtype, data, (length,), None, vector.data)

    def value(self, node: ast.expr) -> values.Value:
        """The value of an expression."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            raise Unsupported(type(node).__name__)
        return method(node)

    def number(self, node: ast.expr, stored: bool = False) -> values.Number:
        """The value of an expression that is a number."""
        if stored and isinstance(node, ast.Name):
            return self.as_number(self.get(node.id))
        return self.as_number(self.value(node))

    def as_number(self, value: values.Value) -> values.Number:
        if not isinstance(value, values.Number):
            raise Unsupported(f"{type(value).__name__} for a number")
        return value

    def truth(self, value: values.Value) -> values.Number:
        """Whether a value is true."""
        return do.truth(self.f, self.as_number(value))

    def dtype_of(self, value: Any) -> np.dtype:
        """The dtype that a type stands for."""
        if isinstance(value, values.Known) and isinstance(value.value, np.dtype | type):
            return np.dtype(value.value)
        raise Unsupported("a type that is computed")

    def call_function(
        self, function: SourceFunction, arguments: list[values.Value]
    ) -> values.Value:
        """Call a function of the library or of the text, or write it here."""
        raise NotImplementedError

    def known(self, value: Any) -> values.Value:
        """A Python object as a value."""
        if isinstance(value, np.generic):
            return values.constant(value.item(), value.dtype)
        if isinstance(value, bool):
            return values.constant(value, values.BOOL)
        if isinstance(value, int):
            return values.constant(value, values.INT64 if value < 1 << 63 else values.UINT64)
        if isinstance(value, float):
            return values.constant(value, values.FLOAT64)
        if isinstance(value, complex):
            return values.constant(value, values.COMPLEX128)
        if isinstance(value, tuple):
            return tuple(self.known(v) for v in value)
        if isinstance(value, np.ndarray):
            return self._table(value)
        return values.Known(value)

    def _table(self, array: np.ndarray) -> values.Array:
        """An array of constants."""
        kind = values.memory_type(array.dtype)
        items = ", ".join(
            f"{kind} {values.constant_text(v, array.dtype)}" for v in array.ravel().tolist()
        )
        name = self.f.module.constant(f"[{array.size} x {kind}] [{items}]")
        return values.Array(array.dtype, name, tuple(map(values.integer, array.shape)), None, name)

    def _of_Constant(self, node: ast.Constant) -> values.Value:
        return self.known(node.value)

    def _of_Name(self, node: ast.Name) -> values.Value:
        return self.get(node.id)

    def _of_Tuple(self, node: ast.Tuple) -> values.Value:
        return tuple(self.value(e) for e in node.elts)

    def _of_BinOp(self, node: ast.BinOp) -> values.Value:
        op = OPERATORS.get(type(node.op))
        if op is None:
            raise Unsupported(type(node.op).__name__)
        a, b = self.number(node.left), self.number(node.right)
        literals = (a.literal, b.literal)
        if op == "**" and all(isinstance(x, int) and x >= 0 for x in literals):
            return self.known(a.literal**b.literal)
        return self.combine(op, a, b)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> values.Value:
        x = self.number(node.operand)
        if isinstance(node.op, ast.USub):
            return do.negate(self.f, x)
        if isinstance(node.op, ast.Invert):
            return do.invert(self.f, x)
        if isinstance(node.op, ast.Not):
            truth = do.truth(self.f, x)
            if truth.literal is not None:
                return values.constant(not truth.literal, values.BOOL)
            return do.logical_not(self.f, truth)
        return x

    def _of_Compare(self, node: ast.Compare) -> values.Value:
        left = self.number(node.left)
        result: values.Number | None = None
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARISONS:
                raise Unsupported(type(op).__name__)
            other = self.number(right)
            each = do.compare(self.f, _COMPARISONS[type(op)], left, other)
            result = each if result is None else do.binary(self.f, "&", result, each)
            left = other
        assert result is not None
        return result

    def _of_BoolOp(self, node: ast.BoolOp) -> values.Value:
        every = isinstance(node.op, ast.And)
        result = self.truth(self.value(node.values[0]))
        for operand in node.values[1:]:
            if result.literal is not None:
                if bool(result.literal) != every:
                    return result
                result = self.truth(self.value(operand))
            elif _is_simple(operand):
                other = self.truth(self.value(operand))
                result = do.binary(self.f, "&" if every else "|", result, other)
            else:
                result = self._branch(result, operand, result, every)
        return result

    def _branch(
        self, condition: values.Number, node: ast.expr, other: values.Number, when: bool
    ) -> values.Number:
        """``other``, or where ``condition`` is ``when`` the value of an expression."""
        if condition.lanes:
            raise values.NotVector("a branch")
        f = self.f
        kind = values.scalar_type(other.dtype)
        slots = [f.slot(kind) for _ in other.parts]
        for slot, component in zip(slots, other.parts, strict=True):
            f.effect(f"store {kind} {component}, ptr {slot}")
        then, after = f.label("then"), f.label("after")
        f.branch(condition.part, *((then, after) if when else (after, then)))
        f.begin(then)
        with f.inside():
            value = do.cast(f, self.number(node), other.dtype)
            for slot, component in zip(slots, value.parts, strict=True):
                f.effect(f"store {kind} {component}, ptr {slot}")
        f.start(after)
        parts = tuple(f.value(f"load {kind}, ptr {slot}") for slot in slots)
        return values.Number(other.dtype, parts)

    def _of_IfExp(self, node: ast.IfExp) -> values.Value:
        condition = self.truth(self.value(node.test))
        if condition.literal is not None:
            return self.value(node.body if condition.literal else node.orelse)
        if isinstance(node.body, ast.Tuple) and isinstance(node.orelse, ast.Tuple):
            pairs = zip(node.body.elts, node.orelse.elts, strict=True)
            return tuple(self._of_IfExp(ast.IfExp(node.test, *pair)) for pair in pairs)
        if condition.lanes:
            return self._choose_in_lanes(condition, node)
        if self._is_array(node.body) and self._is_array(node.orelse):
            return self._choose_array(condition, node)
        if _is_simple(node.body) and _is_simple(node.orelse):
            return do.select(self.f, condition, self.number(node.body), self.number(node.orelse))
        return self._choose(condition, node)

    def _is_array(self, node: ast.expr) -> bool:
        """Whether an expression is an array that has a name, or a part of one."""
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            owner = self.names.get(node.value.id)
            index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            places = [p for p in index if not isinstance(p, ast.Slice)]
            return isinstance(owner, values.Array) and len(places) < len(owner.shape)
        return isinstance(node, ast.Name) and isinstance(self.names.get(node.id), values.Array)

    def _choose_array(self, condition: values.Number, node: ast.IfExp) -> values.Array:
        """One of two arrays; where they lie is computed of both, so only elements are checked."""
        module = self.f.module
        checked, module.check_bounds = module.check_bounds, False
        a, b = self.value(node.body), self.value(node.orelse)
        module.check_bounds = checked
        assert isinstance(a, values.Array)
        assert isinstance(b, values.Array)
        if a.dtype != b.dtype or len(a.shape) != len(b.shape) or a.strides or b.strides:
            raise Unsupported("a choice of different arrays")
        shape = tuple(
            do.select(self.f, condition, x, y) for x, y in zip(a.shape, b.shape, strict=True)
        )
        data = self.f.pure(f"select i1 {condition.part}, ptr {a.data}, ptr {b.data}")
        return values.Array(a.dtype, data, shape, None, values.one_of(a, b))

    def _choose(self, condition: values.Number, node: ast.IfExp) -> values.Number:
        """One of two expressions, only that is computed."""
        f = self.f
        then, other, after = f.label("then"), f.label("else"), f.label("after")
        f.branch(condition.part, then, other)
        arms: list[tuple[values.Number, str]] = []
        for label, arm in ((then, node.body), (other, node.orelse)):
            f.begin(label)
            with f.inside():
                arms.append((self.number(arm), f.block))
                f.jump(after)
        f.begin(after)
        (a, here), (b, there) = arms
        if a.dtype != b.dtype:
            raise Unsupported("a choice of different types")
        kind = values.kind_of(a)
        if a.lanes != b.lanes or a.step or b.step:
            raise values.NotVector("a choice of a vector")
        parts = tuple(
            f.value(f"phi {kind} [ {x}, %{here} ], [ {y}, %{there} ]")
            for x, y in zip(a.parts, b.parts, strict=True)
        )
        return values.Number(a.dtype, parts, a.lanes)

    def _choose_in_lanes(self, condition: values.Number, node: ast.IfExp) -> values.Number:
        """One of two expressions a lane; the first is left out where no lane needs it."""
        f, lanes = self.f, condition.lanes
        b = self._number_where(do.logical_not(f, condition), node.orelse)
        if _is_simple(node.body):
            return do.select(f, condition, self.number(node.body), b)
        b = values.in_lanes(b, lanes, f)
        kind, before = values.kind_of(b), f.block
        then, after = f.label("rare"), f.label("after")
        f.branch(memory.any_lane(f, condition), then, after)
        f.begin(then)
        with f.inside():
            a = do.cast(f, self._number_where(condition, node.body), b.dtype)
            chosen = do.select(f, condition, a, b)
            here = f.block
            f.jump(after)
        f.begin(after)
        parts = tuple(
            f.value(f"phi {kind} [ {x}, %{here} ], [ {y}, %{before} ]")
            for x, y in zip(chosen.parts, b.parts, strict=True)
        )
        return values.Number(b.dtype, parts, lanes)

    def _number_where(self, condition: values.Number, node: ast.expr) -> values.Number:
        """An expression that reads memory in those lanes only where a condition holds."""
        around = self.lanes
        if around is None or _is_simple(node):
            return self.number(node)
        self.lanes = memory.masked(self.f, around, condition)
        try:
            return self.number(node)
        finally:
            self.lanes = around

    def _of_Attribute(self, node: ast.Attribute) -> values.Value:
        if node.attr == "data" and isinstance(node.value, ast.Attribute):
            array = self.value(node.value.value)
            if isinstance(array, values.Array) and node.value.attr == "ctypes":
                return memory.to_address(self.f, array)
        owner = self.value(node.value)
        if isinstance(owner, values.Number) and node.attr in ("real", "imag"):
            return do.real(owner) if node.attr == "real" else do.imag(owner)
        if isinstance(owner, values.Array):
            if node.attr == "size":
                return memory.size_of(self.f, owner)
            if node.attr == "shape":
                return owner.shape
            if node.attr == "ndim":
                return values.integer(len(owner.shape))
            if node.attr == "itemsize":
                return values.integer(owner.dtype.itemsize)
            if node.attr == "dtype":
                return values.Known(owner.dtype)
            if node.attr == "strides":
                return memory.strides_of(self.f, owner)
            if node.attr == "T":
                return memory.transposed(self.f, owner)
        if isinstance(owner, values.Known):
            return self.known(getattr(owner.value, node.attr))
        raise Unsupported(f"the attribute {node.attr}")

    def _of_Subscript(self, node: ast.Subscript) -> values.Value:
        owner = self.value(node.value)
        index = self._index(node.slice)
        if isinstance(owner, tuple):
            (position,) = index
            if not isinstance(position, values.Number):
                raise Unsupported("a part of a tuple")
            if position.literal is None:
                return self._of_table(owner, position)
            return owner[position.literal]
        if not isinstance(owner, values.Array):
            raise Unsupported("an element of something else than an array")
        if len(index) == len(owner.shape) and not any(isinstance(p, slice) for p in index):
            element = memory.element_of(self.f, owner, index)  # pyright: ignore
            return memory.read(self.f, element, self.lanes)
        if self.lanes is not None:
            raise values.NotVector("a part of an array")
        return memory.view(self.f, owner, index)

    def _of_table(self, items: tuple[values.Value, ...], position: values.Number) -> values.Number:
        """An element of a tuple of constants at a place that is computed."""
        numbers = [self.as_number(item) for item in items]
        if any(x.literal is None or x.dtype != numbers[0].dtype for x in numbers):
            raise Unsupported("an element of a tuple at a place that is computed")
        array = self._table(np.array([x.literal for x in numbers], numbers[0].dtype))
        return memory.read(self.f, memory.element_of(self.f, array, [position]), self.lanes)

    def _index(self, node: ast.expr) -> list[values.Number | slice]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self._slice(p) if isinstance(p, ast.Slice) else self._place(p) for p in parts]

    def _place(self, node: ast.expr) -> values.Number:
        position = do.cast(self.f, self.number(node), values.INT64)
        if position.literal is not None and position.literal < 0:
            raise Unsupported("an index from the end")
        return position

    def _slice(self, node: ast.Slice) -> slice:
        if node.step is not None:
            raise Unsupported("a slice with a step")
        start, stop = (
            None if each is None else do.cast(self.f, self.number(each), values.INT64)
            for each in (node.lower, node.upper)
        )
        if start is not None and start.literal == 0:
            start = None
        return slice(start, stop)

    def _element(self, node: ast.Subscript) -> memory.Element:
        owner = self.value(node.value)
        index = self._index(node.slice)
        if not isinstance(owner, values.Array) or any(isinstance(p, slice) for p in index):
            raise Unsupported("an assignment to a part of an array")
        if len(index) != len(owner.shape):
            raise Unsupported("an assignment to a part of an array")
        return memory.element_of(self.f, owner, index)  # pyright: ignore

    def combine(self, op: str, a: values.Number, b: values.Number) -> values.Number:
        """``a op b``."""
        if op == "**":
            return power_of_floats(self, a, b)
        return do.binary(self.f, op, a, b)


@cached_on_node
def _is_simple(node: ast.expr) -> bool:
    """Whether an expression may be computed in vain."""
    return not any(
        isinstance(each, ast.Subscript) or (isinstance(each, ast.Call) and not _is_cast(each))
        for each in nodes(node)
    )


def _is_cast(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id.rstrip("0123456789") in _CAST_NAMES


_CAST_NAMES = {"int", "uint", "float", "complex", "boolean", "min", "max", "abs", "i_select"}
