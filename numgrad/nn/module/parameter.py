"""Tensors that are members of modules: parameters, which are trained, and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.variable import Parameter as Parameter
from numgrad.autograd.variable import Tensor
from numgrad.autograd.versions import shared_version
from numgrad.codegen.dtypes import check_dtype
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.tensors.conversions import attributes_of


class Buffer(Tensor):
    """A Tensor that becomes a buffer of the module it is assigned to.

    A buffer is part of a module's state and not trained, such as a running mean.

    Parameters
    ----------
    data
        Its values, a Tensor or an ndarray, whose memory it shares; by default an empty array.
    persistent
        Whether ``state_dict`` contains it.

    Examples
    --------
    >>> import numgrad as ng
    >>> module = ng.nn.Module()
    >>> module.mean = ng.nn.Buffer(ng.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    __slots__ = ("__dict__", "persistent")

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        if data is None:
            data = np.empty(0)
        if not isinstance(data, Tensor | np.ndarray):
            raise NumgradTypeError(
                f"Buffer: the values are a Tensor or an ndarray, got {type(data).__name__}"
            )
        if isinstance(data, Tensor):
            super().__init__(data._array, data._requires_grad, memory=shared_version(data))
        else:
            super().__init__(data)
        self.persistent = persistent

    def __copy__(self) -> Buffer:
        return self._marked(super().__copy__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        return self._marked(super().__deepcopy__(memo))

    def _marked(self, twin: Any) -> Buffer:
        twin.persistent = self.persistent
        return twin

    def __reduce__(self) -> tuple:
        arguments = (self._array, self._requires_grad, self.persistent)
        return _rebuild_buffer, arguments, attributes_of(self)


def _rebuild_buffer(array: np.ndarray, requires_grad: bool, persistent: bool) -> Buffer:
    buffer = Buffer(array, persistent=persistent)
    buffer._requires_grad = requires_grad
    return buffer


def empty_parameter(shape: tuple[int, ...], dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter whose values are still to be set, float64 unless ``dtype`` says otherwise.

    Raises
    ------
    NumgradTypeError
        If kernels have no such dtype.
    NumgradValueError
        If ``device`` is anything but the CPU, or the shape is beyond what can be addressed.
    """
    if device is not None and str(device) != "cpu":
        raise NumgradValueError(f"the device of parameters is 'cpu', there is no {str(device)!r}")
    try:
        kind = np.dtype(np.float64 if dtype is None else dtype)
    except TypeError:
        raise NumgradTypeError(f"parameters: {dtype!r} is no dtype; give np.float32") from None
    check_dtype("parameters", kind)
    try:
        return Parameter(np.zeros(shape, kind))
    except (ValueError, OverflowError):
        raise NumgradValueError(
            f"a parameter of shape {shape} has more elements than an array can have; give smaller "
            "sizes"
        ) from None
