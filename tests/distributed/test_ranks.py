"""Several ranks: what they compute together, and that none is left when one fails."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from numgrad.cli import launch, main
from numgrad.distributed import launcher

HERE = Path(__file__).parent
FEW = find_spec("mpi4py") is None or launch._mpiexec() is None
needs_mpi = pytest.mark.skipif(FEW, reason="needs the extra mpi")
PATIENCE = 150


def start(count, program, *arguments, **variables):
    command = [sys.executable, "-m", "numgrad", "launch", "-n", str(count), str(program)]
    environment = {**os.environ, "PYTHONWARNINGS": "error", **variables}
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output(started):
    """What was printed, and the status; all that was started is ended."""
    try:
        text, _ = started.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        started.send_signal(signal.SIGINT)
        text, _ = started.communicate(timeout=30)
        pytest.fail(f"not done after {PATIENCE} s:\n{text}")
    return text, started.returncode


def is_there(pid):
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def await_end(pids):
    """Processes that were told to end may need a moment to be gone."""
    until = time.monotonic() + 60
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(is_there, pids))


def waiting(count):
    """Ranks that have begun to wait, and their process numbers."""
    started = start(count, HERE / "faults.py", "interrupt")
    text = ""
    while text.count("waiting") < count:  # ranks write at the same time: both may be in one line
        line = started.stdout.readline()
        assert line, text
        text += line
    pids = [int(number) for number in re.findall(r"pid (\d+)", text)]
    assert len(pids) == count, text
    return started, pids


@needs_mpi
@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(("count", "steps"), [(3, 60), (2, 1000), (4, 60), (1, 60)])
def test_ranks(count, steps, tmp_path):
    if count == 1:  # the same program, without an MPI; other ranks are what most checks are about
        pytest.skip("checked by the examples in docstrings")
    text, status = output(start(count, HERE / "ranks.py", tmp_path, steps))
    assert status == 0, text
    assert text.count("checked") == 21, text


FAULTS = {
    "raise": (1, "rank 1 of 2 failed with ValueError: no such row"),
    "leave": (1, "rank 1 of 2 has ended its program"),
    "die": (137, "rank 1 died by SIGKILL and"),
    "silent": (1, "ended before Python did"),
    "status": (1, "rank 1 of 2 failed with SystemExit: not today"),
    "number": (3, "rank 1 of 2 failed with SystemExit: 3"),
    "stuck": (1, "waited 1 s for rank 1 of 2"),
    "absent": (1, "monitored_barrier: ranks [1] did not come within 1 s"),
}


@needs_mpi
@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_rank_that_fails_ends_the_others(fault):
    status, message = FAULTS[fault]
    text, found = output(start(2, HERE / "faults.py", fault))
    assert message in text
    assert found == status, text
    pids = [int(number) for number in re.findall(r"pid (\d+)", text)]
    assert len(pids) == 2
    await_end(pids)


@needs_mpi
@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_lines_of_ranks_stay_whole(unbuffered):
    text, status = output(start(3, HERE / "printing.py", PYTHONUNBUFFERED=unbuffered))
    assert status == 0, text
    lines = sorted(f"rank {rank} line {k} of 300 ." for rank in range(3) for k in range(300))
    assert sorted(text.splitlines()) == lines


@needs_mpi
@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("number", [signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)])
def test_ctrl_c_and_a_closed_terminal_end_all_ranks(number):
    started, pids = waiting(2)
    started.send_signal(number)
    text, status = output(started)
    assert status == 130, text
    await_end(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
@pytest.mark.parametrize("count", [1, pytest.param(2, marks=[needs_mpi, pytest.mark.slow])])
def test_ranks_end_with_a_launcher_that_is_killed(count):
    started, pids = waiting(count)
    started.kill()
    output(started)  # ends when nobody is left who could write
    await_end(pids)


@pytest.mark.parametrize(
    ("error", "status"),
    [(SystemExit(3), 3), (SystemExit(-1), 255), (SystemExit("no"), 1), (SystemExit(256), 1),
     (KeyboardInterrupt(), 130), (ValueError(), 1)],
)  # fmt: skip
def test_the_status_of_a_rank_that_fails(error, status):
    assert launcher.status_of(error) == status


def test_launch_of_one_rank_needs_no_mpi(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, numgrad as ng; ng.distributed.init_process_group()\nsys.exit(7)"
    )
    assert output(start(1, program)) == ("", 7)
    text, status = output(start(2, tmp_path / "nothing.py"))
    assert (status, "there is no file" in text) == (2, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", io.StringIO())
        status = main(["launch", "-n", "2", "--mpiexec", "/nowhere/mpiexec", str(program)])
        assert (status, "/nowhere/mpiexec" in sys.stderr.getvalue()) == (2, True)


def test_ranks_share_the_threads_of_kernels_and_of_blas():
    found = launch._threads(None, 2, {"PATH": "x"})
    assert (found["NUMGRAD_NUM_THREADS"], found["OMP_NUM_THREADS"], found["PATH"]) == (
        "2",
        "2",
        "x",
    )
    chosen = {"OMP_NUM_THREADS": "5", "OPENBLAS_NUM_THREADS": "6"}
    found = launch._threads(None, 2, chosen)
    assert chosen.items() <= found.items()
    assert found["NUMGRAD_NUM_THREADS"] == "2"
    assert set(launch._threads(3, 2, chosen).values()) == {"3"}


@pytest.mark.parametrize("variable", ["NUMGRAD_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_ranks_that_mpi_does_not_see_are_an_error(variable):
    program = "import numgrad as ng; ng.distributed.init_process_group()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, variable: "4"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert f"the launcher started 4 ranks ({variable}" in done.stderr


SPAWNING = """
import sys
import numgrad as ng

def work(rank, factor):
    ng.distributed.init_process_group()
    total = ng.full(1, factor * (rank + 1))
    ng.distributed.all_reduce(total)
    if not rank:
        print(total.tolist())
    ng.distributed.destroy_process_group()
    if factor < 0:
        sys.exit(3)

if __name__ == "__main__":
    ng.distributed.spawn(work, (2.0,), nprocs=2)
    context = ng.distributed.spawn(work, (0.5,), nprocs=2, join=False)
    assert context.join() and context.join()
    try:
        ng.distributed.spawn(work, (-1.0,))
    except ng.NumgradRuntimeError as error:
        print(error)
"""


@needs_mpi
@pytest.mark.slow(cases=0)
def test_ranks_that_a_program_spawns(tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text(SPAWNING)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["[6.0]", "[1.5]", "[-1.0]"], done.stderr
    assert lines[3:] == ["spawn: a rank failed with status 3; see its error"]
