"""Dropout: random elements, or whole channels, set to zero in training.

The random numbers follow from one seed a call, drawn from NumPy's global generator: they repeat
after ``ng.random.manual_seed``, and when ``ng.checkpoint`` computes a part again. Examples of a
batched computation (``vmap``) share them.

Note [Random numbers by position]
---------------------------------
The number of element ``k`` is the ``k``-th of SplitMix64 (https://doi.org/10.1145/2660193.2660195),
which is a mixed counter: any element's can be had without those before it. So nothing is stored for
the backward pass, which draws the same numbers again, loops vectorise, and the result does not
depend on the number of threads. The kernel is written by the generator (Note [Array formulas] in
``codegen.array_formulas``); against one by hand value and gradient took 0.88 to 1.13 of the time,
the loops alone 0.87 to 1.06, a call of 256 elements 1 us more, a first call without a cache 1.2 to
1.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.codegen.array_formulas import array_formula
from numgrad.codegen.symbols import real_dtype
from numgrad.core.abstract import ones
from numgrad.core.batching import BatchOperand, apply
from numgrad.core.declare import primitive
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.core.options import Option, option
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.applied import Applied, applies
from numgrad.random.generator import draw_seed
from numgrad.tensors.creation import asarray
from numgrad.tensors.inplace import assign, inplace as write
from numgrad.tensors.tensor import Tensor

BITS = 53
"""Of a random number."""
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mixed(z):
    """The number that SplitMix64 makes of a state."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@array_formula("gk", "x:gk seed=uint64 least=uint64 scale group#g -> y:gk", units="k", ns=0.4)
def dropped(x, seed, least, scale, group):
    """Zero groups whose number is below ``least``; multiply others by ``scale``."""
    number = _mixed(_mixed(seed) + group * _STEP) >> np.uint64(64 - BITS)
    return np.where(number >= least, x * scale, 0)


@primitive(
    name="dropout", internal=True, method=False, linear=True, lowering="numgrad.nn.lowerings"
)
def _dropout(x, seed, *, p, group=1):
    """The operand with random elements set to zero and the others divided by ``1 - p``.

    Elements are dropped with probability ``p``, ``group`` of them in C order together; a seed
    decides which. The operation is its own gradient.
    """
    if x.dtype.kind not in "fc":
        raise NumgradTypeError(
            f"dropout: the input must be floating or complex, got {x.dtype}; convert with astype"
        )
    if not x.size:
        return np.empty(x.shape, x.dtype)
    if x.dtype.kind == "c":  # both parts of a number are dropped together
        parts = np.ascontiguousarray(x).view(real_dtype(x.dtype))
        return _dropout.function(parts, seed, p=p, group=2 * group).view(x.dtype).reshape(x.shape)
    extents, shapes = (x.size // group, group), (x.shape,)
    return dropped(x.dtype, extents, shapes, x, int(seed), *drop_limit(p))[0]


def drop_limit(p: float) -> tuple[int, float]:
    """The random integer up to which elements are dropped, and the factor of the others."""
    return round(p * 2**BITS), 0.0 if p == 1 else 1 / (1 - p)


_dropout.shape(lambda x, seed, *, p, group: x)


_dropout.no_derivative("seed")


_dropout.vjp(x=lambda g, seed, p, group: _dropout(g, seed, p=p, group=group))


@_dropout.batch
def _batched_dropout(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    """Elements of their own for each example that has a seed; else the same of all."""
    x, seed = operands
    if seed.batched:
        return bind(op, (x.repeated(size), apply("getitem", seed.value, index=0)), params)
    mask = bind(op, (ones(x.shape, x.value.dtype), seed.value), params)
    return apply("multiply", x.value, mask)


PROBABILITY = Option(name="p", annotation="float", at_least=0, at_most=1)


def _applied(name: str, input: Any, p: float, training: bool, inplace: bool, group: int) -> Tensor:
    PROBABILITY.check(name, p)
    input = asarray(input)
    if not training or p == 0:
        return input
    params = {"p": float(p), "group": group}
    if inplace:
        return write(_dropout, f"{name}_", input, (draw_seed(),), params)
    return _dropout(input, draw_seed(), **params)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The input with elements set to zero with probability ``p``, others divided by ``1 - p``.

    Parameters
    ----------
    input
        Floating or complex array.
    p
        Probability of a zero.
    training
        Otherwise the input is returned as it is.
    inplace
        Write to the input.

    Raises
    ------
    NumgradValueError
        If ``p`` lies outside of 0 to 1.

    References
    ----------
    N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
    Journal of Machine Learning Research 15 (2014).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.manual_seed(0)
    >>> y = ng.nn.functional.dropout(ng.ones(1000), 0.2)
    >>> sorted(set(y.tolist()))
    [0.0, 1.25]
    """
    return _applied("dropout", input, p, training, inplace, 1)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """``dropout`` of whole channels of shape ``(batch, channels, length)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.functional.dropout1d(ng.ones((4, 3, 5)))
    >>> bool((y.min(axis=2) == y.max(axis=2)).all())
    True
    """
    return _of_channels("dropout1d", input, p, training, inplace, 1)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """``dropout`` of whole channels of shape ``(batch, channels, height, width)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.functional.dropout2d(ng.ones((4, 3, 5, 5)))
    >>> bool((y.min(axis=(2, 3)) == y.max(axis=(2, 3))).all())
    True
    """
    return _of_channels("dropout2d", input, p, training, inplace, 2)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """``dropout`` of whole channels of shape ``(batch, channels, *lengths)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.functional.dropout3d(ng.ones((4, 3, 2, 5, 5)))
    >>> bool((y.min(axis=(2, 3, 4)) == y.max(axis=(2, 3, 4))).all())
    True
    """
    return _of_channels("dropout3d", input, p, training, inplace, 3)


def alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for networks of ``selu``.

    Dropped elements take the limit of ``selu`` on the left, and all are scaled and moved.

    Parameters
    ----------
    input
        Real floating array.
    p
        Probability of being dropped.
    training
        Otherwise the input is returned as it is.
    inplace
        Write to the input.

    Raises
    ------
    NumgradValueError
        If ``p`` lies outside of 0 to 1.

    References
    ----------
    G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.random.manual_seed(0)
    >>> y = ng.nn.functional.alpha_dropout(ng.ones(1000), 0.2, training=True)
    >>> len(set(y.tolist()))
    2
    """
    return _alpha("alpha_dropout", input, p, training, inplace, 1)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels of shape ``(batch, channels, ...)``; arguments as there.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.functional.feature_alpha_dropout(ng.ones((4, 3, 5)), training=True)
    >>> bool((y.min(axis=2) == y.max(axis=2)).all())
    True
    """
    shape = tuple(asarray(input).shape)
    if training and len(shape) < 2:
        raise NumgradValueError(
            f"feature_alpha_dropout: takes (batch, channels, ...), got shape {shape}"
        )
    return _alpha("feature_alpha_dropout", input, p, training, inplace, prod(shape[2:]))


_LIMIT = -1.7580993408473766
"""Limit of ``selu`` towards minus infinity."""


def _alpha(name: str, input: Any, p: float, training: bool, inplace: bool, group: int) -> Tensor:
    PROBABILITY.check(name, p)
    x = asarray(input)
    if not training or p == 0:
        return x
    mask = _dropout(np.ones(x.shape, x.dtype), draw_seed(), p=float(p), group=group) * (1.0 - p)
    scale = 0.0 if p == 1 else 1 / math.sqrt((1 - p) * (1 + p * _LIMIT**2))
    shift = (1.0 - mask) * (_LIMIT * scale) - p * scale * _LIMIT
    # x enters by a product alone, whose gradient needs nothing of it: it may be written to
    y = x * (mask * scale) + shift
    return assign(f"{name}_", x, y) if inplace else y


def _of_channels(
    name: str, input: Any, p: float, training: bool, inplace: bool, axes: int
) -> Tensor:
    input = asarray(input)
    if input.ndim not in (axes + 1, axes + 2):
        raise NumgradValueError(
            f"{name}: takes (batch, channels) and {axes} more axes, or these without the batch; "
            f"got shape {tuple(input.shape)}"
        )
    return _applied(name, input, p, training, inplace, prod(input.shape[-axes:]))


@applies(dropout)
class _Dropout(Applied):
    """Base of the kinds of dropout."""

    shown = ("p", "inplace")
    p: float = option(default=0.5, at_least=0, at_most=1, doc="Probability of being dropped.")
    inplace: bool = False


@applies(dropout)
class Dropout(_Dropout):
    """Set elements to zero with probability ``p`` in training, divide others by ``1 - p``.

    Raises
    ------
    NumgradValueError
        If ``p`` lies outside of 0 to 1.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.Dropout(0.2)
    >>> layer
    Dropout(p=0.2, inplace=False)
    >>> layer.eval()(ng.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """


@applies(dropout1d)
class Dropout1d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, length)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout1d(1.0)(ng.ones((1, 1, 3)))
    tensor([[[0., 0., 0.]]])
    """


@applies(dropout2d)
class Dropout2d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, height, width)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout2d(1.0)(ng.ones((1, 1, 1, 3)))
    tensor([[[[0., 0., 0.]]]])
    """


@applies(dropout3d)
class Dropout3d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, *lengths)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout3d(1.0)(ng.ones((1, 1, 1, 1, 3)))
    tensor([[[[[0., 0., 0.]]]]])
    """


@applies(alpha_dropout)
class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for networks of ``SELU``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AlphaDropout(0.2).eval()(ng.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """


@applies(feature_alpha_dropout)
class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels of shape ``(batch, channels, ...)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.FeatureAlphaDropout()(ng.ones((4, 3, 5)))
    >>> bool((y.min(axis=2) == y.max(axis=2)).all())
    True
    """
