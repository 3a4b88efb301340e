"""Reading of expressions: Python's syntax becomes values of the loop representation."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from numgrad.codegen.adjoint.array_functions import whole_power
from numgrad.codegen.adjoint.emission import NUMBERS, SCALARS
from numgrad.codegen.adjoint.indexing import IndexReader
from numgrad.codegen.adjoint.representation import (
    Block,
    Expression,
    KernelArray,
    KernelBranch,
    Value,
    add,
    multiply,
    subtract,
)
from numgrad.codegen.adjoint.values import (
    ArrayExpression,
    ArrayView,
    Items,
    ListItems,
    LocalFunction,
    Made,
    Reshaped,
)
from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64, KERNEL_DTYPES
from numgrad.errors import NumgradError

BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.Pow: "power", ast.Mod: "remainder", ast.FloorDiv: "floor_quotient",
}  # fmt: skip
_INTEGER = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARE = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_TRUTHS: dict[type, str] = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "!="}
FOLD: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "and": operator.and_, "or": operator.or_,
}  # fmt: skip
_PYTHON: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow",
    ast.Mod: "mod", ast.FloorDiv: "floordiv",
}  # fmt: skip
_MOST_FACTORS = 4
NOT_READ = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of Python's while it is read: a string for a number, an argument too few."""


class ExpressionReader(IndexReader):
    """Reads expressions: names, elements, operators, whole arrays."""

    # ----------------------------------------------------------------------------- expressions

    def value(self, node: ast.expr, env: dict[str, Any]) -> Any:
        """Read an expression."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            self.refuse_text(node)
        try:
            return method(node, env)
        except NumgradError:
            raise
        except NOT_READ:
            self.refuse_text(node)

    def refuse_text(self, node: ast.AST) -> NoReturn:
        """Raise for a statement or expression that has no meaning for kernels."""
        text = ast.unparse(node).partition("\n")[0]
        self.refuse(node, f"{text} is not of the language of kernels",
                    "write it with scalars, arrays and loops")  # fmt: skip

    def scalar(self, node: ast.expr, env: dict[str, Any]) -> Value:
        """The value of an expression that is a number."""
        value = self.value(node, env)
        if isinstance(value, SCALARS):
            return value
        self.refuse(node, f"{ast.unparse(node)} is no number", "write it with scalars")

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
                self.constants[label] = value
                self.arrays[label] = KernelArray(label, value.dtype, value.ndim, "constant")
                self.reserved.add(label)
            return self.whole_view(label)
        if isinstance(value, tuple | list):
            kind = Items if isinstance(value, tuple) else ListItems
            return kind(self.constant(name, v, node) for v in value)
        if hasattr(value, "__array__") and not isinstance(value, type):
            self.refuse(node, f"{name} is a captured {type(value).__name__}", "pass it as argument")
        return value

    def _of_Tuple(self, node: ast.Tuple, env: dict[str, Any]) -> Items:
        return Items(self.value(e, env) for e in node.elts)

    def _of_List(self, node: ast.List, env: dict[str, Any]) -> Items:
        if not node.elts:
            self.refuse(node, "a list", "use an array")
        return ListItems(self.value(e, env) for e in node.elts)

    def _of_Lambda(self, node: ast.Lambda, env: dict[str, Any]) -> LocalFunction:
        return LocalFunction(node, self.scopes[-1], env)

    def _of_ListComp(self, node: ast.ListComp | ast.GeneratorExp, env: dict[str, Any]) -> Any:
        """A list as an array, computed by elements."""
        if len(node.generators) > 1 or node.generators[0].ifs:
            self.refuse(node, "a comprehension with several loops or conditions", "write the loop")
        part = node.generators[0]
        loop = ast.copy_location(ast.For(part.target, part.iter, [], []), node)
        length, set_names = self.items(loop, env)

        def at(places: Sequence[Value]) -> Value:
            inner = dict(env)
            set_names(places[0], inner)
            return self.scalar(node.elt, inner)

        content = ArrayExpression((length,), at, set(self.arrays))
        return Made("empty", self.element_dtype(content), (length,), content)

    _of_GeneratorExp = _of_ListComp

    def flattened(self, base: ArrayView | ArrayExpression, node: Any) -> ArrayExpression:
        """The elements of an array as a vector."""
        raise NotImplementedError

    def items(self, node: ast.For, env: dict[str, Any]) -> tuple[Value, Callable[..., None]]:
        """How many items a loop has, and what gives the target item number ``k``."""
        raise NotImplementedError

    def _of_Attribute(self, node: ast.Attribute, env: dict[str, Any]) -> Any:
        base = self.value(node.value, env)
        if isinstance(base, Made):
            base = self.allocated("part", base, node)
        if isinstance(base, ArrayExpression) and node.attr == "T":
            base = self.stored(base, node)
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
                return base.permuted(range(base.ndim)[::-1])
            if node.attr == "flat":
                return self.flattened(base, node)
            if node.attr == "dtype":
                return self.element_dtype(base)
            if node.attr == "real" and self.element_dtype(base).kind != "c":
                return base
            if node.attr in ("real", "imag"):
                part = self.by_elements(lambda x: self._part(x, node.attr), [base], node)
                if isinstance(base, ArrayView) and self.element_dtype(base).kind == "c":
                    return Reshaped(part.shape, part.at, base.array)
                return part
        elif isinstance(base, SCALARS):
            if node.attr in ("real", "imag"):
                return self._part(base, node.attr)
        elif not isinstance(base, Items) and hasattr(base, node.attr):
            label = ast.unparse(node).replace(".", "_")
            value = self.scopes[-1].captures.attribute(base, node.attr)
            return self.constant(label, value, node)
        self.refuse(node, f"the attribute {ast.unparse(node)}", "pass its value as an argument")

    def _part(self, value: Value, word: str) -> Value:
        if isinstance(value, NUMBERS):
            return getattr(value, word)
        dtype = self.dtype_of(value)
        if dtype.kind != "c":
            return value if word == "real" else 0.0
        return self.defined(word, [value], np.dtype(f"f{dtype.itemsize // 2}"))

    # -------------------------------------------------------------------------------- operators

    def _of_UnaryOp(self, node: ast.UnaryOp, env: dict[str, Any]) -> Any:
        value = self.value(node.operand, env)
        if isinstance(value, Made):
            value = self.allocated("part", value, node)
        if isinstance(value, ArrayView | ArrayExpression):
            if isinstance(node.op, ast.UAdd):
                return self.new_copy(value)
            if isinstance(node.op, ast.Not):
                self.refuse(node, f"{ast.unparse(node)} of an array", "use ~, or write the loop")
            apply = self._negated if isinstance(node.op, ast.USub) else self._inverted
            return self.by_elements(apply, [value], node)
        if isinstance(node.op, ast.Not):
            return self.negation(self.truth(value))
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            return self._inverted(value)
        return self._negated(value)

    def _inverted(self, value: Value) -> Value:
        if self.dtype_of(value).kind == "b":
            return self.negation(value)
        return -value - 1 if isinstance(value, int) else subtract(-1, value)

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
            operands = [left, right]
            if not isinstance(op, ast.Pow):
                operands = self.beside_arrays(operands)
            return self.by_elements(lambda a, b: self.arithmetic(node, op, a, b), operands, node)
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
            if kinds == "bb" and isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
                return self.compared(_TRUTHS[type(op)], a, b)
            if isinstance(op, ast.Pow):
                power = self._whole_power(self.integer(a), self.integer(b), node)
                if power is not None:
                    return power
            elif type(op) in _INTEGER:
                return self.integers(_INTEGER[type(op)], self.integer(a), self.integer(b))
        if type(op) not in BINARY:
            self.refuse(node, f"the operator of {ast.unparse(node)}", "use it with integers")
        if isinstance(op, ast.Pow) and isinstance(b, int | float) and float(b).is_integer():
            power = self._power(a, int(b))
            if power is not None:
                return power
        if "c" in kinds and isinstance(op, ast.Mod | ast.FloorDiv):
            self.refuse(node, f"{ast.unparse(node)} of complex numbers", "use real numbers")
        if isinstance(op, ast.Div | ast.Pow) and not set(kinds) & set("fc"):
            a, b = self.cast(a, FLOAT64), self.cast(b, FLOAT64)
        common = np.result_type(self.dtype_of(a), self.dtype_of(b))
        return self.define(BINARY[type(op)], self.cast(a, common), self.cast(b, common))

    def integers(self, operation: str, a: Value, b: Value) -> Value:
        if isinstance(a, int) and isinstance(b, int) and not (operation in "//%" and b == 0):
            return FOLD[operation](a, b)
        if operation == "+":
            return add(a, b)
        if operation == "-":
            return subtract(a, b)
        if operation == "*":
            return multiply(a, b)
        return Expression(operation, (a, b))

    def _whole_power(self, a: Value, power: Value, node: Any) -> Value | None:
        """A power of integers; None if it may be negative, so that the result is no integer."""
        if a == -1:
            return subtract(1, multiply(2, Expression("&", (power, 1))))
        lowest = self.lower_bound(power)
        if lowest is None and self.follows_from_arguments(power) and self.block.parent is None:
            check = Expression(">=", (power, 0))
            self.check_call(
                check, "an integer to the power of {}, which is negative", node, (power,)
            )
        elif lowest is None or lowest < 0:
            return None
        if isinstance(power, int) and power <= _MOST_FACTORS:
            result: Value = 1
            for _ in range(power):
                result = multiply(result, a)
            return result
        if a == 2:
            return Expression("<<", (1, power))
        return self.inline(node, whole_power, [a, power])

    def follows_from_arguments(self, value: Any) -> bool:
        """Whether a call knows a value before the kernel runs."""
        raise NotImplementedError

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
        operands = [self.value(n, env) for n in (node.left, *node.comparators)]
        if any(isinstance(o, ArrayView | ArrayExpression | Made) for o in operands):
            if len(operands) > 2 or type(node.ops[0]) not in _COMPARE:
                self.refuse(node, f"the comparison {ast.unparse(node)}", "compare two arrays")
            operation = _COMPARE[type(node.ops[0])]
            operands = [self.as_view(o, node) if isinstance(o, Made) else o for o in operands]
            return self.by_elements(lambda a, b: self.compared(operation, a, b), operands, node)
        for operand, part in zip(operands, (node.left, *node.comparators), strict=True):
            if not isinstance(operand, SCALARS):
                self.refuse(part, f"{ast.unparse(part)} is no number", "write it with scalars")
        left, result = operands[0], None
        for op, right in zip(node.ops, operands[1:], strict=True):
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
