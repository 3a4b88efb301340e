"""NumPy's functions that write into arrays, at places that are computed or differ by example."""

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating
from tests.crossed import each_first

X = np.array([0.5, 1.1, 0.7, 1.3, 0.2, 0.9])
ROWS = np.stack([X, X[::-1], X * 0.9])
PLACES = np.array([3, -1, 0])
TABLE = np.stack([PLACES, PLACES - 1, PLACES * 0 + 2])
VALUES = np.array([5.0, 6.0])
WEIGHTS = np.arange(1.0, 7.0)

WRITES = {
    "place": lambda y, i: np.place(y, y > 0.6, VALUES),
    "place by numbers": lambda y, i: np.place(y, (y > 0.6) * 1, y[:2] * 3),
    "place nothing": lambda y, i: np.place(y, y > 9, VALUES),
    "putmask": lambda y, i: np.putmask(y, y > 0.6, VALUES),
    "putmask of its own": lambda y, i: np.putmask(y, y > 0.6, y + 1),
    "put": lambda y, i: np.put(y, i, VALUES),
    "put more": lambda y, i: np.put(y, i, y + 0.0),
    "put wrapped": lambda y, i: np.put(y, i + 4, VALUES * y[:2], mode="wrap"),
    "put clipped": lambda y, i: np.put(y, i + 4, 1.0, mode="clip"),
    "along": lambda y, i: np.put_along_axis(y, i, 3.0, 0),
    "along its order": lambda y, i: np.put_along_axis(y, np.argsort(y)[:2], y[:2] * 4, 0),
    "along none": lambda y, i: np.put_along_axis(y, i, y[:3] * 2, None),
    "copyto": lambda y, i: np.copyto(y, y * 2, where=y > 0.6),
    "copyto or not": lambda y, i: np.copyto(y, 7.0, where=i[0] > 2),
    "add.at": lambda y, i: np.add.at(y, i, y[:3] * 2),
    "subtract.at": lambda y, i: np.subtract.at(y, (i,), 2.0),
    "multiply.at": lambda y, i: np.multiply.at(y, i, y[:3] + 1),
    "maximum.at": lambda y, i: np.maximum.at(y, i, 0.8),
    "setitem": lambda y, i: y.__setitem__(i, y[:3] * 2),
    "setitem at a mask": lambda y, i: y.__setitem__(y > 0.6, 0.0),
    "flat": lambda y, i: y.flat.__setitem__(slice(0, 3), VALUES),
    "fill_diagonal": lambda y, i: np.fill_diagonal(y.reshape(2, 3), VALUES),
    "fill_diagonal wrapped": lambda y, i: np.fill_diagonal(
        y.reshape(3, 2), y[:2] * 2, wrap=True
    ),
}  # fmt: skip
COPIES = {
    "copy": lambda x: x.copy(),
    "np.copy": np.copy,
    "sum": lambda x: x + 0.0,
    "zeros_like": lambda x: _copied(np.zeros_like(x), x),
    "empty_like": lambda x: _copied(np.empty_like(x), x),
}
MODES = ["eager", "grad", "jvp", "vmap", "jit", "jit grad", "jit vmap", "jit vmap grad", "jit jvp"]


def _copied(made, x):
    np.copyto(made, x)
    return made


def slopes(f, x, i):
    step = 1e-6 * np.eye(6)
    return np.array([(f(x + e, i) - f(x - e, i)) / 2e-6 for e in step])


def check(mode, write, copy):
    def f(x, i):
        y = COPIES[copy](x)
        WRITES[write](y, i)
        return np.sum(y * x * WEIGHTS)

    pairs = list(zip(ROWS, TABLE, strict=True))
    derive = {
        "": lambda f: f,
        "grad": ng.grad,
        "vmap": ng.vmap,
        "vmap grad": lambda f: ng.vmap(ng.grad(f)),
        "jvp": lambda f: lambda x, i: ng.jvp(lambda x: f(x, i), (x,), (WEIGHTS,))[1],
    }
    kind = mode.removeprefix("jit").removeprefix("eager").strip()
    found = derive[kind](f)
    found = ng.jit(found) if mode.startswith("jit") else found
    given = (ROWS, TABLE) if "vmap" in kind else (X, PLACES)
    if mode == "eager":
        given = ng.tensor(X), ng.tensor(PLACES)
    expected = {
        "": lambda: f(X, PLACES),
        "grad": lambda: slopes(f, X, PLACES),
        "vmap": lambda: [f(x, i) for x, i in pairs],
        "vmap grad": lambda: [slopes(f, x, i) for x, i in pairs],
        "jvp": lambda: slopes(f, X, PLACES) @ WEIGHTS,
    }[kind]()
    np.testing.assert_allclose(found(*given), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mode", MODES)
def test_writes(mode, write, copy):
    with emulating():
        check(mode, write, copy)


@pytest.mark.parametrize("write", WRITES)
def test_each_write_once(write):
    number = list(WRITES).index(write)
    with emulating():
        for mode in ("jit grad", "vmap", MODES[number % len(MODES)]):
            check(mode, write, list(COPIES)[number % len(COPIES)])


@pytest.mark.parametrize("function", [np.place, np.putmask])
def test_masks_of_another_size(function):
    def f(x):
        y = x.copy()
        function(y, x[1:] > 0.5, VALUES)
        return np.sum(y)

    with pytest.raises(ValueError, match="as many elements"):
        ng.jit(f)(X)


PLAIN = np.array([0, 7, -9, 2])
FLAGS = np.array([True, False, True, True, False, False])


OUT_OF_RANGE = {"array": PLAIN, "list": [0, 7, -9, 2], "number": 7}


@pytest.mark.slow(cases=len(OUT_OF_RANGE))
@pytest.mark.parametrize(("name", "mode"), each_first([*OUT_OF_RANGE], ["clip", "wrap"]))
def test_put_by_indices_out_of_range(name, mode):
    indices = OUT_OF_RANGE[name]

    def f(x, i):
        y = x * 1.0
        np.put(y, i, x * 2, mode=mode)
        return np.sum(y * WEIGHTS)

    truth = f(X, indices)
    np.testing.assert_allclose(ng.jit(f)(X, indices), truth)
    np.testing.assert_allclose(ng.jit(lambda x: f(x, indices))(X), truth)
    found = ng.jit(ng.grad(lambda x: f(x, indices)))(X)
    np.testing.assert_allclose(found, slopes(f, X, indices), atol=1e-8)


@pytest.mark.parametrize("accumulate", [False, True])
def test_values_at_an_enclosed_mask(accumulate):
    flags = FLAGS.copy()

    def f(x, _):
        y = x * 1.0
        if accumulate:
            y[flags] += x[: flags.sum()] ** 2
        else:
            y[flags] = x[: flags.sum()] ** 2
        return np.sum(y * WEIGHTS)

    fast, derived = ng.jit(f), ng.jit(ng.grad(f))
    for change in (None, 1, 4):
        if change is not None:
            flags[change] = True
        np.testing.assert_allclose(fast(X, 0), f(X, 0))
        np.testing.assert_allclose(derived(X, 0), slopes(f, X, 0), atol=1e-8)
    with pytest.raises(ng.NumgradValueError):
        ng.jit(lambda x: (x * 1.0).__setitem__(flags, x[:2]))(X)
