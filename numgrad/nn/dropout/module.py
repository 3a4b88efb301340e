"""Dropout as modules, which do nothing after ``eval()``."""

from __future__ import annotations

from numgrad.core.options import option
from numgrad.nn.applied import Applied, applies
from numgrad.nn.dropout import functional as F


class _Dropout(Applied):
    """What the kinds of dropout have in common."""

    shown = ("p", "inplace")


@applies(F.dropout)
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

    p: float = option(default=0.5, at_least=0, at_most=1)
    inplace: bool = False


@applies(F.dropout1d, like=F.dropout)
class Dropout1d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, length)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout1d(1.0)(ng.ones((1, 1, 3)))
    tensor([[[0., 0., 0.]]])
    """

    p: float = option(default=0.5, at_least=0, at_most=1)
    inplace: bool = False


@applies(F.dropout2d, like=F.dropout)
class Dropout2d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, height, width)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout2d(1.0)(ng.ones((1, 1, 1, 3)))
    tensor([[[[0., 0., 0.]]]])
    """

    p: float = option(default=0.5, at_least=0, at_most=1)
    inplace: bool = False


@applies(F.dropout3d, like=F.dropout)
class Dropout3d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, *lengths)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout3d(1.0)(ng.ones((1, 1, 1, 1, 3)))
    tensor([[[[[0., 0., 0.]]]]])
    """

    p: float = option(default=0.5, at_least=0, at_most=1)
    inplace: bool = False


@applies(F.alpha_dropout)
class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for networks of ``SELU``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.AlphaDropout(0.2).eval()(ng.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    p: float = option(default=0.5, at_least=0, at_most=1)
    inplace: bool = False


@applies(F.feature_alpha_dropout, like=F.alpha_dropout)
class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels of shape ``(batch, channels, ...)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> y = ng.nn.FeatureAlphaDropout()(ng.ones((4, 3, 5)))
    >>> bool((y.min(axis=2) == y.max(axis=2)).all())
    True
    """

    p: float = option(default=0.5, at_least=0, at_most=1)
    inplace: bool = False
