"""Run an unchanged script that was written for PyTorch, with ``numgrad.torch`` as ``torch``."""

import argparse
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

HELP = "run a script written for PyTorch on numgrad"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script and its arguments."""
    parser.add_argument("script", help="a Python file that imports torch")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it gets in sys.argv")


def run(arguments: argparse.Namespace) -> int:
    """Run the script; the status is its own, 1 after an exception."""
    from numgrad.torch.substitution import substituted  # which loads all of numgrad.torch

    if not Path(arguments.script).is_file():
        print(f"there is no file {arguments.script}", file=sys.stderr)
        return 2
    _announce_rank()
    sys.path.insert(0, str(Path(arguments.script).resolve().parent))
    before, sys.argv = sys.argv, [arguments.script, *arguments.arguments]
    try:
        with substituted():
            runpy.run_path(arguments.script, run_name="__main__")
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
            return 1
        return int(stop.code or 0)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        first = next((k for k, f in enumerate(frames) if f.filename == arguments.script), 0)
        _print(error, first)
        return 1
    finally:
        sys.path.pop(0)
        sys.argv = before
    return 0


def _announce_rank() -> None:
    """Set the variables of ``torchrun`` in a rank of ``python -m numgrad launch``."""
    from numgrad.distributed.launcher import announced, world

    if announced()[1] > 1:
        comm: Any = world()
        local = os.environ.get("MPI_LOCALRANKID", str(comm.rank))
        size, rank = str(comm.size), str(comm.rank)
        os.environ.update(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=local, LOCAL_WORLD_SIZE=size)
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "29500")


def _print(error: Exception, first: int) -> None:
    """Print a traceback that begins in the script."""
    trace = error.__traceback__
    for _ in range(first):
        trace = trace and trace.tb_next
    traceback.print_exception(type(error), error, trace)
