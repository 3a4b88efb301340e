"""The body of a function, translated statement by statement.

Note [Functions]
----------------
A function of the library is compiled once for each combination of types, alone or a lane each, and
called; small ones, and those that library functions call, are written where they are called. A
function with branches is never written in lanes: its vector form calls it for one lane after the
other.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.linker import external_symbol
from numgrad.codegen.native import arithmetic as do
from numgrad.codegen.native import memory
from numgrad.codegen.native.instructions import NUMPY, instruction
from numgrad.codegen.native.ir import FunctionWriter, Module, Unsupported
from numgrad.codegen.native.memory import Lanes, NotVector
from numgrad.codegen.native.names import is_straight, variables
from numgrad.codegen.native.signature import Signature
from numgrad.codegen.native.source import THREADS, Function, library_function
from numgrad.codegen.native.values import (
    BOOL,
    COMPLEX128,
    FLOAT64,
    INT64,
    UINT64,
    Array,
    Known,
    Number,
    Value,
    constant,
    constant_text,
    in_lanes,
    integer,
    kind_of,
    memory_type,
    scalar_type,
    vector_type,
)

SMALL = 60
"""Nodes of syntax up to which a function is written where it is called."""

_OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARISONS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


class FunctionBody:
    """Translates statements.

    Attributes
    ----------
    names
        What local names stand for; ``slots`` are those in memory: Note [Variables] in ``names``.
    lanes
        While the body of a loop, or a function that it calls, is written in lanes.
    failed
        Where a function says that memory ran out; empty in those that need none.
    inlined
        Whether this is a function written where it is called.
    """

    def __init__(
        self, f: FunctionWriter, function: Function, *, has_fma: bool, parallel: bool = False
    ) -> None:
        self.f, self.function, self.has_fma, self.parallel = f, function, has_fma, parallel
        self.names: dict[str, Value] = {}
        self.slots: dict[str, tuple[tuple[str, ...], np.dtype]] = {}
        self.variables = variables(function.tree)
        self.lanes: Lanes | None = None
        self.failed = ""
        self.inlined = False
        self.result: Any = None
        self.returns: Any = None
        self.owned: list[str] = []
        self.loops: list[tuple[str, str]] = []
        f.contract = " contract" if function.contract else f.contract

    # -------------------------------------------------------------------------------- statements

    def run(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements."""
        for statement in statements:
            if self.f.ended:
                break
            method = getattr(self, f"_do_{type(statement).__name__}", None)
            if method is None:
                raise Unsupported(type(statement).__name__)
            method(statement)

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _do_Assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.assign(target, value)

    def assign(self, target: ast.expr, value: Value) -> None:
        """Give a value to what stands left of an equals sign."""
        if isinstance(target, ast.Name):
            self.set(target.id, value)
        elif isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise Unsupported("an assignment to several names")
            for each, part in zip(target.elts, value, strict=True):
                self.assign(each, part)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            self._fill(target, self._number(value))
        elif isinstance(target, ast.Subscript):
            memory.write(self.f, self._element(target), self._number(value), self.lanes)
        else:
            raise Unsupported("an assignment to an attribute")

    def _fill(self, target: ast.Subscript, value: Number) -> None:
        """Set all elements of a part of a vector, by a loop."""
        part = self.value(target)
        if self.lanes is not None or self.inlined:
            raise NotVector("a loop")
        if not isinstance(part, Array) or len(part.shape) != 1 or value.lanes:
            raise Unsupported("an assignment to a part of an array")
        from numgrad.codegen.native.loops import write_loop

        around = dict(self.names)
        self.names |= {"@part": part, "@value": value, "@count": part.shape[0]}
        (loop,) = ast.parse("for k in range(count): part[k] = value").body
        for name in (n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id != "range"):
            name.id = f"@{name.id}"
        assert isinstance(loop, ast.For)
        write_loop(self, loop)
        self.names = around

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        op = _OPERATORS.get(type(node.op))
        if op is None:
            raise Unsupported(type(node.op).__name__)
        operand = self.number(node.value)
        if isinstance(node.target, ast.Name):
            self.set(node.target.id, self.combine(op, self.number(node.target, True), operand))
            return
        if not isinstance(node.target, ast.Subscript):
            raise Unsupported("an assignment to an attribute")
        element = self._element(node.target)
        before = memory.read(self.f, element, self.lanes)
        memory.write(self.f, element, self.combine(op, before, operand), self.lanes)

    def combine(self, op: str, a: Number, b: Number) -> Number:
        """``a op b``."""
        return do.binary(self.f, op, a, b)

    def set(self, name: str, value: Value) -> None:
        """Assign to a local name."""
        if name not in self.variables:
            self.names[name] = value
            return
        number = self._number(value)
        if number.lanes:
            raise NotVector(f"{name} is read outside of its loop")
        if name not in self.slots:
            parts = tuple(self.f.slot(scalar_type(number.dtype)) for _ in number.parts)
            self.slots[name] = parts, number.dtype
        parts, dtype = self.slots[name]
        if number.dtype != dtype:
            if number.literal is None or do.common(number.dtype, dtype) != dtype:
                raise Unsupported(f"{name} changes from {dtype} to {number.dtype}")
            number = do.cast(self.f, number, dtype)
        kind = scalar_type(dtype)
        for slot, part in zip(parts, number.parts, strict=True):
            self.f.effect(f"store {kind} {part}, ptr {slot}")

    def get(self, name: str) -> Value:
        """The value of a name."""
        if name in self.slots:
            parts, dtype = self.slots[name]
            kind = scalar_type(dtype)
            return Number(dtype, tuple(self.f.value(f"load {kind}, ptr {p}") for p in parts))
        if name in self.names:
            return self.names[name]
        if name in self.variables:
            raise Unsupported(f"{name} is read before it is set")
        return self.known(self.function.look_up(name))

    def _do_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.value(node.value)
        if self.inlined:
            self.result = value
            return
        self.leave(value)

    def _do_If(self, node: ast.If) -> None:
        condition = self.truth(self.value(node.test))
        if condition.literal is not None:
            self.run(node.body if condition.literal else node.orelse)
            return
        if condition.lanes or self.inlined:
            raise NotVector("a branch")
        f = self.f
        then, other, after = f.label("then"), f.label("else"), f.label("after")
        f.branch(condition.part, then, other if node.orelse else after)
        self._block(then, node.body, after)
        if node.orelse:
            self._block(other, node.orelse, after)
        f.start_if_reached(after)

    def _block(self, label: str, statements: Sequence[ast.stmt], after: str) -> None:
        f = self.f
        f.begin(label)
        names = dict(self.names)
        with f.inside():
            self.run(statements)
            f.jump(after)
        self.names = names

    def _do_While(self, node: ast.While) -> None:
        f = self.f
        if self.lanes is not None or self.inlined:
            raise NotVector("a loop")
        head, body, after = f.label("while"), f.label("body"), f.label("after")
        f.start(head)
        names = dict(self.names)
        with f.inside():
            condition = self.truth(self.value(node.test))
            f.branch(condition.part, body, after)
            self.loops.append((head, after))
            f.begin(body)
            self.run(node.body)
            f.jump(head)
            self.loops.pop()
        self.names = names
        f.begin(after)

    def _do_Break(self, node: ast.Break) -> None:
        self.f.jump(self.loops[-1][1])

    def _do_Continue(self, node: ast.Continue) -> None:
        self.f.jump(self.loops[-1][0])

    def _do_For(self, node: ast.For) -> None:
        from numgrad.codegen.native.loops import write_loop

        if self.lanes is not None or self.inlined:
            raise NotVector("a loop")
        write_loop(self, node)

    # ------------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            raise Unsupported(type(node).__name__)
        return method(node)

    def number(self, node: ast.expr, stored: bool = False) -> Number:
        """The value of an expression that is a number."""
        if stored and isinstance(node, ast.Name):
            return self._number(self.get(node.id))
        return self._number(self.value(node))

    def _number(self, value: Value) -> Number:
        if not isinstance(value, Number):
            raise Unsupported(f"{type(value).__name__} for a number")
        return value

    def truth(self, value: Value) -> Number:
        """Whether a value is true."""
        return do.truth(self.f, self._number(value))

    def known(self, value: Any) -> Value:
        """A Python object as a value."""
        if isinstance(value, np.generic):
            return constant(value.item(), value.dtype)
        if isinstance(value, bool):
            return constant(value, BOOL)
        if isinstance(value, int):
            return constant(value, INT64 if value < 1 << 63 else UINT64)
        if isinstance(value, float):
            return constant(value, FLOAT64)
        if isinstance(value, complex):
            return constant(value, COMPLEX128)
        if isinstance(value, tuple):
            return tuple(self.known(v) for v in value)
        if isinstance(value, np.ndarray):
            return self._table(value)
        return Known(value)

    def _table(self, array: np.ndarray) -> Array:
        """An array of constants."""
        kind = memory_type(array.dtype)
        items = ", ".join(f"{kind} {constant_text(v, array.dtype)}" for v in array.ravel().tolist())
        name = self.f.module.constant(f"[{array.size} x {kind}] [{items}]")
        return Array(array.dtype, name, tuple(map(integer, array.shape)), None, name)

    def _of_Constant(self, node: ast.Constant) -> Value:
        return self.known(node.value)

    def _of_Name(self, node: ast.Name) -> Value:
        return self.get(node.id)

    def _of_Tuple(self, node: ast.Tuple) -> Value:
        return tuple(self.value(e) for e in node.elts)

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        op = _OPERATORS.get(type(node.op))
        a, b = self.number(node.left), self.number(node.right)
        literals = (a.literal, b.literal)
        if isinstance(node.op, ast.Pow) and all(isinstance(x, int) and x >= 0 for x in literals):
            return self.known(a.literal**b.literal)
        if op is None:
            raise Unsupported(type(node.op).__name__)
        return self.combine(op, a, b)

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        x = self.number(node.operand)
        if isinstance(node.op, ast.USub):
            return do.negate(self.f, x)
        if isinstance(node.op, ast.Invert):
            return do.invert(self.f, x)
        if isinstance(node.op, ast.Not):
            found = do.truth(self.f, x)
            if found.literal is not None:
                return constant(not found.literal, BOOL)
            return do.logical_not(self.f, found)
        return x

    def _of_Compare(self, node: ast.Compare) -> Value:
        left = self.number(node.left)
        found: Number | None = None
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARISONS:
                raise Unsupported(type(op).__name__)
            other = self.number(right)
            each = do.compare(self.f, _COMPARISONS[type(op)], left, other)
            found = each if found is None else do.binary(self.f, "&", found, each)
            left = other
        assert found is not None
        return found

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        every = isinstance(node.op, ast.And)
        found = self.truth(self.value(node.values[0]))
        for part in node.values[1:]:
            if found.literal is not None:
                if bool(found.literal) != every:
                    return found
                found = self.truth(self.value(part))
            elif _is_simple(part):
                other = self.truth(self.value(part))
                found = do.binary(self.f, "&" if every else "|", found, other)
            else:
                found = self._branch(found, part, found, every)
        return found

    def _branch(self, condition: Number, node: ast.expr, other: Number, when: bool) -> Number:
        """``other``, or where ``condition`` is ``when`` the value of an expression."""
        if condition.lanes:
            raise NotVector("a branch")
        f = self.f
        kind = scalar_type(other.dtype)
        slots = [f.slot(kind) for _ in other.parts]
        for slot, part in zip(slots, other.parts, strict=True):
            f.effect(f"store {kind} {part}, ptr {slot}")
        then, after = f.label("then"), f.label("after")
        f.branch(condition.part, *((then, after) if when else (after, then)))
        f.begin(then)
        with f.inside():
            value = do.cast(f, self.number(node), other.dtype)
            for slot, part in zip(slots, value.parts, strict=True):
                f.effect(f"store {kind} {part}, ptr {slot}")
        f.start(after)
        parts = tuple(f.value(f"load {kind}, ptr {slot}") for slot in slots)
        return Number(other.dtype, parts)

    def _of_IfExp(self, node: ast.IfExp) -> Value:
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
            whole = len(index) == len(owner.shape) if isinstance(owner, Array) else False
            return isinstance(owner, Array) and not whole
        return isinstance(node, ast.Name) and isinstance(self.names.get(node.id), Array)

    def _choose_array(self, condition: Number, node: ast.IfExp) -> Array:
        """One of two arrays; where they lie is computed of both."""
        a, b = self.value(node.body), self.value(node.orelse)
        assert isinstance(a, Array)
        assert isinstance(b, Array)
        if a.dtype != b.dtype or len(a.shape) != len(b.shape) or a.strides or b.strides:
            raise Unsupported("a choice of different arrays")
        shape = tuple(
            do.select(self.f, condition, x, y) for x, y in zip(a.shape, b.shape, strict=True)
        )
        data = self.f.pure(f"select i1 {condition.part}, ptr {a.data}, ptr {b.data}")
        return Array(a.dtype, data, shape, None, data)

    def _choose(self, condition: Number, node: ast.IfExp) -> Number:
        """One of two expressions, only that is computed."""
        f = self.f
        then, other, after = f.label("then"), f.label("else"), f.label("after")
        f.branch(condition.part, then, other)
        found: list[tuple[Number, str]] = []
        for label, arm in ((then, node.body), (other, node.orelse)):
            f.begin(label)
            with f.inside():
                found.append((self.number(arm), f.block))
                f.jump(after)
        f.begin(after)
        (a, here), (b, there) = found
        if a.dtype != b.dtype:
            raise Unsupported("a choice of different types")
        kind = kind_of(a)
        if a.lanes != b.lanes or a.step or b.step:
            raise Unsupported("a choice of a vector")
        parts = tuple(
            f.value(f"phi {kind} [ {x}, %{here} ], [ {y}, %{there} ]")
            for x, y in zip(a.parts, b.parts, strict=True)
        )
        return Number(a.dtype, parts, a.lanes)

    def _choose_in_lanes(self, condition: Number, node: ast.IfExp) -> Number:
        """One of two expressions a lane; the first is left out where no lane needs it."""
        f = self.f
        b = self.number(node.orelse)
        if _is_simple(node.body):
            return do.select(f, condition, self.number(node.body), b)
        lanes = condition.lanes
        b = in_lanes(b, lanes, f)
        kind, before = kind_of(b), f.block
        then, after = f.label("rare"), f.label("after")
        f.branch(memory.any_lane(f, condition), then, after)
        before_block = before
        f.begin(then)
        with f.inside():
            a = do.cast(f, self.number(node.body), b.dtype)
            chosen = do.select(f, condition, a, b)
            here = f.block
            f.jump(after)
        f.begin(after)
        parts = tuple(
            f.value(f"phi {kind} [ {x}, %{here} ], [ {y}, %{before_block} ]")
            for x, y in zip(chosen.parts, b.parts, strict=True)
        )
        return Number(b.dtype, parts, lanes)

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        if node.attr == "data" and isinstance(node.value, ast.Attribute):
            array = self.value(node.value.value)
            if isinstance(array, Array) and node.value.attr == "ctypes":
                return memory.to_address(self.f, array)
        owner = self.value(node.value)
        if isinstance(owner, Number) and node.attr in ("real", "imag"):
            return do.real(owner) if node.attr == "real" else do.imag(owner)
        if isinstance(owner, Array):
            if node.attr == "size":
                return memory.size_of(self.f, owner)
            if node.attr == "shape":
                return owner.shape
            if node.attr == "ndim":
                return integer(len(owner.shape))
            if node.attr == "itemsize":
                return integer(owner.dtype.itemsize)
            if node.attr == "dtype":
                return Known(owner.dtype)
            if node.attr == "strides":
                return memory.strides_of(self.f, owner)
            if node.attr == "T":
                return memory.transposed(self.f, owner)
        if isinstance(owner, Known):
            return self.known(getattr(owner.value, node.attr))
        raise Unsupported(f"the attribute {node.attr}")

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        owner = self.value(node.value)
        index = self._index(node.slice)
        if isinstance(owner, tuple):
            (place,) = index
            if not isinstance(place, Number) or place.literal is None:
                return self._of_table(owner, self._number(place))
            return owner[place.literal]
        if not isinstance(owner, Array):
            raise Unsupported("an element of something else than an array")
        if len(index) == len(owner.shape) and not any(isinstance(p, slice) for p in index):
            element = memory.element_of(self.f, owner, index)  # pyright: ignore
            return memory.read(self.f, element, self.lanes)
        if self.lanes is not None:
            raise NotVector("a part of an array")
        return memory.view(self.f, owner, index)

    def _of_table(self, items: tuple[Value, ...], place: Number) -> Number:
        """An element of a tuple of constants at a place that is computed."""
        numbers = [self._number(item) for item in items]
        if any(x.literal is None or x.dtype != numbers[0].dtype for x in numbers):
            raise Unsupported("an element of a tuple at a place that is computed")
        array = self._table(np.array([x.literal for x in numbers], numbers[0].dtype))
        return memory.read(self.f, memory.element_of(self.f, array, [place]), self.lanes)

    def _index(self, node: ast.expr) -> list[Number | slice]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        return [self._slice(p) if isinstance(p, ast.Slice) else self._place(p) for p in parts]

    def _place(self, node: ast.expr) -> Number:
        place = do.cast(self.f, self.number(node), INT64)
        if place.literal is not None and place.literal < 0:
            raise Unsupported("an index from the end")
        return place

    def _slice(self, node: ast.Slice) -> slice:
        if node.step is not None:
            raise Unsupported("a slice with a step")
        start, stop = (
            None if each is None else do.cast(self.f, self.number(each), INT64)
            for each in (node.lower, node.upper)
        )
        if start is not None and start.literal == 0:
            start = None
        return slice(start, stop)

    def _element(self, node: ast.Subscript) -> memory.Element:
        owner = self.value(node.value)
        index = self._index(node.slice)
        if not isinstance(owner, Array) or any(isinstance(p, slice) for p in index):
            raise Unsupported("an assignment to a part of an array")
        if len(index) != len(owner.shape):
            raise Unsupported("an assignment to a part of an array")
        return memory.element_of(self.f, owner, index)  # pyright: ignore

    # ------------------------------------------------------------------------------------- calls

    def _of_Call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            owner = self.value(node.func.value)
            if isinstance(owner, Array):
                return self._reshape(owner, [self.number(a) for a in node.args])
        called = self.value(node.func)
        if node.keywords or not isinstance(called, Known):
            raise Unsupported("a call of something else than a function by position")
        return self.call(called.value, [self.value(a) for a in node.args])

    def _reshape(self, array: Array, shape: list[Number]) -> Array:
        if array.strides is not None:
            raise Unsupported("reshape of an array with strides")
        lengths = tuple(do.cast(self.f, n, INT64) for n in shape)
        return Array(array.dtype, array.data, lengths, None, array.root)

    def call(self, function: Any, arguments: list[Value]) -> Value:
        """What a function returns."""
        if isinstance(function, np.dtype) or (
            isinstance(function, type) and issubclass(function, np.generic)
        ):
            return do.cast(self.f, self._number(*arguments), np.dtype(function))
        if isinstance(function, Function):
            return self.call_function(function, arguments)
        if function is THREADS:
            return self._thread_limit()
        if function in _BUILTINS:
            return _BUILTINS[function](self, *arguments)
        if function in (np.empty, np.zeros):
            return self._allocate(arguments, zero=function is np.zeros)
        if function is np.empty_like and isinstance(arguments[0], Array):
            return self._allocate([arguments[0].shape, Known(arguments[0].dtype)], zero=False)
        if isinstance(function, np.ufunc | type(np.sum)) and function.__name__ in NUMPY:
            return NUMPY[function.__name__](self, *map(self._number, arguments))
        return self._call_library(function, arguments)

    def _call_library(self, function: Any, arguments: list[Value]) -> Value:
        name = getattr(function, "__name__", "") or getattr(function, "_name", "")
        if hasattr(function, "py_func"):
            if name == "touch":
                return None
            contract = getattr(function, "contract", False)
            return self.call_function(library_function(function.py_func, contract), arguments)
        if hasattr(function, "symbol"):
            return self._call_external(function, arguments)
        if getattr(function, "external", None) is not None:
            return self._call_kernel(
                function.external(name, self.dtype_of(arguments[0]).name), arguments[1:]
            )
        translate = instruction(function, name)
        if translate is None:
            raise Unsupported(f"a call of {name or type(function).__name__}")
        return translate(self, *arguments)

    def _thread_limit(self) -> Number:
        name = self.f.module.declare("numgrad_thread_limit", "i64", [])
        return Number(INT64, (self.f.value(f"call i64 {name}()"),))

    def _call_kernel(self, external: str, arguments: list[Value]) -> None:
        """Another kernel, by Numba's calling convention."""
        if self.lanes is not None:
            raise NotVector("a call of a kernel")
        numbers = [do.cast(self.f, self._number(x), INT64) for x in arguments]
        kinds = ["ptr", "ptr", *["i64"] * len(numbers)]
        name = self.f.module.declare(external_symbol(external), "i32", kinds)
        operands = "".join(f", i64 {x.part}" for x in numbers)
        nothing = self.f.slot("ptr")
        self.f.value(f"call i32 {name}(ptr {nothing}, ptr {nothing}{operands})")

    def _call_external(self, function: Any, arguments: list[Value]) -> Value:
        """A native function, by C's calling convention."""
        if self.lanes is not None:
            raise NotVector("a native function")
        if function.symbol == "get_num_threads":
            return self._thread_limit()
        result, _, given = function.signature.partition("(")
        kinds = [np.dtype("int64" if k == "intp" else k) for k in _words(given.rstrip(")"))]
        numbers = [
            do.cast(self.f, self._number(x), d) for x, d in zip(arguments, kinds, strict=True)
        ]
        dtype = np.dtype("int64" if result.strip() == "intp" else result.strip())
        kind = scalar_type(dtype)
        name = self.f.module.declare(function.symbol, kind, [scalar_type(d) for d in kinds])
        operands = ", ".join(f"{kind_of(x)} {x.part}" for x in numbers)
        return Number(dtype, (self.f.value(f"call {kind} {name}({operands})"),))

    def call_function(self, function: Function, arguments: list[Value]) -> Value:
        """Call a function of the library or of the text, or write it here."""
        vector = any(isinstance(a, Number) and a.lanes for a in arguments)
        arrays = any(isinstance(a, Array) for a in arguments)
        if self.lanes is not None and (arrays or not function.library):
            raise NotVector("a call with effects")
        straight = is_straight(function.statements)
        if straight and function.library and (self.function.library or function.size <= SMALL):
            return self._inline(function, arguments)
        if any(isinstance(a, Known | tuple) for a in arguments):
            if straight and function.library:
                return self._inline(function, arguments)
            raise Unsupported("a function that takes a constant")
        return call(self, function, arguments, lanes=vector and straight)

    def _inline(self, function: Function, arguments: list[Value]) -> Value:
        body = FunctionBody(self.f, function, has_fma=self.has_fma)
        body.inlined, body.lanes = True, self.lanes
        names = [a.arg for a in function.tree.args.args]
        body.variables = frozenset()
        body.names = dict(zip(names, arguments, strict=True))
        body.run(function.statements)
        return body.result

    def dtype_of(self, value: Any) -> np.dtype:
        """The dtype that a type stands for."""
        if isinstance(value, Known) and isinstance(value.value, np.dtype | type):
            return np.dtype(value.value)
        raise Unsupported("a type that is computed")

    # ------------------------------------------------------------------------------------ memory

    def _allocate(self, arguments: list[Value], *, zero: bool) -> Array:
        """An array that lives until the function returns."""
        if self.lanes is not None:
            raise NotVector("an array of its own")
        if not self.failed:
            raise Unsupported("an array of its own")
        f = self.f
        shape, *kind = arguments
        lengths = shape if isinstance(shape, tuple) else (shape,)
        numbers = tuple(do.cast(f, self._number(n), INT64) for n in lengths)
        dtype = self.dtype_of(kind[0]) if kind else FLOAT64
        total = integer(dtype.itemsize)
        for length in numbers:
            total = do.binary(f, "*", total, length)
        size = do.binary(f, "+", total, integer(64))
        free = f.module.declare("free", "void", ["ptr"])
        slot = f.slot("ptr", "null")
        self.owned.append(slot)
        f.effect(f"call void {free}(ptr {f.value(f'load ptr, ptr {slot}')})")
        if zero:
            name = f.module.declare("calloc", "ptr", ["i64", "i64"])
            found = f.value(f"call noalias ptr {name}(i64 {size.part}, i64 1)")
        else:
            name = f.module.declare("malloc", "ptr", ["i64"])
            found = f.value(f"call noalias ptr {name}(i64 {size.part})")
        f.effect(f"store ptr {found}, ptr {slot}")
        missing, there = f.label("missing"), f.label("there")
        f.branch(f.value(f"icmp eq ptr {found}, null"), missing, there)
        f.begin(missing)
        f.effect(f"store i8 1, ptr {self.failed}")
        self.leave(None, nothing=True)
        f.begin(there)
        number = f.value(f"ptrtoint ptr {found} to i64")
        rest = f.value(f"and i64 {number}, 63")
        skip = f.value(f"sub i64 64, {rest}")
        data = f.value(f"getelementptr i8, ptr {found}, i64 {skip}")
        return Array(dtype, data, numbers, None, data)

    def leave(self, value: Value, *, nothing: bool = False) -> None:
        """Return from the function, giving back its memory."""
        f = self.f
        if not nothing:
            parts = _flat(value)
            kinds = tuple((x.dtype, x.lanes) for x in parts)
            shape = value if isinstance(value, tuple) else None
            if self.returns is None:
                self.returns = (kinds, shape is not None)
            elif self.returns != (kinds, shape is not None):
                raise Unsupported("a result of different types")
            parts = [in_lanes(x, x.lanes, f) for x in parts]
            texts = [(kind_of(x), p) for x in parts for p in x.parts]
        f.effect("@LEAVE@")
        if nothing:
            f.leave("@NOTHING@")
        elif not texts:
            f.leave("ret void")
        elif len(texts) == 1:
            f.leave(f"ret {texts[0][0]} {texts[0][1]}")
        else:
            whole = "{" + ", ".join(kind for kind, _ in texts) + "}"
            built = "poison"
            for k, (kind, part) in enumerate(texts):
                built = f.value(f"insertvalue {whole} {built}, {kind} {part}, {k}")
            f.leave(f"ret {whole} {built}")

    def finish(self) -> tuple[str, Any]:
        """End the function: its result's type, and what it returns."""
        if not self.f.ended:
            self.leave(None)
        kinds, several = self.returns or ((), False)
        texts = [
            vector_type(scalar_type(dtype), lanes)
            for dtype, lanes in kinds
            for _ in range(2 if dtype.kind == "c" else 1)
        ]
        result = "void" if not texts else texts[0]
        if len(texts) > 1:
            result = "{" + ", ".join(texts) + "}"
        f = self.f
        free = []
        for k, slot in enumerate(self.owned):
            free += [
                f"  %free@N@.{k} = load ptr, ptr {slot}",
                f"  call void @free(ptr %free@N@.{k})",
            ]
        lines = []
        for number, line in enumerate(f.lines):
            if line == "  @LEAVE@":
                lines += [text.replace("@N@", str(number)) for text in free]
            elif line == "  @NOTHING@":
                lines.append("  ret void" if result == "void" else f"  ret {result} poison")
            else:
                lines.append(line)
        f.lines = lines
        return result, (kinds, several)


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _flat(value: Value) -> list[Number]:
    """The numbers of a result."""
    if value is None:
        return []
    parts = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(p, Number) for p in parts):
        raise Unsupported("a result that is no number")
    return list(parts)  # pyright: ignore


def _is_simple(node: ast.expr) -> bool:
    """Whether an expression may be computed in vain."""
    return not any(
        isinstance(each, ast.Subscript) or (isinstance(each, ast.Call) and not _is_cast(each))
        for each in ast.walk(node)
    )


def _is_cast(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id.rstrip("0123456789") in _CAST_NAMES


_CAST_NAMES = {"int", "uint", "float", "complex", "boolean", "min", "max", "abs", "i_select"}


# -------------------------------------------------------------------------------------- builtins


def _extreme(choose: Any) -> Any:
    def translate(body: FunctionBody, *values: Value) -> Number:
        numbers = [body._number(v) for v in values]
        found = numbers[0]
        for x in numbers[1:]:
            if found.dtype.kind not in "iu" or x.dtype.kind not in "iu":
                raise Unsupported("an extreme of floats")
            dtype = do.common(found.dtype, x.dtype)
            found = choose(body.f, do.cast(body.f, found, dtype), do.cast(body.f, x, dtype))
        return found

    return translate


def _abs(body: FunctionBody, x: Number) -> Number:
    if x.dtype.kind == "c":
        raise Unsupported("a magnitude")
    return do.absolute(body.f, x)


def _cast_to(dtype: np.dtype) -> Any:
    def translate(body: FunctionBody, x: Number) -> Number:
        if dtype == FLOAT64 and x.dtype.kind == "c":
            raise Unsupported("float of a complex number")
        return do.cast(body.f, x, dtype)

    return translate


_BUILTINS: dict[Any, Any] = {
    min: _extreme(memory.smaller),
    max: _extreme(memory.larger),
    abs: _abs,
    bool: _cast_to(BOOL),
    int: _cast_to(INT64),
    float: _cast_to(FLOAT64),
    complex: lambda body, x, y: do.make_complex(body.f, x, y),
    len: lambda body, x: integer(len(x)) if isinstance(x, tuple) else x.shape[0],
}


# --------------------------------------------------------------------------- functions of a module


def flatten(value: Value, f: FunctionWriter) -> list[tuple[str, str]]:
    """The operands, with types, that hand a value over."""
    if isinstance(value, Number):
        value = in_lanes(value, value.lanes, f)
        return [(kind_of(value), p) for p in value.parts]
    if isinstance(value, Array):
        lengths = [*value.shape, *(value.strides or ())]
        return [("ptr", value.data), *(("i64", n.part) for n in lengths)]
    raise Unsupported("an argument that is no number and no array")


def rebuilt(value: Value, operands: list[str]) -> Value:
    """A value like another one, of other operands, which are taken from a list."""

    def take() -> str:
        return operands.pop(0)

    if isinstance(value, Number):
        return Number(value.dtype, tuple(take() for _ in value.parts), value.lanes)
    assert isinstance(value, Array)
    data = take()
    shape = tuple(Number(INT64, (take(),)) for _ in value.shape)
    strides = None
    if value.strides is not None:
        strides = tuple(Number(INT64, (take(),)) for _ in value.strides)
    return Array(value.dtype, data, shape, strides, value.root)


def _key(value: Value) -> Any:
    if isinstance(value, Number):
        return value.dtype, value.lanes
    assert isinstance(value, Array)
    return value.dtype, len(value.shape), value.strides is None


def allocates(function: Function) -> bool:
    """Whether a function makes arrays of its own."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("empty", "zeros", "empty_like")
        for node in ast.walk(function.tree)
    )


def call(body: FunctionBody, function: Function, arguments: list[Value], *, lanes: bool) -> Value:
    """Call a function of the module, which is written when first called so."""
    f, module = body.f, body.f.module
    vector = max((a.lanes for a in arguments if isinstance(a, Number)), default=0)
    if vector and not lanes:
        return _call_each(body, function, arguments, vector)
    key = (function, tuple(map(_key, arguments)), body.has_fma)
    found = module.known_functions.get(key)
    if found is None:
        found = module.known_functions[key] = _write(body, function, arguments, vector)
    name, result, (kinds, several) = found
    operands = [p for a in arguments for p in flatten(a, f)]
    failing = allocates(function)
    if failing:
        if not body.failed:
            raise Unsupported("a function that allocates")
        operands.append(("ptr", body.failed))
    given = ", ".join(f"{kind} {text}" for kind, text in operands)
    if result == "void":
        f.effect(f"call void @{name}({given})")
        texts = []
    else:
        whole = f.value(f"call {result} @{name}({given})")
        count = sum(2 if dtype.kind == "c" else 1 for dtype, _ in kinds)
        texts = (
            [whole]
            if count == 1
            else [f.pure(f"extractvalue {result} {whole}, {k}") for k in range(count)]
        )
    if failing:
        leave_if_failed(body)
    values = tuple(
        Number(dtype, tuple(texts.pop(0) for _ in range(2 if dtype.kind == "c" else 1)), n)
        for dtype, n in kinds
    )
    if several:
        return values
    return values[0] if values else None


def leave_if_failed(body: FunctionBody) -> None:
    """Return if a function that was called ran out of memory."""
    f = body.f
    failed, there = f.label("failed"), f.label("there")
    flag = f.value(f"load i8, ptr {body.failed}")
    f.branch(f.value(f"icmp ne i8 {flag}, 0"), failed, there)
    f.begin(failed)
    body.leave(None, nothing=True)
    f.begin(there)


def _write(
    body: FunctionBody, function: Function, arguments: list[Value], vector: int
) -> tuple[str, str, Any]:
    """Write a function of the module."""
    module = body.f.module
    name = module.unique(function.name)
    kinds = [kind for a in arguments for kind, _ in flatten(a, body.f)]
    parameters = [(kind, f"%a{k}") for k, kind in enumerate(kinds)]
    if allocates(function):
        parameters.append(("ptr", "%failed"))
    f = FunctionWriter(module, name, parameters)
    inner = FunctionBody(f, function, has_fma=body.has_fma)
    inner.failed = "%failed" if allocates(function) else ""
    inner.lanes = Lanes(vector) if vector else None
    operands = [text for _, text in parameters]
    given = [rebuilt(a, operands) for a in arguments]
    enter(inner, [a.arg for a in function.tree.args.args], given)
    inner.run(function.statements)
    result, returned = inner.finish()
    if function.library:
        f.flags = "noinline "
    module.functions.append(f.text(result))
    return name, result, returned


def enter(body: FunctionBody, names: list[str], values: Sequence[Value]) -> None:
    """Give a function its arguments."""
    for name, value in zip(names, values, strict=True):
        body.set(name, value)


def _call_each(body: FunctionBody, function: Function, arguments: list[Value], lanes: int) -> Value:
    """Call a function for one lane after the other."""
    f = body.f
    given = [in_lanes(a, lanes, f) if isinstance(a, Number) and a.lanes else a for a in arguments]
    places = []
    for a in given:
        if isinstance(a, Number) and a.lanes:
            slots = []
            for p in a.parts:
                wide = vector_type(memory_type(a.dtype), lanes)
                slots.append(f.slot(wide))
                text = f.pure(f"zext {kind_of(a)} {p} to {wide}") if a.dtype.kind == "b" else p
                f.effect(f"store {wide} {text}, ptr {slots[-1]}")
            places.append(slots)
        else:
            places.append(None)
    counter = f.slot("i64")
    f.effect(f"store i64 0, ptr {counter}")
    head, after = f.label("lane"), f.label("after")
    f.start(head)
    around, body.lanes = body.lanes, None
    with f.inside():
        lane = f.value(f"load i64, ptr {counter}")
        one: list[Value] = []
        for a, slots in zip(given, places, strict=True):
            if slots is None:
                one.append(a)
                continue
            assert isinstance(a, Number)
            parts = []
            for slot in slots:
                kind = memory_type(a.dtype)
                place = f.pure(f"getelementptr {kind}, ptr {slot}, i64 {lane}")
                text = f.value(f"load {kind}, ptr {place}")
                parts.append(f.pure(f"trunc i8 {text} to i1") if a.dtype.kind == "b" else text)
            one.append(Number(a.dtype, tuple(parts)))
        result = call(body, function, one, lanes=False)
        numbers = _flat(result)
        slots = []
        for x in numbers:
            for p in x.parts:
                kind = memory_type(x.dtype)
                slots.append(f.slot(vector_type(kind, lanes)))
                text = f.pure(f"zext i1 {p} to i8") if x.dtype.kind == "b" else p
                place = f.pure(f"getelementptr {kind}, ptr {slots[-1]}, i64 {lane}")
                f.effect(f"store {kind} {text}, ptr {place}")
        following = f.pure(f"add i64 {lane}, 1")
        f.effect(f"store i64 {following}, ptr {counter}")
        f.branch(f.pure(f"icmp slt i64 {following}, {lanes}"), head, after)
    f.begin(after)
    body.lanes = around
    values = []
    for x in numbers:
        parts = []
        for _ in x.parts:
            wide = vector_type(memory_type(x.dtype), lanes)
            text = f.value(f"load {wide}, ptr {slots.pop(0)}")
            parts.append(
                f.pure(f"trunc {wide} {text} to <{lanes} x i1>") if x.dtype.kind == "b" else text
            )
        values.append(Number(x.dtype, tuple(parts), lanes))
    if isinstance(result, tuple):
        return tuple(values)
    return values[0] if values else None


def write_body(
    module: Module, function: Function, signature: Signature, *, has_fma: bool, parallel: bool
) -> None:
    """Write ``@body``: a kernel's function with its arguments taken apart."""
    parameters = [(kind, f"%p{k}") for k, (kind, _, _) in enumerate(signature.parameters())]
    f = FunctionWriter(module, "body", parameters)
    body = FunctionBody(f, function, has_fma=has_fma, parallel=parallel)
    body.failed = f.slot("i8", "0")
    operands = [text for _, text in parameters]
    values: list[Value] = []
    for number, argument in enumerate(signature.arguments):
        if argument.rank is None:
            parts = tuple(operands.pop(0) for _ in range(2 if argument.dtype.kind == "c" else 1))
            if argument.dtype.kind == "b":
                parts = (f.pure(f"icmp ne i8 {parts[0]}, 0"),)
            values.append(Number(argument.dtype, parts))
            continue
        data = operands.pop(0)
        shape = tuple(Number(INT64, (operands.pop(0),)) for _ in range(argument.rank))
        strides = None
        if not argument.contiguous:
            strides = tuple(Number(INT64, (operands.pop(0),)) for _ in range(argument.rank))
        values.append(Array(argument.dtype, data, shape, strides, f"argument {number}"))
    enter(body, [a.arg for a in function.tree.args.args], values)
    body.run(function.statements)
    _end(body, signature, operands)
    module.functions.append(f.text("i32", linkage=""))


def _end(body: FunctionBody, signature: Signature, operands: list[str]) -> None:
    """Turn what the kernel returns into a status and a result in memory."""
    f = body.f
    result, (kinds, several) = body.finish()
    status = f"  %status@N@ = load i8, ptr {body.failed}\n  %code@N@ = zext i8 %status@N@ to i32\n"
    lines = []
    for number, line in enumerate(f.lines):
        if not line.startswith("  ret "):
            lines.append(line)
            continue
        text = status.replace("@N@", str(number)) + f"  ret i32 %code{number}"
        returned = line.removeprefix(f"  ret {result} ")
        if signature.result is not None and returned != "poison":
            if several or len(kinds) != 1 or signature.result.kind in "bc":
                raise Unsupported("a result that is no number")
            dtype, _ = kinds[0]
            if dtype != signature.result:
                raise Unsupported(f"a result of {dtype} for {signature.result}")
            text = f"  store {scalar_type(dtype)} {returned}, ptr {operands[0]}\n{text}"
        lines.append(text)
    f.lines = lines
