"""Functions on pieces of their data, on threads, processes and Dask, against the whole at once."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import numgrad as ng
from tests.parallel.functions import dies_at_seven, fails_at_seven, mean, squares, statistics

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(23, 3)), RNG.normal(size=23)
W = {"a": RNG.normal(size=3), "b": np.float64(0.5)}


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        yield executor


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(3) as executor:
        yield executor


def bits(found):
    value, gradient = found
    return [np.asarray(x).tobytes() for x in (value, *ng.tree.leaves(gradient))]


@pytest.mark.parametrize("chunks", [None, 1, 2, 5, 100, [3, 19, 1]])
def test_pieces_add_up_to_the_whole(chunks, threads):
    value, gradient = ng.value_and_grad(squares)(W, X, Y, scale=2.0)
    here = ng.parallel.value_and_grad(squares, chunks=chunks)(W, X, Y, scale=2.0)
    np.testing.assert_allclose(here[0], value, rtol=1e-13)
    np.testing.assert_allclose(here[1]["a"], gradient["a"], rtol=1e-12)
    np.testing.assert_allclose(here[1]["b"], gradient["b"], rtol=1e-12)
    there = ng.parallel.value_and_grad(squares, threads, chunks=chunks)(W, X, Y, scale=2.0)
    assert bits(here) == bits(there)
    value, gradient = ng.value_and_grad(mean)(W, X, Y)
    found = ng.parallel.value_and_grad(mean, threads, chunks=chunks, reduction="mean")(W, X, Y)
    np.testing.assert_allclose(found[0], value, rtol=1e-13)
    np.testing.assert_allclose(found[1]["a"], gradient["a"], rtol=1e-12)


def test_processes_give_the_same_bits(processes):
    here = ng.parallel.value_and_grad(squares, chunks=4)
    there = ng.parallel.value_and_grad(squares, processes, chunks=4)
    for k in range(3):
        w = {"a": W["a"] + k, "b": W["b"]}
        assert bits(here(w, X, Y)) == bits(there(w, X, Y))
    compiled = ng.parallel.value_and_grad(squares, processes, chunks=4, jit=True)
    np.testing.assert_allclose(compiled(W, X, Y)[0], here(W, X, Y)[0], rtol=1e-12)
    rows = ng.parallel.map(statistics, X, processes, chunks=3)
    np.testing.assert_array_equal(rows["twice"], 2 * X)
    np.testing.assert_array_equal(rows["sum"], [row.sum() for row in X])
    fails = ng.parallel.value_and_grad(fails_at_seven, processes, chunks=3)
    with pytest.raises(LookupError, match="seven") as caught:
        fails(1.0, np.arange(12.0))
    assert "piece 1 (rows 4 to 7)" in "".join(caught.value.__notes__)
    cloudpickle = pytest.importorskip("cloudpickle")
    assert cloudpickle
    found = ng.parallel.value_and_grad(lambda w, x: np.sum(w * x), processes)(2.0, np.arange(4.0))
    assert tuple(map(float, found)) == (12.0, 6.0)


def test_a_process_that_dies_is_an_error_with_its_piece():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        f = ng.parallel.value_and_grad(dies_at_seven, executor, chunks=[6, 4, 2])
        with pytest.raises(ng.NumgradRuntimeError, match=r"piece 1 \(rows 6 to 9\)"):
            f(1.0, np.arange(12.0))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes_and_several_arguments(dtype, threads):
    def f(a, x, b):
        return np.sum(abs(x * a - b) ** 2)

    a, b = np.ones((1, 3), dtype), np.full(3, 2, dtype)
    x = X.astype(dtype)[:, ::-1]
    found = ng.parallel.value_and_grad(f, threads, argnums=(2, 0), chunks=3)(a, x, b)
    value, (db, da) = ng.value_and_grad(f, (2, 0))(a, x, b)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(found[0], value, rtol=tolerance)
    for one, other in zip(found[1], (db, da), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance)


def test_value_is_the_loss_of_a_minimizer(threads):
    both = ng.parallel.value_and_grad(mean, threads, chunks=3, reduction="mean")
    w = {"a": ng.zeros(3, requires_grad=True), "b": ng.tensor(0.0, requires_grad=True)}
    result = ng.optim.minimize(list(w.values()), lambda: both(w, X, Y)[0], tol=1e-12)
    design = np.column_stack([X, np.ones(len(X))])
    expected = np.linalg.lstsq(design, Y, rcond=None)[0]
    np.testing.assert_allclose(result.x[0].numpy(), expected[:3], rtol=1e-6)
    value, gradient = both(w, X, Y)
    (value * 3).backward()
    np.testing.assert_allclose(w["a"].grad.numpy(), 3 * gradient["a"].numpy(), rtol=1e-14)
    value, _ = both(w, X, Y)
    with pytest.raises(ng.NumgradNotImplementedError, match="first derivatives"):
        ng.autograd.grad(value, w["a"], create_graph=True)
    with ng.no_grad():
        assert not both(w, X, Y)[0].requires_grad
    with pytest.raises(ng.NumgradRuntimeError, match="argnums"):
        both(W, ng.tensor(X, requires_grad=True), Y)


def test_a_minimizer_says_that_it_wants_the_value_alone():
    both = ng.parallel.value_and_grad(lambda w, x: np.sum((x @ w) ** 2))
    with pytest.raises(ng.NumgradTypeError, match=r"a tuple of 2.*give the first"):
        ng.minimize(both, np.ones(3), args=(np.eye(3),))


def test_gradients_of_complex_arguments_are_those_of_a_backward():
    def f(z, x):
        return np.sum(abs(np.exp(z * x)) ** 2 + (z * z).real)

    z = ng.tensor([0.3 + 0.2j, -0.1j], requires_grad=True)
    x = RNG.normal(size=(5, 2))
    f(z, x).backward()
    expected, z.grad = z.grad, None
    (2 * ng.parallel.value_and_grad(f, chunks=[5])(z, x)[0]).backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * expected.numpy(), rtol=1e-13)


def test_map_takes_nestings(threads):
    found = ng.parallel.map(lambda p: (p[0] * p[1].sum(), p[0]), (np.arange(5.0), X[:5]), threads)
    np.testing.assert_allclose(found[0], np.arange(5.0) * X[:5].sum(axis=1))
    assert found[1].shape == (5,)
    with pytest.raises(ng.NumgradTypeError, match="NoneType"):
        ng.parallel.map(lambda n: None, np.arange(3.0))
    with pytest.raises(ng.NumgradValueError, match="shapes"):
        ng.parallel.map(lambda n: np.zeros(int(n)), np.arange(3.0), chunks=1)
    with pytest.raises(ng.NumgradValueError, match="shapes"):
        ng.parallel.map(lambda n: np.zeros(int(n)), np.arange(3.0), chunks=3)


def test_bad_arguments(threads):
    parallel = ng.parallel.value_and_grad
    for kind, match, call in (
        (ng.NumgradTypeError, "takes a function", lambda: parallel(3)),
        (ng.NumgradTypeError, "executor", lambda: parallel(squares, 4)),
        (ng.NumgradTypeError, "argnums", lambda: parallel(squares, argnums="w")),
        (ng.NumgradValueError, "different", lambda: parallel(squares, argnums=(0, 0))),
        (ng.NumgradValueError, "reduction", lambda: parallel(squares, reduction="max")),
        (ng.NumgradTypeError, "jit", lambda: parallel(squares, jit=1)),
        (ng.NumgradValueError, "rows", lambda: parallel(squares)(W, X, Y[:5])),
        (ng.NumgradValueError, "no rows", lambda: parallel(squares)(W, X[:0], Y[:0])),
        (ng.NumgradTypeError, "by keyword", lambda: parallel(squares)(W, X, 1.0)),
        (ng.NumgradTypeError, "no data", lambda: parallel(lambda w: w)(1.0)),
        (ng.NumgradValueError, "argument 0", lambda: parallel(squares)()),
        (ng.NumgradValueError, "from 1", lambda: parallel(squares, chunks=0)(W, X, Y)),
        (ng.NumgradValueError, "do not cut", lambda: parallel(squares, chunks=[3])(W, X, Y)),
        (ng.NumgradTypeError, "number of pieces", lambda: parallel(squares, chunks="a")(W, X, Y)),
    ):
        with pytest.raises(kind, match=match):
            call()
    with pytest.raises(ng.NumgradTraceError, match="jit=True"):
        ng.jit(lambda w: parallel(fails_at_seven)(w, X))(1.0)


def test_an_executor_that_was_shut_down_is_named():
    with ThreadPoolExecutor(1) as gone:
        pass
    with pytest.raises(ng.NumgradRuntimeError, match=r"takes no work .*with block"):
        ng.parallel.value_and_grad(np.dot, gone)(np.ones(3), np.ones((3, 3)))


def test_gradients_of_numbers_are_numbers_as_those_of_one_process():
    x = np.arange(4.0)
    for w in (2.0, np.float32(2.0), np.array(2.0), {"a": 2.0, "b": np.ones(2)}):

        def f(w, x):
            return np.sum(w["a"] * x * w["b"][0] if isinstance(w, dict) else w * x)

        alone, cut = ng.value_and_grad(f)(w, x), ng.parallel.value_and_grad(f, None, chunks=2)(w, x)
        assert repr(alone) == repr(cut)
