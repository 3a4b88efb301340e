"""Options of ``ng.jit`` that change how a kernel is compiled, not what it computes."""

from pathlib import Path

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen import threads, trials
from numgrad.compiler.run.program import Options, compile_graph
from tests.compiler.tracing import trace

RNG = np.random.default_rng(0)


def products(x, y):
    return x * x - y * y


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_operations_are_contracted_only_if_asked(folder: Path):
    x = RNG.random(1000)
    plain, contracted = ng.jit(products), ng.jit(products, contract=True)
    np.testing.assert_array_equal(plain(x, x), 0.0)
    error = contracted(x, x)
    rounding = np.spacing(x * x) / 2
    # one product is rounded, the other is not: their difference is that rounding
    assert np.all(np.abs(error) <= rounding)
    assert "fadd contract" not in plain.llvm
    assert "fsub contract" in contracted.llvm


def test_without_cache_nothing_is_kept(folder: Path):
    fast = ng.jit(lambda x: x * 7.5 - 1, cache=False)
    np.testing.assert_array_equal(fast(np.ones(3)), [6.5] * 3)
    assert list(folder.iterdir()) == []
    kept = ng.jit(lambda x: x * 7.5 - 1)
    np.testing.assert_array_equal(kept(np.ones(3)), [6.5] * 3)
    files = [path for path in folder.iterdir() if path.name != ".lock"]
    assert {path.suffix for path in files} == {".py", ".bin"}
    assert not any("<" in path.name for path in files)  # Windows has no such files


def test_the_variant_for_threads_is_compiled_when_it_would_have_paid(folder: Path, monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE", 0)
    monkeypatch.setattr(threads, "_overhead_ns", 0.0)
    before = ng.get_num_threads()
    ng.set_num_threads(2)
    try:
        x = RNG.random(100_000)
        program = compile_graph(trace(lambda x: np.exp(np.tanh(x) * 1.25), x))
        (step,) = program.steps
        expected = program.run(x)
        assert list(step.kernels) == [(False, True)]
        step.missed = 0.0
        step.seconds = 1e3
        program.run(x)
        assert 0.0 < step.missed < 1.0
        step.missed = 1e3
        np.testing.assert_array_equal(program.run(x), expected)
        assert list(step.kernels) == [(False, True), (True, True)]
        whole = compile_graph(program.graph, Options(parallel=True))
        np.testing.assert_array_equal(whole.run(x), expected)
        assert list(whole.steps[0].kernels) == [(True, True)]
        # of less work both variants are tried, once the time saved may be that of compiling
        monkeypatch.setattr(threads, "_measured_ns", 20_000.0)
        monkeypatch.setattr(threads, "_avoided_until", 0.0)
        launched = []
        launch = threads.launch
        monkeypatch.setattr(threads, "launch", lambda *given: launched.append(launch(*given)))
        del step.kernels[True, True]
        few = x[:10_000]
        smaller = [expected[0][:10_000]]
        step.missed, step.seconds = 0.0, 1e3
        np.testing.assert_array_equal(program.run(few), smaller)
        assert 0.0 < step.missed < 1.0
        assert not step.trials
        step.missed = 1e3
        for _ in range(trials.ROUNDS * (trials.OWN + trials.OTHER)):
            np.testing.assert_array_equal(program.run(few), smaller)
        assert len(launched) == trials.ROUNDS * trials.OTHER
        (trial,) = step.trials.values()
        if trial.alone:
            left = trial.alone
            program.run(few)
            assert trial.alone == left - 1
    finally:
        ng.set_num_threads(before)
