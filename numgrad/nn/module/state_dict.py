"""Writing the state of modules to a dictionary, and taking it from one.

Note [Loading as a whole]
-------------------------
A state that does not fit must leave the modules as they were. So while ``load_state_dict`` walks
over the modules, ``_load_from_state_dict`` only compares and notes what to write. Nothing is
written unless everything fits; what a user's code then refuses (an extra state, a hook) is undone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.hooks import RemovableHandle, name_of, register
from numgrad.autograd.modes import no_grad
from numgrad.autograd.row_sparse_tensor import RowSparseTensor
from numgrad.autograd.variable import Tensor
from numgrad.codegen.dtypes import KERNEL_DTYPES
from numgrad.errors import NumgradNotImplementedError, NumgradRuntimeError, NumgradTypeError
from numgrad.nn.module.members import Members, Parameter
from numgrad.nn.module.uninitialized import Uninitialized


def is_array(value: Any) -> bool:
    """Whether a value is a Tensor, an ndarray, or an array of another library."""
    return isinstance(value, Tensor | np.ndarray) or (
        hasattr(type(value), "__array__") and not isinstance(value, np.generic | RowSparseTensor)
    )


def array_of(value: Any) -> np.ndarray:
    """The elements of what ``is_array``, in the same memory where the other library allows it.

    Raises
    ------
    NumgradTypeError
        If the value gives no array of numbers; the message begins with what it is.
    """
    if isinstance(value, Tensor):
        return value.detach().numpy()
    detach = getattr(value, "detach", None)  # PyTorch gives no array of what requires grad
    try:
        array = np.asarray(value if detach is None else detach())
    except Exception as error:
        raise NumgradTypeError(
            f"is a {_kind(value)} that gives no ndarray ({error}); convert it first"
        ) from None
    if array.dtype.kind not in "biufc":
        raise NumgradTypeError(
            f"is a {_kind(value)} of dtype {array.dtype}, which is not one of numbers here; "
            "convert it first"
        )
    return array


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind is np.ndarray else f"{kind.__module__}.{kind.__qualname__}"


EXTRA = "_extra_state"
"""Last part of the key of an extra state."""


class IncompatibleKeys(NamedTuple):
    """The keys that ``load_state_dict`` looked for in vain, and those it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    __str__ = __repr__


class StateHooks:
    """The hooks of a module on writing and loading its state, by handle number."""

    __slots__ = ("load_post", "load_pre", "save_post", "save_pre")

    def __init__(self) -> None:
        self.save_pre: dict[int, Callable[..., Any]] = {}
        self.save_post: dict[int, tuple[Callable[..., Any], bool]] = {}  # may it replace the dict?
        self.load_pre: dict[int, tuple[Callable[..., Any], bool]] = {}  # does it get the module?
        self.load_post: dict[int, Callable[..., Any]] = {}


_NO_HOOKS = StateHooks()


class Loading:
    """Writes that a ``load_state_dict`` under way has noted."""

    def __init__(self) -> None:
        self.writes: list[tuple[Callable[[], None], Callable[[], Callable[[], None]]]] = []

    def write(self, do: Callable[[], None], undo: Callable[[], Callable[[], None]]) -> None:
        """Note a write; ``undo`` is called before it and returns what takes it back."""
        self.writes.append((do, undo))

    def run(self, done: list[Callable[[], None]] | None) -> None:
        """Write; put into ``done``, if given, what takes that back."""
        for do, undo in self.writes:
            if done is not None:
                done.append(undo())
            do()


_loading: ContextVar[Loading | None] = ContextVar("loading", default=None)


class Stateful(Members):
    """``state_dict`` and ``load_state_dict`` of a module, and what subclasses may change there."""

    _version: int = 1
    """Number of the layout of this class's state; a class that changes it counts up."""
    _since_version_2: tuple[str, ...] = ()
    """Members that states of the first version lack, which keep their values then."""
    _state_hooks: StateHooks | None = None

    def get_extra_state(self) -> Any:
        """State besides parameters and buffers, to be overridden with ``set_extra_state``."""
        raise NumgradNotImplementedError(f"{type(self).__name__}: does not define get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take what ``get_extra_state`` returned: to be overridden."""
        raise NumgradNotImplementedError(f"{type(self).__name__}: does not define set_extra_state")

    def _overrides_method(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Stateful, name)

    def _own_tensors(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers of this module alone."""
        temporary = self._non_persistent_buffers_set
        return {
            **{k: v for k, v in self._parameters.items() if v is not None},
            **{k: v for k, v in self._buffers.items() if v is not None and k not in temporary},
        }

    # -------------------------------------------------------------------------------- writing

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Parameters and persistent buffers of this module and those inside, by dotted name.

        Parameters
        ----------
        destination
            The dictionary to write to, by default a new one.
        prefix
            What all keys begin with, including a dot.
        keep_vars
            Whether the values are the parameters themselves, and not detached Tensors over the
            same memory.

        Returns
        -------
        dict
            Later changes of the module show in it; ``copy.deepcopy`` it where that matters.

        Examples
        --------
        >>> from numgrad import nn
        >>> list(nn.Sequential(nn.Linear(2, 3)).state_dict())
        ['0.weight', '0.bias']
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # pyright: ignore
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local  # pyright: ignore
        hooks = self._state_hooks or _NO_HOOKS
        for hook in list(hooks.save_pre.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook, may_replace in list(hooks.save_post.values()):
            returned = hook(self, destination, prefix, local)
            if returned is None:
                continue
            if not may_replace:
                raise NumgradRuntimeError(
                    f"{name_of(hook)}: a state_dict post-hook returned {type(returned).__name__}; "
                    "it changes the dictionary it is given, return None"
                )
            destination = returned
        return destination  # pyright: ignore

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Write the state of this module alone: what a subclass may override."""
        for name, tensor in self._own_tensors().items():
            shapeless = isinstance(tensor, Uninitialized)
            destination[prefix + name] = tensor if keep_vars or shapeless else tensor.detach()
        if self._overrides_method("get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    # -------------------------------------------------------------------------------- loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take over the state in a dictionary as ``state_dict`` writes it.

        Parameters
        ----------
        state_dict
            Tensors, ndarrays or arrays of other libraries (what has ``__array__``, such as
            PyTorch's) by dotted name. Values are copied and converted to the dtype that the module
            has.
        strict
            Whether keys that are missing or have no place are an error.
        assign
            Whether the Tensors given take the place of the module's own, with their dtype, and
            only ``requires_grad`` stays.

        Returns
        -------
        IncompatibleKeys
            ``missing_keys`` and ``unexpected_keys``, both empty if ``strict``.

        Raises
        ------
        NumgradTypeError
            If ``state_dict`` is no dictionary.
        NumgradRuntimeError
            If it does not fit; the message lists everything that does not. The module stays as it
            was.

        Examples
        --------
        >>> from numgrad import nn
        >>> a, b = nn.Linear(2, 1), nn.Linear(2, 1)
        >>> a.load_state_dict(b.state_dict())
        <All keys matched successfully>
        >>> bool((a.weight == b.weight).all())
        True
        """
        if not isinstance(state_dict, Mapping):
            remedy = (
                "ng.load the file first"
                if isinstance(state_dict, str | PathLike)
                else (
                    "give its state_dict()"
                    if hasattr(state_dict, "state_dict")
                    else "give what state_dict() returned"
                )
            )
            raise NumgradTypeError(
                f"{type(self).__name__}.load_state_dict: takes a dictionary, got "
                f"{type(state_dict).__name__}; {remedy}"
            )
        for key in state_dict:
            if not isinstance(key, str):
                raise NumgradTypeError(
                    f"{type(self).__name__}.load_state_dict: keys are dotted names, got {key!r} of "
                    f"type {type(key).__name__}"
                )
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            state_dict._metadata = metadata  # pyright: ignore
        keys = IncompatibleKeys([], [])
        errors: list[str] = []
        loading = Loading()
        token = _loading.set(loading)
        try:
            _visit(self, state_dict, "", metadata or {}, strict, assign, keys, errors)
        finally:
            _loading.reset(token)
        if errors:
            _raise(self, keys, errors, strict)
        hooks = [(m, hook) for m in _inside(self) for hook in _load_hooks(m)]
        if not hooks:
            _raise(self, keys, errors, strict)
        undo: list[Callable[[], None]] = []
        reversible = bool(hooks) or any(
            m._overrides_method("set_extra_state") for m in _inside(self)
        )
        try:
            loading.run(undo if reversible else None)
            for module, hook in hooks:
                if hook(module, keys) is not None:
                    raise NumgradRuntimeError(
                        f"{name_of(hook)}: a load_state_dict post-hook returned something; it "
                        "changes the lists of keys it is given, return None"
                    )
            _raise(self, keys, errors, strict)
        except BaseException:
            for take_back in reversed(undo):
                take_back()
            raise
        return keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take over the state of this module alone: what a subclass may override.

        An override that knows older layouts changes ``state_dict`` and calls this. ``prefix``
        begins the keys of this module, ``local_metadata`` is what was written with it: its
        ``"version"``. Lists are there to be added to. Note [Loading as a whole] says why nothing
        has been written when this returns.
        """
        hooks = self._state_hooks or _NO_HOOKS
        for hook, with_module in list(hooks.load_pre.values()):
            hook(
                *((self,) if with_module else ()),
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        loading = _loading.get()
        at_once = loading is None
        if loading is None:
            loading = Loading()
        first = (local_metadata.get("version") or 1) < 2
        expected = self._own_tensors()
        for name, tensor in expected.items():
            key = prefix + name
            if key not in state_dict:
                if strict and not (first and name in self._since_version_2):
                    missing_keys.append(key)
                continue
            value, problem = _taken(tensor, state_dict[key], assign)
            if isinstance(tensor, Uninitialized) and isinstance(value, Uninitialized):
                continue
            if problem:
                error_msgs.append(f"{key}: {problem}")
            elif assign:
                loading.write(*_assignment(self, name, tensor, value))
            else:
                loading.write(*_copy(tensor, value))
        key = prefix + EXTRA
        if self._overrides_method("set_extra_state"):
            if key in state_dict:
                loading.write(*_extra(self, state_dict[key]))
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
        if strict:
            for other in state_dict:
                if other.startswith(prefix) and other != key:
                    name, dot, _ = other[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else expected):
                        unexpected_keys.append(other)
        if at_once:
            loading.run(None)

    # ---------------------------------------------------------------------------------- hooks

    def _own_state_hooks(self) -> StateHooks:
        if self._state_hooks is None:
            self.__dict__["_state_hooks"] = StateHooks()
        return self._state_hooks  # pyright: ignore

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` reads this module."""
        return register(self._own_state_hooks().save_pre, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` when this module is written.

        It may change the dictionary in place.
        """
        return register(self._own_state_hooks().save_post, hook, (hook, False))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a post-hook that may also return another dictionary."""
        return register(self._own_state_hooks().save_post, hook, (hook, True))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a hook before ``load_state_dict`` looks at this module.

        It gets ``(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` and may change the dictionary and the lists in place; the
        dictionary is a copy of the caller's.
        """
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Register a pre-hook that gets the module only if so declared."""
        return register(self._own_state_hooks().load_pre, hook, (hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` when ``load_state_dict`` has written.

        It may change the two lists in place: with ``strict``, what it leaves there is an error,
        which takes everything back.
        """
        return register(self._own_state_hooks().load_post, hook)


def _visit(
    module: Any,
    state_dict: dict[str, Any],
    prefix: str,
    metadata: Mapping[str, Any],
    strict: bool,
    assign: bool,
    keys: IncompatibleKeys,
    errors: list[str],
) -> None:
    local = dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(
        state_dict, prefix, local, True, keys.missing_keys, keys.unexpected_keys, errors
    )
    for name, child in module._modules.items():
        if child is not None:
            _visit(child, state_dict, f"{prefix}{name}.", metadata, strict, assign, keys, errors)


def _inside(module: Any) -> list[Any]:
    """A module and those inside, children first, as often as they come."""
    descendants = [
        m for child in module._modules.values() if child is not None for m in _inside(child)
    ]
    return [*descendants, module]


def _load_hooks(module: Any) -> list[Callable[..., Any]]:
    return list((module._state_hooks or _NO_HOOKS).load_post.values())


def _raise(module: Any, keys: IncompatibleKeys, errors: list[str], strict: bool) -> None:
    """Raise if there are errors, among which with ``strict`` are keys that do not match."""
    problems = list(errors)
    if strict:
        problems += [f"{key}: missing in the dictionary" for key in keys.missing_keys]
        problems += [f"{key}: has no place in the module" for key in keys.unexpected_keys]
    if problems:
        lines = "\n  ".join(problems)
        raise NumgradRuntimeError(
            f"{type(module).__name__}.load_state_dict: the state does not fit, and the module is "
            f"as it was:\n  {lines}"
        )


def _taken(tensor: Tensor, value: Any, assign: bool) -> tuple[Any, str | None]:
    """A value as a Tensor or ndarray, and why it cannot be taken over, if it cannot."""
    if not is_array(value):
        return value, f"is a {type(value).__name__}, and a Tensor or an array is needed"
    try:
        array = array_of(value)
    except NumgradTypeError as error:
        return value, str(error)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not isinstance(value, Tensor):  # memory that must not be written cannot be trained
        value = array if array.flags.writeable or not assign else array.copy()
    if isinstance(value, Uninitialized):
        if isinstance(tensor, Uninitialized):
            return value, None
        return value, "has the shape of an uninitialized parameter; call the lazy layer first"
    if not isinstance(tensor, Uninitialized) and array.shape != tensor.shape:
        return value, f"has shape {array.shape} in the dictionary and {tensor.shape} in the module"
    if assign and array.dtype not in KERNEL_DTYPES:
        return value, f"has dtype {array.dtype}, which no Tensor has; convert it first"
    if assign and tensor.requires_grad and array.dtype.kind not in "fc":
        return value, f"has dtype {array.dtype}, and the module's requires grad"
    if array.dtype.kind == "c" and tensor.dtype.kind != "c":
        return (
            value,
            f"is {array.dtype} and the module's {tensor.dtype} cannot hold complex values",
        )
    return value, None


Write = tuple[Callable[[], None], Callable[[], Callable[[], None]]]


def _copy(tensor: Tensor, value: Any) -> Write:
    """How to copy a value into a member, and to take it back."""

    def do(source: Any = value) -> None:
        with no_grad():
            if isinstance(tensor, Uninitialized):
                tensor.materialize(np.shape(source))
            tensor.copy_(source)

    def undo() -> Callable[[], None]:
        if isinstance(tensor, Uninitialized):
            cls = type(tensor)
            return lambda: setattr(tensor, "__class__", cls)
        before = tensor.numpy(force=True).copy()
        return lambda: do(before)

    return do, undo


def _assignment(module: Any, name: str, tensor: Tensor, value: Any) -> Write:
    """How to replace a member by a value, and to undo that."""

    def do() -> None:
        if isinstance(tensor, Parameter):
            new = value if isinstance(value, Parameter) else Parameter(value)
        else:
            new = value if isinstance(value, Tensor) else Tensor(value)
        if new.requires_grad != tensor.requires_grad:
            new.requires_grad_(tensor.requires_grad)
        setattr(module, name, new)

    return do, lambda: lambda: setattr(module, name, tensor)


def _extra(module: Any, state: Any) -> Write:
    """How to give a module its extra state, and to take it back."""

    def undo() -> Callable[[], None]:
        before = module.get_extra_state()
        return lambda: module.set_extra_state(before)

    return lambda: module.set_extra_state(state), undo
