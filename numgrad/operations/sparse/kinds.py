"""How sparse matrices of SciPy's are known, which nothing here imports."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np


@cache
def is_sparse_kind(kind: type) -> bool:
    """Whether a type is one of SciPy's sparse arrays and matrices."""
    return any([k.__module__ == "scipy.sparse._base" for k in kind.__mro__])


def multiplies_by_star(x: Any) -> bool:
    """Whether ``*`` means a product of matrices, as for sparse matrices that are no arrays."""
    return is_sparse_kind(type(x)) and sys.modules["scipy.sparse"].isspmatrix(x)


_PRODUCTS = frozenset(("_matmul_dispatch", "_mul_dispatch"))


NO_ARRAY = np.array(None, object)
"""What NumPy makes of something that is no array."""


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
