"""Run an unchanged script that was written for PyTorch, with ``numgrad.torch`` as ``torch``."""

import argparse
import sys
import traceback
from pathlib import Path

HELP = "run a script written for PyTorch on numgrad"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the script and its arguments."""
    parser.add_argument("script", help="a Python file that imports torch")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what it gets in sys.argv")


def run(arguments: argparse.Namespace) -> int:
    """Run the script; the status is its own, 1 after an exception."""
    from numgrad.torch.substitution import run_script  # which loads all of numgrad.torch

    if not Path(arguments.script).is_file():
        print(f"there is no file {arguments.script}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path(arguments.script).resolve().parent))
    try:
        run_script(arguments.script, arguments.arguments)
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
    return 0


def _print(error: Exception, first: int) -> None:
    """Print a traceback that begins in the script."""
    trace = error.__traceback__
    for _ in range(first):
        trace = trace and trace.tb_next
    traceback.print_exception(type(error), error, trace)
