"""Riemann's zeta function and its derivatives.

Note [Derivatives of Riemann's zeta function]
---------------------------------------------
Right of 3 they are sums of powers, and Euler and Maclaurin's rest of these, both differentiated.
Elsewhere the product with ``s - 1`` has no pole: its Taylor coefficients are Cauchy's integrals
over a circle of radius 1, by the trapezoidal rule of 32 points; a division gives those of the
function. Either way they are right to about twelve digits.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradNotImplementedError
from numgrad.kernels.zeta import EULER_MACLAURIN
from numgrad.operations.special import zeta as hurwitz_zeta
from numgrad.operations.special_functions.several import either, several

_RIGHT, _POINTS, _TERMS, _MOST = 3.0, 32, 30, 3000


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of power series, which are along the first axis."""
    return np.array([sum(a[j] * b[k - j] for j in range(k + 1)) for k in range(len(a))])


def _reciprocal(distance: np.ndarray, order: int) -> np.ndarray:
    """The power series of one over a number ``distance`` away from 0."""
    return np.array([(-1) ** k * distance ** -(k + 1.0) for k in range(order + 1)])


def _of_powers(s: np.ndarray, order: int) -> np.ndarray:
    """A derivative by the sum of powers."""
    first = min(_TERMS + int(np.max(np.abs(np.imag(s)), initial=0)), _MOST)
    k = np.arange(2.0, first).reshape(-1, *(1,) * s.ndim)
    total = np.sum((-np.log(k)) ** order * k**-s, axis=0)
    log = math.log(first)
    power = np.array([(-log) ** k / math.factorial(k) * first**-s for k in range(order + 1)])
    rest = first * _product(power, _reciprocal(s - 1, order)) + 0.5 * power
    factor = power / first
    for j, weight in enumerate(EULER_MACLAURIN):
        for m in (2 * j - 1, 2 * j) if j else (0,):
            moved = np.concatenate([np.zeros_like(factor[:1]), factor[:-1]])
            factor = (s + m) * factor + moved
        rest = rest + weight * factor
        factor = factor / first**2
    return total + math.factorial(order) * rest[order]


def _on_circle(s: np.ndarray, order: int) -> np.ndarray:
    """A derivative by values around a place."""
    turns = np.exp(2j * np.pi * (np.arange(_POINTS) + 0.5) / _POINTS).reshape(-1, *(1,) * s.ndim)
    places = s + turns
    try:
        values = (places - 1) * importlib.import_module("scipy.special").zeta(places)
    except TypeError:
        raise NumgradNotImplementedError(
            "zeta: derivatives with respect to 's' need SciPy 1.15 or later, which computes zeta "
            "of complex numbers; update it, or detach() s"
        ) from None
    values = np.where(places == 1, 1, values)
    series = np.array([np.mean(values * turns**-k, axis=0) for k in range(order + 1)])
    return math.factorial(order) * _product(series, _reciprocal(s - 1, order))[order]


def _derivative(s: np.ndarray, *, n: int) -> np.ndarray:
    """The derivative of order ``n`` of Riemann's zeta function."""
    place = np.asarray(s, np.complex128)
    right = place.real > _RIGHT
    found = np.empty(place.shape, np.complex128)
    with np.errstate(all="ignore"):
        if right.any():
            found[right] = _of_powers(place[right], n)
        if not right.all():
            found[~right] = _on_circle(place[~right], n)
    found = np.where(place == np.inf, 0, found)
    return found if np.iscomplexobj(s) else np.real(found)


@several(calls=lambda op, s: op(s + 2), dtypes=either, internal=True, ref="scipy.special.zeta")
def riemann_zeta(s):
    """Riemann's zeta function."""


@several(calls=lambda op, s: op(s + 2, n=1), dtypes=either, values=_derivative, internal=True,
         ref=None)  # fmt: skip
def riemann_zeta_slope(s, *, n):
    """The derivative of order ``n`` of Riemann's zeta function."""


riemann_zeta.vjp(s=lambda g, s: g * riemann_zeta_slope(s, n=1))
riemann_zeta_slope.vjp(s=lambda g, s, n: g * riemann_zeta_slope(s, n=n + 1))


def zeta(s: Any, x: Any = None) -> Any:
    """Riemann's zeta function of real or complex numbers; with ``x`` that of Hurwitz.

    Parameters
    ----------
    s
        Exponent. Riemann's function has derivatives of every order, Hurwitz's two in ``s``.
    x
        Where the sum of ``(k + x)**-s`` begins, which is ``ng.zeta(s, x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.zeta(ng.tensor([0.0, 2.0]))
    tensor([-0.5       ,  1.64493407])
    >>> ng.special.zeta(2.0, ng.tensor([1.0, 2.0]))
    tensor([1.64493407, 0.64493407])
    """
    return riemann_zeta(s) if x is None else hurwitz_zeta(s, x)
