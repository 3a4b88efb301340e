"""Locks of the package and what a fork does to them; signals that wait until a kernel is complete.

Note [Fork]
-----------
A forked child has the memory of all threads, but only the thread that forked: a lock that another
one held would stay taken for ever, and what it guards half changed. So a fork first takes all
locks, Numba's and LLVM's and those of imports too, and gives them back in the parent and in the
child: it waits for the kernel that another thread compiles, and the child can compile the next one.

It waits for one lock at a time, holding no other, so it has no part in a deadlock whatever order
threads take them in. After ``PATIENCE`` seconds it goes on; in the child, locks that are then still
held are free again. ``TRACING`` is not waited for: it is held while a user's function runs, which
may itself wait for the fork; what is being traced is not yet part of any state.

What is registered last runs first in a fork. ``logging`` holds its lock across a fork too, and
importing Numba takes it, so it has to come first here.

Note [Ctrl-C]
-------------
An exception that interrupts the import of Numba, or the filling of its registries, leaves these
half done for good: later compilations fail with errors about unknown types. One that is raised in a
function that LLVM calls back is lost. So while a kernel is compiled or loaded, signals are noted,
and their handlers are called when it is complete: Ctrl-C arrives between two kernels.

That concerns all signals that have a handler in Python, any of which may raise, and the main
thread, where Python runs them. Those without one (the default action, a handler in C or of an
embedding program) are left as they are. A deferral inside another one leaves it at that.

What owns native memory, such as a module of LLVM, is made, used and given up within one deferral:
llvmlite gives up an object, then marks it, and an exception in between gives it up twice.

Note [File locks]
-----------------
One process at a time does a piece of work: a lock on a file, which the system releases when the
process ends. All locks are in one file, a byte for each name, since files of their own would have
to be removed by somebody. A process that is stopped with a lock held delays others for
``FILE_PATIENCE`` seconds. Where locks do not work (some network file systems, a directory that
cannot be written to), processes go on without, and work is done twice.
"""

import _imp
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from numgrad.libraries import LOADING

# All are reentrant: a collection of garbage may run anything inside.
TRACING = threading.RLock()
"""Lock held while ``ng.jit`` traces and compiles a function."""
ACCUMULATORS = threading.RLock()
"""Lock held while a leaf's accumulator is made."""
ENTRIES = threading.RLock()
"""Lock held while functions behind calls of operations get other code, and while a profile
starts."""
FUNCTIONS = threading.RLock()
"""Lock held while the functions that a worker keeps are looked up."""
GRADIENTS = threading.RLock()
"""Lock held while gradients are added to ``.grad``: threads may share a leaf. One for all
leaves, since taking a lock costs as much as adding a hundred numbers, and big sums are bound by
memory anyway."""
DRAWS = threading.RLock()
"""Lock held while generators of random numbers draw from other states than their own."""
KERNELS = threading.RLock()
"""Lock held while a kernel is compiled or loaded, or Numba imported: one at a time, since
Numba holds a global lock of its own anyway."""
POOL = threading.RLock()
"""Lock held while a parallel kernel runs, if Numba's threading layer cannot run two."""

PATIENCE = 30.0
"""Seconds after which a fork goes on without a lock: kernels take less to compile."""


_bootstrap: Any = import_module("importlib._bootstrap")

PAUSE = 0.001
"""Seconds between two looks at what is being imported."""


class Imports:
    """Imports that other threads are at, as one lock, which works as those of ``threading`` do.

    Python locks each module while it is imported. A forked child has those locks as they were: one
    that another thread of the parent held stays taken, with the module half made, and an import of
    it never ends. So a fork waits until nobody else imports, and meanwhile lets no import begin.
    """

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
        """Forget, in a child process, what threads that are not there were importing."""
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


_gate = threading.Lock()
"""Lock held by a fork that waits for ``KERNELS``."""

_IMPORTS = Imports()

_OTHERS = {
    "numba.core.compiler_lock": "global_compiler_lock._lock",
    "numba.np.ufunc.parallel": "_backend_init_thread_lock",
    "llvmlite.binding.ffi": "lib._lock._lock",
    "numpy.random.mtrand": "_rand._bit_generator.lock",
}
"""Locks of libraries, by the module that they are in."""

_fork = threading.local()


def give_way() -> None:
    """Let a fork that waits for ``KERNELS`` have it.

    Otherwise a thread that takes the lock over and over keeps it: to wake up takes longer.
    """
    lock: Any = KERNELS
    if not lock._is_owned():
        with _gate:
            pass


def _locks() -> list[Any]:
    """All locks that a fork waits for; those of libraries once these are loaded."""
    locks: list[Any] = [
        ACCUMULATORS, DRAWS, ENTRIES, FUNCTIONS, GRADIENTS, KERNELS, LOADING, POOL, _IMPORTS,
    ]  # fmt: skip
    for module, path in _OTHERS.items():
        lock: Any = sys.modules.get(module)
        for name in path.split("."):
            lock = getattr(lock, name, None)  # a module may just be being imported
        if lock is not None:
            locks.append(lock)
    return locks


def _before_fork() -> None:
    """Take all locks; those that cannot be had in time are left."""
    _fork.taken, _fork.left = [], []
    with deferred():  # an exception would be printed and forgotten, with some of the locks taken
        locks = _locks()
        _fork.taken = _all(locks)
        for lock in [TRACING] if _fork.taken else [TRACING, *locks]:
            (_fork.taken if lock.acquire(blocking=False) else _fork.left).append(lock)


def _all(locks: list[Any]) -> list[Any]:
    """Take all of the locks, or none if that takes too long."""
    end = time.monotonic() + PATIENCE
    while True:
        with _gate if locks[0] is KERNELS else nullcontext():
            if not locks[0].acquire(timeout=max(0.0, end - time.monotonic())):
                return []
        for count in range(1, len(locks)):
            if not locks[count].acquire(blocking=False):
                _release(locks[:count])
                locks.insert(0, locks.pop(count))  # the one to wait for
                break
        else:
            return locks


def _after_fork_in_parent() -> None:
    _release(_fork.taken)


def _after_fork_in_child() -> None:
    _release(_fork.taken)
    left: list[Any] = [*_fork.left, _gate, _IMPORTS]
    for lock in left:
        lock._at_fork_reinit()


def _release(locks: list[Any]) -> None:
    for lock in locks:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


Handler = Callable[[int, FrameType | None], object]
_SIGNALS = tuple(map(int, signal.valid_signals()))
_handler: Callable[[int], Any] = getattr(import_module("_signal"), "getsignal", signal.getsignal)
"""The function that ``signal`` wraps to make a member of an enumeration of each number: 0.1 ms."""
_deferring: int | None = None
"""The main thread while it is inside of a deferral; a fork by another thread has another one."""


def python_handlers() -> Iterator[tuple[int, Handler]]:
    """Signals that a function of Python's handles, each with it."""
    for number in _SIGNALS:
        handler = _handler(number)
        if callable(handler):
            yield number, handler


@contextmanager
def deferred() -> Iterator[None]:
    """Let signals that arrive inside the block wait for its end."""
    global _deferring
    thread = threading.get_ident()
    if _deferring == thread or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Handler] = {}
    noted: dict[int, FrameType | None] = {}
    noting = True

    def handle(number: int, frame: FrameType | None) -> None:
        if noting:
            noted[number] = frame
        else:  # its handler is just being put back, or could not be because another one raised
            handlers[number](number, frame)

    try:
        for number, handler in python_handlers():
            handlers[number] = handler
            with suppress(ValueError):  # not the main interpreter, which alone gets signals
                signal.signal(number, handle)
        _deferring = thread
        yield
    finally:
        noting, _deferring = False, None
        try:
            _put_back(dict(handlers))
        finally:
            _call(handlers, noted)


def _put_back(handlers: dict[int, Handler]) -> None:
    """Make handlers those of their signals again, even if one of them is called and raises."""
    try:
        while handlers:
            number, handler = next(reversed(handlers.items()))
            if _handler(number) is not handler:
                with suppress(ValueError):
                    signal.signal(number, handler)
            del handlers[number]
    finally:
        if handlers:
            _put_back(handlers)


def _call(handlers: dict[int, Handler], noted: dict[int, FrameType | None]) -> None:
    """Call the handlers of all noted signals, even if one raises."""
    if noted:
        number, frame = noted.popitem()
        try:
            handlers[number](number, frame)
        finally:
            _call(handlers, noted)


fcntl: Any
msvcrt: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

NAME = ".lock"
FILE_PATIENCE = 60.0
_SHORTEST, _LONGEST = 0.002, 0.02
"""Seconds between two tries."""


@contextmanager
def held(path: Path | None, name: str) -> Iterator[None]:
    """Hold the lock of this name in the file at ``path``, if it can be had."""
    try:
        file = None if path is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        file = None
    if file is None:
        yield
        return
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:3])
    taken = False
    try:
        taken = _wait(file, byte)
        yield
    finally:
        if taken and fcntl is None:  # which closing the file does later
            _windows_lock(file, byte, msvcrt.LK_UNLCK)
        os.close(file)


def _wait(file: int, byte: int) -> bool:
    """Lock one byte, which need not be in the file; return whether that worked."""
    end = time.monotonic() + FILE_PATIENCE
    pause = _SHORTEST
    while time.monotonic() < end:
        try:
            if fcntl is not None:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            else:
                _windows_lock(file, byte, msvcrt.LK_NBLCK)
            return True
        except (BlockingIOError, PermissionError):  # another process has it
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
        except OSError:
            break
    return False


def _windows_lock(file: int, byte: int, mode: int) -> None:
    os.lseek(file, byte, os.SEEK_SET)
    msvcrt.locking(file, mode, 1)
