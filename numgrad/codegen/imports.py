"""Imports that other threads are at, as one lock, which a fork can wait for.

Python locks each module while it is imported. A forked child has those locks as they were: one
that another thread of the parent held stays taken, with the module half made, and an import of it
never ends. So a fork waits until nobody else imports, and meanwhile lets no import begin.
"""

import _imp
import sys
import threading
import time
from importlib import import_module
from typing import Any

_bootstrap: Any = import_module("importlib._bootstrap")

PAUSE = 0.001
"""Seconds between two looks at what is being imported."""


class Imports:
    """The lock: had while this thread alone imports. It works as one of ``threading`` does."""

    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool:
        """Wait until no other thread imports; whether that was so in time."""
        end = time.monotonic() + timeout
        while True:
            _imp.acquire_lock()  # which an import needs to begin
            if not _of_others():
                return True
            _imp.release_lock()
            if not blocking or (timeout >= 0 and time.monotonic() > end):
                return False
            time.sleep(PAUSE)

    def release(self) -> None:
        """Let others import."""
        _imp.release_lock()

    def _at_fork_reinit(self) -> None:
        """In a child: forget what threads that are not there were importing."""
        for name in _of_others():
            _bootstrap._module_locks.pop(name, None)
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if getattr(spec, "_initializing", False):
                del sys.modules[name]


def _of_others() -> list[str]:
    """Names of the modules that other threads import."""
    mine = (None, threading.get_ident())
    locks = [(name, reference()) for name, reference in list(_bootstrap._module_locks.items())]
    return [name for name, lock in locks if getattr(lock, "owner", None) not in mine]
