"""Sides of a comparison: a commit, a checkout, another Python, figures in a file.

Each side is timed in processes of its own, which run ``server.py``.
"""

import json
import os
import selectors
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from numgrad.benchmark import server
from numgrad.benchmark.measure import COMPILED, EAGER
from numgrad.benchmark.pairs import PairedTimes, on_one_cpu, take_turns
from numgrad.errors import PACKAGE, NumgradRuntimeError, NumgradValueError

PATIENCE = 300.0
"""Seconds after which a process that does not answer is given up."""
_POOLS = ("NUMGRAD_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Side:
    """A version of what is timed.

    Attributes
    ----------
    name
        For reports.
    python
        The interpreter.
    file
        The benchmarks.
    folders
        Where modules are looked for first.
    """

    name: str
    python: Path
    file: Path
    folders: tuple[Path, ...] = ()


class Process:
    """A process that times benchmarks of a side."""

    def __init__(self, side: Side) -> None:
        self.side = side
        paths = [*map(str, side.folders), os.environ.get("PYTHONPATH", "")]
        if side.python == Path(sys.executable):  # the numgrad of here, if there is no other
            paths.append(str(Path(PACKAGE).parent))
        variables = {
            **os.environ,
            **dict.fromkeys(_POOLS, "1"),  # CPU time is that of all threads
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        self._process = subprocess.Popen(
            [str(side.python), "-P", server.__file__, str(side.file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, cwd=side.file.parent,
        )  # fmt: skip
        self.pid = self._process.pid
        self._rest = b""
        try:
            self.names: list[str] = self.ask("read")
        except NumgradRuntimeError as error:
            self.close()
            raise NumgradValueError(f"bench: {side.name} cannot be timed: {error}") from None

    def ask(self, do: str, **request: Any) -> Any:
        """The answer to a request.

        Raises
        ------
        NumgradRuntimeError
            If the benchmark raises, or the process has ended or does not answer.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise NumgradRuntimeError("its process ended") from None
        reply = json.loads(self._line())
        if "error" in reply:
            raise NumgradRuntimeError(reply["error"])
        return reply["result"]

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        end = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise NumgradRuntimeError(f"no answer in {PATIENCE:.0f} s")
                chunk = os.read(self._process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise NumgradRuntimeError("its process ended")
                self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with stream:
                    pass
        self._process.wait()


@dataclass(frozen=True)
class _TimedForm:
    """A form of a benchmark in a process."""

    process: Process
    name: str
    form: str

    def prepare(self) -> bool:
        return self.process.ask("prepare", name=self.name, form=self.form)

    def fastest(self) -> float:
        return self.process.ask("fastest", name=self.name, form=self.form)

    def samples(self, count: int, number: int) -> list[float]:
        return self.process.ask(
            "samples", name=self.name, form=self.form, count=count, number=number
        )


class Comparison:
    """Times benchmarks of two sides; what fails is an entry of ``errors``.

    Attributes
    ----------
    names
        Of the benchmarks of either side.
    errors
        By name and form, why there is no figure.
    """

    def __init__(self, sides: tuple[Side, Side]) -> None:
        self.sides = sides
        self.errors: dict[str, str] = {}
        with self._processes(0) as processes:
            self.names = [process.names for process in processes]

    @contextmanager
    def _processes(self, number: int) -> Iterator[list[Process]]:
        processes: list[Process] = []
        try:
            with ThreadPoolExecutor() as pool:  # to start takes longest
                started = [pool.submit(Process, side) for side in self.sides]
            processes += [future.result() for future in started if future.exception() is None]
            for future in started:
                future.result()
            on_one_cpu([process.pid for process in processes], number)
            yield processes
        finally:
            for process in processes:
                process.close()

    def run_pair(self, cases: Sequence[str], number: int) -> dict[str, PairedTimes]:
        """Time cases, each "name, form", in a pair of processes."""
        times: dict[str, PairedTimes] = {}
        waiting = [case for case in cases if case not in self.errors]
        while waiting:
            with self._processes(number) as processes:
                while waiting:
                    case = waiting.pop(0)
                    name, _, form = case.rpartition(", ")
                    try:
                        pair = take_turns([_TimedForm(p, name, form) for p in processes], number)
                    except NumgradRuntimeError as error:
                        self.errors[case] = str(error)
                        break  # a process may have ended, or be in any state
                    if pair is not None:
                        times[case] = pair
        return times


def cases_of(names: Sequence[str], *, compiled: bool) -> list[str]:
    """Names of cases: a benchmark and a form."""
    forms = [EAGER, *([COMPILED] if compiled else [])]
    return [f"{name}, {form}" for name in names for form in forms]


@contextmanager
def compared_with(other: str, file: Path) -> Iterator[tuple[Side, Side]]:
    """The side that another version is, and that of here.

    Parameters
    ----------
    other
        A directory that is a virtual environment or has the file of benchmarks in the same place,
        a Python, or a commit of the repository of the file.
    file
        The benchmarks.

    Raises
    ------
    NumgradValueError
        If it is none of these.
    """
    file = file.resolve()
    here, python = Path(other), Path(sys.executable)
    for python_file in (here, here / "bin" / "python", here / "Scripts" / "python.exe"):
        if python_file.is_file() and os.access(python_file, os.X_OK):
            yield Side(other, python_file.absolute(), file), Side("here", python, file)
            return
    root = _root(file)
    inside = file.relative_to(root)
    now = Side("here", python, file, _folders(root))
    if here.is_dir():
        yield _checkout(other, here.resolve(), inside, file), now
        return
    named = _git(root, "rev-parse", "--verify", "--quiet", other + "^{commit}")
    if named is None:
        raise NumgradValueError(
            f"bench --compare {other}: is no file of figures, directory, Python, or commit of the "
            f"repository in {root}"
        )
    archive = _git(root, "archive", "--format=tar", named.decode().strip())
    with tempfile.TemporaryDirectory(prefix="numgrad-bench-") as scratch:
        with tarfile.open(fileobj=BytesIO(archive or b"")) as tar:
            if hasattr(tarfile, "data_filter"):
                tar.extractall(scratch, filter="data")
            else:  # Python 3.11.0 to 3.11.3; it is an archive of our own
                tar.extractall(scratch)
        yield _checkout(other, Path(scratch), inside, file), now


def _checkout(name: str, tree: Path, inside: Path, file: Path) -> Side:
    """A tree of sources; where it lacks the file of benchmarks, that of here."""
    there = tree / inside
    return Side(name, Path(sys.executable), there if there.is_file() else file, _folders(tree))


def _folders(tree: Path) -> tuple[Path, ...]:
    return tuple(folder for folder in (tree / "src", tree) if folder.is_dir())


def _root(file: Path) -> Path:
    """The top of the repository of a file; without one, its directory."""
    output = _git(file.parent, "rev-parse", "--show-toplevel")
    return file.parent if output is None else Path(output.decode().strip()).resolve()


def _git(folder: Path, *arguments: str) -> bytes | None:
    """Output of git; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True)
    except OSError:
        return None
    return None if done.returncode else done.stdout
