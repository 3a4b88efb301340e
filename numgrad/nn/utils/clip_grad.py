"""Clipping of gradients, by their norm or value by value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from types import GeneratorType
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.core.interpreter import state
from numgrad.core.op import OPS
from numgrad.core.options import Option
from numgrad.errors import NumgradTypeError, warn
from numgrad.nn.utils.norm import Gradient, total_norm
from numgrad.nn.utils.tensors import Tensors, listed
from numgrad.nn.utils.update_many import update_many
from numgrad.tensors.tensor import Tensor

_MAX_NORM = Option(name="max_norm", annotation="float")
_CLIP_VALUE = Option(name="clip_value", annotation="float")


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients in place so that their norm, taken together, is at most ``max_norm``.

    Each gradient is multiplied by ``min(1, max_norm / (total_norm + 1e-6))``.

    Parameters
    ----------
    parameters
        A Tensor or several, real or complex, of any dtypes; those without a gradient are passed
        over.
    max_norm
        The largest norm.
    norm_type
        The order of the norm of the one vector of all elements: any number, ``inf`` for the
        largest magnitude.
    error_if_nonfinite
        Raise if the norm is NaN or infinite, which otherwise makes gradients NaN or 0.
    foreach
        Accepted for PyTorch's sake; there is one way here.

    Returns
    -------
    Tensor
        The norm before clipping, 0-d, of the dtype to which the real dtypes of the gradients
        promote; 0 if there are none.

    Raises
    ------
    NumgradTypeError
        If something in ``parameters`` is no Tensor, its dtype neither floating nor complex, or
        ``max_norm`` or ``norm_type`` no number.
    NumgradRuntimeError
        With ``error_if_nonfinite``; gradients are as they were.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.utils.clip_grad_norm_(w, max_norm=1.0)
    tensor(5.)
    >>> print(w.grad.numpy().round(3))
    [0.6 0.8]
    """
    _MAX_NORM.check("clip_grad_norm_", max_norm)
    if isinstance(parameters, GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warn(
                "clip_grad_norm_: the generator of parameters gives none, maybe since it was used "
                "up before; nothing is clipped",
                UserWarning,
            )
    grads = _gradients("clip_grad_norm_", parameters)
    total = total_norm("clip_grad_norm_", grads, norm_type, error_if_nonfinite)
    _scale(grads, max_norm, total)
    return _as_tensor(total, grads)


def get_total_norm(
    tensors: Gradient | Iterable[Gradient],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of the one vector of all elements of ``tensors``, usually gradients.

    Parameters, result and errors are those of ``clip_grad_norm_``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.utils.get_total_norm([ng.tensor([3.0]), ng.tensor([[0.0], [4.0]])])
    tensor(5.)
    """
    tensors = listed("get_total_norm", tensors, Gradient)
    total = total_norm("get_total_norm", tensors, norm_type, error_if_nonfinite)
    return _as_tensor(total, tensors)


def clip_grads_with_norm_(
    parameters: Tensors,
    max_norm: float,
    total_norm: Tensor | float,
    foreach: bool | None = None,
) -> None:
    """Scale the gradients in place by ``min(1, max_norm / (total_norm + 1e-6))``.

    The second half of ``clip_grad_norm_``, for a norm that is known or counts more than these
    gradients.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.utils.clip_grads_with_norm_(w, max_norm=1.0, total_norm=10.0)
    >>> print(w.grad.numpy().round(3))
    [0.3 0.4]
    """
    _MAX_NORM.check("clip_grads_with_norm_", max_norm)
    norm: Any = total_norm
    if not state.ground.deferred:
        norm = float(total_norm.item() if isinstance(total_norm, Tensor) else total_norm)
    _scale(_gradients("clip_grads_with_norm_", parameters), max_norm, norm)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of the gradients in place to ``[-clip_value, clip_value]``.

    Parameters
    ----------
    parameters
        A Tensor or several, of real dtypes; those without a gradient are passed over.
    clip_value
        The bound.
    foreach
        Accepted for PyTorch's sake; there is one way here.

    Raises
    ------
    NumgradTypeError
        If something in ``parameters`` is no Tensor, a gradient is complex, or
        ``clip_value`` no number.

    Examples
    --------
    >>> import numgrad as ng
    >>> w = ng.tensor([3.0, -0.5], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> ng.nn.utils.clip_grad_value_(w, 1.0)
    >>> w.grad
    tensor([ 1. , -0.5])
    """
    _CLIP_VALUE.check("clip_grad_value_", clip_value)
    bound = float(clip_value)
    parameters = listed("clip_grad_value_", parameters)
    grads = _gradients("clip_grad_value_", parameters)
    for grad in grads:
        if grad.dtype.kind == "c":
            raise NumgradTypeError(
                f"clip_grad_value_: complex numbers have no order, and a gradient of dtype "
                f"{grad.dtype} was found; use clip_grad_norm_"
            )
    with no_grad():
        for parameter in parameters:
            grad = parameter.grad
            if isinstance(grad, RowSparseTensor):
                parameter.grad = grad.coalesce()  # what is clipped are sums of rows that repeat
                grad = parameter.grad.values
            if grad is not None:
                grad.clip_(-bound, bound)


# -------------------------------------------------------------------------------------- tensors


def _gradients(name: str, parameters: Tensors) -> list[Gradient]:
    found = (parameter.grad for parameter in listed(name, parameters))
    return [grad for grad in found if grad is not None]


def _scale(grads: list[Gradient], max_norm: float, total: Any) -> None:
    share = float(max_norm) / (total + 1e-6)
    if state.ground.deferred:
        with no_grad():
            share = OPS["where"](share >= 1, 1.0, share)
            for grad in grads:
                grad.mul_(OPS["astype"](share, dtype=np.finfo(grad.dtype).dtype))
        return
    if share >= 1:
        return
    dense = [grad for grad in grads if isinstance(grad, Tensor)]
    left = [dense[k] for k in update_many(_scaled, [dense], share)]
    with no_grad():
        for grad in chain(left, (g for g in grads if isinstance(g, RowSparseTensor))):
            grad.mul_(share)


def _scaled(grad: Any, share: Any) -> dict[str, Any]:
    return {"grad": grad * share}


def _as_tensor(total: Any, tensors: list[Gradient]) -> Tensor:
    dtypes = [np.finfo(dtype).dtype for dtype in {t.dtype for t in tensors}]
    if state.ground.deferred:
        kind = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        return OPS["astype"](total, dtype=kind)
    with np.errstate(over="ignore"):  # of a norm that float32 has no number for
        return Tensor(np.array(total).astype(np.result_type(*dtypes) if dtypes else np.float64))
