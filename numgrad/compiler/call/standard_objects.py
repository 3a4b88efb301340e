"""Objects of Python's own that lead to what users put there.

Those in which others are held (references, context variables), and memory of C. What belongs to a
thread or context is read in the one that calls.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any
from weakref import (
    CallableProxyType,
    ProxyType,
    WeakKeyDictionary,
    WeakSet,
    WeakValueDictionary,
    ref,
)

from numgrad.compiler.call.source import (
    FIXED,
    VALUE,
    Source,
    fixed_place,
    place_of,
    value_in_context,
)

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
    found = value()  # as a holder, a reference would stand for what it leads to
    yield Source(found is None, VALUE, None, "({1}() is None)", "()", key=value)
    if found is not None:
        weak.setdefault(id(found), value)
        part = fixed_place(found, None, "{1}()", "()")
        part.key = value
        yield part


def _of_proxy(value: Any, weak: dict[int, Any]) -> Iterator[Source]:
    found = value.__init__.__self__  # a proxy passes on all that it is asked for
    weak.setdefault(id(found), ref(found))
    yield fixed_place(found, value, "{0}.__init__.__self__", "")
