"""Arrays that plain NumPy makes in compiled functions: a warning where changes would be missed."""

import functools
import io
import pathlib
import warnings
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg
import scipy.special

import numgrad as ng
from tests.compiler.emulator import emulating

X = np.array([0.5, 1.5, 2.5])


class Store:
    """Everything that the functions below read and the tests change."""

    def __init__(self):
        self.array = np.array([3.0, 4.0, 5.7])
        self.numbers = [1.0, 2.0, 4.0]
        self.table = {"a": np.array([1.0, 5.0, 2.0]), "b": 2.0}
        self.inner = SimpleNamespace(array=np.array([2.0, 1.0, 7.0]))
        self.queue = deque([1.0, 2.0, 5.0])
        self.polynomial = np.polynomial.Polynomial([1.0, 2.0, 3.0])
        self.curve = scipy.interpolate.CubicSpline([0.0, 1.0, 2.0], [1.0, 3.0, 2.0])


STORE = Store()
NAMED = np.array([1.0, 4.0, 9.5])
ROWS = [np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 8.0])]


def squares(n):
    return np.cumsum(np.arange(n) ** 2.0) * STORE.table["b"]


SEEN = {
    "eye": (lambda x: np.eye(len(x)) @ x, None),
    "eye in a loop": (
        lambda x: ng.scan(lambda c, _: (np.eye(len(c)) @ c, None), x, length=2)[0],
        None,
    ),
    "zeros_like in a loop": (
        lambda x: ng.fori_loop(0, 2, lambda k, c: c + np.ones_like(NAMED), x),
        None,
    ),
    "numbers in a loop": (
        lambda x: ng.fori_loop(0, 2, lambda k, c: c * np.array([1.0, 2.0, 4.5]), x),
        None,
    ),
    "linspace": (lambda x: x * np.linspace(0, 1, len(x)) ** 2, None),
    "geomspace": (lambda x: x * np.geomspace(1, 100, 3), None),
    "tri": (lambda x: np.tri(3) @ x, None),
    "window": (lambda x: x * np.hanning(3), None),
    "hilbert": (lambda x: scipy.linalg.hilbert(3) @ x, None),
    "special": (lambda x: x * scipy.special.gamma([1.5, 2.5, 3.5]), None),
    "comprehension": (lambda x: x * np.array([k**2 + 0.3 for k in range(3)]), None),
    "global": (lambda x: x * (NAMED + 1), lambda: NAMED.__setitem__(1, 7.0)),
    "sine of a global": (lambda x: x * np.sin(NAMED), lambda: NAMED.__setitem__(1, 8.0)),
    "part of a global": (lambda x: x[:2] * (NAMED[1:] * 2), lambda: NAMED.__setitem__(2, 3.0)),
    "attribute": (lambda x: x * (STORE.array * 2), lambda: STORE.array.__setitem__(0, 9.0)),
    "attribute replaced": (
        lambda x: x * np.exp(STORE.array / 9),
        lambda: setattr(STORE, "array", np.array([1.0, 1.0, 2.0])),
    ),
    "list": (lambda x: x * np.array(STORE.numbers), lambda: STORE.numbers.__setitem__(1, 6.0)),
    "deque": (lambda x: x * np.array(STORE.queue), lambda: STORE.queue.rotate()),
    "dict": (lambda x: x * np.tanh(STORE.table["a"]), lambda: STORE.table["a"].sort()),
    "any key": (
        lambda x: x * sum(np.sum(v) for v in STORE.table.values()),
        lambda: STORE.table["a"].__setitem__(0, 4.0),
    ),
    "namespace": (lambda x: x * np.diff(STORE.inner.array)[0], lambda: STORE.inner.array.sort()),
    "list of arrays": (
        lambda x: x * np.mean(ROWS, axis=0),
        lambda: ROWS[1].__setitem__(0, 5.0),
    ),
    "helper": (lambda x: x * squares(len(x)), lambda: STORE.table.__setitem__("b", 5.0)),
    "polynomial": (
        lambda x: x * STORE.polynomial(np.arange(3.0)),
        lambda: STORE.polynomial.coef.__setitem__(0, 5.0),
    ),
    "spline": (
        lambda x: x * STORE.curve(np.arange(3.0) / 2),
        lambda: STORE.curve.c.__imul__(2.0),
    ),
}


@pytest.mark.parametrize("case", SEEN)
def test_changes_are_seen_without_a_warning(case):
    f, change = SEEN[case]
    with emulating():
        fast = ng.jit(f)
        np.testing.assert_allclose(fast(X), f(X), rtol=1e-13)
        if change is None:
            longer = np.arange(1.0, 4.0)
            np.testing.assert_allclose(fast(longer), f(longer), rtol=1e-13)
            return
        before = np.copy(f(X))
        change()
        assert not np.allclose(f(X), before)
        np.testing.assert_allclose(fast(X), f(X), rtol=1e-13)


@functools.lru_cache
def remembered(n):
    return np.arange(n) ** 2.0 + 0.25


MISSED = {
    "remembered": lambda x: x * remembered(3),
    "text": lambda x: x * np.loadtxt(io.StringIO("1 2 4.4")),
    "file": lambda x: x * np.frombuffer(PATH.read_bytes()),
    "drawn": lambda x: x * np.random.default_rng().normal(size=3),
}
PATH = pathlib.Path()


@pytest.mark.parametrize("case", MISSED)
def test_what_would_be_missed_warns_at_its_line(case, tmp_path, monkeypatch):
    path = tmp_path / "numbers"
    path.write_bytes(np.array([1.3, 2.7, 9.1]).tobytes())
    monkeypatch.setitem(globals(), "PATH", path)
    f = MISSED[case]
    with emulating(), pytest.warns(UserWarning, match="becomes part of the compiled") as met:
        ng.jit(f)(X)
    assert met[0].filename == __file__
    if case != "drawn":
        assert met[0].lineno == f.__code__.co_firstlineno


def test_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.5], "b": [3, 4, 6]})
    functions = [
        lambda x: x * table["a"].to_numpy(),
        lambda x: x * table["b"].values,
        lambda x: x * (table["a"] - table["a"].mean()).to_numpy(),
    ]
    for f in functions:
        with emulating(), warnings.catch_warnings():
            warnings.simplefilter("error")
            fast = ng.jit(f)
            np.testing.assert_allclose(fast(X), f(X))
            table.loc[0, ["a", "b"]] = [table["a"][0] + 4.5, table["b"][0] + 4]
            np.testing.assert_allclose(fast(X), f(X))
