"""Norms of gradients, vectors of parameters, parametrizations: ``torch.nn.utils``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from numgrad.nn import utils as _numgrad
from numgrad.torch.dtypes import get_default_dtype
from numgrad.torch.missing import refuse as _refuse
from numgrad.torch.nn.utils import (
    parametrizations,
    parametrize as parametrize,
    prune as prune,
    rnn as rnn,
)
from numgrad.torch.specialization import expose
from numgrad.torch.wrapping import Tensor, face_function, listed, wrap

__all__ = [name for name in dir(_numgrad) if name[0] != "_"]  # pyright: ignore
consume_prefix_in_state_dict_if_present = _numgrad.consume_prefix_in_state_dict_if_present
skip_init = _numgrad.skip_init
expose(globals(), "numgrad.nn.utils", parametrizations.before_calls)


def _norm(function: Callable[..., Any]) -> Callable[..., Any]:
    """A norm, which is in the default dtype where there is nothing that it is of."""

    @wraps(function)
    def called(*args: Any, **params: Any) -> Any:
        first, *rest = args or (params.pop(function.__code__.co_varnames[0]),)
        given = [first._tensor] if isinstance(first, Tensor) else listed(first)
        total = function(given, *rest, **params)
        known = {np.finfo(x.dtype).dtype for x in given if x.dtype.kind in "fc"}
        return wrap(total) if total.dtype in known else wrap(total).to(get_default_dtype())

    return called


for _name in (
    "clip_grad_value_", "clip_grads_with_norm_", "parameters_to_vector", "vector_to_parameters",
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
):  # fmt: skip
    globals()[_name] = face_function(getattr(_numgrad, _name), listed)
clip_grad_norm_, get_total_norm = _norm(_numgrad.clip_grad_norm_), _norm(_numgrad.get_total_norm)
__getattr__ = _refuse(globals())
