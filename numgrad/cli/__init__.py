"""The command line: ``python -m numgrad COMMAND``, one of ``COMMANDS`` below.

Each command is a module with ``HELP``, ``add_arguments(parser)`` and ``run(arguments)``, which
returns the exit status.
"""

import argparse
from collections.abc import Sequence

import numgrad
from numgrad.cli import (
    bench,
    cache,
    demo,
    docs,
    doctor,
    export,
    launch,
    stubs,
    table,
    torch,
    warmup,
)

__all__ = ["main"]

COMMANDS = {
    "demo": demo,
    "bench": bench,
    "cache": cache,
    "docs": docs,
    "doctor": doctor,
    "export": export,
    "launch": launch,
    "stubs": stubs,
    "table": table,
    "torch": torch,
    "warmup": warmup,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, return its exit status; ``argv`` defaults to the process's arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m numgrad", description="NumPy code gets gradients at compiled speed."
    )
    parser.add_argument("--version", action="version", version=f"numgrad {numgrad.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        module.add_arguments(
            commands.add_parser(name, help=module.HELP, description=module.__doc__)
        )
    arguments = parser.parse_args(argv)
    try:
        return COMMANDS[arguments.command].run(arguments)
    except KeyboardInterrupt:
        return 130  # what a shell reports for a process that SIGINT ended
