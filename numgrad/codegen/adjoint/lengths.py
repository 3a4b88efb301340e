"""The lengths of results, from the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

from numgrad.codegen.adjoint.expressions import FOLD
from numgrad.codegen.adjoint.operations import Operations
from numgrad.codegen.adjoint.representation import (
    Define,
    Expression,
    KernelFunction,
    Load,
    Store,
    Value,
    walk,
)
from numgrad.errors import NumgradKernelError


def _by_method(name: str, *operands: Any) -> Any:
    """A function as a method of numbers that are known when machine code runs, if one is."""
    for k, operand in enumerate(operands):
        method = getattr(operand, name, None)
        if method is not None:
            return method(*operands[:k], *operands[k + 1 :])
    return None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **FOLD,
    "min": lambda a, b: _by_method("least", a, b) or min(a, b),
    "max": lambda a, b: _by_method("most", a, b) or max(a, b),
    "abs": abs,
    "int": lambda a: _by_method("whole", a) or int(a),
    "float": float,
    "bool": bool,
    "isqrt": lambda a: int(sqrt(a)),
    "neg": lambda a: -a,
    "not": lambda a: not a,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "wrap": lambda place, length: place if place >= 0 else place + length,
}


class ResultLengths:
    """Computes integers of a function from its arguments, by what stands outside of loops."""

    def __init__(self, function: KernelFunction, operations: Operations) -> None:
        self.function, self.operations = function, operations
        self.makers = {s.name: s for s in function.body.statements if isinstance(s, Define | Load)}

    def values(self, array: str, arguments: Mapping[str, Any]) -> list[Any]:
        """The lengths of an array, which count as 0 where they are less."""
        return [self.value(n, arguments) for n in self.function.arrays[array].shape]

    def traced_shape(self, array: str, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """The shape of an array where only lengths are known, which may be symbols."""
        try:
            values = self.values(array, arguments)
        except (NumgradKernelError, AttributeError, TypeError) as error:
            raise NumgradKernelError(
                f"{self.function.name}: the length of a result depends on numbers, which a "
                "compiled function does not know beforehand; give them as constants "
                "(static_argnums) or lengths of arrays, or pass an array that is written"
            ) from error
        return tuple([max(0, n) if isinstance(n, int) else n for n in values])

    def value(self, value: Value, arguments: Mapping[str, Any]) -> Any:
        """A value that depends on arguments alone."""
        if isinstance(value, Expression):
            if value.operation == "shape":
                array, axis = value.operands
                own = self.function.arrays[array]
                if array in arguments:
                    return arguments[array].shape[axis]
                if own.role == "constant":
                    return self.function.constants[array].shape[axis]
                return self.value(own.shape[axis], arguments)
            operands = [self.value(o, arguments) for o in value.operands]
            return _FUNCTIONS[value.operation](*operands)
        if not isinstance(value, str):
            return value
        if value in arguments:
            return arguments[value]
        maker = self.makers.get(value)
        if isinstance(maker, Define):
            operands = [self.value(o, arguments) for o in maker.operands]
            if maker.operation in ("cast", "copy"):
                return operands[0]
            if maker.operation in ("max", "min"):
                return _FUNCTIONS[maker.operation](*operands)
            return self.operations.table.plain(maker.operation)(*operands)
        if isinstance(maker, Load) and maker.array in arguments and not self._is_written(maker):
            return arguments[maker.array][tuple([self.value(n, arguments) for n in maker.index])]
        raise NumgradKernelError(
            f"{self.function.name}: the length of a result is computed in a loop or branch, or "
            "read from an array; give it as an argument, or pass an array that is written"
        )

    def is_known(self, value: Value) -> bool:
        """Whether ``value`` computes it of each call."""
        if isinstance(value, Expression):
            if value.operation == "shape":
                return self.is_integer(value)
            return all(map(self.is_known, value.operands))
        if not isinstance(value, str) or value in self.function.parameters:
            return True
        maker = self.makers.get(value)
        if isinstance(maker, Load):
            return self.is_integer(value)
        return isinstance(maker, Define) and all(map(self.is_known, maker.operands))

    def is_integer(self, value: Value) -> bool:
        """Whether a value follows from lengths and integers of the arguments alone.

        Then it is the same wherever it is computed; of numbers that come from floats rounding may
        make another integer.
        """
        if isinstance(value, Expression):
            if value.operation == "shape":
                array, axis = value.operands
                own = self.function.arrays[array]
                is_given = own.role in ("argument", "constant")
                return is_given or (bool(own.shape) and self.is_integer(own.shape[axis]))
            return all(map(self.is_integer, value.operands))
        if not isinstance(value, str):
            return not isinstance(value, float | complex)
        if self.function.dtypes[value].kind not in "iub":
            return False
        if value in self.function.parameters:
            return True
        maker = self.makers.get(value)
        if isinstance(maker, Load):
            array = self.function.arrays[maker.array]
            is_given = array.role == "argument" and not self._is_written(maker)
            return is_given and all(map(self.is_integer, maker.index))
        if not isinstance(maker, Define) or maker.operation not in ("cast", "copy", "max", "min"):
            return False
        return all(map(self.is_integer, maker.operands))

    def _is_written(self, load: Load) -> bool:
        return any(isinstance(s, Store) and s.array == load.array for s in walk(self.function.body))
