"""Programs of science as numgrad and as JAX code: values, gradients and times, see ../README.md.

``python perf/science [PROGRAM...] [--sizes small,middle,large] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
PROGRAMS = sorted(
    path.stem for path in HERE.glob("[a-z]*.py") if path.stem not in ("libraries", "byhand")
)
SAMPLES = 4
"""Slices of samples of each library, in turns; each takes ``--seconds``."""


def agree(own: Any, other: Any, program: str, why: str) -> float:
    """The largest difference of two results over the largest number of an array.

    Raises
    ------
    AssertionError
        If it is above 1e-7.
    """
    import jax
    import numpy as np

    error = 0.0
    for a, b in zip(jax.tree.leaves(own), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        error = max(error, float(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-300)))
    assert error < 1e-7, f"{program}: {why}: they differ by {error:.1e}"
    return error


def check_differences(stated: Any, library: Any, gradient: Any) -> None:
    """Compare the gradient with a central difference along a random direction."""
    import jax
    import numpy as np

    args = stated.arguments(*stated.SIZES["tiny"])
    leaves, structure = jax.tree.flatten([args[k] for k in stated.ARGNUMS])
    draw = np.random.default_rng(1)
    along = [draw.normal(size=a.shape) for a in leaves]
    f = library.jit(stated.program(library))

    def moved(h: float) -> Any:
        new = structure.unflatten([a + h * v for a, v in zip(leaves, along, strict=True)])
        return f(*(new[stated.ARGNUMS.index(k)] if k in stated.ARGNUMS else a
                   for k, a in enumerate(args)))  # fmt: skip

    near, far = moved(1e-5) - moved(-1e-5), moved(2e-5) - moved(-2e-5)
    slopes = jax.tree.leaves(gradient(*args)[1])
    expected = sum(np.sum(g * v) for g, v in zip(slopes, along, strict=True))
    scale = sum(np.sum(np.abs(g * v)) for g, v in zip(slopes, along, strict=True))
    error = abs((8 * near - far) / 12e-5 - expected) / scale
    assert error < 1e-5, f"{stated.__name__}: gradient and differences differ by {error:.1e}"


def measure(name: str, sizes: list[str], seconds: float) -> dict[str, Any]:
    """Check one program and time it by turns, in this process."""
    import jax
    import libraries
    from harness import CLOCKS, Statement, Timed

    stated = import_module(name)
    known = {"numgrad": libraries.for_numgrad(), "jax": libraries.for_jax()}
    gradients = {}
    for label, library in known.items():
        # what a library loads at its first use is no part of a program's first call
        library.ready(library.jit(library.value_and_grad(lambda x, np=library.np: np.sum(x * x)))(
            library.np.ones(3)
        ))  # fmt: skip
        gradients[label] = library.jit(
            library.value_and_grad(stated.program(library), stated.ARGNUMS)
        )
    rows = {}
    for size in sizes:
        args = stated.arguments(*stated.SIZES[size])
        given = {"numgrad": args, "jax": jax.tree.map(jax.numpy.asarray, args)}
        row: dict[str, Any] = {"size": stated.SIZES[size]}
        results, timed = {}, {}
        for label, library in known.items():
            began = time.process_time(), time.perf_counter()
            results[label] = library.ready(gradients[label](*given[label]))
            first = [time.process_time() - began[0], time.perf_counter() - began[1]]
            names = {"f": gradients[label], "args": given[label], "ready": library.ready}
            statement = Statement("ready(f(*args))", names)
            timed[label] = {clock: Timed(statement, CLOCKS[clock]) for clock in CLOCKS}
            row[label] = {"first": first[0], "first wall": first[1], "cpu": [], "wall": []}
        row["error"] = agree(results["numgrad"], results["jax"], name, f"numgrad and JAX, {size}")
        byhand = getattr(import_module("byhand"), name, None)
        if byhand:
            agree(byhand(*args), results["numgrad"], name, f"Numba and numgrad, {size}")
            statement = Statement("f(*args)", {"f": byhand, "args": args})
            timed["byhand"] = {clock: Timed(statement, CLOCKS[clock]) for clock in CLOCKS}
            row["byhand"] = {"cpu": [], "wall": []}
        for _ in range(SAMPLES):
            for label, clocks in timed.items():
                for clock, statement in clocks.items():
                    row[label][clock] += statement.slice(seconds)
        for label in timed:
            row[label] |= {clock: min(row[label][clock]) for clock in CLOCKS}
        rows[size] = row
    check_differences(stated, known["numgrad"], gradients["numgrad"])
    return rows


def line(name: str, size: str, row: dict[str, Any]) -> str:
    """One line of the table."""
    own, jax = row["numgrad"], row["jax"]
    text = f"{name:10} {size:7} {row['size']!s:20} {1e6 * own['cpu']:10.1f} us"
    text += f"  of JAX {own['cpu'] / jax['cpu']:5.2f} (wall {own['wall'] / jax['wall']:5.2f})"
    text += f"  first {own['first']:5.2f} s, of JAX {own['first'] / jax['first']:4.2f}"
    if "byhand" in row:
        text += f"  of Numba {own['cpu'] / row['byhand']['cpu']:4.2f}"
    return text


def main() -> int:
    """Measure programs, each in a process of its own; the status is 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="python perf/science", description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--sizes", default="small,middle,large")
    parser.add_argument("--seconds", type=float, default=0.2, help="of a library's turn")
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--avx2", action="store_true", help="as on a CPU without AVX-512")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for unknown in sorted(set(args.programs) - set(PROGRAMS)):
        parser.error(f"no program is called {unknown}: there are {', '.join(PROGRAMS)}")
    if args.here:
        (name,) = args.programs
        print(json.dumps(measure(name, args.sizes.split(","), args.seconds)))
        return 0
    from gradbench.cpp import processor
    from harness import environment, without_avx512

    if args.avx2:
        os.environ.update(without_avx512())
    threads = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    print(f"one thread of {processor()}; CPU time, smallest of all turns", flush=True)
    table: dict[str, Any] = {}
    for name in args.programs or PROGRAMS:
        with tempfile.TemporaryDirectory() as cache:
            own = {"XLA_FLAGS": threads, "NUMGRAD_CACHE_DIR": cache}
            command = [sys.executable, str(HERE), name, "--here", "--sizes", args.sizes]
            command += ["--seconds", str(args.seconds)]
            made = subprocess.run(
                command, env=environment(1, own), stdout=subprocess.PIPE, text=True, check=False
            )
        if made.returncode:
            continue
        table[name] = json.loads(made.stdout.splitlines()[-1])
        for size, row in table[name].items():
            print(line(name, size, row), flush=True)
    if args.json:
        machine = {"cpu": processor(), "python": platform.python_version(), "cores": os.cpu_count()}
        args.json.write_text(json.dumps({**machine, "programs": table}, indent=1) + "\n")
    return int(len(table) < len(args.programs or PROGRAMS))


if __name__ == "__main__":
    sys.exit(main())
