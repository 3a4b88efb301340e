"""Linear algebra of the Array API standard; what does not differ is that of ``ng.linalg``."""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

from numgrad.core.op import OPS as _OPS
from numgrad.errors import (
    NumgradAttributeError as _NumgradAttributeError,
    NumgradValueError as _NumgradValueError,
)
from numgrad.operations.shape import as_operand as _as_operand

_SAME = """
cholesky cross det eig eigh eigvals eigvalsh inv matrix_power matrix_rank pinv qr slogdet solve svd
svdvals
"""
_OF_THE_NAMESPACE = """
matmul matrix_norm matrix_transpose tensordot vecdot vector_norm
"""
_OURS: set[str] = set()
if _find_spec("numgrad.linalg") is not None:
    _OURS = {*_SAME.split()} & set(_import_module("numgrad.linalg").__all__)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes."""
    return _OPS["diagonal"](_matrices("diagonal", x), offset=offset, axis1=-2, axis2=-1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of the matrices in the last two axes."""
    return _OPS["trace"](_matrices("trace", x), offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Any:
    """Products of all elements of a vector with all of another."""
    x1, x2 = _as_operand(x1), _as_operand(x2)
    if len(x1.shape) != 1 or len(x2.shape) != 1:
        raise _NumgradValueError(
            f"outer: takes vectors, got shapes {tuple(x1.shape)} and {tuple(x2.shape)}"
        )
    return _OPS["outer"](x1, x2)


def _matrices(name: str, x: Any) -> Any:
    x = _as_operand(x)
    if len(x.shape) < 2:
        raise _NumgradValueError(f"{name}: needs at least two axes, got shape {tuple(x.shape)}")
    return x


def __getattr__(name: str) -> Any:
    if name in _OF_THE_NAMESPACE.split():
        value = _OPS[name]
    elif name in _OURS:
        value = getattr(_import_module("numgrad.linalg"), name)
    else:
        raise _NumgradAttributeError(f"array_api.linalg: there is no {name!r}")
    globals()[name] = value
    return value


__all__ = sorted(["diagonal", "outer", "trace", *_OURS, *_OF_THE_NAMESPACE.split()])  # pyright: ignore


def __dir__() -> list[str]:
    return __all__
