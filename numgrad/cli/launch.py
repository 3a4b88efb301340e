"""Start a program on several processes of this machine, which ``ng.distributed`` connects.

The first error of a rank ends all of them. Each has its share of the CPUs, for kernels and
BLAS: pools of all ranks that each have a thread for every CPU would fight for them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from numgrad.config import cpu_count
from numgrad.distributed.library import INSTALL, is_mpi_available

HELP = "start a program on several processes that communicate by MPI"
PATIENCE = 10.0
"""Seconds that ranks have to end after they were asked to."""

_POOLS = ("NUMGRAD_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_OWN_POOLS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that say how many threads kernels and BLAS have; of the second, only some BLASes."""
_ENDING = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
"""Signals that end all ranks as Ctrl-C does: a terminal that is closed sends the second."""
_GUARD = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
_DIED = re.compile(r"PID (\d+) RUNNING AT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``launch``."""
    parser.add_argument("-n", "--ranks", type=_count, default=1, help="how many (default: 1)")
    parser.add_argument(
        "--mpiexec", metavar="FILE", help="the launcher of the MPI that mpi4py uses"
    )
    parser.add_argument(
        "--threads",
        type=_count,
        help="of each rank, for kernels and BLAS (default: the CPUs divided by the ranks)",
    )
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module")
    parser.add_argument("program", help="a script, or a module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 is needed, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Run the program; its exit status, that of the rank that failed if one did."""
    if not arguments.module and not Path(arguments.program).is_file():
        print(f"launch: there is no file {arguments.program}", file=sys.stderr)
        return 2
    program = ["-m"] if arguments.module else []
    program += [arguments.program, *arguments.arguments]
    command = [sys.executable, "-m", "numgrad.distributed.worker", *program]
    environment = _threads(arguments.threads, max(1, cpu_count() // arguments.ranks), os.environ)
    if arguments.ranks > 1:
        launcher = shutil.which(arguments.mpiexec) if arguments.mpiexec else _mpiexec()
        if arguments.mpiexec and launcher is None:
            print(f"launch: there is no program {arguments.mpiexec}", file=sys.stderr)
            return 2
        if not is_mpi_available() or launcher is None:
            missing = "mpiexec" if is_mpi_available() else "mpi4py"
            print(f"launch: {missing} is not there; {INSTALL}", file=sys.stderr)
            return 2
        command = [launcher, "-n", str(arguments.ranks), *command]
        environment["NUMGRAD_WORLD_SIZE"] = str(arguments.ranks)
    with tempfile.TemporaryDirectory(prefix="numgrad-launch-") as notes:
        environment["NUMGRAD_LAUNCH_NOTES"] = notes
        status = _watch(command, environment, Path(notes))
        lost = sorted(int(note.read_text(encoding="utf-8")) for note in Path(notes).iterdir())
        if status == 0 and lost:
            print(
                f"launch: rank {', '.join(map(str, lost))} ended before Python did; a rank that "
                "calls os._exit takes the others with it, sys.exit lets them go on",
                file=sys.stderr,
            )
            return 1
        return status


def _threads(wanted: int | None, share: int, given: Mapping[str, str]) -> dict[str, str]:
    """An environment with so many threads a rank; by default the share, or what the user set."""
    if wanted:
        return {**given, **dict.fromkeys(_POOLS + _OWN_POOLS, str(wanted))}
    # OpenBLAS and MKL go by OMP_NUM_THREADS where they have no variable of their own
    return {**dict.fromkeys(_POOLS, str(share)), **given}


def _mpiexec() -> str | None:
    """The launcher beside this Python, where the wheel of an MPI puts it, or that of the system."""
    beside = Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin")
    return shutil.which("mpiexec", path=str(beside)) or shutil.which("mpiexec")


def _watch(command: list[str], environment: dict[str, str], notes: Path) -> int:
    """Run the launcher in a session of its own, so that Ctrl-C ends what it started in order."""
    started = subprocess.Popen(
        _guarded(command),
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    previous = {
        number: signal.signal(number, _interrupt)
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN  # as nohup wants it
    }
    try:
        dead = []
        for line in started.stdout or ():
            print(line, end="", flush=True)
            died = _DIED.search(line)
            if died is not None and (notes / died[1]).exists():
                dead.append((notes / died[1]).read_text(encoding="utf-8"))
        status = _status(started.wait())
        for rank in dead:
            print(f"launch: rank {rank} died{_by(status)} and ended the others", file=sys.stderr)
        return status
    except KeyboardInterrupt:
        print("launch: interrupted, ending all ranks", file=sys.stderr)
        return 130
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _end(started)


def _guarded(command: list[str]) -> list[str]:
    """A command that Linux ends when this process is gone, even by SIGKILL."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *command]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _status(code: int) -> int:
    """The status of a process as a shell gives it: 128 and the number of a signal."""
    return 128 - code if code < 0 else code


def _by(status: int) -> str:
    """The signal that a status of MPI's launcher names."""
    try:
        return f" by {signal.Signals(status).name}"
    except ValueError:
        return ""


def _end(started: subprocess.Popen[str]) -> None:
    """End the launcher and all that it started."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if started.poll() is not None:
            break
        started.send_signal(number)
        try:
            started.wait(PATIENCE / 2)
        except subprocess.TimeoutExpired:
            continue
    if started.stdout is not None:
        started.stdout.close()
