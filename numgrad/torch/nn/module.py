"""``torch.nn.Module``, parameters and buffers: Note [Specialized modules]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor as Base
from numgrad.errors import NumgradNotImplementedError, NumgradTypeError
from numgrad.nn.module import state_dict as numgrad_states, uninitialized
from numgrad.torch import dtypes
from numgrad.torch.autograd.function import Function
from numgrad.torch.specialization import GIVEN, specialize
from numgrad.torch.wrapping import Parameter, Tensor, known, same, unwrap


class Buffer(Tensor):
    """A Tensor that becomes a buffer of the module it is assigned to."""

    __slots__ = ()
    persistent: bool

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
    cls_to_become: ClassVar = Parameter

    def __new__(  # noqa: D102
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        d = (dtype or dtypes.get_default_dtype()).numpy
        return _of_tensor(cls, uninitialized.UninitializedParameter(requires_grad, None, d))


class UninitializedBuffer(_Uninitialized, Buffer):
    """A buffer of a lazy layer, which has no elements before the layer's first call."""

    __slots__ = ()
    cls_to_become: ClassVar = Buffer

    def __new__(  # noqa: D102
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:  # fmt: skip
        d = (dtype or dtypes.get_default_dtype()).numpy
        x = _of_tensor(cls, uninitialized.UninitializedBuffer(False, None, d))
        x.persistent = persistent
        return x


def _of_tensor(cls: Any, tensor: Base) -> Any:
    x = object.__new__(cls)
    x._tensor = tensor
    return known(x)


def _taken(tensor: Tensor, value: Any, assign: bool) -> tuple[Any, str | None]:
    """A value as what goes into a member, and why it cannot be taken over, if it cannot."""
    given, problem = numgrad_states._taken(tensor._tensor, unwrap(value), assign)
    return value if isinstance(value, Tensor) else same(_as_base(given)), problem


def _as_base(value: Any) -> Any:
    return Base(value) if isinstance(value, np.ndarray) else value


GIVEN["Function"] = Function
GIVEN["Buffer"] = Buffer
GIVEN["UninitializedParameter"] = UninitializedParameter
GIVEN["UninitializedBuffer"] = UninitializedBuffer
hooks = specialize("numgrad.nn.module.hooks")
members = specialize("numgrad.nn.module.members")
states = specialize("numgrad.nn.module.state_dict", _taken=_taken)
_base = specialize("numgrad.nn.module.module").Module


class Module(_base):
    """Base of layers and models: members, hooks, states as ``numgrad.nn.Module`` has them."""

    dump_patches = False

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, or register what is a member."""
        super().__setattr__(name, same(value) if isinstance(value, Base) else value)

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace the values of parameters, gradients and buffers by those of ``fn``."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        lazy = {id(b): b for b in self._buffers.values() if isinstance(b, UninitializedBuffer)}
        with no_grad():
            for param in [*self._parameters.values(), *lazy.values()]:
                for x in () if param is None else (param, param.grad):
                    if isinstance(x, _Uninitialized):
                        x.data = fn(x.data)  # pyright: ignore
                    elif x is not None and (new := fn(x)) is not x:
                        x.data = new
            for name, buffer in self._buffers.items():
                if buffer is not None and id(buffer) not in lazy:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating parameters and buffers to a dtype; the device is the CPU."""
        dtype = kwargs.pop("dtype", None)
        device = kwargs.pop("device", None)
        for given in args:
            if isinstance(given, Tensor):
                dtype = dtypes.OF[given._tensor.dtype]
            elif isinstance(given, dtypes.dtype):
                dtype = given
            elif isinstance(given, str | dtypes.device):
                device = given
            elif not (given is None or isinstance(given, bool)):
                raise NumgradTypeError(f"to: takes a dtype, a device or a Tensor, got {given!r}")
        if device is not None and str(device) != "meta":
            dtypes.device(device)
        if dtype is None:
            return self
        if not (dtype.is_floating_point or dtype.is_complex):
            raise NumgradTypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got {dtype}"
            )
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() or t.is_complex() else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, integers too."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Raise: there is no arithmetic of float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Raise: there is no arithmetic of bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Return the module: it is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise: the device is the CPU."""
        raise NumgradNotImplementedError(
            "cuda: the only device is the CPU; move modules by model.to(device) with a device of "
            "'cuda' if torch.cuda.is_available() else 'cpu'"
        )

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """Return the module, whose values may be anything."""
        return self

    def share_memory(self) -> Self:
        """Move the values to memory that processes made by ``fork`` share."""
        for member in [*self.parameters(), *self.buffers()]:
            member.share_memory_()
        return self

    def register_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """Call a hook as ``register_full_backward_hook`` does."""
        return self.register_full_backward_hook(hook)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Leave the module as it is: its operations are compiled already."""


def register_module_backward_hook(hook: Callable[..., Any]) -> Any:
    """Call a hook as ``register_module_full_backward_hook`` does."""
    return hooks.register_module_full_backward_hook(hook)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix away from the keys of a state."""
    for entries in (state_dict, getattr(state_dict, "_metadata", {})):
        for key in list(entries):
            if key.startswith(prefix) or (key and key == prefix.replace(".", "")):
                entries[key[len(prefix) :]] = entries.pop(key)


REGISTRATIONS = {
    name: getattr(hooks, name) for name in vars(hooks) if name.startswith("register_module_")
} | {
    "register_module_backward_hook": register_module_backward_hook,
    "consume_prefix_in_state_dict_if_present": consume_prefix_in_state_dict_if_present,
}
"""Functions that register hooks of all modules."""
GIVEN["Module"] = Module
_functional = specialize("numgrad.nn.module.functional_call")
functional_call, stack_module_state = _functional.functional_call, _functional.stack_module_state
containers = specialize("numgrad.nn.container")
