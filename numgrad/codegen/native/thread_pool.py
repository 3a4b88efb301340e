"""Parallel loops of native kernels, on the threads of Numba's threading layer.

Note [One pool]
---------------
Threads that compete for cores cost more than they gain, so native kernels, those of Numba and
users' own run on one pool: a shared library of Numba's, which needs nothing of Numba. It is loaded
alone, by the rules and settings by which Numba chooses, as long as Numba is not there. Numba finds
the same library when it is imported later, with its threads already started.

A kernel calls ``i32 @numgrad_parallel_for(ptr function, ptr context, i64 tasks)``, which calls
``void function(i64 task, ptr context)`` for each task and returns 0 when all are done, and
``i64 @numgrad_thread_limit()``, the number of threads that a launch may use.
"""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from numgrad.codegen.native.driver import DRIVER
from numgrad.errors import NumgradRuntimeError

_LIBRARIES = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}
_TBB = {"win32": "tbb12.dll", "darwin": "libtbb.12.dylib"}
_OLDEST_TBB = 12060
SOME = 20
"""Launches that are timed when the threads have been started."""


class _ThreadPool(NamedTuple):
    name: str
    library: Any
    threads: int


_layer: _ThreadPool | None = None
_set_num_threads: Any = None
_lost: Callable[[], int] = int
_overhead: Callable[[], int] = int
_cycles: Callable[[], int] = int
_idle: Callable[[], int] = int
_started = 0, 0


def prepare() -> None:
    """Start the threads, and make what kernels call known to the linker.

    The caller holds ``locks.KERNELS``.
    """
    global _layer, _set_num_threads, _lost, _overhead, _cycles, _idle, _started
    if _layer is not None:
        return
    from llvmlite import binding

    from numgrad.codegen.native import machine

    chosen = _numbas() if "numba" in sys.modules else _chosen() or _numbas()
    library = chosen.library
    _set_num_threads = ctypes.PYFUNCTYPE(None, ctypes.c_int)(library.set_num_threads)
    for function in ("get_num_threads", "parallel_for"):
        binding.add_symbol(f"numgrad_layer_{function}", getattr(library, function))
    addresses = machine.load_shared("launch", DRIVER)
    for name in ("parallel_for", "thread_limit"):
        binding.add_symbol(f"numgrad_{name}", addresses[name])
    counter = ctypes.PYFUNCTYPE(ctypes.c_int64)
    names = ("lost", "overhead", "cycles", "idle")
    _lost, _overhead, _cycles, _idle = (counter(addresses[name]) for name in names)
    _started = _cycles(), time.perf_counter_ns()
    _layer = chosen


def layer() -> str:
    """The name of the threading layer: ``tbb``, ``omp`` or ``workqueue``."""
    return _prepared().name


def thread_count() -> int:
    """How many threads there are."""
    return _prepared().threads


def set_num_threads(count: int) -> None:
    """Let launches by this Python thread use at most so many threads."""
    _set_num_threads(count)


def launch_ns() -> float:
    """Time of a launch of two threads that have nothing to do and are awake, in nanoseconds.

    It is the least of some: the first one wakes the threads, others may be interrupted.
    """
    set_num_threads(min(2, thread_count()))
    least = float("inf")
    for _ in range(SOME):
        begin = time.perf_counter_ns()
        _idle()
        least = min(least, time.perf_counter_ns() - begin)
    losses()  # which these are not to count among
    return least


def losses() -> tuple[float, float]:
    """Nanoseconds that launches since the last call lost, and their overhead: Note [Shares].

    Both are 0 if they have lost nothing.
    """
    lost, overhead = _lost(), _overhead()
    if lost <= 0:
        return 0.0, 0.0
    begin, moment = _started
    cycle = (time.perf_counter_ns() - moment) / max(_cycles() - begin, 1)
    return lost * cycle, overhead * cycle


def _prepared() -> _ThreadPool:
    if _layer is None:
        raise NumgradRuntimeError("the thread pool has not been started; call launch.prepare()")
    return _layer


# ----------------------------------------------------------------------------- which layer it is


def _numbas() -> _ThreadPool:
    """The layer that Numba, which is there, has or now chooses."""
    from numba.core import config as numba_config
    from numba.np.ufunc import parallel

    config: Any = numba_config
    parallel._launch_threads()
    name = parallel.threading_layer()
    library = sys.modules[f"numba.np.ufunc.{_LIBRARIES[name]}"]
    return _ThreadPool(name, library, config.NUMBA_NUM_THREADS)


def _chosen() -> _ThreadPool | None:
    """The layer that Numba would choose, started; None where that is for Numba to say."""
    setting = os.environ.get("NUMBA_THREADING_LAYER", "default").lower()
    order = os.environ.get("NUMBA_THREADING_LAYER_PRIORITY", "tbb omp workqueue").split()
    threads = os.environ.get("NUMBA_NUM_THREADS", str(_cores()))
    names = [setting] if setting in _LIBRARIES else order
    known = setting in ("default", *_LIBRARIES) and set(order) == set(_LIBRARIES)
    if os.path.exists(".numba_config.yaml") or not known or not threads.isdecimal():
        return None
    for name in names:
        library = _library(name)
        if library is not None and int(threads) > 0:
            ctypes.PYFUNCTYPE(None, ctypes.c_int)(library.launch_threads)(int(threads))
            ctypes.PYFUNCTYPE(None, ctypes.c_int)(library.set_num_threads)(int(threads))
            return _ThreadPool(name, library, int(threads))
    return None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _library(name: str) -> Any:
    """A threading layer's library, without importing Numba; None if it cannot be used.

    It is not left for others to find, who expect it inside its package.
    """
    if name == "tbb" and not _has_tbb():
        return None
    numba = importlib.util.find_spec("numba")
    if numba is None or not numba.submodule_search_locations:
        return None
    directories = [os.path.join(at, "np", "ufunc") for at in numba.submodule_search_locations]
    full = f"numba.np.ufunc.{_LIBRARIES[name]}"
    spec = importlib.machinery.PathFinder.find_spec(full, directories)
    if spec is None or spec.loader is None:
        return None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module


def _has_tbb() -> bool:
    """Whether there is a TBB that Numba would use."""
    try:
        version = ctypes.CDLL(_TBB.get(sys.platform, "libtbb.so.12")).TBB_runtime_interface_version
    except (OSError, AttributeError):
        return False
    return version() >= _OLDEST_TBB
