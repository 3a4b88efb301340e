"""Norms of gradients, vectors of parameters, parametrizations: ``torch.nn.utils``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from numgrad.nn.utils import clip_grad as _clip_grad, conversion as _conversion
from numgrad.torch.dtypes import get_default_dtype
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.layers import outer, view
from numgrad.torch.nn.utils import parametrizations, parametrize, prune, rnn
from numgrad.torch.specialization import expose
from numgrad.torch.wrapping import Tensor, unwrap, wrap

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "prune", "remove_spectral_norm",
    "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "vector_to_parameters",
    "weight_norm",
]  # fmt: skip

expose(globals(), "numgrad.nn.utils", parametrizations.before_calls)


def _of_tensors(function: Callable[..., Any], place: int = 0) -> Callable[..., Any]:
    """A function one of whose arguments is a Tensor, or an iterable of them."""

    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        given = [
            list(map(unwrap, a)) if k == place and not isinstance(a, Tensor) else unwrap(a)
            for k, a in enumerate(args)
        ]
        return wrap(function(*given, **unwrap(params)))

    return called


def _norm(function: Callable[..., Any], of_gradients: bool) -> Callable[..., Any]:
    """A function that returns a norm, that of no Tensors in the default dtype."""
    inner, name = _of_tensors(function), function.__code__.co_varnames[0]

    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        given, *options = args or (params.pop(name),)
        given = [given] if isinstance(given, Tensor) else list(given)
        total = inner(given, *options, **params)
        if any(not of_gradients or x.grad is not None for x in given):
            return total
        return total.to(get_default_dtype())

    return called


clip_grad_norm_ = _norm(_clip_grad.clip_grad_norm_, True)
clip_grad_value_ = _of_tensors(_clip_grad.clip_grad_value_)
clip_grads_with_norm_ = _of_tensors(_clip_grad.clip_grads_with_norm_)
get_total_norm = _norm(_clip_grad.get_total_norm, False)
parameters_to_vector = _of_tensors(_conversion.parameters_to_vector)
vector_to_parameters = _of_tensors(_conversion.vector_to_parameters, 1)
fuse_conv_bn_weights = _of_tensors(_conversion.fuse_conv_bn_weights, -1)
fuse_linear_bn_weights = _of_tensors(_conversion.fuse_linear_bn_weights, -1)


def _of_layers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numgrad's of two layers: Note [Views of layers]."""

    @wraps(function)
    def called(layer: Any, bn: Any, *options: Any, **named: Any) -> Any:
        return outer(function(view(layer), view(bn), *options, **named))

    return called


fuse_conv_bn_eval = _of_layers(_conversion.fuse_conv_bn_eval)
fuse_linear_bn_eval = _of_layers(_conversion.fuse_linear_bn_eval)
skip_init = _conversion.skip_init


__getattr__ = _refuse(globals())
