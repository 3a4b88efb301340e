"""Random numbers of a seed and counters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import numgrad as ng

KNOWN = [  # kat_vectors of Random123, threefry2x32 of 20 rounds
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


def joined(low: int, high: int) -> np.int64:
    """The integer of two words, as its bits are."""
    return np.uint64(low | high << 32).astype(np.int64)


@pytest.mark.parametrize(("key", "counter", "words"), KNOWN)
def test_known_answers(key, counter, words):
    value = ng.random.uniform_at(joined(*key), joined(*counter)).item()
    assert value == ((words[0] >> 5) * 2**26 + (words[1] >> 6)) / 2**53


def test_distributions():
    counter = np.arange(20_000)
    uniform = ng.random.uniform_at(3, counter).numpy()
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    normal = ng.random.normal_at(3, counter).numpy()
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    other = ng.random.normal_at(4, counter).numpy()
    assert abs(np.corrcoef(normal, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(normal[1:], normal[:-1])[0, 1]) < 0.03


def test_seeds_and_counters_broadcast_and_are_integers():
    table = ng.random.uniform_at(np.arange(3)[:, None], np.arange(4)).numpy()
    for k in range(3):
        np.testing.assert_array_equal(table[k], ng.random.uniform_at(k, np.arange(4)).numpy())
    with pytest.raises(ng.NumgradTypeError, match="uniform_at: a seed or counter is of float64"):
        ng.random.uniform_at(1.5, 0)
    with pytest.raises(ng.NumgradTypeError, match="normal_at"):
        ng.random.normal_at(1, np.ones(2))


def test_a_seed_is_an_argument_of_native_functions():
    def paths(x, seed):
        return ng.scan(lambda c, k: (c + ng.random.normal_at(seed, k), None), x, np.arange(5))[0]

    native = ng.jit(paths).native(0.0, 1)
    for seed in (1, 2):
        expected = 0.0
        for z in ng.random.normal_at(seed, np.arange(5)).numpy():
            expected += z
        assert native(0.0, seed) == expected
