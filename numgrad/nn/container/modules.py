"""Modules that hold modules: in a row, in a list, by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import index as as_index
from typing import Any, Self

from numgrad.errors import (
    NumgradIndexError,
    NumgradKeyError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.nn.module.module import Module, indented


def absolute_index(owner: str, index: Any, length: int) -> int:
    """An index from 0 up to ``length`` for one that may count from the end."""
    try:
        index = as_index(index)
    except TypeError:
        raise NumgradTypeError(
            f"{owner}: an index is an integer or a slice, got {type(index).__name__}"
        ) from None
    if not -length <= index < length:
        raise NumgradIndexError(f"{owner}: index {index} is out of range for {length} members")
    return index % length


class _Row(Module):
    """What containers of modules named 0, 1, 2, ... share with lists."""

    def _name(self, index: Any) -> str:
        """The name of a member, which need not be its number in a Sequential."""
        names = list(self._modules)
        return names[absolute_index(type(self).__name__, index, len(names))]

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        self._modules.update({str(k): module for k, module in enumerate(modules)})

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        gone = names[index] if isinstance(index, slice) else [self._name(index)]
        self._renumber([module for name, module in self._modules.items() if name not in gone])

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before the one at ``index``.

        Raises
        ------
        NumgradIndexError
            If the index is out of range.
        """
        length = len(self)
        if index != length:
            index = absolute_index(type(self).__name__, index, length)
        if not isinstance(module, Module):
            raise NumgradTypeError(f"insert: takes a Module, got {type(module).__name__}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add several modules at the end.

        Raises
        ------
        NumgradTypeError
            If they cannot be iterated over, or one of them is no Module; then none is added.
        """
        if not isinstance(modules, Iterable):
            raise NumgradTypeError(
                f"{type(self).__name__}: takes an iterable of Modules, got {type(modules).__name__}"
            )
        added = list(modules)
        for module in added:
            if module is not None and not isinstance(module, Module):
                raise NumgradTypeError(
                    f"{type(self).__name__}: takes Modules, got {type(module).__name__}"
                )
        for module in added:
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove the module at an index and return it."""
        found = self[key]
        del self[key]
        return found


class Sequential(_Row):
    """Modules called one after the other, each with the result of the one before.

    Parameters
    ----------
    *args
        The modules, or one dictionary of modules by name.

    Examples
    --------
    >>> import numgrad as ng
    >>> from numgrad import nn
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.Linear(2, 1))
    >>> model(ng.ones((3, 2, 2))).shape
    (3, 1)
    >>> model[1:]
    Sequential(
      (1): Linear(in_features=4, out_features=2, bias=True)
      (2): Linear(in_features=2, out_features=1, bias=True)
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        members: Iterable[Any] = enumerate(args)
        if len(args) == 1 and isinstance(args[0], Mapping):
            members = args[0].items()
        for name, module in members:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:
        """Call the modules in their order."""
        for module in self._modules.values():
            input = module(input)  # pyright: ignore
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise NumgradValueError(
                f"Sequential: only another one can be added, got {type(other).__name__}"
            )
        return Sequential(*self, *other)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        if not isinstance(modules, Sequential):
            raise NumgradValueError(
                f"Sequential: only another one can be added, got {type(modules).__name__}; use "
                "extend"
            )
        return self.extend(modules)

    def _times(self, count: Any) -> list[Any]:
        if not isinstance(count, int):
            raise NumgradTypeError(
                f"Sequential: can be repeated an integer number of times, not "
                f"{type(count).__name__}"
            )
        if count <= 0:
            raise NumgradValueError(f"Sequential: cannot be repeated {count} times")
        return list(self) * count

    def __mul__(self, count: int) -> Sequential:
        return Sequential(*self._times(count))

    __rmul__ = __mul__

    def __imul__(self, count: int) -> Self:
        return self.extend(self._times(count)[len(self) :])


class ModuleList(_Row):
    """A list of modules, which are members; it cannot be called.

    Parameters
    ----------
    modules
        The modules.

    Examples
    --------
    >>> from numgrad import nn
    >>> nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return super().__getitem__(index)

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at ``index``."""
        super().insert(index, module)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        if not len(self):
            return f"{self._get_name()}()"
        lines, start = [], 0
        for text, same in groupby(map(repr, self)):  # alike ones that follow each other
            count = len(list(same))
            if count == 1:
                lines.append(f"({start}): {text}")
            else:
                lines.append(f"({start}-{start + count - 1}): {count} x {text}")
            start += count
        body = "\n  ".join(map(indented, lines))
        return f"{self._get_name()}(\n  {body}\n)"


class ModuleDict(Module):
    """A dictionary of modules, which are members; it cannot be called.

    Parameters
    ----------
    modules
        A dictionary, or pairs of name and module.

    Examples
    --------
    >>> from numgrad import nn
    >>> heads = nn.ModuleDict({"mean": nn.Linear(4, 1), "width": nn.Linear(4, 1)})
    >>> heads["mean"]
    Linear(in_features=4, out_features=1, bias=True)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        if key not in self._modules:
            raise NumgradKeyError(
                f"ModuleDict: has no {key!r}, but {', '.join(self._modules) or 'nothing'}"
            )
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        self[key]
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove the module of a name and return it."""
        found = self[key]
        del self[key]
        return found

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """Pairs of name and module."""
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Add the modules of a dictionary or of pairs of name and module.

        Raises
        ------
        NumgradTypeError
            If ``modules`` is neither.
        """
        for key, module in pairs("ModuleDict", modules):
            self[key] = module


def pairs(owner: str, members: Any) -> list[tuple[Any, Any]]:
    """Names and values of a dictionary, of a container like it, or of given pairs."""
    if isinstance(members, Mapping) or hasattr(members, "items"):
        return list(members.items())
    if not isinstance(members, Iterable):
        raise NumgradTypeError(
            f"{owner}: takes a dictionary or pairs of name and value, got {type(members).__name__}"
        )
    found = []
    for number, pair in enumerate(members):
        if not isinstance(pair, Iterable):
            raise NumgradTypeError(
                f"{owner}: takes pairs of name and value; number {number} is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise NumgradValueError(
                f"{owner}: takes pairs of name and value; number {number} has {len(pair)} parts"
            )
        found.append(pair)
    return found
