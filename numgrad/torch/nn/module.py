"""``torch.nn.Module``, parameters and buffers: Note [Specialized modules]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradTypeError
from numgrad.nn.module import state_dict as numgrad_states, uninitialized
from numgrad.torch import dtypes
from numgrad.torch.autograd.function import Function
from numgrad.torch.specialization import GIVEN, specialize
from numgrad.torch.wrapping import Parameter, Tensor, known, same, unwrap, wrap


class Buffer(Tensor):
    """A Tensor that becomes a buffer of the module it is assigned to."""

    __slots__ = ()
    persistent: bool = True

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:  # noqa: D102
        x = object.__new__(cls)
        empty = np.empty(0, dtypes.get_default_dtype().numpy)
        x._tensor = Base(empty) if data is None else unwrap(data)
        x.persistent = persistent
        return known(x)  # pyright: ignore[reportReturnType]


class _Uninitialized(uninitialized.Uninitialized):
    """A parameter or buffer whose Tensor is an uninitialized one of numgrad's."""

    __slots__ = ()
    _tensor: Any
    _of_numgrad: ClassVar[Any]

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None, **persistent: bool
    ) -> Any:
        x: Any = object.__new__(cls)
        d = (dtype or dtypes.get_default_dtype()).numpy
        x._tensor = cls._of_numgrad(requires_grad, None, d)
        vars(x).update(persistent)
        return known(x)

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter or buffer of a shape, whose values may be anything."""
        self._tensor.materialize(unwrap(shape), device, unwrap(dtype))
        self.__class__ = self.cls_to_become

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, None, self.dtype), vars(self)  # pyright: ignore

    def share_memory_(self) -> None:
        """Refuse: there is no memory."""
        raise self._tensor._refusal("share memory on an uninitialized: memory")


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter of a lazy layer, which has no elements before the layer's first call."""

    __slots__ = ()
    cls_to_become, _of_numgrad = Parameter, uninitialized.UninitializedParameter


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer of a lazy layer, which has no elements before the layer's first call."""

    __slots__ = ()
    cls_to_become, _of_numgrad = Buffer, uninitialized.UninitializedBuffer


def _taken(tensor: Tensor, value: Any, assign: bool) -> tuple[Any, str | None]:
    """A value as what goes into a member, and why it cannot be taken over, if it cannot."""
    given, problem = numgrad_states._taken(tensor._tensor, unwrap(value), assign)
    if not isinstance(value, Tensor):
        value = same(Base(given) if isinstance(given, np.ndarray) else given)
    return value, problem


def replace_values(tensor: Tensor, fn: Callable[[Any], Any]) -> None:
    """Give a Tensor, which stays the object that it is, the values of a function of it."""
    with no_grad():
        before: Any = tensor.data if isinstance(tensor, _Uninitialized) else tensor  # pyright: ignore
        if (new := fn(before)) is not before:
            tensor.data = new


GIVEN.update(
    Function=Function, Buffer=Buffer, UninitializedParameter=UninitializedParameter,
    UninitializedBuffer=UninitializedBuffer,
)  # fmt: skip
hooks = specialize("numgrad.nn.module.hooks")
members = specialize("numgrad.nn.module.members", replace_values=replace_values)
states = specialize("numgrad.nn.module.state_dict", _taken=_taken)
_base = specialize("numgrad.nn.module.module").Module


class Module(_base):
    """Base of layers and models: members, hooks, states as ``numgrad.nn.Module`` has them."""

    def to(self, *args: Any, memory_format: Any = None, **kwargs: Any) -> Self:
        """Convert floating parameters and buffers to a dtype; the device is the CPU."""
        if str(kwargs.get("device", args[0] if args else None)) == "meta":
            return self
        dtype = wrap(Base(np.zeros((), np.float32))).to(*args, **kwargs).dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            raise NumgradTypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got {dtype}"
            )
        return self._apply(
            lambda t: t.to(*args, **kwargs) if t.is_floating_point() or t.is_complex() else t
        )

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, integers too."""
        return self._apply(lambda t: t.type(dst_type))

    def cuda(self, device: Any = None) -> Self:
        """Raise: the device is the CPU."""
        return self.to(dtypes.device("cuda"))

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """Return the module, whose values may be anything."""
        return self

    def share_memory(self) -> Self:
        """Move the values to memory that processes made by ``fork`` share."""
        for member in [*self.parameters(), *self.buffers()]:
            member.share_memory_()
        return self

    register_backward_hook = _base.register_full_backward_hook

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Leave the module as it is: its operations are compiled already."""


def _conversion(name: str) -> Callable[[Any], Any]:
    def convert(self: Any) -> Any:
        return self._apply(lambda t: getattr(t, name)() if t.is_floating_point() else t)

    convert.__name__, convert.__doc__ = name, "Convert floating parameters and buffers."
    return convert


for _name in ("float", "double", "half", "bfloat16"):
    setattr(Module, _name, _conversion(_name))
REGISTRATIONS = {
    name: function for name, function in vars(hooks).items() if name.startswith("register_module_")
}
REGISTRATIONS["register_module_backward_hook"] = hooks.register_module_full_backward_hook
"""Functions that register hooks of all modules."""
GIVEN["Module"] = Module
functional = specialize("numgrad.nn.module.functional_call")
containers = specialize("numgrad.nn.container")
