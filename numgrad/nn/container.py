"""Modules that hold modules or parameters, and those that only change a shape."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import prod
from operator import index as as_index
from typing import Any, Self

from numgrad.autograd.variable import Tensor
from numgrad.core.axis import one_axis
from numgrad.errors import (
    NumgradIndexError,
    NumgradKeyError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from numgrad.nn.applied import checked
from numgrad.nn.module.members import Parameter
from numgrad.nn.module.module import Module, indented
from numgrad.operations.shape import reshape


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
    """Base of containers whose modules are named 0, 1, 2, ... and act as lists do."""

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
        member = self[key]
        del self[key]
        return member


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
        member = self[key]
        del self[key]
        return member

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
    entries = []
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
        entries.append(pair)
    return entries


class _Parameters(Module):
    """Base of the list and the dictionary of parameters."""

    def _store(self, name: str, value: Any) -> None:
        """Store a value; Tensors become parameters."""
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, name, value)

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Names and values."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Kind, dtype and shape of each value."""
        return "\n".join(f"  ({name}): {_described(value)}" for name, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: there is nothing to compute."""
        raise NumgradRuntimeError(
            f"{type(self).__name__}: holds parameters and cannot be called; use them in the "
            "forward of the module that has it"
        )


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(_Parameters):
    """A list of parameters, which are members; other values may stand among them.

    Parameters
    ----------
    values
        The values; Tensors become parameters.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ParameterList([ng.ones(2), "text"])
    ParameterList(
        (0): Parameter containing: [float64 of size 2]
        (1): Object of type: str
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[k] for k in range(*index.indices(len(self)))])
        return getattr(self, str(absolute_index("ParameterList", index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        self._store(str(absolute_index("ParameterList", index, self._size)), value)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(self._size))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def items(self) -> Iterable[tuple[int, Any]]:
        """Pairs of index and value."""
        return enumerate(self)

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._store(str(self._size), value)
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several values at the end.

        Raises
        ------
        NumgradTypeError
            If they cannot be iterated over, or are one Tensor.
        """
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise NumgradTypeError(
                f"ParameterList: takes an iterable of values, got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self


class ParameterDict(_Parameters):
    """A dictionary of parameters, which are members; it may hold other values, too.

    Parameters
    ----------
    parameters
        A dictionary, or pairs of name and value; Tensors become parameters.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.ParameterDict({"slope": ng.ones(1), "offset": ng.zeros(1)})
    ParameterDict(
        (slope): Parameter containing: [float64 of size 1]
        (offset): Parameter containing: [float64 of size 1]
    )
    """

    _keys: dict[str, None]

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        self._check(key)
        return getattr(self, key)

    def _check(self, key: Any) -> None:
        if key not in self._keys:
            raise NumgradKeyError(
                f"ParameterDict: has no {key!r}, but {', '.join(self._keys) or 'nothing'}"
            )

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise NumgradTypeError(
                f"ParameterDict: a key is the name of an attribute, a string, got "
                f"{type(key).__name__}"
            )
        if key not in self._keys and hasattr(self, key):
            raise NumgradKeyError(
                f"ParameterDict: {key!r} is an attribute of every ParameterDict; choose another"
            )
        self._store(key, value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        self._check(key)
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new dictionary of the same parameters."""
        return ParameterDict(self)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which becomes ``default`` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a key and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the key that was added last and return it and its value."""
        if not self._keys:
            raise NumgradKeyError("popitem: the ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or ``default`` if there is none."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with one value for all ``keys``."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs of key and value."""
        return ((key, self[key]) for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a dictionary or of pairs, in their order.

        Raises
        ------
        NumgradTypeError
            If ``parameters`` is neither.
        """
        for key, value in pairs("ParameterDict", parameters):
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self


class Flatten(Module):
    """Merges successive axes into one.

    Parameters
    ----------
    start_dim, end_dim
        The first and the last of them.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Flatten()(ng.ones((5, 2, 3))).shape
    (5, 6)
    """

    @checked
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Tensor:
        """Reshape the argument.

        Raises
        ------
        NumgradIndexError
            If it has no such axes.
        NumgradValueError
            If the last axis comes before the first.
        """
        shape = input.shape
        ndim = max(len(shape), 1)
        first = one_axis("Flatten", self.start_dim, ndim)
        last = one_axis("Flatten", self.end_dim, ndim)
        if first > last:
            raise NumgradValueError(
                f"Flatten: axis {self.start_dim} comes after axis {self.end_dim} in shape {shape}"
            )
        length = prod(shape[first : last + 1])
        return reshape(input, (*shape[:first], length, *shape[last + 1 :]))

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one axis into several.

    Parameters
    ----------
    dim
        The axis.
    unflattened_size
        The lengths of the new axes; one of them may be -1, what is left.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.Unflatten(1, (2, -1))(ng.ones((5, 6))).shape
    (5, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise NumgradTypeError(
                f"Unflatten: the axis is an integer, got {type(dim).__name__}: axes have no names"
            )
        try:
            sizes = tuple(map(as_index, unflattened_size))
        except TypeError:
            raise NumgradTypeError(
                f"Unflatten: lengths are integers, got {unflattened_size!r}"
            ) from None
        self.dim = as_index(dim)
        self.unflattened_size = sizes

    def forward(self, input: Any) -> Tensor:
        """Reshape the argument.

        Raises
        ------
        NumgradIndexError
            If it has no such axis.
        NumgradValueError
            If the lengths do not multiply to that of the axis.
        """
        shape = input.shape
        axis = one_axis("Unflatten", self.dim, len(shape))
        sizes = list(self.unflattened_size)
        known = prod(n for n in sizes if n != -1)
        if sizes.count(-1) == 1 and known and shape[axis] % known == 0:
            sizes[sizes.index(-1)] = shape[axis] // known
        if not sizes or -1 in sizes or prod(sizes) != shape[axis]:
            raise NumgradValueError(
                f"Unflatten: an axis of length {shape[axis]} cannot become {self.unflattened_size}"
            )
        return reshape(input, (*shape[:axis], *sizes, *shape[axis + 1 :]))

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
