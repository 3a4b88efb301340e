"""Layers that learn the length of their input from the first one.

Note [Lazy layers]
------------------
A lazy layer is one of its plain class whose parameters, and buffers, have no shape yet: they are
``UninitializedParameter`` and ``UninitializedBuffer``. ``load_state_dict`` gives them the shapes of
the state. The first call does what is left: the parameters are filled, remaining the objects that
they are, so that optimizers may know them before, and the layer's class becomes the plain one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.core.interpreter import state
from numgrad.errors import (
    NumgradNotImplementedError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.nn.batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from numgrad.nn.convolution import Conv1d, Conv2d, Conv3d
from numgrad.nn.instance_normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from numgrad.nn.linear import Linear
from numgrad.nn.module.module import Module
from numgrad.nn.module.uninitialized import (
    Uninitialized,
    UninitializedBuffer,
    UninitializedParameter,
)
from numgrad.nn.transposed_convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


class LazyModuleMixin(Module):
    """Base of modules whose parameters get their shapes from the first input.

    A subclass has members that are ``UninitializedParameter`` or ``UninitializedBuffer``, and
    ``initialize_parameters``, which is called with the arguments of the first call and
    materializes them. If ``cls_to_become`` is a class, the module becomes one of it then.

    Raises
    ------
    NumgradRuntimeError
        If the first call leaves members without shapes.

    Examples
    --------
    >>> import numgrad as ng
    >>> class Scale(ng.nn.LazyModuleMixin):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = ng.nn.UninitializedParameter()
    ...
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         ng.nn.init.ones_(self.factor)
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(ng.tensor([1.0, 2.0]))
    tensor([1., 2.], grad_fn=<MultiplyBackward>)
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._awaits_input = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward``, before the first time ``initialize_parameters``."""
        if self._awaits_input:
            self._infer_parameters(args, kwargs)
        return Module.__call__(self, *args, **kwargs)

    def _infer_parameters(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = type(self).__name__
        state.ground.once(
            f"{name}: its parameters are made at the first call; call it once before it is compiled"
        )
        self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise NumgradRuntimeError(
                f"{name}: initialize_parameters has left {', '.join(dict(self._awaiting()))} "
                "without shapes; materialize them there"
            )
        self._awaits_input = False
        if self.cls_to_become is not None:
            del self._awaits_input
            self.__class__ = self.cls_to_become  # pyright: ignore

    def _awaiting(self) -> Iterator[tuple[str, Any]]:
        """Names and members without shapes."""
        for name, member in [*self._parameters.items(), *self._buffers.items()]:
            if isinstance(member, Uninitialized):
                yield name, member

    def has_uninitialized_params(self) -> bool:
        """Whether there are parameters or buffers without shapes."""
        return any(True for _ in self._awaiting())

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize what has no shape, for inputs such as these: what a subclass defines."""
        raise NumgradNotImplementedError(
            f"{type(self).__name__}: define initialize_parameters, which materializes parameters"
        )


class LazyLayer(LazyModuleMixin):
    """Base of lazy forms of layers: ``_lazy`` makes their classes."""

    measured: ClassVar[str]
    """The parameter of its constructor that the input says."""
    axis: ClassVar[int]
    """The axis of the input whose length that is."""
    unbatched: ClassVar[int]
    """Number of axes of an input without a batch, whose axis is one before; 0 if there is none."""
    defaults: ClassVar[dict[str, Any]]
    """Arguments of the constructor that are others by default than the plain layer's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        name, cls = type(self).__name__, self._plain()
        signature = inspect.signature(cls)
        if self.measured in options:
            raise NumgradTypeError(
                f"{name}: {self.measured} is what the first input says; use {cls.__name__} where "
                "it is known"
            )
        try:
            arguments = self.defaults | signature.bind(1, *args, **options).arguments
        except TypeError as error:
            raise NumgradTypeError(f"{name}: {error}") from None
        del arguments[self.measured]
        Module.__init__(self)
        twin = cls(**{self.measured: arguments.get("groups", 1)}, **arguments)
        for key, value in twin.__dict__.items():
            if key not in self.__dict__ and key not in twin._parameters | twin._buffers:
                self.__dict__[key] = value
        self.__dict__.update({"_given": arguments, self.measured: 0, "_awaits_input": True})
        for key, value in twin._parameters.items():
            if value is not None:
                value = UninitializedParameter(dtype=value.dtype)
            self.register_parameter(key, value)
        for key, value in twin._buffers.items():
            if value is not None and len(value.shape):
                value = UninitializedBuffer(dtype=value.dtype)
            self.register_buffer(key, value)

    def _plain(self) -> type[Module]:
        assert self.cls_to_become is not None
        return self.cls_to_become

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Fill the parameters for inputs such as this one, unless a state has."""
        shape = np.shape(input)
        axis = self.axis - (self.axis == 1 and len(shape) == self.unbatched)
        if len(shape) <= axis or not len(shape):
            raise NumgradValueError(
                f"{type(self).__name__}: an input of shape {tuple(shape)} has no axis {axis}"
            )
        length, given = shape[axis], self.__dict__.pop("_given")
        awaiting = dict(self._awaiting())
        twin = self._plain()(**{self.measured: length}, **given) if awaiting else None
        with no_grad():
            for name, member in awaiting.items():
                member.materialize(getattr(twin, name).shape)
                member.copy_(getattr(twin, name))
        for name, buffer in self._buffers.items():
            self._buffers[name] = None if buffer is None else buffer.detach()
        setattr(self, self.measured, length)


def _lazy(
    plain: type[Module], measured: str, axis: int, unbatched: int = 0, **defaults: Any
) -> Callable:
    def make(cls: type) -> type:
        cls.cls_to_become, cls.measured, cls.axis, cls.unbatched = plain, measured, axis, unbatched
        cls.defaults = defaults
        signature = inspect.signature(plain)
        parameters = [
            p.replace(default=defaults.get(key, p.default))
            for key, p in signature.parameters.items()
            if key != measured
        ]
        cls.__signature__ = signature.replace(parameters=parameters)
        return cls

    return make


@_lazy(Linear, "in_features", -1)
class LazyLinear(LazyLayer, Linear):
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
class LazyConv1d(LazyLayer, Conv1d):
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
class LazyConv2d(LazyLayer, Conv2d):
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
class LazyConv3d(LazyLayer, Conv3d):
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
class LazyConvTranspose1d(LazyLayer, ConvTranspose1d):
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
class LazyConvTranspose2d(LazyLayer, ConvTranspose2d):
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
class LazyConvTranspose3d(LazyLayer, ConvTranspose3d):
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
class LazyBatchNorm1d(LazyLayer, BatchNorm1d):
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
class LazyBatchNorm2d(LazyLayer, BatchNorm2d):
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
class LazyBatchNorm3d(LazyLayer, BatchNorm3d):
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
class LazyInstanceNorm1d(LazyLayer, InstanceNorm1d):
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
class LazyInstanceNorm2d(LazyLayer, InstanceNorm2d):
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
class LazyInstanceNorm3d(LazyLayer, InstanceNorm3d):
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
