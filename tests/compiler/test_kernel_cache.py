"""Kernels of compiled functions on disk: found by other processes, repaired, shared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import compile as jit

ROOT = str(Path(ng.__file__).parents[1])
PROGRAM = """
import numpy as np, numgrad as ng
fast = ng.jit(ng.value_and_grad(lambda x: np.sum(np.sqrt(x) * x)))
value, gradient = fast(np.linspace(1.0, 2.0, 5))
import sys
compiled = fast.statistics.compiles - fast.statistics.cache_hits
# a process that finds its kernels on disk needs none of what compiles them
assert compiled or "numgrad.codegen.native.translation" not in sys.modules
assert "numgrad.diagrams" not in sys.modules and "numba" not in sys.modules
print((float(value), gradient.tolist(), compiled))
"""
X = np.linspace(1.0, 2.0, 5)


def start(directory: Path) -> subprocess.Popen[str]:
    """A process that compiles or loads one function; it prints how many kernels it compiled."""
    env = {**os.environ, "PYTHONPATH": ROOT, "NUMGRAD_CACHE_DIR": str(directory)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True
    )


def result(process: subprocess.Popen[str]) -> tuple[float, list[float], int]:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return eval(out)


def check(found: tuple[float, list[float], int]) -> int:
    """Compare with the mathematics; returns how many kernels were compiled."""
    value, gradient, compiled = found
    assert value == pytest.approx(np.sum(X**1.5), rel=1e-14)
    np.testing.assert_allclose(gradient, 1.5 * np.sqrt(X), rtol=1e-14)
    return compiled


@pytest.mark.slow(cases=0)
def test_processes_share_a_cache_and_repair_it(tmp_path):
    together = [start(tmp_path) for _ in range(4)]
    assert all(check(result(process)) <= 1 for process in together)
    assert check(result(start(tmp_path))) == 0
    (entry,) = tmp_path.glob("*.bin")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    assert check(result(start(tmp_path))) == 1
    assert check(result(start(tmp_path))) == 0


@pytest.mark.slow(cases=0)
def test_a_directory_that_cannot_be_written_to(tmp_path):
    check(result(start(tmp_path)))
    tmp_path.chmod(0o555)
    try:
        assert check(result(start(tmp_path))) == 0
    finally:
        tmp_path.chmod(0o755)
    blocked = tmp_path / "file"
    blocked.write_text("in the way of a directory")
    assert check(result(start(blocked / "cache"))) == 1


def test_a_directory_that_is_deleted_meanwhile(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(directory))
    monkeypatch.setattr(jit, "_loaded", {})
    fast = ng.jit(lambda x: np.sqrt(x) + 7.0)
    np.testing.assert_array_equal(fast(X), np.sqrt(X) + 7.0)
    shutil.rmtree(directory)
    np.testing.assert_array_equal(fast(X), np.sqrt(X) + 7.0)
    np.testing.assert_array_equal(fast(X[None, :]), np.sqrt(X[None, :]) + 7.0)
    assert directory.is_dir()


# ---------------------------------------------------------------------- processes and threads


def step(x: Any) -> Any:
    """Long enough for several threads."""
    return np.sum(np.sqrt(x) * x), np.sqrt(x) * 3


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_after_a_parallel_kernel():
    x = np.linspace(1.0, 2.0, 50_000)
    fast = ng.jit(step, parallel=True)
    total, roots = fast(x)
    child = os.fork()
    if child == 0:
        good = False
        try:
            other, again = fast(x)
            good = other == total and np.array_equal(again, roots)
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert fast(x)[0] == total


@pytest.mark.skipif(ng.get_num_threads() < 2, reason="one thread only")
def test_threads_that_run_parallel_kernels():
    fast = ng.jit(step, parallel=True)
    arguments = [np.linspace(1.0, 2.0 + k, 30_000 + 5_000 * k) for k in range(4)]
    expected = [[part.tobytes() for part in fast(x)] for x in arguments]
    failures: list[int] = []

    def run(k: int) -> None:
        for _ in range(20):
            if [part.tobytes() for part in fast(arguments[k])] != expected[k]:
                failures.append(k)

    workers = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
