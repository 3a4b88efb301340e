"""Reading of expressions: Python's syntax becomes values of the loop representation."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.array_functions import PRODUCTS
from numgrad.codegen.adjoint.emission import NUMBERS, SCALARS, StatementEmitter, safe_name
from numgrad.codegen.adjoint.representation import (
    Allocate,
    Block,
    Expression,
    KernelArray,
    KernelBranch,
    KernelLoop,
    Load,
    Store,
    Value,
    add,
    multiply,
    subtract,
)
from numgrad.codegen.adjoint.values import ArrayExpression, ArrayView, IndexSpan, Items, Made
from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64, KERNEL_DTYPES

BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.Pow: "power", ast.Mod: "remainder", ast.FloorDiv: "floor_divide",
}  # fmt: skip
_INTEGER = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
FOLD: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_PYTHON: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow",
    ast.Mod: "mod", ast.FloorDiv: "floordiv",
}  # fmt: skip


class ExpressionReader(StatementEmitter):
    """Reads expressions: names, elements, operators, whole arrays."""

    # ----------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr, env: dict[str, Any]) -> Any:
        """Read an expression."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            self.refuse(
                node,
                f"{ast.unparse(node)} is not of the language of kernels",
                "write it with scalars, arrays and loops",
            )
        return method(node, env)

    def scalar(self, node: ast.expr, env: dict[str, Any]) -> Value:
        """The value of an expression that is a number."""
        value = self.value(node, env)
        if isinstance(value, SCALARS):
            return value
        self.refuse(node, f"{ast.unparse(node)} is no number", "write it with scalars")

    def whole(self, node: ast.expr, env: dict[str, Any]) -> Value:
        """The value of an expression that is an integer."""
        value = self.scalar(node, env)
        if self.dtype_of(value).kind in "fc":
            self.refuse(node, f"{ast.unparse(node)} is no integer", "convert it with int()")
        return self.integer(value)

    def _of_Constant(self, node: ast.Constant, env: dict[str, Any]) -> Any:
        if node.value is not None and not isinstance(node.value, (*NUMBERS, str)):
            self.refuse(node, f"the constant {node.value!r}", "use numbers")
        return Items((node.value,)) if isinstance(node.value, str) else node.value

    def _of_Name(self, node: ast.Name, env: dict[str, Any]) -> Any:
        name, scope = node.id, self.scopes[-1]
        if name in env:
            if env[name] is None:
                self.refuse(node, f"{name} may not have a value here", "assign it before")
            return env[name]
        if name in scope.names:
            return self.constant(name, scope.names[name], node)
        if hasattr(builtins, name):
            return getattr(builtins, name)
        self.refuse(node, f"{name} has no value here", "assign it before the loop or branch")

    def constant(self, name: str, value: Any, node: ast.expr) -> Any:
        """A value that was captured."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            if value.dtype not in KERNEL_DTYPES or value.dtype == np.uint64 or not value.ndim:
                self.refuse(node, f"{name} is an array of {value.dtype}", "convert it with astype")
            label = f"{name}_{id(value):x}" if name in self.arrays else name
            for known, other in self.captured.items():
                if other is value:
                    label = known
            if label not in self.constants:
                self.captured[label] = value
                self.constants[label] = value.copy()  # as Numba does: later changes are not seen
                self.arrays[label] = KernelArray(label, value.dtype, value.ndim, "constant")
                self.reserved.add(label)
            return self.whole_view(label)
        if isinstance(value, tuple | list):
            return Items(self.constant(name, v, node) for v in value)
        if hasattr(value, "__array__") and not isinstance(value, type):
            self.refuse(node, f"{name} is a captured {type(value).__name__}", "pass it as argument")
        return value

    def whole_view(self, array: str) -> ArrayView:
        """All of an array."""
        known = self.arrays[array]
        lengths = known.shape or [Expression("shape", (array, k)) for k in range(known.ndim)]
        return ArrayView(array, [IndexSpan(0, length) for length in lengths])

    def _of_Tuple(self, node: ast.Tuple, env: dict[str, Any]) -> Items:
        return Items(self.value(e, env) for e in node.elts)

    def _of_List(self, node: ast.List, env: dict[str, Any]) -> Items:
        if not node.elts:
            self.refuse(node, "a list", "use an array")
        return Items(self.value(e, env) for e in node.elts)

    def _of_Attribute(self, node: ast.Attribute, env: dict[str, Any]) -> Any:
        base = self.value(node.value, env)
        if isinstance(base, ArrayView | ArrayExpression):
            if node.attr == "shape":
                return Items(base.shape)
            if node.attr == "ndim":
                return base.ndim
            if node.attr == "size":
                size: Value = 1
                for length in base.shape:
                    size = multiply(size, length)
                return size
            if isinstance(base, ArrayView) and node.attr == "T":
                return ArrayView(base.array, base.index, base.order[::-1])
            if isinstance(base, ArrayView) and node.attr == "dtype":
                return self.arrays[base.array].dtype
            if node.attr in ("real", "imag"):
                return self.by_elements(lambda x: self._part(x, node.attr), [base], node)
        elif isinstance(base, SCALARS):
            if node.attr in ("real", "imag"):
                return self._part(base, node.attr)
        elif not isinstance(base, Items) and hasattr(base, node.attr):
            label = ast.unparse(node).replace(".", "_")
            return self.constant(label, getattr(base, node.attr), node)
        self.refuse(node, f"the attribute {ast.unparse(node)}", "pass its value as an argument")

    def _part(self, value: Value, word: str) -> Value:
        if isinstance(value, NUMBERS):
            return getattr(value, word)
        dtype = self.dtype_of(value)
        if dtype.kind != "c":
            return value if word == "real" else 0.0
        return self.defined(word, [value], np.dtype(f"f{dtype.itemsize // 2}"))

    # --------------------------------------------------------------------------------- elements

    def _of_Subscript(self, node: ast.Subscript, env: dict[str, Any]) -> Any:
        base = self.value(node.value, env)
        if isinstance(base, Items):
            if isinstance(node.slice, ast.Slice):
                parts = (node.slice.lower, node.slice.upper, node.slice.step)
                bounds = [None if p is None else self.value(p, env) for p in parts]
                return Items(base[slice(*bounds)])
            at = self.value(node.slice, env)
            if not isinstance(at, int) or not -len(base) <= at < len(base):
                self.refuse(node, "an index of a tuple that is no constant", "use an array")
            return base[at]
        if isinstance(base, ArrayExpression):
            base = self.stored(base, node)
        if not isinstance(base, ArrayView):
            self.refuse(node, f"the subscript {ast.unparse(node)}", "index arrays only")
        view = self.part(base, node, env)
        return view if view.ndim else self.load(view)

    def load(self, view: ArrayView, places: Sequence[Value] = ()) -> Value:
        """An element."""
        array = self.arrays[view.array]
        dtype = INT64 if array.dtype.kind in "iu" else array.dtype
        name = self.fresh(array.name, dtype)
        self.emit(Load(name, array.name, view.at(places)))
        return name

    def part(self, base: ArrayView, node: ast.Subscript, env: dict[str, Any]) -> ArrayView:
        """The part of an array that a subscript gives."""
        given: list[Any] = []
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                given += [None] * (base.ndim - len(parts) + 1)
            elif isinstance(part, ast.Slice):
                given.append(part)
            else:
                at = self.value(part, env)
                given += at if isinstance(at, Items) else [at]
        if len(given) > base.ndim:
            self.refuse(node, f"too many indices in {ast.unparse(node)}", "index existing axes")
        given += [None] * (base.ndim - len(given))
        places: list[Value | IndexSpan] = []
        for axis, part in enumerate(given):
            length = base.span(axis).length
            if part is None:
                places.append(IndexSpan(0, length))
            elif isinstance(part, ast.Slice):
                places.append(self._slice(part, length, env))
            elif isinstance(part, str | Expression | int):
                if self.dtype_of(part).kind not in "iu":
                    self.refuse(node, f"an index of {ast.unparse(node)} is no integer", "use int()")
                places.append(self._wrapped(part, length))
            else:
                self.refuse(
                    node, f"{ast.unparse(node)} indexes by an array", "write a loop over its places"
                )
        return base.part(places)

    def _wrapped(self, place: Value, length: Value) -> Value:
        """A place that may count from the end."""
        lowest = self.lower_bound(place)
        if lowest is not None and lowest >= 0:
            return place
        if isinstance(place, int):
            return add(length, place)
        return Expression("wrap", (place, length))

    def _slice(self, node: ast.Slice, length: Value, env: dict[str, Any]) -> IndexSpan:
        step = 1 if node.step is None else self.whole(node.step, env)
        if not isinstance(step, int) or step == 0:
            self.refuse(node, "a slice whose step is no constant", "write a loop over its places")
        low = None if node.lower is None else self.whole(node.lower, env)
        high = None if node.upper is None else self.whole(node.upper, env)
        if step < 0:
            if low is not None or high is not None:
                self.refuse(node, "a slice from back to front", "write a loop over its places")
            count = self._count(length, -step)
            return IndexSpan(subtract(length, 1), count, step)
        start = 0 if low is None else self._bound(low, length)
        stop = length if high is None else self._bound(high, length)
        span = subtract(stop, start)
        if not (start == 0 and high is None):
            span = self._positive(span)
        return IndexSpan(start, self._count(span, step), step)

    def _bound(self, place: Value, length: Value) -> Value:
        """A bound of a slice, from the start and within the axis."""
        if isinstance(place, int) and place < 0:
            place = add(length, place)
            return self._positive(place)
        lowest = self.lower_bound(place)
        if lowest is None or lowest < 0:
            place = Expression("max", (Expression("wrap", (place, length)), 0))
        return place if place == 0 else Expression("min", (place, length))

    def _positive(self, length: Value) -> Value:
        lowest = self.lower_bound(length)
        return length if lowest is not None and lowest >= 0 else Expression("max", (length, 0))

    @staticmethod
    def _count(span: Value, step: int) -> Value:
        if step == 1:
            return span
        return Expression("//", (add(span, step - 1), step))

    # -------------------------------------------------------------------------------- operators

    def _of_UnaryOp(self, node: ast.UnaryOp, env: dict[str, Any]) -> Any:
        value = self.value(node.operand, env)
        if isinstance(value, ArrayView | ArrayExpression):
            if not isinstance(node.op, ast.USub):
                self.refuse(node, f"{ast.unparse(node)} of an array", "write the loop")
            return self.by_elements(lambda x: self._negated(x), [value], node)
        if isinstance(node.op, ast.Not):
            return self.negation(self.truth(value))
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            if self.dtype_of(value).kind == "b":
                return self.negation(value)
            return -value - 1 if isinstance(value, int) else subtract(-1, value)
        return self._negated(value)

    @staticmethod
    def negation(value: Value) -> Value:
        return (not value) if isinstance(value, bool) else Expression("not", (value,))

    def _negated(self, value: Value) -> Value:
        if isinstance(value, NUMBERS):
            return -value
        if self.dtype_of(value).kind in "fc":
            return self.define("negative", value)
        return Expression("neg", (self.integer(value),))

    def _of_BinOp(self, node: ast.BinOp, env: dict[str, Any]) -> Any:
        left, right = self.value(node.left, env), self.value(node.right, env)
        return self.binary(node, node.op, left, right)

    def binary(self, node: ast.AST, op: ast.operator, left: Any, right: Any) -> Any:
        """``left op right``."""
        left, right = (
            self.allocated("part", o, node) if isinstance(o, Made) else o for o in (left, right)
        )
        if isinstance(op, ast.MatMult):
            return self.product(left, right, node)
        if isinstance(left, ArrayView | ArrayExpression) or isinstance(
            right, ArrayView | ArrayExpression
        ):
            return self.by_elements(
                lambda a, b: self.arithmetic(node, op, a, b), [left, right], node
            )
        if isinstance(left, Items) and isinstance(right, Items) and isinstance(op, ast.Add):
            return Items((*left, *right))
        if isinstance(left, Items) or isinstance(right, Items):
            self.refuse(node, f"an operand of {ast.unparse(node)} is a tuple", "use numbers")
        return self.arithmetic(node, op, left, right)

    def arithmetic(self, node: ast.AST, op: ast.operator, a: Value, b: Value) -> Value:
        for value in (a, b):
            if not isinstance(value, SCALARS):
                self.refuse(node, f"an operand of {ast.unparse(node)} is no number", "use numbers")
        kinds = self.dtype_of(a).kind + self.dtype_of(b).kind
        if isinstance(a, NUMBERS) and isinstance(b, NUMBERS) and type(op) in BINARY:
            try:
                return getattr(operator, _PYTHON[type(op)])(a, b)
            except ArithmeticError:
                a, b = float(a.real), float(b.real)
                kinds = "ff"
        if not set(kinds) & set("fc"):
            if kinds == "bb" and isinstance(op, ast.BitAnd | ast.BitOr):
                return Expression("and" if isinstance(op, ast.BitAnd) else "or", (a, b))
            negative = isinstance(op, ast.Pow) and (self.lower_bound(b) or 0) < 0
            if type(op) in _INTEGER and not negative:
                return self._integers(_INTEGER[type(op)], self.integer(a), self.integer(b))
        if type(op) not in BINARY:
            self.refuse(node, f"the operator of {ast.unparse(node)}", "use it with integers")
        if isinstance(op, ast.Pow) and isinstance(b, int | float) and float(b).is_integer():
            power = self._power(a, int(b))
            if power is not None:
                return power
        if "c" in kinds and isinstance(op, ast.Mod | ast.FloorDiv):
            self.refuse(node, f"{ast.unparse(node)} of complex numbers", "use real numbers")
        if isinstance(op, ast.Div) and not set(kinds) & set("fc"):
            a, b = self.cast(a, FLOAT64), self.cast(b, FLOAT64)
        common = np.result_type(self.dtype_of(a), self.dtype_of(b))
        return self.define(BINARY[type(op)], self.cast(a, common), self.cast(b, common))

    def _integers(self, operation: str, a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int) and not (operation in "//%" and b == 0):
            return FOLD[operation](a, b)
        if operation == "+":
            return add(a, b)
        if operation == "-":
            return subtract(a, b)
        if operation == "*":
            return multiply(a, b)
        return Expression(operation, (a, b))

    def _power(self, a: Value, power: int) -> Value | None:
        """A small whole power as products."""
        if not 1 <= power <= 8:
            return None
        if self.dtype_of(a).kind not in "fc":
            a = self.cast(a, FLOAT64)
        result: Value | None = None
        while power:
            if power & 1:
                result = a if result is None else self.define("multiply", result, a)
            power >>= 1
            if power:
                a = self.define("multiply", a, a)
        return result

    def _of_Compare(self, node: ast.Compare, env: dict[str, Any]) -> Any:
        if isinstance(node.ops[0], ast.Is | ast.IsNot):
            left = self.value(node.left, env)
            right = self.value(node.comparators[0], env)
            if right is None or left is None:
                return (left is right) == isinstance(node.ops[0], ast.Is)
        left, result = self.scalar(node.left, env), None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.scalar(right_node, env)
            if type(op) not in _COMPARE:
                self.refuse(node, f"the comparison {ast.unparse(node)}", "compare numbers")
            one = self.compared(_COMPARE[type(op)], left, right)
            if result is None or result is True:
                result = one
            elif result is not False:
                result = Expression("and", (result, one))
            left = right
        return result

    def compared(self, operation: str, a: Value, b: Value) -> Value:
        if isinstance(a, NUMBERS) and isinstance(b, NUMBERS):
            return FOLD[operation](a, b)
        return Expression(operation, (a, b))

    def _of_BoolOp(self, node: ast.BoolOp, env: dict[str, Any]) -> Any:
        word = "and" if isinstance(node.op, ast.And) else "or"
        result = self.scalar(node.values[0], env)
        for part in node.values[1:]:
            condition = self.truth(result)
            if isinstance(condition, bool):
                if condition == (word == "or"):
                    return result
                result = self.scalar(part, env)
                continue
            # the rest is not evaluated where the first decides: it may read out of range
            before, self.block = self.block, Block(self.block.loop, self.block)
            other = self.scalar(part, env)
            inner, self.block = self.block, before
            if not inner.statements and self.dtype_of(result) == self.dtype_of(other) == BOOL:
                result = Expression(word, (result, other))
                continue
            decided = Block(self.block.loop, self.block)
            if word == "and":
                result = self.choice(condition, (inner, decided), (other, result), "t")
            else:
                result = self.choice(condition, (decided, inner), (result, other), "t")
        return result

    def _of_IfExp(self, node: ast.IfExp, env: dict[str, Any]) -> Any:
        condition = self.truth(self.scalar(node.test, env))
        if isinstance(condition, bool):
            return self.value(node.body if condition else node.orelse, env)
        blocks, values = [], []
        before = self.block
        for part in (node.body, node.orelse):
            self.block = Block(before.loop, before)
            values.append(self.scalar(part, env))
            blocks.append(self.block)
        self.block = before
        return self.choice(condition, blocks, values, "v")

    def choice(
        self, condition: Value, blocks: Sequence[Block], values: Sequence[Value], stem: str
    ) -> Value:
        """One of two values that two blocks compute."""
        (joined,) = self.joined(blocks, [(stem, values[0], values[1])])
        self.emit(KernelBranch(condition, blocks[0], blocks[1], [joined]))
        return joined[0]

    def joined(
        self, blocks: Sequence[Block], pairs: Sequence[tuple[str, Value, Value]]
    ) -> list[tuple[str, Value, Value]]:
        """New names for pairs of values of two blocks."""
        before, joined = self.block, []
        for stem, *values in pairs:
            dtype = np.result_type(*[self.dtype_of(v) for v in values])
            for k, block in enumerate(blocks):
                self.block = block
                values[k] = self.cast(values[k], dtype)
            self.block = before
            name = self.fresh(stem, dtype)
            bounds = [self.lower_bound(v) for v in values]
            if dtype == INT64 and None not in bounds:
                self.lowest[name] = min(b for b in bounds if b is not None)
            joined.append((name, values[0], values[1]))
        return joined

    # ----------------------------------------------------------------------------- whole arrays

    def by_elements(
        self, apply: Callable[..., Value], operands: Sequence[Any], node: Any
    ) -> ArrayExpression:
        """An operation on each element of arrays and numbers."""
        arrays = [o for o in operands if isinstance(o, ArrayView | ArrayExpression)]
        longest = max(arrays, key=lambda a: a.ndim)
        reads: set[str] = set()
        for a in arrays:
            reads |= {a.array} if isinstance(a, ArrayView) else a.reads

        def at(places: Sequence[Value]) -> Value:
            values = []
            for operand in operands:
                if isinstance(operand, ArrayView | ArrayExpression):
                    own = places[len(places) - operand.ndim :]
                    own = [0 if n == 1 else p for n, p in zip(operand.shape, own, strict=True)]
                    is_view = isinstance(operand, ArrayView)
                    values.append(self.load(operand, own) if is_view else operand.at(own))
                else:
                    values.append(operand)
            return apply(*values)

        shape = list(longest.shape)
        for a in arrays:
            for axis, length in enumerate(a.shape, len(shape) - a.ndim):
                if shape[axis] == 1:
                    shape[axis] = length
                elif length != 1:
                    self.check_lengths(shape[axis], length, node)
        return ArrayExpression(tuple(shape), at, reads)

    def check_lengths(self, one: Value, other: Value, node: Any) -> None:
        """Have calls raise where two axes differ in length, unless it is in a branch."""
        block = self.block
        while block.parent is not None:
            if block.loop is None or block.loop.body is not block:
                return
            block = block.parent
        if one != other:
            self.checks.append((one, other, f"arrays of {self.scopes[-1].line(node)}"))

    def stored(self, elements: ArrayExpression, node: Any) -> ArrayView:
        """An expression of arrays in an array of its own."""
        return self.allocated(
            "part", Made("empty", self.element_dtype(elements), elements.shape, elements), node
        )

    def element_dtype(self, content: Any) -> np.dtype:
        """The dtype of the elements of an array or expression, without writing any."""
        if isinstance(content, ArrayView):
            return self.arrays[content.array].dtype
        if not isinstance(content, ArrayExpression):
            return self.dtype_of(content)
        before, self.block = self.block, Block(self.block.loop, self.block)
        dtype = self.dtype_of(content.at([0] * content.ndim))
        self.block = before
        return dtype

    def allocated(self, stem: str, made: Made, node: Any) -> ArrayView:
        """An array of the function's own."""
        name = safe_name(stem)
        while name in self.arrays or name in self.dtypes or name in self.reserved:
            self.count += 1
            name = f"{stem.rstrip('_0123456789') or 'v'}_{self.count}"
        grows = made.maker == "growing"
        shape = () if grows else tuple(made.shape)
        self.arrays[name] = KernelArray(
            name, made.dtype, len(made.shape), "local", self.block, shape, grows
        )
        self.emit(Allocate(name, made.maker, tuple(made.shape)))
        view = self.whole_view(name)
        if made.content is not None:
            self.fill(view, made.content, node)
        return view

    def fill(self, view: ArrayView, content: Any, node: Any) -> None:
        """``view[...] = content``, by loops."""
        if isinstance(content, Items):
            for k, item in enumerate(content):
                self.store(view.array, view.at((k,)), item)
            return
        reads = content.reads if isinstance(content, ArrayExpression) else set()
        if isinstance(content, ArrayView):
            if content.same_as(view):
                return
            reads = {content.array}
        if view.array in reads and not view.is_apart_from(content):
            # it is read whole before it is written
            content = self.allocated(
                "part",
                Made("empty", self.element_dtype(content), content.shape, content),
                node,
            )
        if isinstance(content, ArrayView | ArrayExpression) and content.ndim > view.ndim:
            self.refuse(node, "an array of more axes than what it is assigned to", "write the loop")
        if isinstance(content, ArrayView | ArrayExpression):
            for axis, length in enumerate(content.shape, view.ndim - content.ndim):
                if length != 1:
                    self.check_lengths(view.shape[axis], length, node)
        before, places = self.block, []
        for length in view.shape:
            places.append(self.open_loop(length).variable)
        if isinstance(content, ArrayView | ArrayExpression):
            own = places[len(places) - content.ndim :]
            own = [0 if n == 1 else p for n, p in zip(content.shape, own, strict=True)]
            value = self.load(content, own) if isinstance(content, ArrayView) else content.at(own)
        else:
            value = content
        self.store(view.array, view.at(places), value)
        self.block = before

    def open_loop(self, length: Value, stem: str = "k") -> KernelLoop:
        """Begin a loop over a length; what follows is its body."""
        body = Block(None, self.block)
        loop = KernelLoop("", 0, length, 1, body)
        body.loop = loop
        self.emit(loop)
        self.block = body
        loop.variable = self.fresh(stem, INT64)
        self.lowest[loop.variable] = 0
        return loop

    def store(self, array: str, index: Sequence[Value], value: Value, *, add: bool = False) -> None:
        dtype = self.arrays[array].dtype
        if dtype.kind in "fc":
            value = self.cast(value, dtype)
        elif dtype.kind == "b":
            value = self.truth(value)
        else:
            value = self.integer(value)
        self.emit(Store(array, tuple(index), value, add))

    def product(self, left: Any, right: Any, node: Any) -> Any:
        """``left @ right``."""
        ranks = []
        operands: list[ArrayView] = []
        for operand in (left, right):
            if isinstance(operand, ArrayExpression):
                operand = self.stored(operand, node)
            if not isinstance(operand, ArrayView):
                self.refuse(node, "a product of matrices with a number", "use *")
            operands.append(operand)
            ranks.append(operand.ndim)
        function = PRODUCTS.get((ranks[0], ranks[1]))
        if function is None:
            self.refuse(node, "a product of arrays of more than two axes", "write the loops")
        if ranks == [1, 1]:
            return self.inline(node, function, operands)
        shape = (*operands[0].shape[:-1], *operands[1].shape[1:])
        dtype = np.result_type(*[self.element_dtype(o) for o in operands])
        out = self.allocated("product", Made("empty", dtype, shape), node)
        self.inline(node, function, [*operands, out])
        return out

    def inline(self, node: Any, function: Any, arguments: Sequence[Any]) -> Any:
        """Read another function's statements in place of a call."""
        raise NotImplementedError
