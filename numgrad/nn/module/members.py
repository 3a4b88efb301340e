"""The members of modules: how parameters, buffers and submodules are registered."""

from __future__ import annotations

from typing import Any

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradAttributeError, NumgradKeyError, NumgradTypeError
from numgrad.nn.module.module_hooks import registered
from numgrad.nn.module.parameter import Buffer, Parameter
from numgrad.nn.module.registry import Registry

KINDS = ("_parameters", "_buffers", "_modules")
"""The attributes that list the members of a module."""


class Members:
    """What a module does with its parameters, buffers and submodules."""

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
        found = self.__dict__.get(members)
        if found is None:
            raise _uninitialized(self, name)
        if not isinstance(name, str):
            raise NumgradTypeError(f"{what}: a name is a string, got {type(name).__name__}")
        if not name or "." in name:
            raise NumgradKeyError(
                f"{what}: {name!r} cannot be the name of a member; it must not be empty nor "
                "contain a dot, which separates the names of modules from those of their members"
            )
        # not hasattr(self, ...): a subclass may look for attributes in members it does not have yet
        taken = name in self.__dict__ or hasattr(type(self), name)
        if free and taken and name not in found:
            raise NumgradKeyError(
                f"{what}: {type(self).__name__} has an attribute {name!r} that is something else; "
                "choose another name or delete that first"
            )
        return found

    def _add_member(
        self, what: str, word: str, kind: type, name: str, member: Any, remedy: str = ""
    ) -> None:
        """Add a member of a kind, or None in place of one."""
        members = self._check_member_name(what, name, f"_{word}s")
        if member is not None:
            if not isinstance(member, kind):
                wanted = "Module" if kind is Members else kind.__name__
                raise NumgradTypeError(
                    f"{what}: {name!r} is to be a {wanted} or None, got {type(member).__name__}"
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
        found = self._check_member_name(f"setting a {what}", name, f"_{what}s", free=False)
        found[name] = registered(what, self, name, value)

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
    """Which of ``KINDS`` lists a member of that name."""
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
