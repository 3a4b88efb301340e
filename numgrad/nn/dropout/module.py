"""Dropout as modules, which do nothing after ``eval()``."""

from __future__ import annotations

from typing import Any

from numgrad.nn.dropout import functional as F
from numgrad.nn.dropout.functional import check_probability
from numgrad.nn.module.module import Module
from numgrad.tensors.tensor import Tensor


class _Dropout(Module):
    """What the kinds of dropout have in common."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(type(self).__name__, p)
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        """The probability, and whether the input is written to."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, elements set to zero with probability ``p`` and the others over ``1 - p``.

    Parameters
    ----------
    p
        Probability of a zero.
    inplace
        Write to the input.

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

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, length)``, batch optional.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout1d(1.0)(ng.ones((1, 1, 3)))
    tensor([[[0., 0., 0.]]])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """``Dropout`` of whole channels of shape ``(batch, channels, height, width)``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Dropout2d(1.0)(ng.ones((1, 1, 1, 3)))
    tensor([[[[0., 0., 0.]]]])
    """

    def forward(self, input: Any) -> Tensor:
        """Compute the result."""
        return F.dropout2d(input, self.p, self.training, self.inplace)
