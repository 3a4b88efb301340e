"""The members of a module by name, kept where Python finds attributes at once.

Note [Members are attributes]
-----------------------------
Parameters, buffers and submodules are listed in three dictionaries of a module. Were they only
there, each ``self.weight`` would first fail and then go through ``__getattr__``: 0.4 us, against
0.03 us for an ordinary attribute, four or more times in a step of a small model. So a
``Registry`` writes every change through to the instance's ``__dict__`` as well, also where somebody
changes ``module._parameters`` directly. ``__getstate__`` leaves the second entries out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from weakref import ref

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
