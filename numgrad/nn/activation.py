"""Activation functions with PyTorch's names and arguments; modules: ``nn.activation_layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.core.axis import one_axis
from numgrad.core.op import Op
from numgrad.core.options import Option
from numgrad.errors import NumgradTypeError, NumgradValueError, warn
from numgrad.nn import activation_formulas as ops
from numgrad.operations import error_gamma_logistic, reduce
from numgrad.operations.choice import clip, where
from numgrad.operations.error_gamma_logistic import sigmoid as _sigmoid, softplus as _softplus
from numgrad.operations.exponential import tanh as _tanh
from numgrad.operations.join import split
from numgrad.operations.shape import astype, copy, reshape
from numgrad.random.generator import Generator, generator_of
from numgrad.tensors.creation import arange, asarray
from numgrad.tensors.inplace import assign, inplace as write
from numgrad.tensors.tensor import Tensor


def _apply(op: Op, input: Any, inplace: bool, *parameters: Any) -> Tensor:
    if inplace:
        return write(op, f"{op.name}_", input, parameters, {})
    return op(input, *parameters)


def relu(input: Any, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; NaN stays NaN, and the gradient at 0 is 0.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.relu(ng.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _apply(error_gamma_logistic.relu, input, inplace)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where it is positive, else ``negative_slope * x``, with that gradient at 0 too.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.leaky_relu(ng.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1,  2. ])
    """
    return _apply(ops.leaky_relu, input, inplace, negative_slope)


def prelu(input: Any, weight: Any) -> Tensor:
    """``x`` where it is positive, else ``weight * x`` with a slope that is learned.

    Parameters
    ----------
    input
        Array; channels lie along axis 1.
    weight
        One slope, or a vector with one for each channel.

    Raises
    ------
    NumgradValueError
        If the number of slopes is neither 1 nor that of the channels.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.prelu(ng.tensor([[-1.0, -1.0]]), ng.tensor([0.1, 0.5]))
    tensor([[-0.1, -0.5]])
    """
    input, weight = asarray(input), asarray(weight)
    if weight.ndim > 1:
        raise NumgradValueError(
            f"prelu: the weight has shape {weight.shape} and must be a number or a vector"
        )
    if weight.size == 1:
        return ops.prelu(input, reshape(weight, ()))
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.size != channels:
        raise NumgradValueError(
            f"prelu: a weight of shape {weight.shape} for an input of shape {input.shape}, which "
            f"has {channels} channels; give one slope, or one for each channel (axis 1)"
        )
    return ops.prelu(input, reshape(weight, (channels, *(1,) * (input.ndim - 2))))


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.elu(ng.tensor([-1.0, 2.0]))
    tensor([-0.63212056,  2.        ])
    """
    return _apply(ops.elu, input, inplace, alpha)


def selu(input: Any, inplace: bool = False) -> Tensor:
    """``elu`` scaled so that mean 0 and variance 1 are kept: https://arxiv.org/abs/1706.02515.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.selu(ng.tensor([-1.0, 2.0]))
    tensor([-1.11133074,  2.10140197])
    """
    return _apply(ops.selu, input, inplace)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Raises
    ------
    NumgradValueError
        If ``alpha`` is zero.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.celu(ng.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.43233236,  2.        ])
    """
    if not isinstance(alpha, Tensor) and alpha == 0:
        raise NumgradValueError("celu: alpha divides the input and cannot be 0; relu is its limit")
    return _apply(ops.celu, input, inplace, alpha)


def gelu(input: Any, approximate: str = "none") -> Tensor:
    """``x`` times the probability that a standard normal number is smaller.

    Parameters
    ----------
    input
        Array.
    approximate
        ``"none"``, or ``"tanh"`` for a faster form (https://arxiv.org/abs/1606.08415).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.gelu(ng.tensor([-1.0, 2.0]))
    tensor([-0.15865525,  1.95449974])
    """
    if approximate not in ("none", "tanh"):
        raise NumgradValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return (ops.gelu if approximate == "none" else ops.gelu_tanh)(input)


def silu(input: Any, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also known as swish.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.silu(ng.tensor([-1.0, 2.0]))
    tensor([-0.26894142,  1.76159416])
    """
    return _apply(ops.silu, input, inplace)


def mish(input: Any, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.mish(ng.tensor([-1.0, 2.0]))
    tensor([-0.30340146,  1.94395896])
    """
    return _apply(ops.mish, input, inplace)


def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``x`` limited to an interval; the gradient is 0 outside and at its ends.

    Raises
    ------
    NumgradValueError
        If the interval is empty.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.hardtanh(ng.tensor([-3.0, 0.5, 2.0]))
    tensor([-1. ,  0.5,  1. ])
    """
    if min_val > max_val:
        raise NumgradValueError(
            f"hardtanh: min_val {min_val} is above max_val {max_val}; exchange them"
        )
    return _apply(ops.hardtanh, input, inplace, min_val, max_val)


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """``x`` limited to the interval from 0 to 6.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.relu6(ng.tensor([-3.0, 0.5, 9.0]))
    tensor([0. , 0.5, 6. ])
    """
    return _apply(ops.hardtanh, input, inplace, 0.0, 6.0)


def softsign(input: Any) -> Tensor:
    """``x / (1 + abs(x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.softsign(ng.tensor([-1.0, 3.0]))
    tensor([-0.5 ,  0.75])
    """
    return ops.softsign(input)


_BETA = Option(name="beta", annotation="float")


def check_beta(name: str, beta: Any) -> None:
    """Raise unless ``beta`` is a number to divide by."""
    _BETA.check(name, beta)
    if beta == 0:
        raise NumgradValueError(f"{name}: beta is {beta}; it must be another number than 0")


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, a smooth form of ``relu``.

    Parameters
    ----------
    input
        Array.
    beta
        Sharpness of the bend, not 0.
    threshold
        The result is ``x`` where ``beta * x`` is larger. The default is no limit: the function is
        computed without overflow, and differs from ``x`` by less than 2.1e-9 there.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.softplus(ng.tensor([-1.0, 2.0]))
    tensor([0.31326169, 2.12692801])
    """
    if beta == 1 and threshold == 20:
        return _softplus(input)
    check_beta("softplus", beta)
    return ops.softplus_scaled(input, float(beta), float(threshold))


def sigmoid(input: Any) -> Tensor:
    """``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.sigmoid(ng.tensor([0.0, 2.0]))
    tensor([0.5       , 0.88079708])
    """
    return _sigmoid(input)


def logsigmoid(input: Any) -> Tensor:
    """``log(sigmoid(x))``, accurate where ``sigmoid`` underflows.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.logsigmoid(ng.tensor([0.0, -1000.0]))
    tensor([-6.93147181e-01, -1.00000000e+03])
    """
    return error_gamma_logistic.log_sigmoid(input)


def tanh(input: Any) -> Tensor:
    """Hyperbolic tangent.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.tanh(ng.tensor([0.0, 1.0]))
    tensor([0.        , 0.76159416])
    """
    return _tanh(input)


# ------------------------------------------------------------------------------ along one axis


def _along(name: str, input: Any, dim: int | None, dtype: Any) -> tuple[Any, int]:
    """The input and the axis, which is guessed, with a warning, where it is not given."""
    input = asarray(input)
    if dtype is not None:
        input = astype(input, dtype=dtype)
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
        warn(
            f"{name}: no dim was given; axis {dim} is taken for an input of shape "
            f"{tuple(input.shape)}. Say which one is meant",
            UserWarning,
        )
    elif not hasattr(dim, "__index__"):
        raise NumgradTypeError(f"{name}: dim must be one axis, an integer, got {dim!r}")
    return (reshape(input, (1,)), 0) if input.ndim == 0 and dim in (0, -1) else (input, dim)


def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Exponentials divided by their sum along an axis.

    Parameters
    ----------
    input
        Array.
    dim
        The axis. Without one it is 0 for inputs of 0, 1 or 3 axes, else 1, with a warning.
    dtype
        The input is converted to it first.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.softmax(ng.tensor([0.0, 0.0, 1000.0]), dim=0)
    tensor([0., 0., 1.])
    """
    x, axis = _along("softmax", input, dim, dtype)
    return _as_given(reduce.softmax(x, axis=axis), input)


def log_softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Logarithm of ``softmax``, accurate where that underflows; arguments as there.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.log_softmax(ng.tensor([0.0, 1000.0]), dim=0)
    tensor([-1000.,     0.])
    """
    x, axis = _along("log_softmax", input, dim, dtype)
    return _as_given(reduce.log_softmax(x, axis=axis), input)


def softmin(input: Any, dim: int | None = None, dtype: Any = None) -> Tensor:
    """``softmax(-x)``; arguments as there.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.softmin(ng.tensor([0.0, 1000.0]), dim=0)
    tensor([1., 0.])
    """
    x, axis = _along("softmin", input, dim, dtype)
    return _as_given(reduce.softmax(-x, axis=axis), input)


def _as_given(result: Tensor, input: Any) -> Tensor:
    """Drop the axis that an input without axes was given."""
    return reshape(result, ()) if np.ndim(input) == 0 else result


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
    return values * _sigmoid(gates)


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
    soft = np.exp(reduce.log_softmax((x + noise) / tau, axis=dim))
    if not hard:
        return soft
    best = np.expand_dims(np.argmax(soft.detach(), axis=dim), dim)
    places = arange(x.shape[dim])
    axis = one_axis("gumbel_softmax", dim, x.ndim)
    places = places.reshape((-1, *(1,) * (x.ndim - 1 - axis)))
    one_hot = np.equal(best, places).astype(x.dtype)
    return one_hot - soft.detach() + soft
