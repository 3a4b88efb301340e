"""The operation table as ``codegen.adjoint`` reads it: scalar functions and their derivatives."""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from numgrad.codegen.adjoint.array_functions import OF_EXTREMES
from numgrad.codegen.adjoint.operations import TIES
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
_OWN = {function: name for name, function in OF_EXTREMES.items()}


def _is_tie(x: Any, limit: Any) -> Any:
    return (x == limit) | (np.isnan(x) & np.isnan(limit))


class ScalarOperations:
    """Elementwise operations by name, for loops that users write."""

    def name_of(self, function: Any) -> str | None:
        if isinstance(function, FunctionType) and function in _OWN:
            return _OWN[function]
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
        return TIES[name] if name in TIES else len(OPS[name].inputs)

    def types(self, name: str, dtypes: Sequence[np.dtype]) -> tuple[list[np.dtype], np.dtype]:
        if name in TIES:
            dtype = np.result_type(*dtypes[:3])
            return [dtype] * len(dtypes), dtype
        op = OPS.get(name)
        if isinstance(op, Elementwise):
            loop, out = op.result_types(list(dtypes))
            return list(loop), out
        return resolve(getattr(np, name), list(dtypes))

    def value(self, name: str, reader: Reader, operands: Sequence[Symbol]) -> Symbol:
        if name == "tie_count":
            count, x, limit = operands
            with interpreter(ReadingInterpreter(reader)):
                return np.where(_is_tie(x, limit), count + 1, count)  # pyright: ignore
        if name in TIES:
            return operands[0]
        op = OPS[name]
        assert isinstance(op, Elementwise)
        return op.read(reader, operands)

    def gradient(self, name: str, k: int, g: Symbol, operands: Sequence[Symbol], y: Symbol) -> Any:
        if name in TIES:
            return self._own_gradient(name, k, g, operands)
        op = OPS[name]
        if op.inputs[k] not in op.formulas:
            return None
        call = Call(op, tuple([Meta((), np.dtype(s.dtype)) for s in operands]), {})
        values: dict[str, Any] = dict(zip(op.inputs, operands, strict=True)) | {"y": y}
        with interpreter(ReadingInterpreter(g.reader)):
            return call.gradient(k, g, values)

    def _own_gradient(self, name: str, k: int, g: Symbol, operands: Sequence[Symbol]) -> Any:
        if name != "tie_share" or k > 1:
            return None
        if k == 0:
            return g
        _, x, limit, count = operands
        with interpreter(ReadingInterpreter(g.reader)):
            return np.where(_is_tie(x, limit), np.divide(g, count), 0)  # pyright: ignore

    def plain(self, name: str) -> Callable[..., Any]:
        if name in TIES:
            return OF_EXTREMES[name]
        function = getattr(np, name, None)
        if function is not None:
            return function
        op = OPS[name]
        return lambda *numbers: op.compute(numbers, {})[()]


TABLE = ScalarOperations()
