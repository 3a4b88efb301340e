"""Jitted functions as objects: threads, processes, copies, methods, settings, errors."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import numgrad as ng
from numgrad.compiler import messages
from numgrad.compiler.run import specialise
from numgrad.errors import NumgradTraceError

pytestmark = pytest.mark.usefixtures("reference_backend")

RNG = np.random.default_rng(2)
SCALE = 2.0


@ng.jit
def decorated(x):
    """Scaled."""
    return x * SCALE


def plain(x):
    return x * SCALE


class Counter:
    def __init__(self, start):
        self.start, self.steps = start, 3.0

    @ng.jit
    def ahead(self, x, k=1.0):
        return self.start + x * self.steps * k

    @ng.jit(static_argnums=2)
    def power(self, x, n):
        for _ in range(n):
            x = x * x
        return x


# --------------------------------------------------------------------------- threads, processes


def test_threads_that_call_one_function():
    traces = []

    def function(x, y):
        traces.append(1)
        return np.sum(np.tanh(x * y))

    fast = ng.jit(ng.value_and_grad(function))
    cases = [(RNG.random(n), RNG.random(n).astype(d)) for n in (3, 4) for d in ("f4", "f8")]
    expected = [ng.value_and_grad(function)(*case) for case in cases]
    traces.clear()
    failures = []
    start = threading.Barrier(4)

    def run(number):
        start.wait()
        for k in range(40):
            which = (k + number) % len(cases)
            value, gradient = fast(*cases[which])
            if value != expected[which][0] or not np.array_equal(gradient, expected[which][1]):
                failures.append(which)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(traces) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process():
    fast = ng.jit(lambda x: x + 1)
    fast(np.ones(3))
    child = os.fork()
    if child == 0:
        try:
            good = (fast(np.ones(3)) == 2).all() and (fast(np.ones((2, 2))) == 2).all()
        except BaseException:
            good = False
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_import_does_not_load_numba():
    code = "import sys, numgrad; sys.exit('numba' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --------------------------------------------------------------------------------------- copies


def test_pickling():
    x = np.ones(2)
    decorated(x)
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert copy.deepcopy(decorated) is decorated
    fast = ng.jit(plain, static_argnames=())
    fast(x)
    twin = pickle.loads(pickle.dumps(fast))
    assert twin is not fast
    np.testing.assert_array_equal(twin(x), 2 * x)
    assert twin.__name__ == "plain"


def sum_of_squares(w, x):
    return np.sum((w * x) ** 2)


@pytest.mark.parametrize(
    "transformed",
    [
        ng.value_and_grad(sum_of_squares),
        ng.vmap(ng.grad(sum_of_squares, argnums=(0, 1)), in_axes=(None, 0)),
        ng.jacfwd(ng.jacrev(sum_of_squares, argnames="x"), argnums=1),
        ng.hessian(sum_of_squares),
    ],
    ids=["gradient", "examples", "twice", "hessian"],
)
@pytest.mark.usefixtures("reference_backend")
def test_pickling_of_what_transforms_made(transformed):
    args = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    fast = ng.jit(transformed)
    for twin in (pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast), copy.copy(fast)):
        assert twin is not fast
        ng.tree.map(np.testing.assert_array_equal, twin(*args), fast(*args))


def test_copies_of_what_holds_a_jitted_function():
    counter = Counter(np.zeros(2))
    x = np.ones(2)
    np.testing.assert_array_equal(counter.ahead(x), np.full(2, 3.0))
    for twin in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))):
        twin.start[:] = 5.0
        np.testing.assert_array_equal(twin.ahead(x), np.full(2, 8.0))
        np.testing.assert_array_equal(counter.ahead(x), np.full(2, 3.0))
    model = ng.nn.Linear(2, 2)
    fast = copy.deepcopy(ng.jit(model))
    assert fast.__wrapped__ is not model
    np.testing.assert_array_equal(fast(ng.ones(2)).detach(), model(ng.ones(2)).detach())


# -------------------------------------------------------------------------------------- methods


def test_methods():
    one, other = Counter(np.zeros(2)), Counter(np.ones(2))
    x = np.ones(2)
    for _ in range(2):
        np.testing.assert_array_equal(one.ahead(x), np.full(2, 3.0))
        np.testing.assert_array_equal(other.ahead(x, k=2.0), np.full(2, 7.0))
    one.start = np.full(2, 10.0)
    np.testing.assert_array_equal(one.ahead(x), np.full(2, 13.0))
    assert len(one.ahead.specialisations) == 1
    one.steps = 4.0
    np.testing.assert_array_equal(one.ahead(x), np.full(2, 14.0))
    np.testing.assert_array_equal(one.power(2 * x, 2), np.full(2, 16.0))
    assert isinstance(Counter.ahead, type(decorated).__mro__[1])


def test_methods_of_objects_without_a_dictionary():
    class Slim:
        __slots__ = ("w",)

        @ng.jit
        def times(self, x):
            return x * self.w

    slim = Slim()
    slim.w = np.full(2, 3.0)
    np.testing.assert_array_equal(slim.times(np.ones(2)), [3.0, 3.0])
    slim.w = np.full(2, 4.0)
    np.testing.assert_array_equal(slim.times(np.ones(2)), [4.0, 4.0])
    assert len(slim.times.specialisations) == 1


# ------------------------------------------------------------------------------------- settings


def test_jit_can_be_switched_off(monkeypatch):
    seen = []
    fast = ng.jit(lambda x: (seen.append(float(x[0])), x * 2)[1])
    monkeypatch.setattr(ng.config, "jit", False)
    np.testing.assert_array_equal(fast(np.ones(2)), [2.0, 2.0])
    assert seen == [1.0]
    assert fast.specialisations == []
    monkeypatch.setattr(ng.config, "jit", True)
    with pytest.raises(ng.NumgradError, match=r"test_functions.py:\d+"):
        fast(np.ones(2))


def test_the_environment_sets_switches():
    code = "import numgrad as ng; print(ng.config.jit, ng.config.check_jit)"
    env = {**os.environ, "NUMGRAD_JIT": "0", "NUMGRAD_CHECK_JIT": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert out.stdout.split() == ["False", "True"]


class Wrong:
    """A program that is off by a little."""

    def __init__(self, program, by):
        self.program, self.by = program, by

    def run(self, *inputs):
        return tuple(out + self.by for out in self.program.run(*inputs))


def test_compiled_calls_are_compared_with_eager_ones(monkeypatch):
    right = specialise.compile_graph
    monkeypatch.setattr(ng.config, "check_jit", True)

    def scaled(x):
        return {"y": [x * 2, x.sum()]}

    x = np.ones(3)
    np.testing.assert_array_equal(ng.jit(scaled)(x)["y"][0], 2 * x)
    monkeypatch.setattr(specialise, "compile_graph", lambda g, o: Wrong(right(g, o), 1e-3))
    with pytest.raises(
        ng.NumgradAssertionError,
        match=r"the result\['y'\]\[0\] of scaled deviates .* by up to 0.001",
    ):
        ng.jit(scaled)(x)
    monkeypatch.setattr(specialise, "compile_graph", lambda g, o: Wrong(right(g, o), 1e-15))
    ng.jit(scaled)(x)
    monkeypatch.setattr(specialise, "compile_graph", lambda g, o: Wrong(right(g, o), np.nan))
    with pytest.raises(ng.NumgradAssertionError, match="NaN"):
        ng.jit(scaled)(x)


@pytest.mark.filterwarnings("ignore:.*took what comes next")
def test_a_comparison_finds_what_depends_on_the_trace(monkeypatch):
    monkeypatch.setattr(ng.config, "check_jit", True)
    fast = ng.jit(lambda x: x * next(numbers))
    numbers = iter([1.0, 2.0])
    with pytest.raises(ng.NumgradAssertionError, match="deviates from eager code by up to 1"):
        fast(np.ones(2))


def test_a_comparison_leaves_what_eager_code_leaves(monkeypatch):
    monkeypatch.setattr(ng.config, "check_jit", True)
    total, w = ng.zeros(2), ng.ones(2).requires_grad_()

    @ng.jit
    def fast(x):
        total.add_(x)
        (w * x).sum().backward()
        return ng.nn.functional.dropout(x)

    ng.random.manual_seed(0)
    expected = [ng.nn.functional.dropout(ng.ones(2)).numpy() for _ in range(2)]
    ng.random.manual_seed(0)
    for n in (1, 2):
        np.testing.assert_array_equal(fast(np.ones(2)), expected[n - 1])
        np.testing.assert_array_equal(total.numpy(), [n, n])
        np.testing.assert_array_equal(w.grad, [n, n])

    optimizer = ng.optim.SGD([w], lr=1.0)

    @ng.jit
    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    with pytest.warns(UserWarning, match="it is not checked"):
        step()
    np.testing.assert_array_equal(w.detach(), [-1.0, -1.0])


# --------------------------------------------------------------------------------- interactive


def test_a_long_compilation_is_announced(monkeypatch, capsys):
    monkeypatch.setattr(messages, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    right = specialise.compile_graph
    announced, write = threading.Event(), sys.stderr.write

    def noted(text):
        announced.set()
        return write(text)

    monkeypatch.setattr(sys.stderr, "write", noted)

    def slow(graph, choices):
        assert announced.wait(60)
        return right(graph, choices)

    monkeypatch.setattr(specialise, "compile_graph", slow)
    ng.jit(plain)(np.ones(2))
    assert "numgrad: compiling plain ..." in capsys.readouterr().err
    monkeypatch.setattr(specialise, "compile_graph", right)
    monkeypatch.setattr(messages, "PATIENCE", 60.0)
    ng.jit(plain)(np.ones(2))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shape", [(5, 3), (3, 5)])
def test_least_squares_of_two_arguments(shape):
    a, b = np.random.default_rng(0).normal(size=shape), np.ones(shape[0])

    def f(a, b):
        return np.sum(np.linalg.lstsq(a, b)[0] ** 2)

    derive = ng.value_and_grad(f, argnums=(0, 1))
    (value, slopes), (expected, others) = ng.jit(derive)(a, b), derive(a, b)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    for slope, other in zip(slopes, others, strict=True):
        np.testing.assert_allclose(slope, other, rtol=1e-9, atol=1e-12)


def test_a_parameter_that_is_traced_is_named():
    with pytest.raises(NumgradTraceError, match=r"pseudo_inverse: rcond needs .*static_argnums"):
        ng.jit(np.linalg.pinv)(np.ones((3, 2)), 1e-3)


def test_ranges_of_lengths_and_floats():
    found = ng.jit(lambda a: a * ng.arange(1.0, a.shape[0] + 1))
    for n in (3, 5):
        np.testing.assert_array_equal(found(np.ones(n)), np.arange(1.0, n + 1))
    with pytest.raises(NumgradTraceError, match=r"bool\(\) needs .* write ng.arange"):
        ng.jit(lambda a: a * np.arange(1.0, a.shape[0] + 1))(np.ones(3))
    with pytest.raises(NumgradTraceError, match=r"arange: a bound needs .*static_argnums"):
        ng.jit(lambda n, a: a * ng.arange(n))(3, np.ones(3))
