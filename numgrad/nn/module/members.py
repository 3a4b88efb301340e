"""Members of modules: parameters, buffers and submodules; registering, finding, converting them.

Note [Members are attributes]
-----------------------------
Parameters, buffers and submodules are listed in three dictionaries of a module. Were they only
there, each ``self.weight`` would first fail and then go through ``__getattr__``: 0.4 us, against
0.03 us for an ordinary attribute, four or more times in a step of a small model. So a
``Registry`` writes every change through to the instance's ``__dict__`` as well, also where somebody
changes ``module._parameters`` directly. ``__getstate__`` leaves the second entries out again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar
from weakref import ref

import numpy as np

from numgrad.autograd.variable import Parameter as Parameter, Tensor
from numgrad.autograd.versions import mark_written, shared_version
from numgrad.codegen.dtypes import check_dtype
from numgrad.errors import (
    NumgradAttributeError,
    NumgradKeyError,
    NumgradTypeError,
    NumgradValueError,
    warn,
)
from numgrad.nn.module.hooks import registered
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
        arguments = (self._array, self._requires_grad, self.persistent, type(self))
        return _rebuild_buffer, arguments, attributes_of(self)


def _rebuild_buffer(
    array: np.ndarray, requires_grad: bool, persistent: bool, cls: Any = Buffer
) -> Buffer:
    buffer = Buffer(array, persistent=persistent)
    buffer._requires_grad, buffer.__class__ = requires_grad, cls
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


T = TypeVar("T")


_MISSING: Any = object()


class Registry(dict[str, T]):
    """A dictionary whose entries are attributes of its owner, too: Note [Members are attributes].

    Examples
    --------
    >>> class Owner: pass
    >>> owner = Owner()
    >>> members = Registry(owner)
    >>> members["weight"] = 3
    >>> owner.weight
    3
    >>> del members["weight"]
    >>> hasattr(owner, "weight")
    False
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Any = None, members: Mapping[str, T] | None = None) -> None:
        super().__init__(members or {})
        if owner is not None:
            self.__setstate__(owner)

    def __setstate__(self, owner: Any) -> None:
        # a weak reference: modules are freed when their last name goes, not by the
        # collector of cycles
        self._owner = ref(owner)
        owner.__dict__.update(self)

    def __reduce__(self) -> tuple:
        return Registry, (), self.owner, None, iter(self.items())

    @property
    def owner(self) -> Any:
        """The object whose attributes these are; None while a copy is being made."""
        owner = getattr(self, "_owner", None)
        return owner and owner()

    def _attributes(self) -> dict[str, Any]:
        owner = self.owner
        return {} if owner is None else owner.__dict__

    def __setitem__(self, name: str, value: T) -> None:
        super().__setitem__(name, value)
        self._attributes()[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._attributes().pop(name, None)

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        """Remove a member and return it."""
        if name in self:
            value = self[name]
            del self[name]
            return value
        if default is _MISSING:
            raise KeyError(name)
        return default

    def popitem(self) -> tuple[str, T]:
        """Remove the last member and return its name and value."""
        if not self:
            raise KeyError("popitem: there are no members")
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        """Remove all members."""
        for name in list(self):
            del self[name]

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The member of that name, which becomes ``default`` if there is none."""
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *others: Any, **named: T) -> None:
        """Add the members of a mapping or of pairs of name and value."""
        for name, value in dict(*others, **named).items():
            self[name] = value

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self


KINDS = ("_parameters", "_buffers", "_modules")
"""The attributes that list the members of a module."""


class Members:
    """Registration of parameters, buffers and submodules."""

    training: bool
    _parameters: Registry[Parameter | None]
    _buffers: Registry[Tensor | None]
    _modules: Registry[Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        attributes = self.__dict__
        attributes["training"] = True
        for kind in KINDS:
            attributes[kind] = Registry(self)
        attributes["_non_persistent_buffers_set"] = set()

    # --------------------------------------------------------------------------- registration

    def _check_member_name(
        self, what: str, name: Any, members: str, free: bool = True
    ) -> Registry[Any]:
        """The registry for a new member, if its name can be used and, where asked for, is free."""
        registry = self.__dict__.get(members)
        if registry is None:
            raise _uninitialized(self, name)
        if not isinstance(name, str):
            raise NumgradTypeError(f"{what}: a name is a string, got {type(name).__name__}")
        if not name or "." in name:
            raise NumgradKeyError(
                f"{what}: {name!r} cannot be the name of a member; it must not be empty nor "
                "contain a dot, which separates the names of modules from those of their members"
            )
        # not hasattr(self, ...): a subclass may look for attributes in members it does not have yet
        exists = name in self.__dict__ or hasattr(type(self), name)
        if free and exists and name not in registry:
            raise NumgradKeyError(
                f"{what}: {type(self).__name__} has an attribute {name!r} that is something else; "
                "choose another name or delete that first"
            )
        return registry

    def _add_member(
        self, what: str, word: str, kind: type, name: str, member: Any, remedy: str = ""
    ) -> None:
        """Add a member of a kind, or None in place of one."""
        members = self._check_member_name(what, name, f"_{word}s")
        if member is not None:
            if not isinstance(member, kind):
                expected = "Module" if kind is Members else kind.__name__
                raise NumgradTypeError(
                    f"{what}: {name!r} is to be a {expected} or None, got {type(member).__name__}"
                    f"{remedy}"
                )
            member = registered(word, self, name, member)
        members[name] = member

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None in place of one.

        Raises
        ------
        KeyError
            If the name is in use for something else, empty or contains a dot.
        NumgradTypeError
            If ``param`` is no Parameter.
        NumgradAttributeError
            Before ``Module.__init__`` was called.
        """
        remedy = "; wrap the values in nn.Parameter, or use register_buffer for what is not trained"
        self._add_member("register_parameter", "parameter", Parameter, name, param, remedy)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a Tensor that belongs to the module's state and is not a parameter.

        Parameters
        ----------
        name
            Its name; a buffer of that name is replaced.
        tensor
            The Tensor, or None in place of one.
        persistent
            Whether ``state_dict`` contains it.

        Raises
        ------
        KeyError
            If the name is in use for something else, empty or contains a dot.
        NumgradTypeError
            If ``tensor`` is no Tensor.
        NumgradAttributeError
            Before ``Module.__init__`` was called.
        """
        remedy = "; make one with ng.tensor"
        self._add_member("register_buffer", "buffer", Tensor, name, tensor, remedy)
        self._set_persistent(name, persistent)

    def register_module(self, name: str, module: Members | None) -> None:
        """Add a submodule, or None in place of one: another name of ``add_module``."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Members | None) -> None:
        """Add a submodule, or None in place of one.

        Raises
        ------
        KeyError
            If the name is in use for something else, empty or contains a dot.
        NumgradTypeError
            If ``module`` is no Module.
        NumgradAttributeError
            Before ``Module.__init__`` was called.
        """
        self._add_member("add_module", "module", Members, name, module)

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        kind = _kind_of(attributes, name) if name in attributes else None
        if isinstance(value, Parameter):
            self._make_way(name, "_parameters", kind)
            self.register_parameter(name, value)
        elif kind == "_parameters":
            self.register_parameter(name, value)
        elif isinstance(value, Members):
            self._make_way(name, "_modules", kind)
            self._put_member("module", name, value)
        elif kind == "_modules":
            self.add_module(name, value)
        elif isinstance(value, Buffer):
            self._make_way(name, "_buffers", kind)
            self._put_member("buffer", name, value)
            self._set_persistent(name, value.persistent)
        elif kind == "_buffers":
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        elif name in KINDS:
            self._replace_registry(name, value)
        else:
            object.__setattr__(self, name, value)

    def _make_way(self, name: str, members: str, kind: str | None) -> None:
        """Remove an attribute whose name a member takes."""
        attributes = self.__dict__
        if members not in attributes:
            raise _uninitialized(self, name)
        if kind is None:
            attributes.pop(name, None)
        elif kind != members:
            del attributes[kind][name]
            self._non_persistent_buffers_set.discard(name)

    def _put_member(self, what: str, name: str, value: Any) -> None:
        """Add a module or buffer under a name that the class may use for something else."""
        registry = self._check_member_name(f"setting a {what}", name, f"_{what}s", free=False)
        registry[name] = registered(what, self, name, value)

    def _set_persistent(self, name: str, persistent: bool) -> None:
        temporary = self._non_persistent_buffers_set
        (temporary.discard if persistent else temporary.add)(name)

    def _replace_registry(self, kind: str, members: Any) -> None:
        old = self.__dict__[kind]
        if members is not old:
            members = dict(members)
            old.clear()
            self.__dict__[kind] = Registry(self, members)

    def __delattr__(self, name: str) -> None:
        kind = _kind_of(self.__dict__, name)
        if kind:
            del self.__dict__[kind][name]
            self._non_persistent_buffers_set.discard(name)
        else:
            object.__delattr__(self, name)


def _kind_of(attributes: dict[str, Any], name: str) -> str | None:
    """The one of ``KINDS`` that lists a member of that name."""
    for kind in KINDS:
        members = attributes.get(kind)
        if members is not None and name in members:
            return kind
    return None


def _uninitialized(module: Any, name: Any) -> NumgradAttributeError:
    return NumgradAttributeError(
        f"{type(module).__name__}: {name!r} is set before the module can have members; call "
        "super().__init__() first in its __init__"
    )


def replace_values(tensor: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Give a Tensor, which stays the object that it is, the values of a function of it."""
    new = fn(tensor.detach())
    if new._array is not tensor._array:
        tensor._array = new._array
        mark_written(tensor)  # what saved it for a backward finds it changed


class Converted(Members):
    """Conversion of a module's members to another dtype."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the values of all parameters, their gradients and buffers by those of ``fn``.

        Parameters stay the objects that they are, since optimizers know them.
        """
        if recurse:
            for module in dict.fromkeys(filter(None, self._modules.values())):
                module._apply(fn)
        lazy = {id(b): b for b in self._buffers.values() if hasattr(b, "materialize")}
        for param in [*self._parameters.values(), *lazy.values()]:
            for tensor in () if param is None else (param, param.grad):
                if tensor is not None:
                    replace_values(tensor, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None and id(buffer) not in lazy:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, dtype: Any = None, device: Any = None, **ignored: Any) -> Self:
        """Convert floating and complex parameters and buffers, in place; returns the module.

        Parameters
        ----------
        *args
            A floating or complex dtype, a Tensor whose dtype is meant, or ``"cpu"``.
        dtype, device
            The same by name.
        **ignored
            ``non_blocking`` and ``copy``, which mean nothing here.

        Raises
        ------
        NumgradTypeError
            If the dtype is not floating or complex.
        NumgradValueError
            If the device is not ``"cpu"``.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.nn.Linear(1, 1).to(ng.float32).weight.dtype
        dtype('float32')
        """
        for name in ignored:
            if name not in ("non_blocking", "copy"):
                raise NumgradTypeError(f"to: takes no argument {name!r}")
        for argument in args:
            if isinstance(argument, Tensor):
                dtype = argument.dtype
            elif isinstance(argument, str) and (argument == "cpu" or argument.startswith("cuda")):
                device = argument
            elif argument is not None and not isinstance(argument, bool):
                dtype = argument
        if device is not None and str(device) != "cpu":
            raise NumgradValueError(f"to: the device is 'cpu', there is no {str(device)!r}")
        if dtype is None:
            return self
        dtype = np.dtype(dtype)
        check_dtype("to", dtype)
        if dtype.kind not in "fc":
            raise NumgradTypeError(
                f"to: the parameters of a module are floating or complex, not {dtype}; use type() "
                "to convert everything all the same"
            )
        return self._apply(lambda t: _converted(t, dtype) if t.dtype.kind in "fc" else t)

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._convert_real(np.dtype(np.float32))

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._convert_real(np.dtype(np.float64))

    def _convert_real(self, dtype: np.dtype) -> Self:
        return self._apply(lambda t: _converted(t, dtype) if t.dtype.kind == "f" else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, integers too."""
        dtype = np.dtype(dst_type)
        check_dtype("type", dtype)
        return self._apply(lambda t: _converted(t, dtype))

    def cpu(self) -> Self:
        """Return the module: it is on the CPU."""
        return self


def _converted(tensor: Tensor, dtype: np.dtype) -> Tensor:
    """A leaf with the values of a tensor in another dtype; itself if it has that."""
    if tensor.dtype == dtype:
        return tensor
    array = tensor.numpy(force=True)
    if array.dtype.kind == "c" and dtype.kind != "c":
        warn(
            f"conversion of a module from {array.dtype} to {dtype} drops the imaginary parts of "
            "its parameters; convert to a complex dtype to keep them"
        )
        array = np.real(array)
    return Tensor(array.astype(dtype), tensor.requires_grad and dtype.kind in "fc")
