"""Two ways to run a command so that nothing is left behind and nothing is lost.

A script by itself, not part of the package's imports: it starts in a hundredth of a second, and
forks while it has one thread.

``guard.py with PID COMMAND ...`` becomes the command, which Linux ends by SIGTERM when the process
PID is gone. ``guard.py rank NOTES COMMAND ...`` runs a rank and sees how it ends.

Note [Who died]
---------------
An MPI launcher kills all ranks when one has died, and by the time it looks several are dead: it
may name one that it killed itself. So each rank has a guard above it, in the same process group.
The guard of a rank that dies adds to the rank's note how it ended, before the launcher can know,
since the guard holds what the launcher watches: the process, the pipes, the connection to the
process manager. A rank that is killed as one of the others takes its guard with it: the signal
reaches the whole group before any of it can react.
"""

import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1


def end_with(parent: int, number: int) -> None:
    """Let Linux send this process a signal when its parent is gone."""
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def watch(notes: Path, command: list[str]) -> None:
    """Run a rank; end as it ends, after a word in its note if Python had no say in that."""
    guard = os.getpid()
    rank = os.fork()
    if rank == 0:
        end_with(guard, signal.SIGKILL)
        os.execvp(command[0], command)
    for number in signal.valid_signals() - {signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)  # the rank has them too, and decides
    code = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
    note = notes / str(rank)
    if note.exists() and " " not in (rank_text := note.read_text(encoding="utf-8")):
        note.write_text(f"{rank_text} {code}", encoding="utf-8")
    if code < 0:
        from resource import RLIMIT_CORE, setrlimit

        setrlimit(RLIMIT_CORE, (0, 0))  # the rank's own is enough
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(guard, -code)
    os._exit(code)


if __name__ == "__main__":
    task, argument, *command = sys.argv[1:]
    if task == "with":
        end_with(int(argument), signal.SIGTERM)
        os.execvp(command[0], command)
    watch(Path(argument), command)
