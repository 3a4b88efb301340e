"""Ctrl-C at any moment leaves a process in which everything can be compiled."""

import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from llvmlite.binding.context import ContextRef
from llvmlite.binding.module import ModuleRef
from llvmlite.binding.newpassmanagers import PassBuilder
from llvmlite.binding.object_file import ObjectFileRef

from numgrad.codegen import compile as jit, locks
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
    with locks.deferred():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
        assert seen == []
    assert sorted(seen) == [signal.SIGINT, signal.SIGTERM]
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    signal.raise_signal(signal.SIGINT)
    assert len(seen) == 3


def test_a_nested_deferral_waits_for_the_outer_one(seen):
    with locks.deferred():
        with locks.deferred():
            signal.raise_signal(signal.SIGINT)
        assert seen == []
    assert seen == [signal.SIGINT]


def test_an_exception_of_one_handler_keeps_no_other_from_being_called(seen):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        with locks.deferred():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert seen == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_inside_is_the_context_of_the_interrupt(seen):
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        with locks.deferred():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("inside")

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)


@pytest.mark.parametrize("action", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_without_a_handler_are_left_alone(seen, action):
    signal.signal(signal.SIGTERM, action)
    with locks.deferred():
        assert signal.getsignal(signal.SIGTERM) == action


def test_in_other_threads_there_is_nothing_to_defer(seen):
    handlers = []

    def work():
        with locks.deferred():
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
    assert kernel.numba_reason


GRADIENT = """
import os, signal, sys, threading, time
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

def storm():  # by the time that the process gets, which may be little
    due = 0.0
    while not done.wait(0.01):
        if time.process_time() >= due:
            due = time.process_time() + float(sys.argv[1])
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


INTERRUPTED_IMPORTS = """
import sys
import numpy as np
import numgrad as ng
from numgrad.core.op import Op
from numgrad.operations.lazy_operations import declare_all

init, met = Op.__init__, set()

def interrupted(self, function, **options):
    init(self, function, **options)
    if function.__name__ not in met:
        met.add(function.__name__)
        if len(met) % int(sys.argv[1]) == 0:
            raise KeyboardInterrupt

Op.__init__ = interrupted
while True:
    try:
        declare_all()
        import numgrad.nn
        break
    except KeyboardInterrupt:
        pass
assert len(met) > 300, len(met)
x = ng.tensor([3.0, 1.0, 2.0], requires_grad=True)
y = ng.sum(ng.special.xlogy(x, 2.0) * np.sort(x) + ng.nn.functional.softplus(x) * 0 + x.sinc() * 0)
y.backward()
print(x.grad.tolist())
"""


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("every", ["60", "1"])
def test_an_import_that_was_interrupted_can_be_repeated(every):
    """At the declaration of each operation, or of some."""
    command = [sys.executable, "-c", INTERRUPTED_IMPORTS, every]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    x, log = [3.0, 1.0, 2.0], 0.6931471805599453
    # of sum(x * log(2) * sorted(x)): by x, and by what its place in the order holds
    expected = [log * (s + x[place]) for s, place in zip((1.0, 2.0, 3.0), (2, 0, 1), strict=True)]
    assert json.loads(done.stdout) == pytest.approx(expected, rel=1e-14)


# ------------------------------------------------------------------------------- native memory

ADD = "define double @body(double %x) #0 {\n  %y = fadd double %x, 1.0\n  ret double %y\n}\n"


@pytest.fixture
def given_up(monkeypatch):
    """What llvmlite gives up, by class and address; a signal arrives after each."""
    found = []
    for cls in (ModuleRef, ContextRef, PassBuilder, ObjectFileRef):

        def dispose(self, was=cls._dispose, cls=cls):
            found.append((cls.__name__, ctypes.addressof(self._ptr[0]) if self._ptr else 0))
            was(self)
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(cls, "_dispose", dispose)
    return found


@pytest.mark.parametrize("what", ["compile_ir", "optimised", "assembly", "load"])
def test_an_interrupt_while_memory_is_given_up_comes_later(given_up, what):
    def interrupted(function, *args):
        with pytest.raises(KeyboardInterrupt):
            function(*args)

    if what == "load":
        with suppress(KeyboardInterrupt), locks.deferred():
            payload = machine.compile_ir(ADD, "given_up")
        given_up.clear()
        interrupted(machine.load, payload)
    else:
        interrupted(getattr(machine, what), ADD, "given_up")
    gc.collect()
    assert given_up
    assert len(given_up) == len(set(given_up))


@pytest.mark.parametrize("text", ["define nonsense", ADD], ids=["parsing", "passes"])
def test_an_error_gives_up_a_module_before_its_context(given_up, monkeypatch, text):
    monkeypatch.setattr(signal, "raise_signal", lambda number: None)

    def failing(*args, **options):
        raise RuntimeError("no passes")

    monkeypatch.setattr(machine.binding, "create_pass_builder", failing)
    with pytest.raises(RuntimeError) as caught:
        machine.compile_ir(text, "failing")
    names = [name for name, _ in given_up]
    assert names == ["ModuleRef", "ContextRef"]
    assert caught.value.__traceback__ is not None  # which holds on to the frames


def test_a_handler_that_raises_while_handlers_are_put_back(seen):
    def raising(number, frame):
        raise KeyboardInterrupt

    handlers = {signal.SIGINT: raising, signal.SIGTERM: raising}
    for number, handler in handlers.items():
        signal.signal(number, handler)
    put_back = signal.signal

    def interrupting(number, handler):
        put_back(number, handler)
        if handler is raising:
            signal.raise_signal(number)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(locks.signal, "signal", interrupting)
        with pytest.raises(KeyboardInterrupt), locks.deferred():
            pass
    assert all(signal.getsignal(number) is raising for number in handlers)


def test_a_fork_by_another_thread_defers(seen):
    """In the child that thread is the main one."""
    found = []
    with locks.deferred():
        thread = threading.Thread(target=lambda: found.append(locks._deferring))
        thread.start()
        thread.join()
        assert found == [threading.get_ident()]
    assert locks._deferring is None


OFTEN = """
import random, signal, sys, time
import numpy as np
import numgrad as ng
from numgrad.codegen.native import machine

class Stop(Exception):
    pass

def handler(number, frame):
    if active:
        raise Stop

active, numbers, text = False, random.Random(int(sys.argv[1])), sys.argv[2]
signal.signal(signal.SIGALRM, handler)
outcomes = {"done": 0, "stopped": 0}
while outcomes["stopped"] < 100:
    try:
        active = True
        signal.setitimer(signal.ITIMER_REAL, numbers.random() * 0.02 + 1e-4, 0.003)
        unique = f"u{numbers.randrange(10**9)}"
        machine.load(machine.compile_ir(text, unique))
        machine.assembly(text, unique)
        active = False
        outcomes["done"] += 1
    except Stop:
        active = False
        outcomes["stopped"] += 1
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("seed", range(8))
def test_a_handler_that_raises_all_the_time_ends_no_process(seed):
    command = [sys.executable, "-c", OFTEN, str(seed), ADD]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
