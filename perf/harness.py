"""Timing that survives a noisy machine: one worker process per library, rounds interleaved.

Note [Rounds]
-------------
Other work on the machine slows whole stretches of seconds, so libraries must not be timed one after
the other. The parent asks each worker in turn for a slice of samples, in an order that rotates from
round to round. A sample runs a statement often enough to last some milliseconds. The figure is the
smallest sample of all rounds, since noise only adds; the median tells how noisy it was.

Libraries live in processes of their own because their thread pools disturb each other: with torch
imported first, numgrad's pool no longer yields the cores to OpenBLAS.
"""

from __future__ import annotations

import gc
import json
import os
import select
import statistics
import subprocess
import sys
import time
import timeit
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

SAMPLE_SECONDS = 0.001
"""A statement is repeated until one sample takes this long: well above the clock's resolution, and
short enough that on a busy machine some samples fit between two interruptions."""
SETTLE_SECONDS = 0.02
"""Pause before a slice: thread pools stop spinning, and what still runs are other processes."""
CLOCKS = {
    "wall": time.perf_counter,
    # on Windows it has steps of 16 ms
    "cpu": time.process_time if os.name == "posix" else time.perf_counter,
}
"""What samples are measured by: the clock on the wall, or the CPU time of the process."""
REPLY_SECONDS = 300.0
"""A worker that does not answer within this time is stopped, and its case has no figure."""


class WorkerError(RuntimeError):
    """A worker died, hung, or could not run what it was asked for."""


@dataclass
class Samples:
    """Seconds per execution of one statement."""

    seconds: list[float] = field(default_factory=list)

    @property
    def min(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def summary(self) -> dict[str, Any]:
        """The figures that go into JSON."""
        return {"min": self.min, "median": self.median, "samples": len(self.seconds)}


@dataclass(frozen=True)
class Statement:
    """A worker's timed statement: ``code`` run with the names of ``names``, with settings."""

    code: str
    names: dict[str, Any]


def environment(threads: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every worker: the same number of threads for all, the checkout first."""
    result = dict(os.environ)
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NPROC",  # read by XLA's thread pool
    ):
        result[name] = str(threads)
    # Settings that would favour or hinder one library.
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "NUMGRAD_NUM_THREADS", "XLA_FLAGS"):
        result.pop(name, None)
    result["JAX_PLATFORMS"] = "cpu"
    result["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), str(HERE), *filter(None, [result.get("PYTHONPATH")])]
    )
    result.update(extra or {})
    flags = [f for f in (result.get("XLA_FLAGS"), result.get("PERF_XLA_FLAGS")) if f]
    if flags:
        result["XLA_FLAGS"] = " ".join(flags)
    return result


def without_avx512() -> dict[str, str]:
    """Settings that let numgrad, Numba, NumPy, BLAS, torch and JAX use AVX2 at most.

    They are those of their own: what a library decides by itself when it runs is as on such a CPU.
    """
    from llvmlite import binding
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    beyond = ("avx512", "avx10", "amx", "evex512")
    features = binding.get_host_cpu_features().items()
    wide = [n for n in __cpu_dispatch__ if "512" in n or n == "X86_V4"]
    return {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": ",".join(
            f"{'+' if has and not name.startswith(beyond) else '-'}{name}"
            for name, has in sorted(features)
        ),
        "NPY_DISABLE_CPU_FEATURES": " ".join(n for n in wide if __cpu_features__.get(n)),
        "OPENBLAS_CORETYPE": "Haswell",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "PERF_XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
    }


# ---------------------------------------------------------------------------------- the worker


class Timed:
    """A statement made ready, with the number of executions that fills a sample."""

    def __init__(self, statement: Statement, clock: Callable[[], float]) -> None:
        self.clock = clock
        # timeit switches the cycle collector off; users have it on.
        self.timer = timeit.Timer(
            statement.code, "gc.enable()", clock, globals=statement.names | {"gc": gc}
        )
        self.timer.timeit(1)  # compiles
        self.number = 1
        while min(self.timer.timeit(self.number) for _ in range(5)) < SAMPLE_SECONDS / 4:
            self.number *= 2

    def slice(self, budget: float) -> list[float]:
        """Samples for ``budget`` seconds of the clock, at least one."""
        found: list[float] = []
        end = self.clock() + budget
        while not found or self.clock() < end:
            found.append(self.timer.timeit(self.number) / self.number)
        # interruptions may have spoilt the first choice
        self.number = max(self.number, round(SAMPLE_SECONDS / min(found)))
        return found

    def samples(self, count: int, number: int) -> list[float]:
        """So many samples of so many executions."""
        return [self.timer.timeit(number) / number for _ in range(count)]


def serve(library: Any) -> None:
    """Answer requests, one JSON object a line, until the input ends.

    Replies go to the original standard output; whatever libraries print goes to standard error.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepared: dict[str, tuple[Timed, dict[str, Any]]] = {}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "hello":
                return {"version": library.version}
            case "prepare":
                settings = {"threads": request["threads"], "recording": request["recording"]}
                build = getattr(library, request["kind"], None)
                if build is None:
                    return {"missing": True}
                library.configure(**settings)
                statement = build(**request["params"])
                timed = Timed(statement, CLOCKS[request.get("clock", "wall")])
                prepared[request["slot"]] = timed, settings
                return {"number": prepared[request["slot"]][0].number, "code": statement.code}
            case "time":
                timed, settings = prepared[request["slot"]]
                library.configure(**settings)
                if "number" in request:
                    return {"seconds": timed.samples(request["count"], request["number"])}
                return {"seconds": timed.slice(request["budget"])}
            case "drop":
                prepared.clear()
                gc.collect()
                return {}
        raise ValueError(f"unknown request {request['do']!r}")

    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception:
            reply = {"error": traceback.format_exc(limit=-4)}
            prepared.clear()
        print(json.dumps(reply), file=replies, flush=True)


# ---------------------------------------------------------------------------------- the parent


@contextmanager
def busy_cpu() -> Iterator[None]:
    """Keep one CPU busy inside the block, at most as long as this process lives."""
    loop = (
        "import os\n"
        "parent = os.getppid()\n"
        "while os.getppid() == parent:\n"
        "    for _ in range(10**6): pass"
    )
    with subprocess.Popen([sys.executable, "-c", loop]) as process:
        try:
            yield
        finally:
            process.kill()


def wait_until_quiet(patience: float) -> tuple[float, float]:
    """Wait until other processes leave half of the CPUs alone, at most ``patience`` seconds.

    Returns the share of the CPUs they use and the patience left.
    """
    began = time.monotonic()
    while True:
        busy = busy_share(SETTLE_SECONDS)
        left = patience - (time.monotonic() - began)
        if busy <= 0.5 or left <= 0:
            return busy, max(0.0, left)


def busy_share(seconds: float) -> float:
    """Share of all CPUs in use during the next ``seconds``; 0 where /proc/stat is missing."""
    try:
        before = _cpu_times()
        time.sleep(seconds)
        after = _cpu_times()
    except OSError:
        return 0.0
    spent = [b - a for a, b in zip(before, after, strict=True)]
    idle = spent[3] + spent[4]
    return 1.0 - idle / max(sum(spent), 1)


def _cpu_times() -> list[int]:
    return [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]


class Worker:
    """One library in a process of its own."""

    def __init__(self, library: str, threads: int, extra: Mapping[str, str] | None = None) -> None:
        self.library = library
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "peers.py"), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(threads, extra),
            cwd=HERE,
        )
        self._partial = b""
        try:
            self.version = str(self.ask("hello")["version"])
        except WorkerError:
            self.close()
            raise

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """Send a request and return the reply.

        Raises
        ------
        WorkerError
            If the worker reports an error, has died, or does not answer in time.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise WorkerError(f"{self.library}: the worker is gone ({error})") from error
        reply = json.loads(self._line())
        if "error" in reply:
            raise WorkerError(f"{self.library}: {reply['error']}")
        return reply

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        end = time.monotonic() + REPLY_SECONDS
        while b"\n" not in self._partial:
            ready, _, _ = select.select([handle], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise WorkerError(f"{self.library}: no answer in {REPLY_SECONDS:.0f} s")
            chunk = os.read(handle, 1 << 16)
            if not chunk:
                raise WorkerError(f"{self.library}: the worker died (status {self.process.wait()})")
            self._partial += chunk
        line, _, self._partial = self._partial.partition(b"\n")
        return line

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Team:
    """The workers of several libraries; one that fails is replaced at the next case."""

    def __init__(self, libraries: Sequence[str], threads: int) -> None:
        self.threads = threads
        self.workers: dict[str, Worker] = {}
        self.versions: dict[str, str] = {}
        self.busy: list[float] = []  # others' share of the CPUs before each slice of the last case
        for library in libraries:
            self._start(library)

    def _start(self, library: str) -> Worker:
        worker = self.workers[library] = Worker(library, self.threads)
        self.versions[library] = worker.version
        return worker

    def compare(
        self,
        contestants: Mapping[str, tuple[str, str, dict[str, Any]]],
        *,
        threads: int,
        recording: bool,
        rounds: int,
        budget: float,
        patience: float,
        complain: Callable[[str], None],
    ) -> dict[str, Samples]:
        """Time contestants against each other: Note [Rounds].

        Parameters
        ----------
        contestants
            By label: library, name of the method that builds the statement, its parameters.
        threads, recording
            Threads a library may use, and whether it records gradients.
        rounds, budget
            Number of rounds, and seconds for a contestant's slice of one.
        patience
            Seconds to wait, all in all, for moments in which other processes rest.
        complain
            Called with the reason when a contestant has no figure.
        """
        found: dict[str, Samples] = {}
        self.busy = []
        for label, (library, kind, params) in contestants.items():
            if library not in self.versions:
                continue
            try:
                worker = self.workers.get(library) or self._start(library)
                reply = worker.ask(
                    "prepare",
                    slot=label,
                    kind=kind,
                    params=params,
                    threads=threads,
                    recording=recording,
                )
                if not reply.get("missing"):
                    found[label] = Samples()
            except WorkerError as error:
                self._failed(library, error, complain)
        labels = list(found)
        for number in range(rounds):
            turn = number % len(labels) if labels else 0
            for label in labels[turn:] + labels[:turn]:
                library = contestants[label][0]
                if label not in found or library not in self.workers:
                    found.pop(label, None)
                    continue
                busy, patience = wait_until_quiet(patience)
                self.busy.append(busy)
                try:
                    reply = self.workers[library].ask("time", slot=label, budget=budget)
                    found[label].seconds += reply["seconds"]
                except WorkerError as error:
                    found.pop(label)
                    self._failed(library, error, complain)
        for library in {library for library, _, _ in contestants.values()}:
            if library in self.workers:
                self.workers[library].ask("drop")
        return found

    def _failed(self, library: str, error: WorkerError, complain: Callable[[str], None]) -> None:
        complain(str(error))
        worker = self.workers.pop(library, None)
        if worker is not None:
            worker.close()

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers.values():
            worker.close()
