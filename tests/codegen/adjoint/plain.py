"""Runs the generated programs of kernels as plain Python: no compiler, so thousands in minutes.

``python -m tests.codegen.adjoint.plain 5000 --first 1000000 --compiled 10`` judges as many drawn
programs, every tenth of them compiled, and prints those that are wrong. ``--modes`` compares joint,
split and fused sweeps, with snapshots and checkpoints, in place of all derivatives; ``--family``
draws parallel loops, sums, or stencils.
"""

from __future__ import annotations

import argparse
import contextlib
import operator
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.codegen.adjoint.compiled import Text
from numgrad.codegen.intrinsics import grow, growing
from numgrad.errors import NumgradError, NumgradRuntimeError

COMPILED = Text.entry


def entry_of(text: Text) -> Callable[..., Any]:
    """A text as the Python function that it defines."""
    whole = text.operations.with_definitions(text.source)
    space: dict[str, Any] = {"growing": growing, "grow": grow, "prange": range}
    space["add_any_order"] = operator.add
    space |= text.operations.namespace(whole)
    exec(text.source, space)
    function = space["kernel"]

    def entry(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            function(*arguments)

    return entry


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Programs are run by Python instead of compiled."""
    Text.entry = property(entry_of)  # pyright: ignore
    try:
        yield
    finally:
        Text.entry = COMPILED


def families() -> dict[str, Callable[[int], Any]]:
    """What writes a program of a seed, None where there is none, by the name of the family."""
    from tests.codegen.adjoint import parallel_programs
    from tests.codegen.adjoint.stencils import StencilWriter
    from tests.codegen.adjoint.sums import as_sum
    from tests.codegen.adjoint.writer import Writer

    return {
        "loops": lambda seed: Writer(seed).write(),
        "parallel": parallel_programs.write,
        "sums": lambda seed: as_sum(Writer(seed).write()),
        "stencils": lambda seed: StencilWriter(seed).write(),
    }


def judged(program: Any, modes: bool, transforms: bool, seen: Counter[str]) -> bool:
    """Judge a program, in each of ``modes``, or under ``transforms``; whether it says something."""
    from tests.codegen.adjoint.judge import judge
    from tests.codegen.adjoint.modes import every_mode
    from tests.codegen.adjoint.test_drawn_programs import truth_of
    from tests.codegen.adjoint.transforms import judge_transforms

    drawn = None if program is None else truth_of(program)
    if drawn is None:
        return False
    function, arguments, truth, directions = drawn
    tolerance = 2e-3 if program.single else 1e-9
    if modes:
        others = [
            b if isinstance(a, np.ndarray | float) else a
            for a, b in zip(arguments, program.draw(7), strict=True)
        ]
        seen += every_mode(function, program.writes, truth, arguments, others, tolerance)
    else:
        kernel = ng.kernel(function, writes=program.writes)
        compare = judge_transforms if transforms else judge
        compare(kernel, truth, directions, arguments, tolerance=tolerance)
    return True


def main(arguments: list[str]) -> int:
    """Judge drawn programs; the number of those that are wrong."""
    parser = argparse.ArgumentParser(prog="tests.codegen.adjoint.plain", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--compiled", type=int, default=10, help="one in so many is compiled")
    parser.add_argument("--family", default="loops", choices=list(families()))
    parser.add_argument("--modes", action="store_true", help="every program of the gradient")
    parser.add_argument("--transforms", action="store_true", help="in compiled functions, batches")
    given = parser.parse_args(arguments)
    write = families()[given.family]
    seen: Counter[str] = Counter()
    begin = time.perf_counter()
    for seed in range(given.first, given.first + given.count):
        compiled = seed % given.compiled == 0
        program = None
        try:
            program = write(seed)
            with contextlib.nullcontext() if compiled else plainly():
                told = judged(program, given.modes, given.transforms, seen)
            word = "right" if told else "near a tie"
        except Exception as error:
            is_ours = isinstance(error, NumgradRuntimeError) or not isinstance(error, NumgradError)
            word = "wrong" if is_ours else "refused"
            print(f"\n==== seed {seed}, {word}: {type(error).__name__}: {str(error)[:600]}")
            print("" if program is None else program.text, flush=True)
        seen[word] += 1
        seen["compiled"] += compiled and word == "right"
        if (seed - given.first) % 100 == 99:
            minutes = (time.perf_counter() - begin) / 60
            print(f"{seed - given.first + 1}: {dict(seen)}, {minutes:.0f} minutes", flush=True)
    print(dict(seen))
    return seen["wrong"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
