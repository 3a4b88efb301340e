"""Reading of calls: makers of arrays, conversions, reductions, functions of numbers, helpers."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.array_functions import REDUCTIONS
from numgrad.codegen.adjoint.emission import NUMBERS, SCALARS
from numgrad.codegen.adjoint.expressions import ExpressionReader
from numgrad.codegen.adjoint.operations import ScalarFunction
from numgrad.codegen.adjoint.representation import (
    COMPLEX128,
    Block,
    Define,
    Ensure,
    Expression,
    Value,
    subtract,
)
from numgrad.codegen.adjoint.scopes import plain_function, scope_of
from numgrad.codegen.adjoint.values import ArrayExpression, ArrayView, IndexSpan, Items, Made
from numgrad.codegen.dtypes import BOOL, FLOAT64, INT64, KERNEL_DTYPES
from numgrad.codegen.intrinsics import grow, growing
from numgrad.errors import NumgradTypeError

_MAKERS = ("zeros", "empty", "ones", "full")
_CASTS: dict[str, np.dtype] = {
    "float": FLOAT64, "int": INT64, "bool": BOOL, "complex": COMPLEX128, "intp": INT64,
    "bool_": BOOL,
} | {dtype.name: dtype for dtype in KERNEL_DTYPES}  # fmt: skip
_ROUNDED = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}


class CallReader(ExpressionReader):
    """Reads calls."""

    def _of_Call(self, node: ast.Call, env: dict[str, Any]) -> Any:
        method = self._method(node, env)
        if method is not None:
            return method
        target = self.value(node.func, env)
        name = getattr(target, "__name__", "")
        is_numpy = getattr(np, name, None) is target if name else False
        if is_numpy and name.removesuffix("_like") in _MAKERS:
            return self._maker(node, name, env)
        if is_numpy and len(node.args) == 1 and [k.arg for k in node.keywords] == ["axis"]:
            base = self.value(node.args[0], env)
            return self._along_axis(node, name, base, self.value(node.keywords[0].value, env))
        if node.keywords and not self._is_function(target):
            self.refuse(node, f"keywords in {ast.unparse(node)}", "give them by position")
        arguments = [self.value(a, env) for a in node.args]
        if isinstance(target, np.dtype):
            target, name = target.type, target.type.__name__
        if target is growing:
            return Made("growing", self.dtype_named(node, arguments[0]), (0,))
        if target is grow:
            array, length = arguments
            self.emit(Ensure(array.array, length))
            return 0
        if isinstance(target, type) and name in _CASTS:
            return self._conversion(node, name, arguments)
        if is_numpy and name in ("dot", "vdot", "matmul"):
            if name == "vdot":
                return self.inline(node, _vdot(), arguments)
            if len(arguments) != 2:
                self.refuse(node, f"the arguments of {ast.unparse(node)}", "give two")
            return self.product(arguments[0], arguments[1], node)
        if is_numpy and name == "outer" and len(arguments) == 2:
            return self._outer(node, arguments[0], arguments[1])
        if is_numpy and name == "array" and len(arguments) == 1 and isinstance(arguments[0], Items):
            return self._array_of(node, arguments[0])
        if is_numpy or (getattr(target, "__module__", None) or "").startswith("numpy"):
            whole = self._of_whole_arrays(node, name, arguments)
            if whole is not None:
                return whole
        if target in (sum, max, min) and len(arguments) == 1:
            whole = self._of_whole_arrays(node, name, arguments)
            if whole is not None:
                return whole
        if self._is_function(target) and self.operations.table.name_of(target) is None:
            return self.inline(node, target, self._complete(node, target, arguments, env))
        if name == "len":
            if isinstance(arguments[0], Items):
                return len(arguments[0])
            if not isinstance(arguments[0], ArrayView | ArrayExpression):
                self.refuse(node, f"{ast.unparse(node)} of a number", "pass an array")
            return arguments[0].shape[0]
        if target is range:
            self.refuse(node, "range outside of a for", "loop over it")
        return self._scalar_call(node, target, name, arguments)

    def _array_of(self, node: Any, items: Items) -> Made:
        """A vector of numbers."""
        if not all(isinstance(item, SCALARS) for item in items):
            self.refuse(node, "an array of arrays", "make it with np.zeros and store in it")
        dtype = np.result_type(*[self.dtype_of(item) for item in items])
        return Made("empty", dtype, (len(items),), items)

    @staticmethod
    def _is_function(target: Any) -> bool:
        module = getattr(target, "__module__", None) or ""
        inner = getattr(target, "__kernel__", None) or plain_function(target)
        return inspect.isfunction(inner) and module.partition(".")[0] not in ("numpy", "math")

    def _complete(
        self, node: ast.Call, target: Any, arguments: Sequence[Any], env: dict[str, Any]
    ) -> list[Any]:
        """Arguments in their order, with keywords and defaults."""
        scope = scope_of(getattr(target, "__kernel__", None) or target)
        names = scope.parameters
        given = dict(zip(names, arguments, strict=False))
        given |= {k.arg: self.value(k.value, env) for k in node.keywords if k.arg}
        defaults = scope.tree.args.defaults
        values = scope.function.__defaults__ or ()
        for name, value in zip(names[len(names) - len(defaults) :], values, strict=False):
            given.setdefault(name, self.constant(name, value, node))
        if set(given) != set(names) or len(arguments) > len(names):
            self.refuse(node, f"the arguments of {ast.unparse(node)}", "give each parameter one")
        return [given[name] for name in names]

    def _method(self, node: ast.Call, env: dict[str, Any]) -> Any:
        """The result of a method of an array or number; None if it is none."""
        if not isinstance(node.func, ast.Attribute):
            return None
        word = node.func.attr
        if word not in ("copy", "sum", "max", "min", "mean", "prod", "dot", "conjugate", "conj",
                        "fill", "astype", "transpose", "item", "argmax", "argmin"):  # fmt: skip
            return None
        base = self.value(node.func.value, env)
        if isinstance(base, SCALARS):
            if word in ("conjugate", "conj"):
                return self._scalar_call(node, np.conj, "conjugate", [base])
            return base if word == "item" else None
        if not isinstance(base, ArrayView | ArrayExpression):
            return None
        arguments = [self.value(a, env) for a in node.args]
        if not arguments and [k.arg for k in node.keywords] == ["axis"]:
            return self._along_axis(node, word, base, self.value(node.keywords[0].value, env))
        if node.keywords:
            self.refuse(node, f"keywords in {ast.unparse(node)}", "write the loop")
        if word == "copy":
            return Made("empty", self.element_dtype(base), base.shape, base)
        if word == "astype":
            dtype = self.dtype_named(node, arguments[0])
            return Made("empty", dtype, base.shape, base)
        if word == "transpose" and isinstance(base, ArrayView) and not arguments:
            return ArrayView(base.array, base.index, base.order[::-1])
        if word == "fill" and isinstance(base, ArrayView):
            self.fill(base, arguments[0], node)
            return 0
        if word == "dot":
            return self.product(base, arguments[0], node)
        if word in ("conjugate", "conj"):
            return self._of_whole_arrays(node, "conjugate", [base])
        if not arguments:
            return self._of_whole_arrays(node, word, [base])
        self.refuse(node, f"arguments of {ast.unparse(node)}", "write the loop")

    def _along_axis(self, node: Any, name: str, base: Any, axis: Any) -> ArrayExpression:
        """A reduction of a matrix along one axis."""
        function = REDUCTIONS.get((name, 1))
        if isinstance(base, Made):
            base = self.allocated("part", base, node)
        if isinstance(base, ArrayExpression):
            base = self.stored(base, node)
        is_known = isinstance(axis, int) and isinstance(base, ArrayView) and base.ndim == 2
        if function is None or not is_known or not -2 <= axis < 2:
            self.refuse(node, f"{ast.unparse(node)} along an axis", "write the loop")
        matrix: ArrayView = base
        along = axis % 2

        def at(places: Sequence[Value]) -> Value:
            parts: list[Value | IndexSpan] = [IndexSpan(0, matrix.shape[along])] * 2
            parts[1 - along] = places[0]
            return self.inline(node, function, [matrix.part(parts)])

        return ArrayExpression((matrix.shape[1 - along],), at, {matrix.array})

    def _outer(self, node: Any, left: Any, right: Any) -> ArrayExpression:
        """The products of all pairs of elements of two vectors."""
        views: list[ArrayView] = []
        for operand in (left, right):
            if isinstance(operand, Made):
                operand = self.allocated("part", operand, node)
            if isinstance(operand, ArrayExpression):
                operand = self.stored(operand, node)
            if not isinstance(operand, ArrayView) or operand.ndim != 1:
                self.refuse(node, f"{ast.unparse(node)} of other than vectors", "write the loops")
            views.append(operand)
        one, other = views

        def at(places: Sequence[Value]) -> Value:
            a, b = self.load(one, places[:1]), self.load(other, places[1:])
            return self.arithmetic(node, ast.Mult(), a, b)

        return ArrayExpression((one.shape[0], other.shape[0]), at, {one.array, other.array})

    def dtype_named(self, node: Any, value: Any) -> np.dtype:
        """The dtype that an argument stands for."""
        if isinstance(value, np.dtype):
            dtype = value
        elif isinstance(value, type) or (isinstance(value, Items) and isinstance(value[0], str)):
            dtype = np.dtype(value[0] if isinstance(value, Items) else value)
        elif (name := getattr(value, "name", None)) in _CASTS:  # a type of Numba's
            dtype = _CASTS[str(name)]
        else:
            self.refuse(node, "a dtype that is computed", "name it, as np.float64")
        if dtype not in KERNEL_DTYPES:
            self.refuse(node, f"the dtype {dtype}", "use floats, complex numbers, integers, bools")
        return dtype

    def _maker(self, node: ast.Call, name: str, env: dict[str, Any]) -> Made:
        arguments = [self.value(a, env) for a in node.args]
        options = {k.arg: self.value(k.value, env) for k in node.keywords}
        first = arguments[0] if arguments else options.pop("shape", None)
        maker = name.removesuffix("_like")
        rest = arguments[1:]
        content: Any = None
        if maker == "full":
            content = rest.pop(0) if rest else options.pop("fill_value")
        if maker == "ones":
            content = 1.0
        if content is not None:
            maker = "empty"
        if name.endswith("_like"):
            if not isinstance(first, ArrayView | ArrayExpression):
                self.refuse(node, f"{ast.unparse(node)} of no array", "give an array")
            shape, dtype = first.shape, self.element_dtype(first)
        else:
            lengths = first if isinstance(first, Items) else (first,)
            shape = tuple([self.integer(n) for n in lengths])
            dtype = FLOAT64 if content is None else self.element_dtype(content)
        given = rest[0] if rest else options.pop("dtype", None)
        options.pop("order", None)
        if options or len(rest) > 1:
            self.refuse(node, f"options of {ast.unparse(node)}", "give shape and dtype")
        if given is not None:
            dtype = self.dtype_named(node, given)
        return Made(maker, dtype, tuple(shape), content)

    def _conversion(self, node: ast.Call, name: str, arguments: Sequence[Any]) -> Any:
        dtype = _CASTS[name]
        if len(arguments) == 2 and dtype.kind == "c":
            part = np.dtype(f"f{dtype.itemsize // 2}")
            if all(isinstance(a, NUMBERS) for a in arguments):
                return complex(*arguments)
            return self.defined("from_parts", [self.cast(a, part) for a in arguments], dtype)
        value = arguments[0] if len(arguments) == 1 else None
        if isinstance(value, ArrayView | ArrayExpression):
            return self.by_elements(lambda x: self.cast(x, dtype), [value], node)
        if not isinstance(value, SCALARS):
            self.refuse(node, f"the conversion {ast.unparse(node)}", "convert one number")
        if dtype.kind in "iu":
            if dtype.itemsize < 8 and self.dtype_of(value).kind in "fiu":
                return self.integer(value)
            return self.integer(value)
        return self.cast(value, dtype)

    def _of_whole_arrays(self, node: ast.Call, name: str, arguments: Sequence[Any]) -> Any:
        """The result of a function of NumPy's that was given arrays; None if it was not."""
        arrays = [a for a in arguments if isinstance(a, ArrayView | ArrayExpression | Made)]
        if not arrays:
            return None
        arguments = [
            self.allocated("part", a, node) if isinstance(a, Made) else a for a in arguments
        ]
        if len(arguments) == 1:
            base = arguments[0]
            function = REDUCTIONS.get((name, base.ndim))
            if function is not None:
                view = self.stored(base, node) if isinstance(base, ArrayExpression) else base
                return self.inline(node, function, [view])
            if name in ("copy", "array", "ascontiguousarray", "asarray"):
                return Made("empty", self.element_dtype(base), base.shape, base)
            if name == "transpose" and isinstance(base, ArrayView):
                return ArrayView(base.array, base.index, base.order[::-1])
            if name == "flip" and isinstance(base, ArrayView) and base.ndim == 1:
                length = base.shape[0]
                return base.part([IndexSpan(subtract(length, 1), length, -1)])
        if name == "where":
            self.refuse(node, f"{ast.unparse(node)} of arrays", "write the loop with an if")
        target = getattr(np, name, None)
        if isinstance(target, np.ufunc) and self.operations.table.name_of(target) is not None:
            return self.by_elements(
                lambda *values: self._scalar_call(node, target, name, values), arguments, node
            )
        self.refuse(node, f"{ast.unparse(node.func)} of whole arrays", "write the loop")

    def _scalar_call(self, node: Any, target: Any, name: str, arguments: Sequence[Any]) -> Any:
        for a in arguments:
            if not isinstance(a, SCALARS):
                self.refuse(
                    node, f"{ast.unparse(node)} of what is no number", "call it by elements"
                )
        kinds = {self.dtype_of(a).kind for a in arguments}
        module = (getattr(target, "__module__", "") or "").partition(".")[0]
        whole = not kinds & set("fc")
        if target is pow and len(arguments) == 2:
            return self.arithmetic(node, ast.Pow(), *arguments)
        if (name in ("min", "max", "abs") and module == "builtins") or (
            whole and name in ("minimum", "maximum", "absolute", "fabs")
        ):
            word = {"minimum": "min", "maximum": "max", "absolute": "abs", "fabs": "abs"}.get(
                name, name
            )
            if whole:
                if all(isinstance(a, int) for a in arguments):
                    return getattr(builtins, word)(*arguments)
                return Expression(word, tuple([self.integer(a) for a in arguments]))
            if word == "abs":
                return self.define("absolute", *arguments)
            value = arguments[0]
            for other in arguments[1:]:
                value = self.define(word, value, other)
            return value
        if name in _ROUNDED and module == "math":
            if whole:
                return self.integer(arguments[0])
            if name == "trunc":
                return self.integer(arguments[0])
            return self.integer(self.define(_ROUNDED[name], *arguments))
        if target is round:
            if len(arguments) > 1:
                self.refuse(node, "round to digits", "write floor(x * 10**k + 0.5) / 10**k")
            return arguments[0] if whole else self.integer(self.define("rint", *arguments))
        if target is np.where:
            condition = self.truth(arguments[0])
            blocks = [Block(self.block.loop, self.block) for _ in range(2)]
            return self.choice(condition, blocks, arguments[1:], "v")
        if name in ("isnan", "isinf", "isfinite"):
            if whole:
                return name == "isfinite"
            return self.defined(name, arguments, BOOL)
        if name in ("degrees", "rad2deg", "radians", "deg2rad"):
            factor = 180.0 / np.pi if name in ("degrees", "rad2deg") else np.pi / 180.0
            return self.define("multiply", arguments[0], float(factor))
        if isinstance(target, ScalarFunction):
            operation: str | None = target.operation
        else:
            operation = self.operations.table.name_of(target)
        if operation is None:
            self.refuse(
                node,
                f"{ast.unparse(getattr(node, 'func', node))} has no derivative rule",
                "use functions of math, numpy or ng.special, or write it in the kernel language",
            )
        if operation == "power":
            return self.arithmetic(node, ast.Pow(), *arguments)
        if operation in ("real", "imag"):
            return self._part(arguments[0], operation)
        if operation in ("conjugate", "positive") and not kinds & set("c"):
            return arguments[0]
        numbers = [a if k in "fc" else self.cast(a, FLOAT64) for a, k in
                   ((a, self.dtype_of(a).kind) for a in arguments)]  # fmt: skip
        try:
            if module == "math" and all(isinstance(a, float) for a in numbers):
                return float(target(*numbers))
            value = self.define(operation, *numbers)
            statement = self.block.statements[-1]
            assert isinstance(statement, Define)
            dtypes = [self.dtype_of(o) for o in statement.operands]
            self.operations.expression(operation, ["x"] * len(dtypes), dtypes)
        except (NumgradTypeError, ValueError, KeyError) as error:
            self.refuse(node, f"{ast.unparse(node)}: {error}", "use another function")
        return value


def _vdot() -> Any:
    from numgrad.codegen.adjoint.array_functions import vdot_1_1

    return vdot_1_1
