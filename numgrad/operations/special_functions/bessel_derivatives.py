"""Derivatives of Bessel functions by their argument: sums of neighbouring orders.

Of order ``n`` the derivative of a cylinder function ``f`` is ``2**-n`` times a sum over ``i`` of
``phase**i * binom(n, i) * f(v - n + 2 i, z)`` (DLMF 10.6.7 and 10.29.5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index
from typing import Any

from numgrad.errors import NumgradValueError
from numgrad.operations.shape import as_array
from numgrad.operations.special_functions.bessel import iv, jv, kv, yv
from numgrad.operations.special_functions.complex_valued import hankel1, hankel2


def _derivative(name: str, f: Callable[[Any, Any], Any], v: Any, z: Any, n: Any, phase: int) -> Any:
    try:
        order = index(n)
    except TypeError:
        order = -1
    if order < 0:
        raise NumgradValueError(f"{name}: n is {n!r}; it must be an integer that is not negative")
    v, z = as_array(v), as_array(z)
    terms = [(phase**i * math.comb(order, i), v - order + 2 * i) for i in range(order + 1)]
    (_, first), *rest = terms
    total = f(first, z)
    for factor, at in rest:
        total = total + factor * f(at, z)
    return total * 0.5**order


def jvp(v: Any, z: Any, n: int = 1) -> Any:
    """Derivative of order ``n`` of ``jv`` by ``z``.

    Parameters
    ----------
    v
        Order of the Bessel function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.jvp(0, ng.tensor([1.0, 2.0]))
    tensor([-0.44005059, -0.57672481])
    """
    return _derivative("jvp", jv, v, z, n, -1)


def yvp(v: Any, z: Any, n: int = 1) -> Any:
    """Derivative of order ``n`` of ``yv`` by ``z``.

    Parameters
    ----------
    v
        Order of the Bessel function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.yvp(0, ng.tensor([1.0, 2.0]))
    tensor([0.78121282, 0.10703243])
    """
    return _derivative("yvp", yv, v, z, n, -1)


def ivp(v: Any, z: Any, n: int = 1) -> Any:
    """Derivative of order ``n`` of ``iv`` by ``z``.

    Parameters
    ----------
    v
        Order of the Bessel function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.ivp(0, ng.tensor([0.0, 1.0]))
    tensor([0.       , 0.5651591])
    """
    return _derivative("ivp", iv, v, z, n, 1)


def kvp(v: Any, z: Any, n: int = 1) -> Any:
    """Derivative of order ``n`` of ``kv`` by ``z``.

    Parameters
    ----------
    v
        Order of the Bessel function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.kvp(0, ng.tensor([1.0, 2.0]))
    tensor([-0.60190723, -0.13986588])
    """
    found = _derivative("kvp", kv, v, z, n, 1)
    return -found if index(n) % 2 else found


def h1vp(v: Any, z: Any, n: int = 1) -> Any:
    """Derivative of order ``n`` of ``hankel1`` by ``z``.

    Parameters
    ----------
    v
        Order of the Hankel function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.h1vp(0, ng.tensor([1.0]))
    tensor([-0.44005059+0.78121282j], dtype=complex128)
    """
    return _derivative("h1vp", hankel1, v, z, n, -1)


def h2vp(v: Any, z: Any, n: int = 1) -> Any:
    """Derivative of order ``n`` of ``hankel2`` by ``z``.

    Parameters
    ----------
    v
        Order of the Hankel function.
    z
        Argument, real or complex.
    n
        How many times to differentiate.

    Raises
    ------
    NumgradValueError
        If ``n`` is not an integer, or negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.h2vp(0, ng.tensor([1.0]))
    tensor([-0.44005059-0.78121282j], dtype=complex128)
    """
    return _derivative("h2vp", hankel2, v, z, n, -1)
