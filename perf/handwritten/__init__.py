"""Values and gradients by formulas derived and loops written by hand: what a compiler can reach."""

from typing import Any

from numba import njit

INNER: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Options of functions that only kernels call: entry points double the time to compile them."""
SUMS = {"reassoc", "contract"}
"""What sums allow: terms in any order, products and sums in one rounding."""


@njit(**INNER)
def total(parts):
    """Sum of partial results, serial: in a parallel function Numba would launch threads for it."""
    result = 0.0
    for k in range(parts.size):
        result += parts[k]
    return result
