"""``ufunc.at`` and ``ufunc.reduceat`` on Tensors: NumPy's numbers, with gradients."""

import functools

import numpy as np
import pytest

import numgrad as ng

FOLDS = [np.multiply, np.divide, np.maximum, np.minimum, np.power, np.hypot, np.fmax, np.logaddexp]
INDICES = {
    "list": (([0, 2, 2, 0, 2],), (5,), (4,)),
    "beside a slice": ((slice(None), [1, 1, 0]), (4, 3), (4, 3)),
    "pairs": (([0, 3, 0], [1, 1, 1]), (3,), (4, 3)),
    "mask": ((np.array([True, False, True, True]),), (3, 3), (4, 3)),
    "integer": ((2,), (), (4, 3)),
    "nothing": (([],), (0,), (4,)),
}


def folded(ufunc, x, index, *values):
    """What ``ufunc.at`` means, one element after the other: NumPy's loops may alias wrongly."""
    x = x.copy()
    places = np.arange(x.size).reshape(x.shape)[index]
    values = [np.broadcast_to(v, places.shape).ravel() for v in values]
    for k, place in enumerate(places.ravel()):
        x.flat[place] = ufunc(x.flat[place], *[v[k] for v in values])
    return x


def written(ufunc, index, x, *values):
    y = x * 1.0
    ufunc.at(y, index, *values)
    return y


def check(f, given, expected, rtol=1e-13):
    leaves = [ng.tensor(a, requires_grad=True) for a in given]
    np.testing.assert_allclose(f(*leaves).detach().numpy(), expected, rtol=rtol)
    assert ng.testing.gradcheck(f, tuple(leaves))
    batch = [np.stack([a, a]) for a in given]
    np.testing.assert_allclose(ng.vmap(f)(*batch)[1], expected, rtol=rtol)


@pytest.mark.parametrize("kind", INDICES)
def test_at(kind):
    rng = np.random.default_rng(0)
    (*parts,), shape, of_target = INDICES[kind]
    index = tuple(parts) if len(parts) > 1 else parts[0]
    x, v = rng.uniform(0.5, 2, of_target), rng.uniform(0.5, 2, shape)
    for ufunc in FOLDS if kind == "list" else FOLDS[1:3]:
        call = functools.partial(written, ufunc, index)
        check(call, (x, v), folded(ufunc, x, np.index_exp[index], v))
    for ufunc in (np.negative, np.sin):
        check(functools.partial(written, ufunc, index), (x,), folded(ufunc, x, np.index_exp[index]))


@pytest.mark.filterwarnings("ignore:jit")
def test_at_is_compiled():
    x, v = np.array([0.5, 1.5, 2.5]), np.array([0.7, 1.2, 1.9])
    for ufunc in (np.multiply, np.divide, np.minimum):
        f = functools.partial(written, ufunc, [0, 2, 2])
        np.testing.assert_allclose(ng.jit(f)(x, v), f(x, v), rtol=1e-14)
        g = ng.grad(lambda x, v, f=f: np.sum(np.sin(f(x, v))), (0, 1))
        for found, expected in zip(ng.jit(g)(x, v), g(x, v), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)

    def by_index(ufunc):
        return ng.jit(lambda x, i, v: written(ufunc, i, x, v))

    i = np.array([0, 0, 2])
    for ufunc in (np.multiply, np.maximum):
        np.testing.assert_allclose(by_index(ufunc)(x, i, v), written(ufunc, i, x, v), rtol=1e-14)
    with pytest.raises(ng.NumgradTraceError, match=r"np\.divide\.at by computed numbers"):
        by_index(np.divide)(x, i, v)


def test_at_keeps_to_numpys_rules():
    t = ng.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ng.NumgradIndexError, match=r"divide\.at"):
        written(np.divide, [2], t, 1.0)
    with pytest.raises(ng.NumgradValueError):
        written(np.divide, [0], t, np.ones(3))
    with pytest.raises(ng.NumgradRuntimeError, match=r"divide\.at"):
        np.divide.at(t, [0], 2.0)  # a leaf that requires grad
    whole = ng.tensor([4, 8])
    with pytest.raises(ng.NumgradTypeError):
        np.multiply.at(whole, [0], t[:1])
    plain = ng.zeros(3)
    np.maximum.at(plain, ng.tensor([0, 0]), ng.tensor([3.0, 1.0]))
    assert plain.tolist() == [3.0, 0.0, 0.0]
    single = ng.tensor(np.ones(2, np.float32), requires_grad=True) * 1
    np.divide.at(single, [0, 0], np.float64(3))
    assert single.dtype == np.float32


SEGMENTS = ([0, 2, 5], [0, 4, 1, 5, 2, 6, 3], [6, 6, 0], [])


def segments(ufunc, indices, x, axis=0):
    return ufunc.reduceat(x, indices, axis)


@pytest.mark.filterwarnings("ignore:jit")
@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.maximum, np.subtract, np.divide, np.power, np.logaddexp]
)
def test_reduceat(ufunc):
    x = np.random.default_rng(1).uniform(0.5, 2, (7, 2))
    for indices in SEGMENTS:
        f = functools.partial(segments, ufunc, indices)
        ends = [*indices[1:], 7]
        rows = [
            functools.reduce(ufunc, x[a : max(b, a + 1)])
            for a, b in zip(indices, ends, strict=False)
        ]
        check(f, (x,), np.reshape(rows, (len(rows), 2)))
        turned = segments(ufunc, indices, ng.tensor(x.T, requires_grad=True), axis=-1)
        found = turned.detach().numpy()
        np.testing.assert_allclose(found, np.reshape(rows, (len(rows), 2)).T, rtol=1e-13)
    np.testing.assert_allclose(ng.jit(f)(x), f(ng.tensor(x)), rtol=1e-13)
    second = ng.hessian(lambda x: np.sum(np.sin(ufunc.reduceat(x, [0, 2]))))(x[:4, 0])
    assert np.isfinite(second).all()


@pytest.mark.filterwarnings("ignore:jit")
def test_reduceat_has_numpys_dtypes_and_errors():
    for dtype in (bool, np.int8, np.int64, np.float32, np.complex64):
        x = np.ones((5, 2), dtype)
        for ufunc in (np.add, np.multiply, np.logical_or):
            found = ng.jit(lambda x, ufunc=ufunc: ufunc.reduceat(x, [0, 3]))(x)
            expected = ufunc.reduceat(x, [0, 3])
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    x = ng.tensor(np.ones(3), requires_grad=True)
    assert np.add.reduceat(x, [0], dtype=np.float32).dtype == np.float32
    with pytest.raises(ng.NumgradIndexError, match="index 5 is outside of axis 0 of length 3"):
        np.add.reduceat(x, [0, 5])
    with pytest.raises(ng.NumgradTypeError, match="float64"):
        np.add.reduceat(x, [0.5])
    with pytest.raises(ng.NumgradTypeError, match="out="):
        np.add.reduceat(x, [0], out=np.zeros(1))
    ones = ng.tensor(np.ones(10**5, np.float32) * 0.1, requires_grad=True)  # summed in pairs
    np.testing.assert_allclose(np.add.reduceat(ones, [0]).detach().numpy(), 1e4, rtol=1e-6)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply])
def test_at_places_of_a_mask_from_outside_in_compiled_functions(ufunc):
    mask, b = np.array([[True, False, True], [False, True, False]]), np.array([3.0, 2.0, -1.0])

    def f(b):
        y = np.ones((2, 3)) * b[0]
        ufunc.at(y, mask, b)
        return y

    fast = ng.jit(f)
    np.testing.assert_array_equal(fast(b), f(ng.tensor(b)).numpy())
    mask[:] = mask[:, ::-1].copy()
    mask[0, 1], mask[1, 1] = True, False
    np.testing.assert_array_equal(fast(b), f(ng.tensor(b)).numpy())
    np.testing.assert_allclose(
        ng.jit(ng.grad(lambda b: np.sum(f(b) ** 2)))(b), ng.grad(lambda b: np.sum(f(b) ** 2))(b)
    )
