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
A launch takes 3 to 10 us while the threads of the pool are awake, and 20 to 50 us where they have
to be woken, on a virtual machine most of all. What it takes of threads that are awake is measured
when the pool starts, and a further thread gets 1.5 times as much work at least, by the estimate of
Note [Serial time]. Before that it gets 20 us: a pool takes longer to start than
most programs win by it. Smaller work starts the pool once ``BEFORE_POOL_NS`` of it have been done.

Of work below ``DOUBTFUL`` times what a thread gets the estimate does not decide: it says what to
begin with, and variants are timed (Note [Trials] in ``trials``). Above that it is checked whether
launches pay. A launch tells what it lost against one thread, for example since another process uses
a core (Note [Shares] in ``native.driver``). Threads that slept lose once and are awake then, so it
is ``SERIES`` launches that lose one after the other that tell. For ``PATIENCE`` times as long as
they lost, work that would win less than such a launch costs is left to one thread, so launches that
do not pay take little of the time.

Note [Serial time]
------------------
An estimate decides whether several threads are worth their launch, so it has to be
right within a factor of two, on any CPU. Arithmetic is priced per operation, by the emitter of
generated code or by a constant beside a kernel written by hand. A byte that is read or written has
the price of the smallest cache that holds all of them. From the second level and the third cores
read and write 25 to 160 GB/s, so that is measured, once a process: what NumPy takes to add two
arrays of a size. Bytes from memory are priced at 15 GB/s (12 to 30 measured).

Threads share the third level with the rest of the machine, so half of it counts.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from numgrad import config
from numgrad.codegen.locks import KERNELS, POOL, deferred
from numgrad.codegen.native import thread_pool as launcher
from numgrad.codegen.trials import VariantTrial

MEMORY_NS = 0.065
"""Nanoseconds a byte from memory, and the most that one from a cache costs."""
L3_NS = 0.035
"""Cost of one from the third level where it is not to be measured: it would show in a text."""
_L2, _L3 = 1 << 20, 16 << 20
"""Bytes of caches where the system does not tell."""
_SOME = 10
"""How many additions are timed; the quickest counts, as others may be interrupted."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def cache_sizes() -> tuple[int, int]:
    """Bytes of a core's second level and of the third one."""
    sizes: dict[str, int] = {}
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, kind, size = (
                (index / name).read_text().strip() for name in ("level", "type", "size")
            )
            if kind != "Instruction":
                sizes[level] = int(size.rstrip("KMG")) * _UNITS.get(size[-1:], 1)
        except (OSError, ValueError):
            continue
    second = sizes.get("2") or _L2
    return second, max(sizes.get("3") or _L3, second)


def byte_ns(held: float) -> float:
    """The price of a byte for a kernel that reads and writes ``held`` different ones."""
    second, third = cache_sizes()
    if held > third / 2:
        return MEMORY_NS
    return moving_ns(second // 2 if held <= second else min(4 * second, third // 2))


@cache
def moving_ns(held: int) -> float:
    """Nanoseconds that a byte takes here in a loop over ``held`` bytes of arrays, measured."""
    a, b, c = np.ones((3, max(held // 24, 1)))
    least = float("inf")
    for _ in range(_SOME):
        begin = perf_counter_ns()
        np.add(a, b, out=c)
        least = min(least, perf_counter_ns() - begin)
    return min(least / (3 * a.nbytes), MEMORY_NS)


def serial_ns(computing_ns: float, moved: float) -> float:
    """Nanoseconds in one thread: Note [Serial time].

    Parameters
    ----------
    computing_ns
        What its arithmetic takes.
    moved
        Bytes that it reads and writes, each once.
    """
    return computing_ns + moved * byte_ns(moved)


WORK_PER_THREAD_NS = 20_000.0
"""A further thread pays from no more than this much work (nanoseconds): Note [Worth threads]."""
LEAST_PER_THREAD_NS = 5_000.0
"""And from no less, whatever a launch takes."""
LAUNCHES_PER_THREAD = 1.5
"""Launches that the work of a further thread is worth, between these two limits."""
BEFORE_POOL_NS = 5e7
"""Work that would have paid for threads, had there been any, from which on the pool is started."""
SERIES = 3
"""Launches that lose one after the other until others like them are avoided."""
PATIENCE = 32
"""For how many times what a launch lost others like it are avoided."""
DOUBT = 2.0
"""The factor by which estimates may be wrong."""
DOUBTFUL = 8
"""Work below so many times what a thread gets is tried with one thread and with several."""
BEFORE_TRIAL_NS = 1e8
"""Work that is done before the first trial, which may have to compile a variant."""

_pool_ready = False
_forked = False
_needs_lock = False
_measured_ns, _without_pool_ns = float("inf"), 0.0
_overhead_ns, _avoided_until = 0.0, 0.0
_losing, _lost_ns, _least_overhead_ns = 0, 0.0, 0.0


def _after_fork_in_child() -> None:
    global _forked
    if _pool_ready and launcher.layer() == "omp":
        _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def prepare_pool() -> None:
    """Set what the thread pool reads at start, start it, and measure what a launch takes."""
    global _pool_ready, _needs_lock, _measured_ns
    if _pool_ready:
        return
    os.environ.setdefault("GOMP_SPINCOUNT", "300")
    with KERNELS, deferred():
        launcher.prepare()
        _needs_lock = launcher.layer() == "workqueue"
        _measured_ns = max(LEAST_PER_THREAD_NS, LAUNCHES_PER_THREAD * launcher.launch_ns())
        _pool_ready = True


def least_ns() -> float:
    """Work that is always left to one thread."""
    return 2 * min(LEAST_PER_THREAD_NS, WORK_PER_THREAD_NS)


def work_per_thread_ns() -> float:
    """The work from which on a further thread pays: Note [Worth threads]."""
    return WORK_PER_THREAD_NS if _measured_ns > WORK_PER_THREAD_NS else _measured_ns


def worth(work_ns: float) -> int:
    """Number of threads to use for ``work_ns`` nanoseconds of serial work."""
    least = WORK_PER_THREAD_NS if _measured_ns > WORK_PER_THREAD_NS else _measured_ns
    if work_ns < 2 * least or _forked:
        if not _pool_ready and work_ns >= least_ns():
            _wait_for_pool(work_ns)
        return 1
    count = min(config.get_num_threads(), int(work_ns / least))
    return 1 if _is_avoided(work_ns, count) else count


def on_trial(work_ns: float) -> int:
    """Number of threads to try for work of which no estimate tells; 1 where there is no trial."""
    least = work_per_thread_ns()
    if _forked or not (_pool_ready and least_ns() <= work_ns < DOUBTFUL * least):
        return 1
    count = min(config.get_num_threads(), max(2, int(work_ns / least)))
    return 1 if count > 1 and _is_avoided(work_ns, count) else count


def _is_avoided(work_ns: float, count: int) -> bool:
    gain = work_ns - work_ns / count
    return gain < DOUBT * _overhead_ns and perf_counter_ns() < _avoided_until


def _wait_for_pool(work_ns: float) -> None:
    """Start the pool when work that would have paid for threads has taken long enough."""
    global _without_pool_ns
    if config.get_num_threads() > 1:
        _without_pool_ns += work_ns
        if _without_pool_ns >= BEFORE_POOL_NS:
            prepare_pool()


def launch(entry: Callable[..., Any], threads: int, *arguments: Any) -> Any:
    """Call a parallel kernel with at most ``threads`` threads."""
    launcher.set_num_threads(min(threads, launcher.thread_count()))  # Numba may have changed it
    if _needs_lock:
        with POOL:
            result = entry(*arguments)
    else:
        result = entry(*arguments)
    _learn(*launcher.losses())
    return result


class ChunkLauncher:
    """A parallel kernel that itself decides which of its loops are worth a launch.

    What the last call took stands for the work of this one where launches do not pay.
    """

    def __init__(self, entry: Callable[..., Any]) -> None:
        self.entry, self.last_ns = entry, 0

    def __call__(self, *arguments: Any) -> Any:
        count = 1 if _forked else config.get_num_threads()
        if count > 1 and self.last_ns and _is_avoided(self.last_ns, count):
            count = 1
        begin = perf_counter_ns()
        result = launch(self.entry, count, *arguments)
        self.last_ns = perf_counter_ns() - begin
        return result


def _learn(lost: float, overhead: float) -> None:
    """Take note of what a launch lost, or that it paid: Note [Worth threads]."""
    global _overhead_ns, _avoided_until, _losing, _lost_ns, _least_overhead_ns
    if not lost:
        _losing, _lost_ns = 0, 0.0
        return
    _least_overhead_ns = min(overhead, _least_overhead_ns) if _losing else overhead
    _losing, _lost_ns = _losing + 1, _lost_ns + lost
    if _losing >= SERIES:
        _overhead_ns, _avoided_until = _least_overhead_ns, perf_counter_ns() + PATIENCE * _lost_ns
        _losing, _lost_ns = 0, 0.0


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

    The choice is made at each call, since the limit of threads, forking and trials change it.
    ``released`` makes the serial variant for work that would pay for threads but may not have them:
    other Python threads run beside it. For little work giving up the interpreter's lock costs too
    much.
    """
    if work_ns < least_ns():
        return serial()

    alone = released or serial
    trial: VariantTrial | None = None

    def call(count: int, *arguments: Any) -> Any:
        return launch(parallel(), count, *arguments) if count > 1 else alone()(*arguments)

    def run(*arguments: Any) -> Any:
        nonlocal trial
        if trial is not None and trial.alone > 0:
            trial.alone -= 1
            return alone()(*arguments)
        tried = on_trial(work_ns)
        if tried < 2:
            return call(worth(work_ns), *arguments)
        if trial is None:
            trial = VariantTrial(worth(work_ns) > 1, int(BEFORE_TRIAL_NS / work_ns))
        return trial.run(call, tried, *arguments)

    return run
