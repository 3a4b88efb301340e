"""Arrays of other libraries, recognised without an import: labelled, masked and sparse ones."""

import sys
from functools import cache, lru_cache
from typing import Any

import numpy as np

from numgrad.errors import NumgradTypeError

LABELLED = ("pandas", "polars", "xarray")
"""Libraries of labelled arrays."""


@lru_cache(256)
def labelled_kind(kind: type) -> str | None:
    """Library and class of which a class is, such as ``pandas.Series``; None if of no such one.

    Examples
    --------
    >>> from numgrad.core.foreign import labelled_kind
    >>> labelled_kind(list) is None
    True
    """
    for base in kind.__mro__:
        library = base.__module__.partition(".")[0]
        if library in LABELLED:
            return f"{library}.{base.__name__}"
    return None


def refuse_mask(name: str, value: Any) -> None:
    """Raise for a masked array, or a list that holds one.

    Raises
    ------
    NumgradTypeError
        With what to write instead; ``name`` is the operation's, or empty if that is not known.
    """
    try:
        masked = _has_mask(value)
    except RecursionError:  # of a list in itself, for the error that names it
        return
    if masked:
        raise NumgradTypeError(
            f"{name and f'{name}: '}a masked array among the operands would lose its mask; give "
            "its numbers with .filled(value), and choose by the mask with np.where"
        )


def _has_mask(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_has_mask(v) for v in value if isinstance(v, list | tuple | np.ndarray))
    return isinstance(value, np.ndarray) and hasattr(value, "filled")  # np.ma is not imported


@cache
def is_sparse_kind(kind: type) -> bool:
    """Whether a type is one of SciPy's sparse arrays and matrices."""
    return any([k.__module__ == "scipy.sparse._base" for k in kind.__mro__])


def multiplies_by_star(x: Any) -> bool:
    """Whether ``*`` means a product of matrices, as for sparse matrices that are no arrays."""
    return is_sparse_kind(type(x)) and sys.modules["scipy.sparse"].isspmatrix(x)


_PRODUCTS = frozenset(("_matmul_dispatch", "_mul_dispatch"))


NO_ARRAY = np.array(None, object)
"""The array that NumPy makes of something that is no array."""


def asked_by_product() -> bool:
    """Whether SciPy calls the caller's ``__array__`` to multiply a sparse matrix with it.

    Then ``NO_ARRAY`` is the answer: whatever methods the other operand has, SciPy leaves the
    product to its ``__rmatmul__`` only if it does not become an array.
    """
    frame = sys._getframe(2)
    known = frame.f_code.co_name in _PRODUCTS
    return known and str(frame.f_globals.get("__name__")).startswith("scipy.sparse")


def asked_by_constructor(value: Any) -> bool:
    """Whether SciPy calls ``__array__`` of ``value`` to make a sparse matrix of its elements.

    It replaces errors there by one that only says that the argument is not known.
    """
    frame = sys._getframe(2)
    return frame.f_locals.get("arg1") is value and str(frame.f_globals.get("__name__")).startswith(
        "scipy.sparse"
    )
