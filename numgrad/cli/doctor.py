"""Report what numgrad runs on: versions, CPU, threads, kernel cache, BLAS."""

import argparse
import importlib.metadata
import importlib.util
import json
import platform
import sys
from typing import Any

import numpy as np
from llvmlite import binding as llvm

import numgrad as ng
from numgrad.cli.cache import describe
from numgrad.codegen import cache, threads
from numgrad.codegen.cpython import offsets
from numgrad.codegen.native import machine

HELP = "report versions, CPU, threading layer, kernel cache and BLAS"

WORTH_SHOWING = ("sse4.2", "avx", "avx2", "fma", "avx512f", "avx512vl", "neon", "sve", "sve2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``doctor``."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the report."""
    report = examine()
    print(json.dumps(report, indent=2) if arguments.json else _text(report))
    return 0


def examine() -> dict[str, Any]:
    """Collect the report: versions, cpu, threads, cache, blas and ``machine_code_obstacle``.

    The last one says why small calls go through Python alone; it is empty if they do not.
    """
    return {
        "versions": _versions(),
        "cpu": _cpu(),
        "threads": threads.describe(),
        "cache": cache.info(),
        "blas": _blas(),
        "machine_code_obstacle": offsets.obstacle(),
    }


def _versions() -> dict[str, str]:
    numeric = ("numpy", "numba", "llvmlite", "scipy")
    return {
        "numgrad": ng.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: importlib.metadata.version(name) for name in numeric},
    }


def _cpu() -> dict[str, Any]:
    name, features = machine.cpu()
    return {
        "name": name,
        "host": llvm.get_host_cpu_name(),
        "simd_bits": machine.vector_bits(),
        "fma": machine.has_fma(),
        "features": [feature[1:] for feature in features.split(",") if feature.startswith("+")],
    }


def _blas() -> dict[str, Any]:
    built = np.show_config(mode="dicts")["Build Dependencies"]
    report: dict[str, Any] = {
        kind: {"name": built[kind]["name"], "version": built[kind].get("version", "")}
        for kind in ("blas", "lapack")
    }
    report["loaded"] = None
    if importlib.util.find_spec("threadpoolctl"):
        threadpoolctl = importlib.import_module("threadpoolctl")
        keys = ("internal_api", "version", "num_threads", "architecture", "threading_layer")
        report["loaded"] = [
            {key: pool[key] for key in keys if key in pool}
            for pool in threadpoolctl.threadpool_info()
        ]
    return report


def _text(report: dict[str, Any]) -> str:
    cpu, pool, blas = report["cpu"], report["threads"], report["blas"]
    shown = [name for name in WORTH_SHOWING if name in cpu["features"]]
    lines = [f"{name:10} {version}" for name, version in report["versions"].items()]
    host = "" if cpu["name"] == cpu["host"] else f" (this machine has {cpu['host']})"
    lines += [
        f"{'CPU':10} {cpu['name']}{host}, SIMD {cpu['simd_bits']} bits ({' '.join(shown)})",
        f"{'threads':10} {pool['threads']} of layer {pool['layer']}",
        f"{'':10} {_concurrency(pool['safe_for_threads'])}",
        f"{'':10} {_forking(pool['safe_after_fork'])}",
        f"{'calls':10} {_calls(report['machine_code_obstacle'])}",
        f"{'cache':10} {describe(report['cache'])}",
        f"{'BLAS':10} {blas['blas']['name']} {blas['blas']['version']} (NumPy's build)",
    ]
    for pool in blas["loaded"] or ():
        described = " ".join(str(value) for value in pool.values())
        lines.append(f"{'':10} loaded: {described}")
    if sys.flags.optimize:
        lines.append(f"{'note':10} python -O: assertions are off")
    return "\n".join(lines)


def _calls(obstacle: str) -> str:
    if obstacle:
        return f"handled in Python, with the same results, not in machine code: {obstacle}"
    return "handled in machine code"


def _concurrency(safe: bool) -> str:
    if safe:
        return "parallel kernels may run in several Python threads at once"
    return "parallel kernels of several Python threads take turns under this layer"


def _forking(safe: bool) -> str:
    if safe:
        return "parallel kernels work in a forked process"
    return "in a forked process kernels run serially (use spawn to keep them parallel)"
