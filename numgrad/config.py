"""Settings a user may change, read at each use; every one has an environment variable."""

import os
import sys
from collections.abc import Callable
from numbers import Integral
from types import ModuleType
from typing import Any

from numgrad.errors import NumgradAttributeError, NumgradTypeError, NumgradValueError

__all__ = ["check_jit", "get_num_threads", "jit", "machine_code", "pool_bytes", "set_num_threads"]


def __dir__() -> list[str]:
    return __all__


def _flag(name: str, default: bool) -> bool:
    """An environment variable that is 0 or 1."""
    text = os.environ.get(name, "")
    return default if text not in ("0", "1") else text == "1"


def _pool_bytes() -> int:
    """The bound of the pool of memory that the environment asks for."""
    text = os.environ.get("NUMGRAD_POOL_BYTES", "")
    kept = _flag("NUMGRAD_KEEP_MEMORY", True)
    return int(text) if text.isdigit() else 1 << 30 if kept else 0


jit: bool = _flag("NUMGRAD_JIT", True)
"""Whether ``ng.jit`` compiles; without, functions run eagerly (``NUMGRAD_JIT=0``)."""
check_jit: bool = _flag("NUMGRAD_CHECK_JIT", False)
"""Whether each compiled call is compared with an eager one (``NUMGRAD_CHECK_JIT=1``)."""

machine_code: bool = _flag("NUMGRAD_MACHINE_CODE", True)
"""Whether machine code does small calls and walks of backwards, with the results of Python's form.

``ng.config.machine_code = False`` leaves those that begin after it to Python, and gives kernels
that are loaded after it an entry in Python (``NUMGRAD_MACHINE_CODE=0``). See
``numgrad.codegen.cpython``.
"""

on_machine_code: list[Callable[[], None]] = []
"""Called when ``machine_code`` has been set."""

pool_bytes: int = _pool_bytes()
"""Most bytes of large arrays and temporaries, from 32 MB on, that are kept for the next ones.

What nobody used for some seconds is given back to the system by itself, and all at once by
``ng.config.pool_bytes = 0``, which keeps nothing from then on. ``NUMGRAD_POOL_BYTES`` sets it,
otherwise it is 1 GiB, or 0 with ``NUMGRAD_KEEP_MEMORY=0``.
"""
on_pool_bytes: list[Callable[[], None]] = []
"""Called when ``pool_bytes`` has been set."""
_num_threads: int | None = None


def cpu_count() -> int:
    """Number of CPUs this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def get_num_threads() -> int:
    """Largest number of threads one kernel may use.

    ``NUMGRAD_NUM_THREADS`` sets it, otherwise ``NUMBA_NUM_THREADS``, otherwise the CPU count.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.get_num_threads() >= 1
    True
    """
    global _num_threads
    if _num_threads is None:
        for name in ("NUMGRAD_NUM_THREADS", "NUMBA_NUM_THREADS"):
            text = os.environ.get(name, "")
            if text.isdigit() and int(text) > 0:
                _num_threads = int(text)
                break
        else:
            _num_threads = cpu_count()
    return _num_threads


def set_num_threads(n: int) -> None:
    """Limit the threads one kernel may use to ``n``; results do not depend on it.

    Raises
    ------
    NumgradValueError
        If ``n`` is not a positive integer.

    Examples
    --------
    >>> import numgrad as ng
    >>> before = ng.get_num_threads()
    >>> ng.set_num_threads(1)
    >>> ng.set_num_threads(before)
    """
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise NumgradValueError(f"set_num_threads: needs a positive integer, got {n!r}")
    global _num_threads
    _num_threads = int(n)


_FLAGS = ("jit", "check_jit", "machine_code")
_BYTES = range(1 << 62)
_SETTINGS = (*_FLAGS, "pool_bytes")
_REACTIONS = {"machine_code": on_machine_code, "pool_bytes": on_pool_bytes}


class _Settings(ModuleType):
    """A module that takes no settings other than those it has."""

    def __getattr__(self, name: str) -> Any:
        raise _unknown(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in vars(self):
            raise _unknown(name)
        if name in __all__ and name not in _SETTINGS:
            raise NumgradAttributeError(f"config: {name} is a function to call, not a setting")
        if name in _FLAGS and value not in (0, 1):
            raise NumgradTypeError(f"config: {name} is True or False, got {value!r}")
        if name == "pool_bytes" and (
            isinstance(value, bool) or not isinstance(value, Integral) or int(value) not in _BYTES
        ):
            raise NumgradValueError(f"config: pool_bytes is a number of bytes, got {value!r}")
        super().__setattr__(name, value)
        for react in _REACTIONS.get(name, ()):
            react()

    def __delattr__(self, name: str) -> None:
        if name in __all__:
            raise NumgradAttributeError(f"config: {name} cannot be deleted")
        super().__delattr__(name)


def _unknown(name: str) -> NumgradAttributeError:
    """The error about a setting that does not exist."""
    return NumgradAttributeError(
        f"config: no setting is called {name!r}; there are jit, check_jit, machine_code and "
        "pool_bytes, and set_num_threads(n) and get_num_threads() for the number of threads",
        name=name,
    )


sys.modules[__name__].__class__ = _Settings
