"""References computed by NumPy or SciPy on infinities, NaN and numbers that overflow."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def quiet(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Call NumPy or SciPy without warnings, which depend on the CPU: see ``a @ b`` with AVX-512."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **params)
