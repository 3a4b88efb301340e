"""Reading of calls: conversions, functions of numbers, helpers."""

from __future__ import annotations

import ast
import builtins
import cmath
import inspect
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from numgrad.codegen.adjoint.array_calls import CASTS, ArrayCallReader, is_array
from numgrad.codegen.adjoint.array_functions import OF_NUMBERS, logarithm
from numgrad.codegen.adjoint.emission import SCALARS
from numgrad.codegen.adjoint.operations import ScalarFunction
from numgrad.codegen.adjoint.representation import COMPLEX128, Block, Define, Ensure, Expression
from numgrad.codegen.adjoint.scopes import plain_function
from numgrad.codegen.adjoint.values import (
    Items,
    LocalFunction,
    Made,
)
from numgrad.codegen.dtypes import BOOL, FLOAT64
from numgrad.codegen.intrinsics import grow, growing
from numgrad.errors import NumgradKernelError, NumgradTypeError

_ROUNDED = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_COMPARED = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=",
}  # fmt: skip
_OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(), "subtract": ast.Sub(), "multiply": ast.Mult(), "divide": ast.Div(),
    "true_divide": ast.Div(), "power": ast.Pow(), "remainder": ast.Mod(), "mod": ast.Mod(),
    "floor_divide": ast.FloorDiv(), "bitwise_and": ast.BitAnd(), "bitwise_or": ast.BitOr(),
    "bitwise_xor": ast.BitXor(), "left_shift": ast.LShift(), "right_shift": ast.RShift(),
    "bitwise_left_shift": ast.LShift(), "bitwise_right_shift": ast.RShift(),
}  # fmt: skip
_REFUSED: dict[Any, str] = {
    print: "print what the kernel returns",
    input: "pass it as an argument",
    open: "read before the call",
    sorted: "sort before the call",
    getattr: "pass the value as an argument",
    isinstance: "write a kernel for each kind",
}


class CallReader(ArrayCallReader):
    """Reads calls."""

    def _of_Call(self, node: ast.Call, env: dict[str, Any]) -> Any:
        method = self.method(node, env)
        if method is not None:
            return method
        target = self.value(node.func, env)
        name = getattr(target, "__name__", "")
        if isinstance(target, LocalFunction):
            return self.inline_local(node, target, [self.value(a, env) for a in node.args], env)
        if target.__hash__ is not None and target in _REFUSED:
            self.refuse(node, f"{ast.unparse(node.func)} in a kernel", _REFUSED[target])
        arguments = [self.value(a, env) for a in node.args]
        options = {str(k.arg): self.value(k.value, env) for k in node.keywords}
        if target is growing:
            return Made("growing", self.dtype_named(node, arguments[0]), (0,))
        if target is grow:
            array, length = arguments
            self.emit(Ensure(array.array, length))
            return 0
        if isinstance(target, np.dtype):
            target, name = target.type, target.type.__name__
        if isinstance(target, type) and name in CASTS and not options:
            return self.conversion(node, name, arguments)
        if self._is_numpy(target) or target in (sum, max, min, abs):
            if target in (max, min) and len(arguments) == 1 and isinstance(arguments[0], Items):
                arguments = list(arguments[0])
            result = self.array_call(node, target, name, arguments, options)
            if result is not None:
                return result
        if self._is_function(target) and self.operations.table.name_of(target) is None:
            try:
                return self.inline(node, target, self._complete(node, target, arguments, options))
            except NumgradKernelError as error:
                if not (getattr(target, "__module__", None) or "").startswith("numgrad."):
                    raise
                self._refuse_function(node, error)
        if target.__hash__ is not None and target in OF_NUMBERS:
            function = OF_NUMBERS[target]
            return self.inline(node, function, self._complete(node, function, arguments, options))
        if options:
            self.refuse(node, f"keywords in {ast.unparse(node)}", "give them by position")
        if target is len:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                return len(node.args[0].value)
            if isinstance(arguments[0], Items):
                return len(arguments[0])
            if not is_array(arguments[0]):
                self.refuse(node, f"{ast.unparse(node)} of a number", "pass an array")
            return arguments[0].shape[0]
        if target is range:
            self.refuse(node, "range outside of a for", "loop over it")
        if target is divmod and len(arguments) == 2:
            return Items(self.binary(node, op, *arguments) for op in (ast.FloorDiv(), ast.Mod()))
        if target in (math.log, cmath.log) and len(arguments) == 2:
            if target is cmath.log:
                arguments = [self.cast(a, COMPLEX128) for a in arguments]
            return self.inline(node, logarithm, arguments)
        return self.scalar_call(node, target, name, arguments)

    @staticmethod
    def _is_numpy(target: Any) -> bool:
        name = getattr(target, "__name__", "")
        module = getattr(target, "__module__", None) or ""
        return bool(name) and (
            getattr(np, name, None) is target or module.startswith("numpy.")
            or isinstance(target, np.ufunc)
        ) and not isinstance(target, type)  # fmt: skip

    @staticmethod
    def _is_function(target: Any) -> bool:
        module = getattr(target, "__module__", None) or ""
        inner = getattr(target, "__kernel__", None) or plain_function(target)
        return inspect.isfunction(inner) and module.partition(".")[0] not in ("numpy", "math")

    def _complete(
        self, node: ast.Call, target: Any, arguments: Sequence[Any], options: dict[str, Any]
    ) -> list[Any]:
        """Arguments in their order, with keywords and defaults."""
        scope = self.scopes[-1].captures.scope_of(target)
        names = scope.parameters
        made = getattr(getattr(target, "definition", None), "written", None)
        passed = [n for n in names if made is None or n not in made.made]
        by_name = {a.arg for a in scope.tree.args.kwonlyargs}
        positional = len([n for n in passed if n not in by_name])
        given = dict(zip(passed, arguments, strict=False)) | options
        for name, value in scope.defaults.items():
            given.setdefault(name, self.constant(name, value, node))
        if set(given) != set(passed) or len(arguments) > positional:
            self.refuse(node, f"the arguments of {ast.unparse(node)}", "give each parameter one")
        return [given[name] for name in passed]

    def scalar_call(self, node: Any, target: Any, name: str, arguments: Sequence[Any]) -> Any:
        for a in arguments:
            if not isinstance(a, SCALARS):
                self.refuse(
                    node, f"{ast.unparse(node)} of what is no number", "call it by elements"
                )
        if name in _OPERATORS and isinstance(target, np.ufunc) and len(arguments) == 2:
            return self.arithmetic(node, _OPERATORS[name], *arguments)
        if name in _COMPARED and isinstance(target, np.ufunc):
            return self.compared(_COMPARED[name], *arguments)
        if name.startswith("logical_") and isinstance(target, np.ufunc):
            return self._logical(name.removeprefix("logical_"), arguments)
        module = (getattr(target, "__module__", "") or "").partition(".")[0]
        if module == "cmath":  # of a negative real number as well
            arguments = [self.cast(a, COMPLEX128) for a in arguments]
        kinds = {self.dtype_of(a).kind for a in arguments}
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
            if len(arguments) != 1:
                self.refuse(node, "round to digits", "write floor(x * 10**k + 0.5) / 10**k")
            return arguments[0] if whole else self.integer(self.define("rint", *arguments))
        if name == "clip" and len(arguments) == 3:
            bounded = self.scalar_call(node, np.maximum, "maximum", arguments[:2])
            return self.scalar_call(node, np.minimum, "minimum", [bounded, arguments[2]])
        if target in (np.real, np.imag):
            return self._part(arguments[0], name)
        if target in (np.round, np.around) and len(arguments) == 1:
            return arguments[0] if whole else self.define("rint", *arguments)
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
            self._refuse_function(node)
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

    def _refuse_function(self, node: Any, cause: Exception | None = None) -> NoReturn:
        problem = f"{ast.unparse(getattr(node, 'func', node))} is no function that kernels read"
        remedy = (
            "use functions of one element of math, numpy or ng.special, write it in the kernel "
            "language, or call it outside"
        )
        try:
            self.refuse(node, problem, remedy)
        except NumgradKernelError as error:
            raise error from cause

    def _logical(self, word: str, arguments: Sequence[Any]) -> Any:
        truths = [self.truth(a) for a in arguments]
        if word == "not":
            return self.negation(truths[0])
        if word == "xor":
            return self.compared("!=", *truths)
        if any(isinstance(t, bool) for t in truths):
            known, other = truths if isinstance(truths[0], bool) else truths[::-1]
            return other if known == (word == "and") else known
        return Expression(word, tuple(truths))

    def inline_local(
        self, node: Any, function: LocalFunction, arguments: Sequence[Any], env: dict[str, Any]
    ) -> Any:
        """Read a function that was defined inside in place of a call."""
        raise NotImplementedError
