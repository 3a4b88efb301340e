"""Objects of libraries and of Python's own that lead to numbers of the user's.

Their code is taken for constant, but what they hold may be changed in place: a column of a table,
coefficients of a polynomial, what a model was fitted to.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from types import MemberDescriptorType
from typing import Any
from weakref import (
    CallableProxyType,
    ProxyType,
    WeakKeyDictionary,
    WeakSet,
    WeakValueDictionary,
    ref,
)

import numpy as np

from numgrad.compiler.call.source import (
    CONTENT,
    FIXED,
    VALUE,
    Content,
    Source,
    fixed_place,
    place_of,
    value_in_context,
)

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
    sources = [(part, results, f"{{0}}[{name!r}]", name) for name, part in results.items()]
    slots = (
        n for b in kind.__mro__ for n, m in vars(b).items() if isinstance(m, MemberDescriptorType)
    )
    sources += [(getattr(value, n, None), value, f"{{0}}.{n}", n) for n in slots]
    for part, holder, access, name in sources:
        if type(part) is not np.ndarray or part.dtype.kind not in "biufc":
            if not inner and type(part).__module__.startswith(f"{package}."):
                yield from of_library(part, names, inner=True)
            continue
        if name in names:
            yield place_of(part, holder, access, f".{name}")
        else:
            yield Source(Content(part, whole=True), CONTENT, holder, access, f".{name}")


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
    if kind is ProxyType or kind is CallableProxyType:
        return _of_proxy(value, weak)
    if issubclass(kind, ref):
        return _of_reference(value, weak)
    if issubclass(kind, ContextVar):
        return iter((place_of(value_in_context(value), value, "_in_context({0})", ".get()"),))
    if issubclass(kind, WeakKeyDictionary | WeakValueDictionary | WeakSet):
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
        part = fixed_place(result, None, "{1}()", "()")
        part.key = value
        yield part


def _of_proxy(value: Any, weak: dict[int, Any]) -> Iterator[Source]:
    item = value.__init__.__self__  # a proxy passes on all that it is asked for
    weak.setdefault(id(item), ref(item))
    yield fixed_place(item, value, "{0}.__init__.__self__", "")
