"""The operation table as ``codegen.adjoint`` reads it: scalar functions and their derivatives."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.codegen.symbols import Reader, Symbol
from numgrad.core.elementwise import Elementwise, ReadingInterpreter
from numgrad.core.formula import Meta
from numgrad.core.interpreter import interpreter
from numgrad.core.op import OPS
from numgrad.core.plan import Call

_OF_MATH = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power", "lgamma": "gammaln", "fabs": "absolute",
    "degrees": "degrees", "radians": "radians", "phase": "angle",
}  # fmt: skip
"""Functions of ``math`` and ``cmath`` with another name than the operation."""
_MODULES = ("numpy", "math", "cmath", "scipy")


class ScalarOperations:
    """Elementwise operations by name, for loops that users write."""

    def name_of(self, function: Any) -> str | None:
        if isinstance(function, Elementwise):
            return None if function.is_users else function.name
        name = getattr(function, "__name__", "")
        module = (getattr(function, "__module__", None) or "").partition(".")[0]
        if not name or not (isinstance(function, np.ufunc) or module in _MODULES):
            return None
        if module in ("math", "cmath"):
            name = _OF_MATH.get(name, name)
        elif isinstance(function, np.ufunc):
            name = {"fabs": "absolute", "psi": "digamma", "expit": "sigmoid"}.get(name, name)
        op = OPS.get(name)
        return name if isinstance(op, Elementwise) and not op.is_users else None

    def count(self, name: str) -> int:
        return len(OPS[name].inputs)

    def types(self, name: str, dtypes: Sequence[np.dtype]) -> tuple[list[np.dtype], np.dtype]:
        op = OPS.get(name)
        if isinstance(op, Elementwise):
            loop, out = op.result_types(list(dtypes))
            return list(loop), out
        return resolve(getattr(np, name), list(dtypes))

    def value(self, name: str, reader: Reader, operands: Sequence[Symbol]) -> Symbol:
        op = OPS[name]
        assert isinstance(op, Elementwise)
        return op.read(reader, operands)

    def gradient(self, name: str, k: int, g: Symbol, operands: Sequence[Symbol], y: Symbol) -> Any:
        op = OPS[name]
        if op.inputs[k] not in op.formulas:
            return None
        call = Call(op, tuple([Meta((), np.dtype(s.dtype)) for s in operands]), {})
        values: dict[str, Any] = dict(zip(op.inputs, operands, strict=True)) | {"y": y}
        with interpreter(ReadingInterpreter(g.reader)):
            return call.gradient(k, g, values)

    def plain(self, name: str) -> Callable[..., Any]:
        function = getattr(np, name, None)
        if function is not None:
            return function
        op = OPS[name]
        return lambda *numbers: op.compute(numbers, {})[()]


TABLE = ScalarOperations()
