"""A forked process computes, whatever the other threads of its parent were doing."""

import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import numgrad
from numgrad.codegen import locks

PACKAGE = Path(numgrad.__file__).parent
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def test_every_lock_of_the_package_is_one_that_forks_know():
    pattern = re.compile(r"threading(\.| import .*)(R?Lock|Condition|\w*Semaphore|Barrier)\b")
    found = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["codegen/locks.py".replace("/", os.sep)]


def test_locks_of_libraries_are_found():
    import numba.np.ufunc.parallel  # noqa: F401

    ours = 9
    assert len(locks._locks()) == ours + len(locks._OTHERS)


def test_all_locks_are_had_from_threads_that_take_them_in_another_order():
    first, second = threading.RLock(), threading.RLock()
    holds = threading.Event()

    def work():
        with second:
            holds.set()
            time.sleep(0.05)
            with first:
                pass

    thread = threading.Thread(target=work)
    thread.start()
    holds.wait()
    taken = locks._all([first, second])
    assert len(taken) == 2
    locks._release(taken)
    thread.join(10)
    assert not thread.is_alive()


def test_a_thread_that_takes_the_lock_over_and_over_lets_a_fork_have_it(monkeypatch):
    monkeypatch.setattr(locks, "KERNELS", threading.RLock())
    done = threading.Event()

    def work():
        while not done.is_set():
            locks.give_way()
            with locks.KERNELS:
                locks.give_way()  # a kernel that another one needs
                time.sleep(0.005)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            taken = locks._all([locks.KERNELS])
            assert taken
            locks._release(taken)
    finally:
        done.set()
        thread.join()


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["TRACING", "GRADIENTS", "KERNELS"])
def test_a_lock_that_is_never_released_is_free_in_the_child(name, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 0.02)
    lock = getattr(locks, name)
    held, done = threading.Event(), threading.Event()

    def work():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if lock.acquire(blocking=False) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not lock.acquire(blocking=False)  # the parent's thread still has it
    finally:
        done.set()
        thread.join()
    with lock:
        pass


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("patience", [30.0, 0.01])  # the import ends in time, or is forgotten
def test_a_module_that_another_thread_imports_can_be_imported_in_the_child(
    patience, tmp_path, monkeypatch
):
    monkeypatch.setattr(locks, "PATIENCE", patience)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"slow_module_{patience:.0f}"
    code = "import time\nopen(__file__ + '.begun', 'w').close()\ntime.sleep(0.2)\nvalue = 1\n"
    module = tmp_path / f"{name}.py"
    module.write_text(code)
    thread = threading.Thread(target=importlib.import_module, args=(name,))
    thread.start()
    while not Path(f"{module}.begun").exists():
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        os._exit(importlib.import_module(name).value - 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import numgrad as ng
from numgrad.codegen import compile as jit

def number(k):
    source = f"def kernel(x):\\n    x[0] = {k}.0\\n"
    return jit.compile_kernel("number", source, "void(float64[::1])", keep=False)

def compile_in_a_loop():
    k = 0
    while True:
        number(k := k + 1)

def gradient(_=None):
    signal.alarm(240)
    entry, x = number(-1).entry, np.linspace(0.1, 1.0, 5)
    entry(x)
    w = ng.tensor(x, requires_grad=True)
    ng.sum(w * w).backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * x)
    signal.alarm(0)
    return x[0] == -1.0

threading.Thread(target=compile_in_a_loop, daemon=True).start()
"""
FORKS = """
for pause in map(float, sys.argv[1:]):
    time.sleep(pause)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if gradient() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, pause
os._exit(0)  # the thread would go on
"""
POOLS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
context = multiprocessing.get_context("fork")
time.sleep(3)
with context.Pool(2) as pool:
    assert all(pool.map(gradient, range(4)))
with ProcessPoolExecutor(2, mp_context=context) as pool:
    assert all(pool.map(gradient, range(4)))
os._exit(0)
"""


def run(program, *arguments):
    env = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM + program, *arguments]
    return subprocess.run(command, env=env, timeout=300).returncode


@pytest.mark.slow(cases=0)
@forks
def test_a_process_forked_while_a_thread_imports_and_compiles():
    assert run(FORKS, "0.1", "0.3") == 0


@forks
@pytest.mark.slow(cases=0)
def test_processes_forked_at_many_moments():
    assert run(FORKS, *["0.01", "0.05", "0.11", "0.17", "0.23"] * 4) == 0


@forks
@pytest.mark.slow(cases=0)
def test_pools_of_processes_forked_while_a_thread_compiles():
    assert run(POOLS) == 0
