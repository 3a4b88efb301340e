"""Start a program on several processes of this machine, which ``ng.distributed`` connects.

The first error of a rank ends all of them. Each has its share of the CPUs, for kernels and
BLAS: pools of all ranks that each have a thread for every CPU would fight for them.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from numgrad.config import cpu_count
from numgrad.distributed import guard
from numgrad.distributed.launcher import INSTALL, is_mpi_available

HELP = "start a program on several processes that communicate by MPI"
PATIENCE = 10.0
"""Seconds that ranks have to end after they were asked to."""

_POOLS = ("NUMGRAD_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_OWN_POOLS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that say how many threads kernels and BLAS have; of the second, only some BLASes."""
_ENDING = {signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)}
"""Signals that end all ranks as Ctrl-C does: a terminal that is closed sends the second."""


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
    launcher = None
    if arguments.ranks > 1:
        launcher = shutil.which(arguments.mpiexec) if arguments.mpiexec else _mpiexec()
        if arguments.mpiexec and launcher is None:
            print(f"launch: there is no program {arguments.mpiexec}", file=sys.stderr)
            return 2
        if not is_mpi_available() or launcher is None:
            missing = "mpiexec" if is_mpi_available() else "mpi4py"
            print(f"launch: {missing} is not there; {INSTALL}", file=sys.stderr)
            return 2
        environment["NUMGRAD_WORLD_SIZE"] = str(arguments.ranks)
    with tempfile.TemporaryDirectory(prefix="numgrad-launch-") as notes:
        environment["NUMGRAD_LAUNCH_NOTES"] = notes
        if launcher is not None:
            command = [launcher, "-n", str(arguments.ranks), *_guarded("rank", notes, command)]
        status = _watch(_guarded("with", str(os.getpid()), command), environment)
        return _told(status, [note.read_text(encoding="utf-8") for note in Path(notes).iterdir()])


def _guarded(task: str, argument: str, command: list[str]) -> list[str]:
    """A command under ``guard.py``, which says what the tasks are."""
    if os.name != "posix":
        return command
    return [sys.executable, "-I", "-S", guard.__file__, task, argument, *command]


def _told(status: int, notes: list[str]) -> int:
    """Say which ranks ended without a word of their own, by the notes that they left; the status.

    A note says "rank code" if the rank failed or its guard saw the end, "rank" if both were killed.
    """
    rows = [note.split() for note in notes]
    if status == 0 and not any(len(note) == 2 for note in rows):
        rows = [[*note, "0"] for note in rows]  # where there are no guards
    ends = {int(note[0]): int(note[1]) for note in sorted(rows) if len(note) == 2}
    for rank, code in ends.items():
        if code < 0:
            name = signal.Signals(-code).name
            print(f"launch: rank {rank} died by {name} and ended the others", file=sys.stderr)
        elif code == 0:
            print(
                f"launch: rank {rank} ended before Python did; a rank that calls os._exit takes "
                "the others with it, sys.exit lets them go on",
                file=sys.stderr,
            )
    # the first error that a rank knew of: what the launcher says may be of one that it killed
    return next((_status(code) or 1 for code in ends.values()), status)


def _threads(number: int | None, share: int, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with so many threads a rank; by default the share, or what the user set."""
    if number:
        return {**environment, **dict.fromkeys(_POOLS + _OWN_POOLS, str(number))}
    # OpenBLAS and MKL go by OMP_NUM_THREADS where they have no variable of their own
    return {**dict.fromkeys(_POOLS, str(share)), **environment}


def _mpiexec() -> str | None:
    """The launcher beside this Python, where the wheel of an MPI puts it, or that of the system."""
    beside = Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin")
    return shutil.which("mpiexec", path=str(beside)) or shutil.which("mpiexec")


def _watch(command: list[str], environment: dict[str, str]) -> int:
    """Run the launcher in a session of its own, so that Ctrl-C ends what it started in order."""
    started = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
    )
    previous = {
        number: signal.signal(number, _interrupt)
        for number in _ENDING
        if signal.getsignal(number) is not signal.SIG_IGN  # as nohup wants it
    }
    try:
        for line in started.stdout or ():
            print(line, end="", flush=True)
        return _status(started.wait())
    except KeyboardInterrupt:
        print("launch: interrupted, ending all ranks", file=sys.stderr)
        return 130
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        _end(started)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _status(code: int) -> int:
    """The status of a process as a shell gives it: 128 and the number of a signal."""
    return 128 - code if code < 0 else code


def _end(started: subprocess.Popen[str]) -> None:
    """End the launcher and all that it started."""
    for number in (
        getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT),  # Windows sends no SIGINT
        signal.SIGTERM,
        getattr(signal, "SIGKILL", signal.SIGTERM),
    ):
        if started.poll() is not None:
            break
        started.send_signal(number)
        try:
            started.wait(PATIENCE / 2)
        except subprocess.TimeoutExpired:
            continue
    if started.stdout is not None:
        started.stdout.close()
