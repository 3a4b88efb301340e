"""Derivatives of Bessel functions by their argument: sums of neighbouring orders.

Of order ``n`` the derivative of a cylinder function ``f`` is ``2**-n`` times a sum over ``i`` of
``phase**i * binom(n, i) * f(v - n + 2 i, z)`` (DLMF 10.6.7 and 10.29.5), with the sign of ``n`` for
that which falls.
"""

from __future__ import annotations

import math
from operator import index
from typing import Any, Protocol

from numgrad.core.op import Op
from numgrad.errors import NumgradValueError
from numgrad.operations.shape import as_array
from numgrad.operations.special_functions.bessel import iv, jv, kv, yv
from numgrad.operations.special_functions.complex_valued import hankel1, hankel2


class Derivative(Protocol):
    """A derivative of order ``n`` by the argument of a function of order ``v``."""

    def __call__(self, v: Any, z: Any, n: int = 1) -> Any: ...


_PAGE = """Derivative of order ``n`` of ``{of}`` by ``z``.

    Parameters
    ----------
    v
        Order of the function.
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
    >>> ng.special.{name}(0, ng.tensor([1.0])).round(6)
    {example}
    """


def _of(f: Op, name: str, example: str, *, phase: int, sign: int = 1) -> Derivative:
    """The function of SciPy's name that differentiates ``f``."""

    def derivative(v: Any, z: Any, n: int = 1) -> Any:
        try:
            order = index(n)
        except TypeError:
            order = -1
        if order < 0:
            raise NumgradValueError(
                f"{name}: n is {n!r}; it must be an integer that is not negative"
            )
        v, z = as_array(v), as_array(z)
        terms = [(phase**i * math.comb(order, i), v - order + 2 * i) for i in range(order + 1)]
        (_, first), *rest = terms
        total = f(first, z)
        for factor, at in rest:
            total = total + factor * f(at, z)
        return total * (0.5 * sign) ** order

    derivative.__name__ = derivative.__qualname__ = name
    derivative.__doc__ = _PAGE.format(of=f.name, name=name, example=example)
    return derivative


jvp = _of(jv, "jvp", "tensor([-0.440051])", phase=-1)
yvp = _of(yv, "yvp", "tensor([0.781213])", phase=-1)
ivp = _of(iv, "ivp", "tensor([0.565159])", phase=1)
kvp = _of(kv, "kvp", "tensor([-0.601907])", phase=1, sign=-1)
h1vp = _of(hankel1, "h1vp", "tensor([-0.440051+0.781213j], dtype=complex128)", phase=-1)
h2vp = _of(hankel2, "h2vp", "tensor([-0.440051-0.781213j], dtype=complex128)", phase=-1)
