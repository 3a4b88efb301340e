"""Checks of gradients and states before a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.errors import NumgradRuntimeError, NumgradTypeError
from numgrad.optim.state_dict import Layout
from numgrad.tensors.tensor import Tensor


def check_state(
    where: str, name: str, value: Any, shape: tuple[int, ...], dtype: np.dtype, written: bool = True
) -> None:
    """Raise unless a gradient or state is a Tensor as its parameter needs it.

    ``where`` begins the message: the step, and which parameter it is.
    """
    if not isinstance(value, Tensor):
        raise NumgradTypeError(
            f"{where} has a {name} of type {type(value).__name__}, where a Tensor belongs; put "
            "ng.tensor(...) of it there, or load it with load_state_dict"
        )
    array = value._array
    fits = array.shape == shape or (shape == () and array.size == 1)
    if not fits or array.dtype != dtype:
        raise NumgradRuntimeError(
            f"{where} has a {name} of shape {array.shape} and dtype {array.dtype} where shape "
            f"{shape} and dtype {dtype} belong; was the parameter replaced, or the state of "
            "another one loaded?"
        )
    if written and not array.flags.writeable:
        raise NumgradRuntimeError(
            f"{where} has a {name} in memory that must not be written; put a copy there"
        )


def check_real(
    where: str, param: Tensor, state: dict[str, Any], layout: Layout, instead: str
) -> None:
    """Raise unless a real parameter, its dense gradient and its states can be used.

    ``instead`` is the optimizer for complex parameters.
    """
    grad: Any = param._grad
    if param.dtype.kind == "c":
        raise NumgradRuntimeError(f"{where} is complex; optimize its parts, or use {instead}")
    if grad.is_sparse:
        raise NumgradRuntimeError(
            f"{where} has a row-sparse gradient; use SparseAdam, or an Embedding with sparse=False"
        )
    if not param._array.flags.writeable:
        raise NumgradRuntimeError(
            f"{where} lies in memory that must not be written; optimize a copy"
        )
    check_state(where, "gradient", grad, param.shape, param.dtype, written=False)
    for name, (shape, dtype) in layout.items():
        if name in state:
            check_state(where, name, state[name], shape, dtype)
