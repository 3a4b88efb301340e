"""Names of PyTorch's past, which say what they are called today."""

from __future__ import annotations

from typing import Any, NoReturn

from numgrad.errors import NumgradRuntimeError


def Variable(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: a Tensor is its own variable.

    Raises
    ------
    NumgradRuntimeError
        Always.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.autograd.Variable(1.0)
    Traceback (most recent call last):
    ...
    numgrad.errors.NumgradRuntimeError: Variable: Tensors have been variables since 2018; ...
    """
    raise NumgradRuntimeError(
        "Variable: Tensors have been variables since 2018; use ng.tensor(..., requires_grad=True), "
        "and ng.inference_mode() for what volatile=True did"
    )
