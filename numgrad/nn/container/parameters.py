"""Modules that hold parameters, in a list or by name, and other values beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradKeyError, NumgradRuntimeError, NumgradTypeError
from numgrad.nn.container.modules import absolute_index, pairs
from numgrad.nn.module.module import Module
from numgrad.nn.module.parameter import Parameter


class _Parameters(Module):
    """What a list and a dictionary of parameters have in common."""

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
        """Another dictionary of the same parameters."""
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
        found = self[key]
        del self[key]
        return found

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
        found = self.copy()
        found.update(other)
        return found

    def __ror__(self, other: Any) -> ParameterDict:
        return ParameterDict(other) | self

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self
