"""Factorials and combinations, and sums of exponentials with SciPy's parameters: compositions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numgrad.errors import NumgradValueError
from numgrad.operations import reduce
from numgrad.operations.error_gamma_logistic import gamma, gammaln
from numgrad.operations.shape import as_array, as_operand
from numgrad.operations.special_functions.gamma import binom, poch


def comb(n: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    """Number of combinations of ``n`` things taken ``k`` at a time, of real numbers.

    Parameters
    ----------
    exact
        As in SciPy, Python's integers, of which there is no gradient.
    repetition
        Whether a thing may be taken again.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.comb(5, ng.tensor([2.0, 3.0]))
    tensor([10., 10.])
    """
    if exact:
        return math.comb(n + k - 1, k) if repetition and n else math.comb(n, k)
    if repetition:
        return comb(n + k - 1, k)
    n, k = as_array(n), as_array(k)
    inside = (k <= n) & (n >= 0) & (k >= 0)
    return np.where(inside, binom(np.where(inside, n, 1.0), np.where(inside, k, 0.0)), 0.0)


def factorial(n: Any, exact: bool = False) -> Any:
    """Factorial of real numbers, 0 for negative ones.

    Parameters
    ----------
    exact
        As in SciPy, a Python integer, of which there is no gradient.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.factorial(ng.tensor([0.0, 3.0, 4.5]))
    tensor([ 1.        ,  6.        , 52.34277778])
    """
    if exact:
        return math.factorial(n)
    n = as_array(n)
    inside = n >= 0
    return np.where(inside, gamma(np.where(inside, n, 0.0) + 1), 0.0)


def perm(n: Any, k: Any, exact: bool = False) -> Any:
    """Number of arrangements of ``k`` of ``n`` things, of real numbers.

    Parameters
    ----------
    exact
        As in SciPy, Python's integers, of which there is no gradient.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.perm(5, ng.tensor([2.0, 3.0]))
    tensor([20., 60.])
    """
    if exact:
        return math.perm(n, k)
    n, k = as_array(n), as_array(k)
    inside = (k <= n) & (n >= 0) & (k >= 0)
    first = np.where(inside, n - k + 1, 1.0)
    return np.where(inside, poch(first, np.where(inside, k, 0.0)), 0.0)


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension ``d``.

    Raises
    ------
    NumgradValueError
        If ``d`` is not a positive integer.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.multigammaln(ng.tensor([2.0, 5.0]), 3)
    tensor([1.59631259, 9.1406447 ])
    """
    if int(d) != d or d < 1:
        raise NumgradValueError(f"multigammaln: d must be a positive integer, got {d!r}")
    a = as_operand(a)
    total: Any = d * (d - 1) / 4 * math.log(math.pi)
    for j in range(int(d)):
        total = total + gammaln(a - j / 2)
    return total


def diric(x: Any, n: int) -> Any:
    """Periodic sinc function ``sin(n x / 2) / (n sin(x / 2))`` of Dirichlet.

    Parameters
    ----------
    x
        Operand.
    n
        A positive integer.

    Raises
    ------
    NumgradValueError
        If ``n`` is not a positive integer.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.diric(ng.tensor([0.0, math.pi / 2]), 3)
    tensor([1.        , 0.33333333])
    """
    if int(n) != n or n < 1:
        raise NumgradValueError(f"diric: n must be a positive integer, got {n!r}")
    # a sum of cosines, which has no poles to remove
    x = as_operand(x)
    steps = np.arange(int(n)) - (n - 1) / 2
    return np.sum(np.cos(np.expand_dims(x, -1) * steps), axis=-1) / n


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """``log(sum(b * exp(a)))`` over axes, without overflow.

    Parameters
    ----------
    b
        Weights, which may be negative or 0.
    return_sign
        Whether the result is the logarithm of the absolute value and a sign; without it a negative
        sum is NaN.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.logsumexp(ng.tensor([1000.0, 1000.0]), b=ng.tensor([1.0, 2.0]))
    tensor(1001.09861229)
    """
    a = as_operand(a)
    if b is None:
        y = reduce.logsumexp(a, axis=axis, keepdims=keepdims)
        return (y, np.sign(np.exp(np.minimum(y, 0.0)))) if return_sign else y
    b = as_operand(b)
    # where a weight is 0 its summand is, whatever the exponent
    a, b = np.broadcast_arrays(a, b)
    counted = b != 0
    shift = np.where(counted, a, -math.inf)
    shift = np.max(shift, axis=axis, keepdims=True, initial=-math.inf)  # of nothing as well
    shift = np.where(np.isfinite(shift), shift, 0.0)
    total = np.sum(
        np.where(counted, b, 0.0) * np.exp(np.where(counted, a - shift, 0.0)),
        axis=axis,
        keepdims=keepdims,
    )
    shift = shift if keepdims else np.sum(shift, axis=axis)
    with np.errstate(divide="ignore"):  # of plain arrays whose sum is 0
        if not return_sign:
            return np.log(total) + shift
        return np.log(np.abs(total)) + shift, np.sign(total)


def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum over axes; without an axis, over all of them.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.softmax(ng.tensor([[0.0, 0.0], [0.0, 0.0]]))
    tensor([[0.25, 0.25],
            [0.25, 0.25]])
    """
    return reduce.softmax(x, axis=_all(x) if axis is None else axis)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of ``softmax``; without an axis, over all of them.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.special.log_softmax(ng.tensor([0.0, 0.0]))
    tensor([-0.69314718, -0.69314718])
    """
    return reduce.log_softmax(x, axis=_all(x) if axis is None else axis)


def _all(x: Any) -> tuple[int, ...]:
    return tuple(range(len(as_operand(x).shape)))
