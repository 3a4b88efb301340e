"""Layers that learn the length of their input from the first one.

Note [Lazy layers]
------------------
A lazy layer has the parameters of the layer that it becomes, without elements. Its first call, or
``load_state_dict``, says how long they are: they are filled, remaining the objects that they are,
so that optimizers may know them before, and the layer's class becomes the plain one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from numgrad.autograd.variable import Parameter, Tensor
from numgrad.autograd.versions import mark_written
from numgrad.core.interpreter import state
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from numgrad.nn.convolution import Conv1d, Conv2d, Conv3d
from numgrad.nn.instance_normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from numgrad.nn.linear import Linear
from numgrad.nn.module.module import Module
from numgrad.nn.transposed_convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from numgrad.tensors.creation import asarray, zeros


class UninitializedParameter(Parameter):
    """A parameter of a lazy layer, which has no elements before the layer's first call."""

    __slots__ = ()

    def __reduce__(self) -> tuple:
        return UninitializedParameter, (self._array, self._requires_grad)


class LazyModule(Module):
    """Note [Lazy layers]; classes are made by ``_lazy``."""

    becomes: ClassVar[type[Module]]
    measured: ClassVar[str]
    """The parameter of its constructor that the input says."""
    axis: ClassVar[int]
    """The axis of the input whose length that is."""
    unbatched: ClassVar[int]
    """Number of axes of an input without a batch, whose axis is one before; 0 if there is none."""
    defaults: ClassVar[dict[str, Any]]
    """Arguments of the constructor that are others by default than the plain layer's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        name = type(self).__name__
        signature = inspect.signature(self.becomes)
        if self.measured in options:
            raise NumgradTypeError(
                f"{name}: {self.measured} is what the first input says; use "
                f"{self.becomes.__name__} where it is known"
            )
        try:
            arguments = self.defaults | signature.bind(1, *args, **options).arguments
        except TypeError as error:
            raise NumgradTypeError(f"{name}: {error}") from None
        del arguments[self.measured]
        super().__init__()
        self.__dict__["_given"] = arguments
        twin = self._twin(arguments.get("groups", 1))
        for key, value in twin.__dict__.items():
            member = key in twin._parameters or key in twin._buffers
            if not member and key not in self.__dict__ and key != self.measured:
                self.__dict__[key] = value
        for key, parameter in twin._parameters.items():
            empty = None if parameter is None else np.empty(0, parameter.dtype)
            self.register_parameter(key, empty if empty is None else UninitializedParameter(empty))
        self._register_load_state_dict_pre_hook(self._measure_state)

    def _twin(self, length: int) -> Module:
        return self.becomes(**{self.measured: length}, **self._given)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._given["dtype"] = fn(zeros(0, dtype=self._given.get("dtype"))).dtype
        return super()._apply(fn, recurse)

    def has_uninitialized_params(self) -> bool:
        """Whether no input has been seen."""
        return isinstance(self, LazyModule)

    def initialize_parameters(self, input: Any) -> None:
        """Become the plain layer for inputs such as this one."""
        state.ground.once(
            f"{type(self).__name__}: its parameters are made at the first call; call it once "
            "before it is compiled"
        )
        shape = asarray(input).shape
        axis = self.axis - (self.axis == 1 and len(shape) == self.unbatched)
        if len(shape) <= axis or not len(shape):
            raise NumgradValueError(
                f"{type(self).__name__}: an input of shape {tuple(shape)} has no axis {axis}"
            )
        self._become(shape[axis])

    def _become(self, length: int) -> None:
        twin = self._twin(length)
        for key, parameter in self._parameters.items():
            if parameter is not None:
                parameter._array = twin._parameters[key]._array.copy()  # pyright: ignore
                mark_written(parameter)
                parameter.__class__ = Parameter
        for key, buffer in twin._buffers.items():
            self.register_buffer(key, buffer)
        self.__dict__[self.measured] = length
        del self.__dict__["_given"]
        self._own_state_hooks().load_pre.clear()
        self.__class__ = self.becomes  # pyright: ignore

    def _measure_state(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Become the plain layer for the state that is loaded, if that is of one."""
        weight = state.get(f"{prefix}weight")
        if weight is None or not np.size(weight):
            return
        shape = np.shape(weight)
        if self.measured == "in_features":
            self._become(shape[1])
        elif self.measured == "num_features" or getattr(self.becomes, "transposed", False):
            self._become(shape[0])
        else:
            self._become(shape[1] * self._given.get("groups", 1))

    def forward(self, input: Any, *args: Any) -> Any:
        """Become the plain layer, and do what that does."""
        self.initialize_parameters(input)
        return self.forward(input, *args)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return ", ".join(f"{key}={value}" for key, value in self._given.items())


def _lazy(
    becomes: type[Module], measured: str, axis: int, unbatched: int = 0, **defaults: Any
) -> Callable:
    def make(cls: type) -> type:
        cls.becomes, cls.measured, cls.axis, cls.unbatched = becomes, measured, axis, unbatched
        cls.defaults = defaults
        signature = inspect.signature(becomes)
        parameters = [
            p.replace(default=defaults.get(key, p.default))
            for key, p in signature.parameters.items()
            if key != measured
        ]
        cls.__signature__ = signature.replace(parameters=parameters)
        return cls

    return make


@_lazy(Linear, "in_features", -1)
class LazyLinear(LazyModule):
    """``Linear`` whose number of features the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyLinear(2)
    >>> layer(ng.ones((5, 3))).shape
    (5, 2)
    >>> type(layer).__name__
    'Linear'
    """


@_lazy(Conv1d, "in_channels", 1, 2)
class LazyConv1d(LazyModule):
    """``Conv1d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyConv1d(4, 2)
    >>> layer(ng.ones((2, 3, 8))).shape
    (2, 4, 7)
    >>> type(layer).__name__
    'Conv1d'
    """


@_lazy(Conv2d, "in_channels", 1, 3)
class LazyConv2d(LazyModule):
    """``Conv2d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyConv2d(4, 2)
    >>> layer(ng.ones((2, 3, 8, 8))).shape
    (2, 4, 7, 7)
    >>> type(layer).__name__
    'Conv2d'
    """


@_lazy(Conv3d, "in_channels", 1, 4)
class LazyConv3d(LazyModule):
    """``Conv3d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyConv3d(4, 2)
    >>> layer(ng.ones((2, 3, 4, 4, 4))).shape
    (2, 4, 3, 3, 3)
    >>> type(layer).__name__
    'Conv3d'
    """


@_lazy(ConvTranspose1d, "in_channels", 1, 2)
class LazyConvTranspose1d(LazyModule):
    """``ConvTranspose1d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyConvTranspose1d(4, 2)
    >>> layer(ng.ones((2, 3, 8))).shape
    (2, 4, 9)
    >>> type(layer).__name__
    'ConvTranspose1d'
    """


@_lazy(ConvTranspose2d, "in_channels", 1, 3)
class LazyConvTranspose2d(LazyModule):
    """``ConvTranspose2d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyConvTranspose2d(4, 2)
    >>> layer(ng.ones((2, 3, 8, 8))).shape
    (2, 4, 9, 9)
    >>> type(layer).__name__
    'ConvTranspose2d'
    """


@_lazy(ConvTranspose3d, "in_channels", 1, 4)
class LazyConvTranspose3d(LazyModule):
    """``ConvTranspose3d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyConvTranspose3d(4, 2)
    >>> layer(ng.ones((2, 3, 4, 4, 4))).shape
    (2, 4, 5, 5, 5)
    >>> type(layer).__name__
    'ConvTranspose3d'
    """


@_lazy(BatchNorm1d, "num_features", 1)
class LazyBatchNorm1d(LazyModule):
    """``BatchNorm1d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyBatchNorm1d()
    >>> layer(ng.ones((2, 3))).shape
    (2, 3)
    >>> type(layer).__name__
    'BatchNorm1d'
    """


@_lazy(BatchNorm2d, "num_features", 1)
class LazyBatchNorm2d(LazyModule):
    """``BatchNorm2d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyBatchNorm2d()
    >>> layer(ng.ones((2, 3, 8, 8))).shape
    (2, 3, 8, 8)
    >>> type(layer).__name__
    'BatchNorm2d'
    """


@_lazy(BatchNorm3d, "num_features", 1)
class LazyBatchNorm3d(LazyModule):
    """``BatchNorm3d`` whose number of channels the first input says.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyBatchNorm3d()
    >>> layer(ng.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    >>> type(layer).__name__
    'BatchNorm3d'
    """


@_lazy(InstanceNorm1d, "num_features", 1, 2, affine=True, track_running_stats=True)
class LazyInstanceNorm1d(LazyModule):
    """``InstanceNorm1d`` whose number of channels the first input says.

    Unlike that it has weights and running statistics, as PyTorch's has, if nothing else is said.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyInstanceNorm1d()
    >>> layer(ng.ones((2, 3, 8))).shape
    (2, 3, 8)
    >>> type(layer).__name__
    'InstanceNorm1d'
    """


@_lazy(InstanceNorm2d, "num_features", 1, 3, affine=True, track_running_stats=True)
class LazyInstanceNorm2d(LazyModule):
    """``InstanceNorm2d`` whose number of channels the first input says.

    Unlike that it has weights and running statistics, as PyTorch's has, if nothing else is said.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyInstanceNorm2d()
    >>> layer(ng.ones((2, 3, 8, 8))).shape
    (2, 3, 8, 8)
    >>> type(layer).__name__
    'InstanceNorm2d'
    """


@_lazy(InstanceNorm3d, "num_features", 1, 4, affine=True, track_running_stats=True)
class LazyInstanceNorm3d(LazyModule):
    """``InstanceNorm3d`` whose number of channels the first input says.

    Unlike that it has weights and running statistics, as PyTorch's has, if nothing else is said.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LazyInstanceNorm3d()
    >>> layer(ng.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    >>> type(layer).__name__
    'InstanceNorm3d'
    """
