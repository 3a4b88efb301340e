"""Options of ``ng.jit`` that change how a kernel is compiled, not what it computes."""

from pathlib import Path

import numpy as np
import pytest

import numgrad as ng

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
