"""Sources of captured values: where each is read, how it is treated, what is compared.

The code of libraries is taken for constant, but what their objects hold may be changed in place: a
column of a table, coefficients of a polynomial, what a model was fitted to.
"""

from __future__ import annotations

import copy
import os
import re
import sys
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from types import MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.core.bytecode import DEFAULT, Mention
from numgrad.dataclass import dataclass

_ATOMS = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type(Ellipsis))
_ACCESS = re.compile(r"\{0\}(?:\.__dict__)?(?:\.(\w+)|\['(\w+)'\]|\[(\d+)\])")
"""How attributes, keys and elements are read."""

FIXED, IDENTITY, VALUE, READ = "fixed", "identity", "value", "read"
"""How a place is treated: as constant, guarded by identity or value, or read at each call."""
CONTENT = "content"
"""How the place of an array is treated that is no input: guarded by ``Content``."""


def value_in_context(variable: ContextVar[Any]) -> Any:
    """The value of a context variable where the caller runs; None if it has no value there."""
    try:
        return variable.get()
    except LookupError:
        return None


@cache
def _wraps(kind: type) -> bool:
    return isinstance(getattr(kind, "_tensor", None), MemberDescriptorType)


def tensor_of(value: Any) -> Any:
    """The Tensor of an object that has it in a slot, as those of ``numgrad.torch``; else itself."""
    return value._tensor if _wraps(type(value)) else value


READERS: dict[str, Any] = {
    "_bytes": bytes,
    "_frozenset": frozenset,
    "_has": hasattr,
    "_in_context": value_in_context,
    "_len": len,
    "_tensor_of": tensor_of,
}
"""Functions in expressions that read a place."""


@dataclass
class Source:
    """Where something is found.

    Attributes
    ----------
    value
        What was found there.
    treatment
        One of the four above.
    holder
        The object that the place is in, known for sure if the guards before this one hold; a weak
        reference to the object of a ``WeakMethod``.
    access
        How to read it, as an expression in ``{0}`` for the holder and ``{1}`` for ``key``.
    key
        Key of a dictionary, if it is not simple.
    name
        How a reader would write it.
    parent
        The place of the holder; None for the function itself.
    shown
        What makes a view of what is found there, if that is meant.
    kept
        Whether it counts though the function itself changes it.
    """

    value: Any
    treatment: str
    holder: Any
    access: str
    name: str
    key: Any = None
    parent: Source | None = None
    shown: Any = None
    kept: bool = False

    @property
    def is_length(self) -> bool:
        """Whether it is the number of elements of a container."""
        return self.access.startswith("_len(")

    @property
    def is_code(self) -> bool:
        """Whether it is the code of a function, which only reloaders replace."""
        return self.access == "{0}.__code__"

    @property
    def is_filled(self) -> bool:
        """Whether it is what a container has in it by now, and no longer what it had."""
        filled = self.access.startswith(("_len(", "_frozenset("))
        return filled and not self.kept and self.read() != self.value

    def read(self) -> Any:
        """The value that is there now."""
        holder = self.holder() if isinstance(self.holder, weakref.ref) else self.holder
        names = {**READERS, "_holder": holder, "_key": self.key}
        return eval(self.access.replace("{0}", "_holder").replace("{1}", "_key"), names)

    @property
    def mention(self) -> Mention:
        """How code may spell it: its name or key, and the name of the container of a key."""
        name, _, default = self.name.partition("default ")
        if default and not name:
            return default, DEFAULT
        match = _ACCESS.fullmatch(self.access)
        if match is None:
            return None, None
        spelled = self.name if match[1] == "cell_contents" else match[1] or match[2]
        fields = getattr(type(self.holder), "_fields", None)
        if spelled is None and fields:
            return fields[int(match[3])], None
        if spelled is None and self.parent is not None:
            return int(match[3]), self.parent.mention[0]
        return spelled, None

    @property
    def path(self) -> Iterator[Source]:
        """The place itself, then the places that lead to it."""
        source: Source | None = self
        while source is not None:
            yield source
            source = source.parent


def of_method(kind: type, name: str, value: Any) -> Source:
    """The source of a method of a class, which may be replaced there or in a class above."""
    if isinstance(value, MethodType):  # made at each access
        return Source(value.__func__, IDENTITY, kind, f"{{0}}.{name}.__func__", f".{name}")
    return Source(value, IDENTITY, kind, f"{{0}}.{name}", f".{name}")


def of_sparse(matrix: Any) -> Iterator[Source]:
    """The elements of a matrix of SciPy's, and what says where they are."""
    for name in ("data", "indices", "indptr", "coords", "offsets", "rows"):
        if name in vars(matrix):
            treatment = READ if name == "data" else IDENTITY
            yield Source(vars(matrix)[name], treatment, matrix, f"{{0}}.{name}", f".{name}")
    if "indptr" in vars(matrix):  # they are sorted in place
        sorted_already = matrix.has_sorted_indices
        yield Source(sorted_already, VALUE, matrix, "{0}.has_sorted_indices", ".has_sorted_indices")


def place_of(value: Any, holder: Any, access: str, name: str, key: Any = None) -> Source:
    """A place whose content may change."""
    if is_atom(value):
        treatment = VALUE
    elif isinstance(value, np.ndarray | Tensor):
        treatment = READ
    elif _wraps(type(value)):
        return Source(value._tensor, READ, holder, f"_tensor_of({access})", name, key)
    else:
        treatment = IDENTITY
    return Source(value, treatment, holder, access, name, key)


def fixed_place(value: Any, holder: Any, access: str, name: str) -> Source:
    """A place whose content cannot change."""
    treatment = READ if isinstance(value, np.ndarray | Tensor) else FIXED
    return Source(value, treatment, holder, access, name)


def is_atom(value: Any) -> bool:
    """Whether a value counts by what it is: numbers, strings, tuples of them."""
    parts = [value]
    for item in parts:  # grows meanwhile
        if type(item) is tuple:
            parts.extend(item)
        elif not isinstance(item, _ATOMS):
            return False
    return True


# ----------------------------------------------------------------------------------------- content


SMALL = 4096
"""Bytes of an array that are copied before a function is traced."""
LARGE = 1 << 26
"""Bytes of an array up to which all of its numbers are compared."""
_BLOCK = 1 << 18
"""Bytes that are compared at once, in the processor's cache."""


class Content:
    """Content of an array that plain NumPy may have read.

    Another is as good as one by its numbers; as a very large one if it is the same and a sample of
    its numbers is; of a Tensor only the shape can be read while a function is traced. Without
    ``whole``, only a small one is compared by its numbers.
    """

    def __init__(self, array: np.ndarray | Tensor, *, whole: bool = False) -> None:
        self.kind: Any = type(array)
        self.shape, self.dtype = array.shape, array.dtype
        self.numbers = self.array = None
        if isinstance(array, np.ndarray):
            if array.nbytes > (LARGE if whole else SMALL):
                self.array = weakref.ref(array)
            if whole or array.nbytes <= SMALL:
                self.numbers = list(_blocks(array))

    def __call__(self, value: Any) -> bool:
        """Whether what is there now is as good as what was."""
        return (
            type(value) is self.kind
            and value.shape == self.shape
            and value.dtype == self.dtype
            and (self.array is None or value is self.array())
            and (self.numbers is None or all(map(bytes.__eq__, self.numbers, _blocks(value))))
        )


def _blocks(array: np.ndarray) -> Any:
    """The numbers, or a sample of those of a very large array, block by block."""
    if type(array) is not np.ndarray:  # whose methods may do otherwise: a masked array fills them
        parts = [array.view(np.ndarray), np.asarray(getattr(array, "_mask", ()))]
        return (block for item in parts for block in _blocks(item))
    if array.nbytes <= _BLOCK:
        return (array.tobytes(),)
    if array.nbytes > LARGE:
        return (array.flat[:: array.nbytes // _BLOCK].tobytes(),)
    flat, count = array.reshape(-1), _BLOCK // array.itemsize
    return (flat[start : start + count].tobytes() for start in range(0, flat.size, count))


_MOST = 64
"""Attributes that an object may have to be looked at."""


def of_library(value: Any, names: set[str], *, inner: bool = False) -> Iterator[Source]:
    """The places of numbers in an object of a library; code mentions ``names``.

    One that is ``inner`` is what another hands its work to.
    """
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "pandas" and hasattr(value, "equals"):
        yield Source(Labelled(value), CONTENT, value, "{0}", "[...]")
        return
    results = vars(value) if type(getattr(value, "__dict__", None)) is dict else {}
    if len(results) > _MOST:
        return
    sources = [(child, results, f"{{0}}[{name!r}]", name) for name, child in results.items()]
    slots = (
        n for b in kind.__mro__ for n, m in vars(b).items() if isinstance(m, MemberDescriptorType)
    )
    sources += [(getattr(value, n, None), value, f"{{0}}.{n}", n) for n in slots]
    for child, holder, access, name in sources:
        if type(child) is not np.ndarray or child.dtype.kind not in "biufc":
            if not inner and type(child).__module__.startswith(f"{package}."):
                yield from of_library(child, names, inner=True)
            continue
        if name in names:
            yield place_of(child, holder, access, f".{name}")
        else:
            yield Source(Content(child, whole=True), CONTENT, holder, access, f".{name}")


class Labelled:
    """Content of a Series, DataFrame or Index of pandas: a ``Content`` of its arrays and labels."""

    def __init__(self, value: Any) -> None:
        self.kind: Any = type(value)
        self.attrs = copy.deepcopy(getattr(value, "attrs", None))
        self.labels = _labels(value)
        blocks = blocks_of(value)
        self.blocks: list[Content] | None = None
        self.copy: Any = None
        if blocks is None:
            self.copy = value.copy(deep=True)
        else:
            self.blocks = [Content(block, whole=True) for block in blocks]

    def __call__(self, value: Any) -> bool:
        """Whether what is there now is as good as what was."""
        if type(value) is not self.kind or getattr(value, "attrs", None) != self.attrs:
            return False
        for before, now in zip(self.labels, _labels(value), strict=True):
            if before is not now and not before.equals(now):
                return False
        if self.blocks is None:
            return bool(value.equals(self.copy))
        blocks = blocks_of(value)
        return (
            blocks is not None
            and len(blocks) == len(self.blocks)
            and all(known(block) for known, block in zip(self.blocks, blocks, strict=True))
        )


def _labels(value: Any) -> list[Any]:
    """The indices along the axes; None for an index itself."""
    return list(getattr(value, "axes", ()))


def blocks_of(value: Any) -> list[np.ndarray] | None:
    """The arrays of numbers behind it, if it has no others."""
    arrays = getattr(getattr(value, "_mgr", None), "arrays", None)
    if arrays is None or not all(
        type(a) is np.ndarray and a.dtype.kind in "biufcmM" for a in arrays
    ):
        return None
    return list(arrays)


# -------------------------------------------------------------------------------- standard objects


_ENVIRONMENT = type(os.environ)


def of_standard(value: Any, weak: dict[int, Any]) -> Iterator[Source] | None:
    """The places in such an object; None for any other.

    What it does not keep alive is put into ``weak``: a reference for each id.
    """
    kind = type(value)
    if kind is weakref.ProxyType or kind is weakref.CallableProxyType:
        return _of_proxy(value, weak)
    if issubclass(kind, weakref.ref):
        return _of_reference(value, weak)
    if issubclass(kind, ContextVar):
        return iter((place_of(value_in_context(value), value, "_in_context({0})", ".get()"),))
    if issubclass(kind, weakref.WeakKeyDictionary | weakref.WeakValueDictionary | weakref.WeakSet):
        return iter((Source(value.data, FIXED, value, "{0}.data", ""),))
    if value is os.getenv:
        return iter((Source(os.environ, FIXED, value, "{0}.__globals__['environ']", ""),))
    if kind is _ENVIRONMENT:
        access = "_frozenset({0}._data.items())"
        return iter((Source(frozenset(value._data.items()), VALUE, value, access, "[...]"),))
    return None


def of_memory(value: Any) -> Iterator[Source]:
    """The bytes of an object of ctypes, and what a pointer leads to."""
    if not any(base.__module__ == "_ctypes" for base in type(value).__mro__):
        return
    yield Source(bytes(value), VALUE, value, "_bytes({0})", "[...]")
    if isinstance(value, sys.modules["ctypes"]._Pointer) and value:
        yield Source(value.contents, FIXED, value, "{0}.contents", ".contents")


def _of_reference(value: Any, weak: dict[int, Any]) -> Iterator[Source]:
    result = value()  # as a holder, a reference would stand for what it leads to
    yield Source(result is None, VALUE, None, "({1}() is None)", "()", key=value)
    if result is not None:
        weak.setdefault(id(result), value)
        child = fixed_place(result, None, "{1}()", "()")
        child.key = value
        yield child


def _of_proxy(value: Any, weak: dict[int, Any]) -> Iterator[Source]:
    item = value.__init__.__self__  # a proxy passes on all that it is asked for
    weak.setdefault(id(item), weakref.ref(item))
    yield fixed_place(item, value, "{0}.__init__.__self__", "")
