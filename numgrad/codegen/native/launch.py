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
from typing import Any, NamedTuple

from numgrad.errors import NumgradRuntimeError

_LIBRARIES = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}
_TBB = {"win32": "tbb12.dll", "darwin": "libtbb.12.dylib"}
_OLDEST_TBB = 12060

_DRIVER = """\
declare i32 @numgrad_layer_get_num_threads()
declare void @numgrad_layer_parallel_for(ptr, ptr, ptr, ptr, ptr, i64, i64, i64)

define private void @piece(ptr %args, ptr %lengths, ptr %steps, ptr %data) #0 {
start:
  %function = load ptr, ptr %data
  %context_at = getelementptr inbounds ptr, ptr %data, i64 1
  %context = load ptr, ptr %context_at
  %first_at = load ptr, ptr %args
  %first = ptrtoint ptr %first_at to i64
  %length = load i64, ptr %lengths
  %end = add i64 %first, %length
  br label %check
check:
  %task = phi i64 [ %first, %start ], [ %next, %loop ]
  %more = icmp slt i64 %task, %end
  br i1 %more, label %loop, label %done
loop:
  call void %function(i64 %task, ptr %context)
  %next = add i64 %task, 1
  br label %check
done:
  ret void
}

define i32 @parallel_for(ptr %function, ptr %context, i64 %tasks) #0 {
start:
  %args = alloca ptr
  %lengths = alloca i64
  %steps = alloca i64
  %data = alloca [2 x ptr]
  store ptr null, ptr %args
  store i64 %tasks, ptr %lengths
  store i64 1, ptr %steps
  store ptr %function, ptr %data
  %context_at = getelementptr inbounds ptr, ptr %data, i64 1
  store ptr %context, ptr %context_at
  %threads = call i64 @thread_limit()
  %one = icmp slt i64 %threads, 2
  %few = icmp slt i64 %tasks, 2
  %alone = or i1 %one, %few
  br i1 %alone, label %here, label %launch
here:
  call void @piece(ptr %args, ptr %lengths, ptr %steps, ptr %data)
  ret i32 0
launch:
  call void @numgrad_layer_parallel_for(ptr @piece, ptr %args, ptr %lengths, ptr %steps, ptr %data,
                                        i64 0, i64 1, i64 %threads)
  ret i32 0
}

define i64 @thread_limit() #0 {
  %threads = call i32 @numgrad_layer_get_num_threads()
  %wide = sext i32 %threads to i64
  ret i64 %wide
}
"""
"""A piece of the loop is as many tasks as the layer likes: its argument is their first, an address
that the layer moves by one byte a task."""


class _Pool(NamedTuple):
    name: str
    library: Any
    threads: int


_layer: _Pool | None = None
_set_num_threads: Any = None


def prepare() -> None:
    """Start the threads, and make what kernels call known to the linker.

    The caller holds ``locks.KERNELS``.
    """
    global _layer, _set_num_threads
    if _layer is not None:
        return
    from llvmlite import binding

    from numgrad.codegen.native import machine

    chosen = _numbas() if "numba" in sys.modules else _chosen() or _numbas()
    library = chosen.library
    _set_num_threads = ctypes.PYFUNCTYPE(None, ctypes.c_int)(library.set_num_threads)
    for function in ("get_num_threads", "parallel_for"):
        binding.add_symbol(f"numgrad_layer_{function}", getattr(library, function))
    for name, address in machine.load_shared("launch", _DRIVER).items():
        binding.add_symbol(f"numgrad_{name}", address)
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


def _prepared() -> _Pool:
    if _layer is None:
        raise NumgradRuntimeError("the thread pool has not been started; call launch.prepare()")
    return _layer


# ----------------------------------------------------------------------------- which layer it is


def _numbas() -> _Pool:
    """The layer that Numba, which is there, has or now chooses."""
    from numba.core import config as numba_config
    from numba.np.ufunc import parallel

    config: Any = numba_config
    parallel._launch_threads()
    name = parallel.threading_layer()
    library = sys.modules[f"numba.np.ufunc.{_LIBRARIES[name]}"]
    return _Pool(name, library, config.NUMBA_NUM_THREADS)


def _chosen() -> _Pool | None:
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
            return _Pool(name, library, int(threads))
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
