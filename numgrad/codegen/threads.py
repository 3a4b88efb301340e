"""Launching parallel kernels: how many threads, and when it is not safe to use them at all.

Note [Launching safely]
-----------------------
Numba's *workqueue* layer aborts the process when two Python threads launch at once: launches take a
lock there. GNU OpenMP kills a forked child that launches once its parent had: after a fork in such
a process the serial variant runs instead (same bits, see Note [Blocks] in ``loops``).

OpenMP's threads spin after a kernel in case another one follows, and rob OpenBLAS of its cores: a
7 us kernel alternating with a 190 us matmul took 8.4 ms a pair. ``GOMP_SPINCOUNT=300`` ends that
and keeps launches cheap; it is read when the pool loads, so it is set just before, unless the user
has chosen.

Note [Worth threads]
--------------------
A launch takes 5 us while the threads of the pool still spin, and 20 to 50 us where they sleep and
have to be woken, on a virtual machine most of all. So a thread gets at least 20 us of work, by the
estimate of Note [Serial time] in ``estimate``.

Whether that was right is checked. A launch tells what it lost against one thread, for example since
another process uses a core (Note [Shares] in ``native.driver``). For ``PATIENCE`` times as long,
work that would win less than such a launch costs is left to one thread, so launches that do not pay
take little of the time.
"""

import os
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from numgrad import config
from numgrad.codegen.interrupts import deferred
from numgrad.codegen.locks import KERNELS, POOL
from numgrad.codegen.native import launch as launcher

WORK_PER_THREAD_NS = 20_000.0
"""A further thread pays from about this much work (nanoseconds): Note [Worth threads]."""
PATIENCE = 32
"""For how many times what a launch lost others like it are avoided."""
DOUBT = 2.0
"""The factor by which estimates may be wrong."""

_pool_ready = False
_forked = False
_needs_lock = False
_overhead_ns, _avoided_until = 0.0, 0.0


def _after_fork_in_child() -> None:
    global _forked
    if _pool_ready and launcher.layer() == "omp":
        _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def prepare_pool() -> None:
    """Set what the thread pool reads at start, then start it."""
    global _pool_ready, _needs_lock
    if _pool_ready:
        return
    os.environ.setdefault("GOMP_SPINCOUNT", "300")
    with KERNELS, deferred():
        launcher.prepare()
        _needs_lock = launcher.layer() == "workqueue"
        _pool_ready = True


def worth(work_ns: float) -> int:
    """Number of threads to use for ``work_ns`` nanoseconds of serial work."""
    if work_ns < 2 * WORK_PER_THREAD_NS or _forked:
        return 1
    count = min(config.get_num_threads(), int(work_ns / WORK_PER_THREAD_NS))
    gain = work_ns - work_ns / count
    avoided = gain < DOUBT * _overhead_ns and perf_counter_ns() < _avoided_until
    return 1 if avoided else count


def launch(entry: Callable[..., Any], threads: int, *arguments: Any) -> Any:
    """Call a parallel kernel with at most ``threads`` threads."""
    global _overhead_ns, _avoided_until
    launcher.set_num_threads(min(threads, launcher.thread_count()))  # Numba may have changed it
    if _needs_lock:
        with POOL:
            result = entry(*arguments)
    else:
        result = entry(*arguments)
    lost, overhead = launcher.losses()
    if lost:
        _overhead_ns, _avoided_until = overhead, perf_counter_ns() + PATIENCE * lost
    return result


def describe() -> dict[str, Any]:
    """The threading layer in use, its number of threads, and what it is safe for."""
    prepare_pool()
    layer = launcher.layer()
    return {
        "layer": layer,
        "threads": config.get_num_threads(),
        "safe_for_threads": layer in ("tbb", "omp"),
        "safe_after_fork": layer in ("tbb", "workqueue"),
    }


def choose(
    serial: Callable[[], Callable[..., Any]],
    parallel: Callable[[], Callable[..., Any]],
    work_ns: float,
    released: Callable[[], Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """A callable that runs the serial or the parallel variant of a kernel, each made when needed.

    The choice is made at each call, since the limit of threads and forking change it. ``released``
    makes the serial variant for work that would pay for threads but may not have them: other
    Python threads run beside it. For little work giving up the interpreter's lock costs too much.
    """
    if work_ns < 2 * WORK_PER_THREAD_NS:
        return serial()

    alone = released or serial

    def run(*arguments: Any) -> Any:
        threads = worth(work_ns)
        if threads < 2:
            return alone()(*arguments)
        return launch(parallel(), threads, *arguments)

    return run
