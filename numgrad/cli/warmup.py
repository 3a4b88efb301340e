"""Compile the kernels of the operation table ahead of use."""

import argparse
import sys
import time
from difflib import get_close_matches

from numgrad.codegen.cpython import hot_paths
from numgrad.core.op import OPS
from numgrad.nn import operations as _operations  # noqa: F401 (completes the table)
from numgrad.progress import Progress

HELP = "compile the kernels of the operation table ahead of use"
DTYPES = ("float64", "float32", "complex128", "complex64")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``warmup``."""
    parser.add_argument(
        "--dtype",
        action="append",
        choices=DTYPES,
        help="compile for this dtype; may be repeated (default: float64)",
    )
    parser.add_argument(
        "--op", action="append", metavar="NAME", help="only this operation; may be repeated"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compile, with a progress bar; 2 for an operation that is not in the table."""
    names = list(dict.fromkeys(arguments.op or OPS))
    unknown = [name for name in names if name not in OPS]
    if unknown:
        for name in unknown:
            near = ", ".join(get_close_matches(name, OPS, n=3)) or "nothing near it"
            print(f"warmup: no operation is named {name}; there is {near}", file=sys.stderr)
        return 2
    dtypes = list(dict.fromkeys(arguments.dtype or DTYPES[:1]))
    began = time.perf_counter()
    kernels = 0
    with Progress(len(names) * len(dtypes), "compiling") as progress:
        for dtype in dtypes:
            for name in names:
                progress.step(f"{name} {dtype}")
                kernels += sum(1 for _ in OPS[name].warm(dtype))
    hot_paths.install()  # Note [Hot paths]
    seconds = time.perf_counter() - began
    print(f"{kernels} kernels for {', '.join(dtypes)} are compiled ({seconds:.1f} s)")
    return 0
