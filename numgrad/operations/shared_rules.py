"""Rules that several files of operations share: of dtypes, of batching, of unknown shapes.

Note [Rules of batching] in ``core.batching`` says what a rule is.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from numgrad.codegen.dtypes import resolve
from numgrad.codegen.library import COMPLEX_LIBRARY, REAL_BESIDE
from numgrad.core.declare import BatchOperand, Op, bind, not_real, with_parameters
from numgrad.errors import NumgradTraceError, NumgradTypeError


def _common(operands: Sequence[Any]) -> np.dtype:
    """The common dtype; Python numbers are weak."""
    return np.result_type(*[np.empty(0, o) if isinstance(o, np.dtype) else o(0) for o in operands])


def is_complex(operand: Any) -> bool:
    """Whether a dtype, or the type of a Python number, is complex."""
    return operand is complex or getattr(operand, "kind", "") == "c"


def dtype_or_type(value: Any) -> Any:
    """An operand as dtype rules take it: the dtype of an array, the type of a Python number."""
    return getattr(value, "dtype", type(value))


def _promoted(name: str, operands: Sequence[Any]) -> np.dtype:
    """The common dtype of real operands."""
    dtype = _common(operands)
    if dtype.kind == "c":
        raise not_real(name, dtype)
    return dtype


def floating(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Loop and result dtypes of a real function: integers become floating."""
    (dtype,), _ = resolve(np.sqrt, [_promoted(name, operands)])
    return [dtype] * len(operands), dtype


def kept(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of a function that compares with the integer 0 and keeps integers."""
    dtype = _promoted(name, [*operands, int])
    return [dtype] * len(operands), dtype


def _complex(name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype] | None:
    """Dtypes where some operand is complex: kernels compute in complex128."""
    if not any(map(is_complex, operands)):
        return None
    dtype, beside = _common(operands), REAL_BESIDE[name]
    if any(map(is_complex, operands[:beside])):
        raise NumgradTypeError(
            f"{name}: only the last operand may be complex; apply real() to those before it"
        )
    real, complex_ = np.dtype(np.float64), np.dtype(np.complex128)
    return [real] * beside + [complex_] * (len(operands) - beside), dtype


def _of_either(rule: Any, name: str, operands: Sequence[Any]) -> tuple[list[np.dtype], np.dtype]:
    """Dtypes of a function that takes complex operands too, by ``rule`` where none is."""
    return _complex(name, operands) or resolve(rule, operands)


def by_library(name: str, rule: Any = None) -> dict[str, Any]:
    """Options of an operation of which the kernel library may have a form for complex numbers.

    ``rule`` has the dtypes of real operands, by default ``floating``.
    """
    rule = rule or partial(floating, name)
    if name not in COMPLEX_LIBRARY:
        return {"types": rule, "real_only": True}
    return {
        "types": partial(_of_either, rule, name),
        "real_only": False,
        "holomorphic": True,
        "real_beside": REAL_BESIDE[name],
    }


def integers(values: Any) -> tuple[int, ...]:
    """Lengths or axes, which may be written as one number or as any sequence.

    Lengths of traced arrays stay what they are: as numbers, the trace would be for these only.
    """
    if isinstance(values, np.ndarray):
        values = np.atleast_1d(values).tolist()
    return (values,) if hasattr(values, "__index__") else tuple(values)


def along_axis(op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int) -> Any:
    """The rule where no axis means the elements of an example, flattened."""
    (x,) = operands
    if params["axis"] is None:
        return bind(op, (x.flat().value,), {**params, "axis": 1})
    return bind(op, (x.value,), {**params, "axis": x.axes(params["axis"])})


@with_parameters
def of_matrices(x: BatchOperand, size: int, **params: Any) -> Any:
    """The rule of an operation on the last two axes."""
    return {} if x.ndim >= 2 else NotImplemented


def no_shape(operation: str, remedy: str) -> Callable[..., Any]:
    """A shape rule that raises: ``ng.jit`` cannot know how many elements there will be."""

    def rule(*metas: Any, **params: Any) -> NoReturn:
        raise NumgradTraceError(
            f"{operation}: the shape of the result depends on the numbers of an operand, but "
            f"ng.jit traces the function, where arrays have none yet; {remedy}"
        )

    return rule


OUTSIDE = "call it outside of the compiled function and pass the result as an argument"
"""The remedy that always works."""


def numbers_of(operation: str, x: Any) -> np.ndarray:
    """The numbers of what decides on shapes or places, which a trace does not know."""
    array = getattr(x, "_array", x)
    if hasattr(array, "refuse"):
        array.refuse(
            f"{operation} by computed numbers",
            "compute them outside of the function, or pass them as a static argument "
            "(static_argnums)",
        )
    result = np.asarray(array)
    if not result.size and isinstance(x, list | tuple):
        return result.astype(np.intp)  # as NumPy takes what lists no place
    return result
