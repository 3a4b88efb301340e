"""Random numbers as functions of a seed and of counters, without a generator's state.

Note [Counter-based random numbers]
-----------------------------------
Threefry-2x32 of 20 rounds (Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as
1, 2, 3, 2011) mixes the two words of a counter with those of a seed by additions, rotations and
exclusive ors. So number ``k`` is computed alone, in any order and thread, under ``ng.jit`` in its
loops, and in functions that leave Python, whose seed is an argument. JAX's keys use the same
function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.op import OPS
from numgrad.errors import NumgradTypeError

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_WORD = 0xFFFFFFFF


def uniform_at(seed: Any, counter: Any) -> Tensor:
    """Uniform numbers in [0, 1) of a seed and counters: Note [Counter-based random numbers].

    Parameters
    ----------
    seed, counter
        Integers or arrays of them, which broadcast; equal pairs give equal numbers.

    Returns
    -------
    Tensor
        float64, with 53 random bits each; no gradients.

    Raises
    ------
    NumgradTypeError
        If they are no integers.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> ng.random.uniform_at(5, np.arange(3)).numpy().round(6)
    array([0.325086, 0.592529, 0.08142 ])
    """
    a, b = _words("uniform_at", seed, counter)
    high, low = _part(a, 5), _part(b, 6)
    return (high * 2.0**26 + low) * 2.0**-53


def normal_at(seed: Any, counter: Any) -> Tensor:
    """Standard normal numbers of a seed and counters: Note [Counter-based random numbers].

    The inverse of the normal distribution function of uniform numbers; otherwise as ``uniform_at``.

    Parameters
    ----------
    seed, counter
        Integers or arrays of them, which broadcast; equal pairs give equal numbers.

    Returns
    -------
    Tensor
        float64; no gradients.

    Raises
    ------
    NumgradTypeError
        If they are no integers.

    Examples
    --------
    >>> import numpy as np, numgrad as ng
    >>> def price(volatility, seed):
    ...     z = ng.random.normal_at(seed, np.arange(10_000))
    ...     return np.mean(np.maximum(np.exp(volatility * z - volatility**2 / 2) - 1, 0))
    >>> slope = ng.jit(ng.grad(price))
    >>> bool(abs(slope(0.2, 7) - 0.397) < 0.02)  # the vega of a call
    True
    """
    a, b = _words("normal_at", seed, counter)
    from numgrad.operations.special_functions.distributions import ndtri

    return ndtri((_part(a, 6) * 2.0**26 + _part(b, 6) + 0.5) * 2.0**-52)


def _words(operation: str, seed: Any, counter: Any) -> tuple[Any, Any]:
    """Two random words of 32 bits for each pair of a seed and a counter."""
    (k0, k1), (a, b) = (_halves(operation, x) for x in (seed, counter))
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    a, b = a + k0, b + k1
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            a = a + b
            rotated = (b << np.uint32(bits)) | (b >> np.uint32(32 - bits))
            b = rotated ^ a
        a = a + keys[(group + 1) % 3]
        b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def _halves(operation: str, x: Any) -> tuple[Any, Any]:
    """The lower and the upper 32 bits of integers."""
    array = x if isinstance(x, Tensor) else OPS["copy"](x)
    if array.dtype.kind not in "iu":
        raise NumgradTypeError(
            f"{operation}: a seed or counter is of {array.dtype}; give integers, as np.arange does"
        )
    array = OPS["astype"](array, dtype=np.dtype(np.int64), copy=True)
    return _word(array), _word(array >> 32)


def _word(array: Any) -> Any:
    return OPS["astype"](array & _WORD, dtype=np.dtype(np.uint32), copy=True)


def _part(word: Any, bits: int) -> Any:
    """A word without its last bits, as a float."""
    return OPS["astype"](word >> np.uint32(bits), dtype=np.dtype(np.float64), copy=True)
