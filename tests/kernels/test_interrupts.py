"""Ctrl-C at any moment leaves a process in which everything can be compiled."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from numgrad.codegen import compile as jit
from numgrad.codegen import interrupts
from numgrad.codegen.native import machine

ROOT = str(Path(jit.__file__).parents[2])
SOURCE = "def kernel(x):\n    x[0] = {}\n"
SIGNATURE = "void(float64[::1])"
HOSTED = "import numpy as np\n\n\ndef kernel(x):\n    x[0] = np.sinh(2.5)\n"


@pytest.fixture
def seen():
    """The signals for which a handler of ours was called."""
    found = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: found.append(number))
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


def test_handlers_are_called_at_the_end_and_put_back(seen):
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interrupts.deferred():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
        assert seen == []
    assert sorted(seen) == [signal.SIGINT, signal.SIGTERM]
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    signal.raise_signal(signal.SIGINT)
    assert len(seen) == 3


def test_a_nested_deferral_waits_for_the_outer_one(seen):
    with interrupts.deferred():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
        assert seen == []
    assert seen == [signal.SIGINT]


def test_an_exception_of_one_handler_keeps_no_other_from_being_called(seen):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_inside_is_the_context_of_the_interrupt(seen):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("inside")

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_without_a_handler_are_left_alone(seen, action):
    signal.signal(signal.SIGTERM, action)
    with interrupts.deferred():
        assert signal.getsignal(signal.SIGTERM) == action


def test_in_other_threads_there_is_nothing_to_defer(seen):
    handlers = []

    def work():
        with interrupts.deferred():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]


def test_an_interrupt_while_a_kernel_is_compiled_comes_when_it_is_complete(tmp_path, monkeypatch):
    compile_ir = machine.compile_ir

    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return compile_ir(*arguments, **options)

    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(machine, "compile_ir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jit.compile_kernel("interrupted", SOURCE.format(1.5), SIGNATURE)
    assert jit.compile_kernel("interrupted", SOURCE.format(1.5), SIGNATURE).from_cache


def test_a_kernel_that_cannot_be_written_serves_its_process(tmp_path, monkeypatch):
    from numba.core.codegen import CPUCodeLibrary

    def lost(self):  # what it says after an exception in LLVM's callback
        raise RuntimeError("object code not found")

    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(CPUCodeLibrary, "serialize_using_object_code", lost)
    with pytest.warns(RuntimeWarning, match=r"could not be kept \(object code not found\)"):
        kernel = jit.compile_kernel("unwritten", HOSTED, SIGNATURE)
    assert kernel.hosted


GRADIENT = """
import os, signal, sys, threading
import numpy as np
import numgrad as ng

def gradient():
    x = ng.tensor(np.linspace(0.1, 1.0, 5), requires_grad=True)
    ng.sum(ng.exp(x) * x).backward()
    return x.grad.numpy()

def check(found):
    x = np.linspace(0.1, 1.0, 5)
    np.testing.assert_allclose(found, np.exp(x) * (1 + x), rtol=1e-14)
"""
STORM = """
def interrupt(number, frame):
    if not done.is_set():
        raise KeyboardInterrupt

def storm():
    while not done.wait(float(sys.argv[1])):
        os.kill(os.getpid(), signal.SIGINT)

done = threading.Event()
signal.signal(signal.SIGINT, interrupt)
threading.Thread(target=storm).start()
try:
    while True:
        try:
            found = gradient()
            break
        except KeyboardInterrupt:
            pass
finally:
    done.set()
check(found)
"""
ONCE = """
print("ready", flush=True)
try:
    gradient()
except KeyboardInterrupt:
    pass
check(gradient())
f = ng.jit(lambda x: np.exp(x) * 2)
np.testing.assert_allclose(f(np.ones(3)), 2 * np.e)
"""


def start(program, directory, *arguments):
    env = {**os.environ, "PYTHONPATH": ROOT, "NUMGRAD_CACHE_DIR": str(directory)}
    command = [sys.executable, "-c", GRADIENT + program, *arguments]
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_a_process_that_is_interrupted_all_the_time_compiles(tmp_path):
    process = start(STORM, tmp_path / "kernels", "0.05")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


@pytest.mark.slow(cases=0)
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("moment", [0.02, 0.1, 0.25, 0.5, 0.8, 1.3, 2.0, 3.0])
def test_after_one_interrupt_of_a_first_compile_everything_compiles(tmp_path, moment):
    process = start(ONCE, tmp_path / "kernels")
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    if process.returncode == -signal.SIGINT:  # not caught by the program
        pytest.skip("it was interrupted after the first gradient already")
    assert process.returncode == 0, errors
