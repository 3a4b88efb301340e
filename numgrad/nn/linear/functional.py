"""Linear and bilinear maps of the last axis."""

from __future__ import annotations

from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.nn.linear.operation import _bilinear
from numgrad.nn.linear.operation import _linear
from numgrad.operations.matmul import matmul


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """``input @ weight.T + bias`` as one operation.

    Parameters
    ----------
    input
        Of shape (..., inputs).
    weight
        Of shape (outputs, inputs), or (inputs,) for one output without an axis.
    bias
        Of shape (outputs,), or None.

    Returns
    -------
    Tensor
        Of shape (..., outputs).

    Raises
    ------
    NumgradValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.linear(ng.tensor([1.0, 2.0]), ng.tensor([[3.0, 4.0]]), ng.tensor([0.5]))
    tensor([11.5])
    """
    if len(getattr(weight, "shape", ())) == 1:
        product = matmul(input, weight)
        return product if bias is None else product + bias
    return _linear(input, weight, bias)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """``sum over i, j of input1[..., i] weight[:, i, j] input2[..., j] + bias``.

    Parameters
    ----------
    input1, input2
        Of shapes (..., n) and (..., m), other axes equal.
    weight
        Of shape (outputs, n, m).
    bias
        Of shape (outputs,), or None.

    Returns
    -------
    Tensor
        Of shape (..., outputs).

    Raises
    ------
    NumgradValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.bilinear(ng.ones(2), ng.tensor([1.0, 2.0]), ng.ones((1, 2, 2)))
    tensor([6.])
    """
    return _bilinear(input1, input2, weight, bias)
