"""Machine code of compiled functions: given back with its last user, never before.

Note [Lifetime of machine code] in ``numgrad.codegen.compile``.
"""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import compile as compiling

MAPS = Path("/proc/self/maps")


def loss(x, w):
    return np.sum(np.tanh(x @ w) ** 2)


def executable() -> int:
    """Bytes of memory that may be executed and come from no file."""
    regions = [line.split() for line in MAPS.read_text().splitlines()]
    ends = [r[0].split("-") for r in regions if "x" in r[1] and len(r) == 5]
    return sum(int(end, 16) - int(start, 16) for start, end in ends)


def compiled_for(shapes):
    fast = ng.jit(ng.value_and_grad(loss), dynamic=False)
    for n in shapes:
        fast(np.ones((n, 3)), np.ones(3))
    return fast


@pytest.mark.filterwarnings("ignore:jit. loss was traced again")
def test_memory_is_given_back():
    compiled_for([7])  # and whatever is made once
    gc.collect()
    kernels, before = len(compiling._passing), executable() if MAPS.exists() else 0
    fast = compiled_for(range(8, 20))
    assert len(compiling._passing) >= kernels + 12
    assert not MAPS.exists() or executable() >= before + 12 * 4096
    del fast
    gc.collect()
    assert len(compiling._passing) == kernels
    assert not MAPS.exists() or executable() == before


def test_an_entry_owns_its_machine_code():
    def kernel():
        text = "def kernel(x):\n    x[0] = 2.0 * x[0] + 0.125\n"
        return compiling.compile_kernel("owned", text, "void(float64[::1])", lasting=False)

    x = np.ones(1)
    assert kernel().entry is not None
    gc.collect()
    entry, other = kernel().entry, kernel().entry  # the kernel itself may be gone
    gc.collect()
    entry(x)
    del entry
    gc.collect()
    other(x)
    other(x.view(np.recarray))  # by the slow entry
    assert x[0] == 8.875


def test_programs_share_a_kernel():
    x, w = np.ones((3, 2)), np.ones(2)
    first, second = ng.jit(loss), ng.jit(loss)
    expected = 3 * np.tanh(2.0) ** 2
    assert first(x, w) == pytest.approx(expected)
    kernels = len(compiling._passing)
    second(x, w)
    assert len(compiling._passing) == kernels
    del first
    gc.collect()
    assert second(x, w) == pytest.approx(expected)


def test_a_backward_outlives_its_function():
    def record(t):
        y = ng.jit(lambda t: np.sum(np.sin(t) * 3.5))(t)
        z = ng.jit(lambda t: ng.scan(lambda c, x: (c * x, c), 2.0 * t[0], t)[0])(t)
        return y + z

    t = ng.tensor([0.5, 1.5, 2.0], requires_grad=True)
    y = record(t)
    gc.collect()
    y.backward()
    product = 2 * 0.5 * np.prod([0.5, 1.5, 2.0])
    expected = 3.5 * np.cos(t.detach().numpy()) + product / np.array([0.25, 1.5, 2.0])
    np.testing.assert_allclose(t.grad, expected)


def test_threads_call_what_others_let_go():
    x = np.linspace(0.0, 1.0, 200_000)
    expected = np.sum(np.exp(x) * np.tanh(x))
    results, ready = [], threading.Barrier(3)

    def call(functions):
        ready.wait()
        while functions:
            results.append(functions.pop()(x))

    functions = [ng.jit(lambda x, k=k: np.sum(np.exp(x) * np.tanh(x)) + k - k) for k in range(6)]
    for f in functions:
        f(x)
    threads = [threading.Thread(target=call, args=(functions,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    del f
    ready.wait()
    while functions:
        gc.collect()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(results, expected)
    assert len(results) == 6


END = """
import gc, os, threading, time
import numpy as np, numgrad as ng

def f(x):
    return np.sum(np.exp(x) * np.tanh(x))

class Late:
    def __del__(self):
        self.call(x)

x = np.linspace(0.0, 1.0, 1_000_000)
late, fast = Late(), ng.jit(f)
late.call = ng.jit(lambda x: np.sum(x) * 3.0)
late.late = late
late.call(x), fast(x)
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        value = fast(x)
        del fast
        gc.collect()
        os._exit(0 if np.isclose(value, f(x)) and ng.jit(f)(x) == value else 1)
    assert os.waitpid(child, 0)[1] == 0
threading.Thread(target=lambda: [fast(x) for _ in range(1000)], daemon=True).start()
time.sleep(0.05)
"""


def test_the_end_of_the_process_and_forks():
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", END]  # of os.fork
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
