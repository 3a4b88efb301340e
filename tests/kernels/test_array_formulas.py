"""Kernels of formulas over whole arrays, against the same code run by NumPy."""

import numpy as np
import pytest

from numgrad.codegen import cache, threads
from numgrad.codegen.array_formulas import array_formula
from numgrad.codegen.nests import arrays


def scaled(x, weight, shift, *, with_sum):
    """A function of examples, channels and the rest."""
    m = np.mean(x, axis=(0, 2), keepdims=True)
    y = (x - m) * np.exp(-m) + shift
    if weight is not None:
        y = y * weight
    return y, np.sum(y * y, axis=(0, 2), keepdims=True) if with_sum else None, m


SIGNATURE = "x:nci weight:c shift -> y:nci total:c mean:c"
SHAPES = [(3, 4, 5), (1, 1, 1), (70, 60, 1), (2, 1, 30), (40, 5, 130)]


def computed(formula, x, weight, shift, with_sum):
    c = x.shape[1:2]
    return formula(x.dtype, x.shape, (x.shape, c, c), x, weight, shift, with_sum=with_sum)


def expected(x, weight, shift, with_sum):
    column = None if weight is None else weight.reshape(1, -1, 1)
    wide = [None if a is None else a.astype(np.float64) for a in (x, column)]
    return scaled(*wide, shift, with_sum=with_sum)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(dtype, shape):
    rng = np.random.default_rng(0)
    formula = array_formula("nci", SIGNATURE, units="i")(scaled)
    x = rng.standard_normal(shape).astype(dtype)
    weight = rng.standard_normal(shape[1]).astype(dtype)
    for w in (weight, None):
        for with_sum in (True, False):
            results = computed(formula, x, w, 0.25, with_sum)
            for ours, theirs in zip(results, expected(x, w, 0.25, with_sum), strict=True):
                if theirs is None:
                    assert ours is None
                    continue
                assert ours.dtype == dtype
                rtol = 2e-5 if dtype == "float32" else 1e-12
                np.testing.assert_allclose(ours.ravel(), theirs.ravel(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_index_and_numbers_of_other_dtypes(shape):
    def even(x, seed, place):
        return np.where((place ^ seed) & np.uint64(1) == np.uint64(0), x, 0)

    formula = array_formula("nci", "x:nci seed=uint64 place#ni -> y:nci")(even)
    x, seed = np.ones(shape), 2**63 + 5
    place = np.arange(shape[0] * shape[2]).reshape(shape[0], 1, shape[2])
    (y,) = formula(x.dtype, shape, (shape,), x, seed)
    np.testing.assert_array_equal(y, np.broadcast_to((place ^ 5) & 1 == 0, shape))


def test_operands_of_other_dtypes_and_layouts():
    formula = array_formula("nci", SIGNATURE)(scaled)
    x = np.asfortranarray(np.random.default_rng(1).standard_normal((6, 7, 8)))
    results = computed(formula, x, np.arange(7), 1, False)
    for ours, theirs in zip(results, expected(x, np.arange(7), 1, False), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours.ravel(), theirs.ravel(), rtol=1e-12)


def test_the_same_bits_for_any_number_of_threads(monkeypatch):
    formula = array_formula("nci", SIGNATURE)(scaled)
    x = np.random.default_rng(2).standard_normal((200, 33, 17)).astype(np.float32)
    alone = computed(formula, x, None, 0.0, True)

    def shared(serial, parallel, work_ns):
        return lambda *arguments: threads.launch(parallel(), 2, *arguments)

    monkeypatch.setattr(threads, "choose", shared)
    for a, b in zip(alone, computed(formula, x, None, 0.0, True), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_text_is_kept_on_disk(monkeypatch, tmp_path):
    """A process that finds it neither reads the formula nor loads the generator."""
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    x = np.ones((2, 3, 4))
    first = computed(array_formula("nci", SIGNATURE)(scaled), x, None, 0.5, True)

    def refused(*given, **options):
        raise AssertionError("the text is written again")

    monkeypatch.setattr(arrays, "formula_kernel", refused)
    again = computed(array_formula("nci", SIGNATURE)(scaled), x, None, 0.5, True)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(AssertionError, match="written again"):  # options are part of the key
        computed(array_formula("nci", SIGNATURE)(scaled), x, None, 0.5, False)
