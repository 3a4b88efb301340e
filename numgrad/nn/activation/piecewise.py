"""Activation functions in pieces, and those of halves of the channels, composed of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.activation import operation as ops
from numgrad.nn.activation.functional import leaky_relu
from numgrad.operations.choice import clip, where
from numgrad.operations.reduce import log_softmax
from numgrad.operations.shape import copy
from numgrad.operations.special import sigmoid
from numgrad.operations.split import split
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import arange, asarray
from numgrad.tensors.inplace import assign
from numgrad.tensors.tensor import Tensor


def _floating(name: str, input: Any) -> Tensor:
    x = asarray(input)
    if x.dtype.kind != "f":
        raise NumgradTypeError(
            f"{name}: needs a real floating dtype, got {x.dtype}; convert it with astype"
        )
    return x


def _written(name: str, formula: Callable[[Any], Any], x: Any, inplace: bool) -> Tensor:
    """``formula(x)``, stored in ``x`` where asked for: gradients are those of what was there."""
    return assign(f"{name}_", x, formula(copy(x))) if inplace else formula(x)


def _drawn(name: str, low: float, high: float, like: Tensor) -> Tensor:
    """Numbers spread evenly between bounds, from NumPy's global generator."""
    drawn = Generator(generator_of(name, None)).uniform(low, high, like.shape)
    return drawn.astype(like.dtype)


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """``x / 6 + 1 / 2`` limited to the interval from 0 to 1, with no gradient at its ends.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.hardsigmoid(ng.tensor([-4.0, 1.5, 3.0]))
    tensor([0.  , 0.75, 1.  ])
    """
    x = _floating("hardsigmoid", input)
    return _written("hardsigmoid", lambda x: ops.hardtanh(x + 3.0, 0.0, 6.0) / 6.0, x, inplace)


def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """``x * hardsigmoid(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.hardswish(ng.tensor([-4.0, 1.5, 3.0]))
    tensor([-0.   ,  1.125,  3.   ])
    """
    x = _floating("hardswish", input)
    return _written("hardswish", lambda x: x * (ops.hardtanh(x + 3.0, 0.0, 6.0) / 6.0), x, inplace)


def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """``x`` where its magnitude is above ``lambd``, else 0.

    Parameters
    ----------
    input
        Array.
    lambd
        Largest magnitude that becomes 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.hardshrink(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([-1.,  0.,  2.])
    """
    x = _floating("hardshrink", input)
    return where(np.logical_and(x >= -lambd, x <= lambd), 0.0, x)


def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``lambd``, and 0 where its magnitude is not above that.

    Parameters
    ----------
    input
        Array.
    lambd
        How far, not negative.

    Raises
    ------
    NumgradValueError
        If ``lambd`` is negative.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.softshrink(ng.tensor([-1.0, 0.5, 2.0]))
    tensor([-0.5,  0. ,  1.5])
    """
    if not lambd >= 0:
        raise NumgradValueError(f"softshrink: lambd is {lambd}; it must be at least 0")
    x = _floating("softshrink", input)
    return x - clip(x, -lambd, lambd)


def tanhshrink(input: Any) -> Tensor:
    """``x - tanh(x)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.tanhshrink(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.23840584])
    """
    x = _floating("tanhshrink", input)
    return ops.tanhshrink(x)


def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is above a threshold, else a value.

    Parameters
    ----------
    input
        Array.
    threshold
        What ``x`` must exceed.
    value
        What other elements become.
    inplace
        Write to the input.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.threshold(ng.tensor([-1.0, 0.5, 2.0]), 0.5, 20.0)
    tensor([20., 20.,  2.])
    """
    x = asarray(input)
    return _written("threshold", lambda x: where(x <= threshold, value, x), x, inplace)


def check_bounds(name: str, lower: float, upper: float) -> None:
    """Raise unless there are numbers from ``lower`` to ``upper``."""
    if not lower <= upper:
        raise NumgradValueError(f"{name}: lower is {lower}; it must be at most upper, {upper}")


def rrelu(
    input: Any,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """``leaky_relu`` with a slope drawn for each element in training, else the mean of the bounds.

    Parameters
    ----------
    input
        Array.
    lower, upper
        Bounds of the slopes, which are drawn evenly from NumPy's global generator.
    training
        Whether to draw.
    inplace
        Write to the input.

    Raises
    ------
    NumgradValueError
        If ``lower`` is above ``upper``.

    References
    ----------
    B. Xu et al., "Empirical evaluation of rectified activations in convolutional network",
    arXiv:1505.00853 (2015).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.rrelu(ng.tensor([-4.0, 2.0]), 0.25, 0.75)
    tensor([-2.,  2.])
    """
    check_bounds("rrelu", lower, upper)
    x = _floating("rrelu", input)
    if not training:
        return leaky_relu(x, (lower + upper) / 2, inplace)
    slopes = _drawn("rrelu", lower, upper, x)
    return _written("rrelu", lambda x: ops.prelu(x, slopes), x, inplace)


def glu(input: Any, dim: int = -1) -> Tensor:
    """The first half along an axis times the ``sigmoid`` of the second.

    Parameters
    ----------
    input
        Array.
    dim
        The axis that is halved.

    Raises
    ------
    NumgradValueError
        If its length is odd.

    References
    ----------
    Y. Dauphin et al., "Language modeling with gated convolutional networks", ICML 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.glu(ng.tensor([3.0, 4.0, 0.0, 1000.0]))
    tensor([1.5, 4. ])
    """
    x = _floating("glu", input)
    axis = one_axis("glu", dim, len(x.shape))
    if x.shape[axis] % 2:
        raise NumgradValueError(
            f"glu: axis {dim} of shape {tuple(x.shape)} has odd length and cannot be halved"
        )
    values, gates = split(x, 2, axis)
    return values * sigmoid(gates)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Random distributions near the classes that ``softmax(logits)`` gives probabilities to.

    Parameters
    ----------
    logits
        Logarithms of probabilities, up to a constant.
    tau
        Temperature: the smaller, the nearer to a single class.
    hard
        Return ones at the likeliest classes and zeros else, with the gradient of what they stand
        for.
    eps
        Without effect, as in PyTorch.
    dim
        The axis of the classes.

    References
    ----------
    E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.functional.gumbel_softmax(ng.zeros((4, 3)), hard=True)
    >>> y.sum(axis=-1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = _floating("gumbel_softmax", logits)
    if not tau > 0:
        raise NumgradValueError(f"gumbel_softmax: tau is {tau}; it must be positive")
    uniform = _drawn("gumbel_softmax", 0.0, 1.0, x)
    noise = -np.log(-np.log(uniform + np.finfo(x.dtype).tiny))
    soft = np.exp(log_softmax((x + noise) / tau, axis=dim))
    if not hard:
        return soft
    best = np.expand_dims(np.argmax(soft.detach(), axis=dim), dim)
    places = arange(x.shape[dim])
    axis = one_axis("gumbel_softmax", dim, x.ndim)
    places = places.reshape((-1, *(1,) * (x.ndim - 1 - axis)))
    chosen = np.equal(best, places).astype(x.dtype)
    return chosen - soft.detach() + soft
