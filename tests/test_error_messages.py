"""Errors name the operation, what was seen and the remedy, where another library would speak."""

import operator
import re

import numpy as np
import pytest
import scipy.sparse

import numgrad as ng
from numgrad.tensors import missing

T = ng.tensor([1.0, 2.0], requires_grad=True)
M = ng.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
S = ng.tensor(2.0, requires_grad=True)


# ------------------------------------------------------------------------ shapes that are traced

SHAPES = {
    "zeros": lambda k: np.zeros(k),
    "empty": lambda k: np.empty(k),
    "full": lambda k: np.full(k, 1.0),
    "ones of a pair": lambda k: np.ones((k, 2)),
    "eye": lambda k: np.eye(k),
    "identity": lambda k: np.identity(k),
    "linspace": lambda k: np.linspace(0, 1, k),
    "arange": lambda k: np.arange(k),
    "indices": lambda k: np.indices((k,)),
    "ng.zeros": lambda k: ng.zeros(k),
    "ng.ones of a pair": lambda k: ng.ones((k, 2)),
    "ng.full": lambda k: ng.full(k, 1.0),
    "ng.eye": lambda k: ng.eye(k),
    "ng.arange": lambda k: ng.arange(k),
    "a list": lambda k: [0.0] * k,
    "a tuple": lambda k: k * (0.0, 1.0),
    "reshape": lambda k: ng.ones(6).reshape(k, -1),
    "tile": lambda k: np.tile(ng.ones(6), k),
    "broadcast_to": lambda k: np.broadcast_to(ng.ones(6), (k, 6)),
    "split": lambda k: np.split(ng.ones(6), k),
    "axis": lambda k: np.sum(ng.ones((2, 2, 2, 2)), axis=k),
    "expand_dims": lambda k: np.expand_dims(ng.ones((2, 2, 2)), k),
    "random": lambda k: np.random.randn(k),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_that_is_traced_names_static_arguments(name):
    with pytest.raises(
        ng.NumgradTraceError, match=rf"{__name__.rpartition('.')[2]}.*static_argnums"
    ):
        ng.jit(lambda k: SHAPES[name](k))(3)
    assert SHAPES[name](3) is not None


# ------------------------------------------------------------------------- writes into ndarrays


def test_a_number_that_is_written_into_an_ndarray():
    for index, value in ((0, S), ((0,), S), (slice(0, 2), T), ([0], S), ([True, False, True], T)):
        target = np.zeros(3)
        with pytest.raises(ng.NumgradError, match=r"ng\.zeros makes .*detach\(\)"):
            ng.grad(lambda x: operator.setitem(target, index, x * value))(1.0)  # noqa: B023
        with pytest.raises((ng.NumgradError, ValueError)) as raised:
            target[index] = value
        error = (
            raised.value if isinstance(raised.value, ng.NumgradError) else raised.value.__cause__
        )
        assert isinstance(error, ng.NumgradError)  # NumPy names the cause where it raises its own
        np.testing.assert_array_equal(target, 0.0)
    with pytest.raises(ng.NumgradTraceError, match=r"ng\.zeros makes"):
        ng.jit(lambda x: operator.setitem(np.zeros(3), 0, x))(1.0)


# ----------------------------------------------------------------------------- other libraries


def test_functions_of_numba():
    numba = pytest.importorskip("numba")
    double = numba.njit(lambda x: x)
    for call in (
        lambda: double(T),
        lambda: double(T.detach()),
        lambda: double([T]),
        lambda: double((T, 1)),
        lambda: ng.grad(lambda x: double(x).sum())(np.ones(2)),
        lambda: ng.jit(lambda x: double(x))(np.ones(2)),
    ):
        with pytest.raises(ng.NumgradTypeError, match=r"numba: .*ng\.primitive"):
            call()
    np.testing.assert_array_equal(double(T.detach().numpy()), [1.0, 2.0])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dok", "lil"])
def test_sparse_matrices_hold_numbers(kind):
    for name in (f"{kind}_array", f"{kind}_matrix"):
        made = getattr(scipy.sparse, name)
        for call in (made, lambda x: ng.jvp(made, (x.detach().numpy(),), (np.ones((2, 2)),))):  # noqa: B023
            with pytest.raises(
                ng.NumgradRuntimeError, match=r"scipy\.sparse\..*ng\.sparse\.matmul"
            ):
                call(M)
        with pytest.raises(ng.NumgradTraceError, match=r"scipy\.sparse\."):
            ng.jit(lambda x: made(x))(np.eye(2))  # noqa: B023
        np.testing.assert_array_equal(made(M.detach()).toarray(), M.detach().numpy())
    matrix = scipy.sparse.csr_array(np.eye(2))
    for call in (lambda: matrix + M, lambda: M - matrix, lambda: M % matrix):
        with pytest.raises(ng.NumgradTypeError, match=r"operand of @ only.*\.toarray\(\)"):
            call()
    with pytest.raises(ng.NumgradRuntimeError, match=r"scipy\.sparse\."):
        scipy.sparse.csr_array((T, ([0, 1], [0, 1])))


def test_brackets_of_pandas():
    pandas = pytest.importorskip("pandas")
    series, frame = pandas.Series([1.0, 2.0], index=[4, 5]), pandas.DataFrame({"a": [1, 2]})
    for call in (
        lambda: series[T > 1],
        lambda: series.loc[T > 1],
        lambda: series.iloc[T > 1],
        lambda: frame[T > 1],
        lambda: frame.loc[T > 1, "a"],
        lambda: operator.setitem(series, T > 1, 0.0),
    ):
        with pytest.raises(ng.NumgradTypeError, match=r"series\[mask\.numpy\(\)\]"):
            call()
    assert series[(T > 1).numpy()].tolist() == series.iloc[(T > 1).numpy()].tolist() == [2.0]
    with pytest.raises(ng.NumgradTraceError, match="pandas"):
        ng.jit(lambda x: series[x > 1])(np.ones(2))


def test_pictures_have_no_gradients():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    _, axes = plt.subplots()
    for name, call in {
        "plot": lambda x: axes.plot(x),
        "scatter": lambda x: axes.scatter([1, 2], x),
        "hist": lambda x: axes.hist(x),
        "bar": lambda x: axes.bar([1, 2], x),
        "fill_between": lambda x: axes.fill_between([1, 2], x),
        "imshow": lambda x: axes.imshow(x.reshape(1, 2)),
    }.items():
        said = rf"^matplotlib\.axes\.Axes\.{name}: [^;]*; \.detach\(\) drops it on purpose$"
        with pytest.raises(ng.NumgradRuntimeError, match=said):
            call(T)
        call(T.detach())
    plt.close("all")


# --------------------------------------------------------------------------------------- names

X = np.array([[2.0, 1.0], [1.0, 3.0]])
NAMES = {"x": X, "y": X + 0.5, "v": np.array([1.0, 2.0]), "c": X * 3, "n": 2, "places": [1, 0],
         "shape": (2, 3)}  # fmt: skip
OF_NUMPY = {
    "H": lambda x, **_: x.T, "addmm": lambda x, y, c, **_: c + x @ y,
    "as_tensor": lambda x, **_: x, "bmm": lambda x, y, **_: x @ y,
    "bool": lambda x, **_: x.astype(bool),
    "cdist": lambda x, y, **_: np.sqrt(((x[:, None] - y) ** 2).sum(-1)),
    "chunk": lambda x, n, **_: np.array_split(x, n), "det": lambda x, **_: np.linalg.det(x),
    "dim": lambda x, **_: x.ndim, "div": lambda x, y, **_: np.divide(x, y),
    "double": lambda x, **_: x, "element_size": lambda x, **_: 8,
    "eq": lambda x, y, **_: np.equal(x, y), "float": lambda x, **_: x.astype("f4"),
    "ge": lambda x, y, **_: np.greater_equal(x, y), "gt": lambda x, y, **_: np.greater(x, y),
    "identity": lambda n, **_: np.identity(n), "index_select": lambda x, places, **_: x[places],
    "int": lambda x, **_: x.astype("i4"), "inverse": lambda x, **_: np.linalg.inv(x),
    "is_tensor": lambda **_: True, "le": lambda x, y, **_: np.less_equal(x, y),
    "long": lambda x, **_: x.astype("i8"), "lt": lambda x, y, **_: np.less(x, y),
    "masked_select": lambda x, **_: x[x > 0], "matrix_exp": lambda x, **_: scipy.linalg.expm(x),
    "mm": lambda x, y, **_: np.matmul(x, y), "movedim": lambda x, **_: x.T,
    "mul": lambda x, y, **_: np.multiply(x, y), "mv": lambda x, v, **_: np.dot(x, v),
    "ne": lambda x, y, **_: np.not_equal(x, y), "neg": lambda x, **_: np.negative(x),
    "nelement": lambda **_: 4, "new_ones": lambda shape, **_: np.ones(shape),
    "new_zeros": lambda shape, **_: np.zeros(shape), "numel": lambda **_: 4,
    "pow": lambda x, y, **_: np.power(x, y), "rsqrt": lambda x, **_: x**-0.5,
    "sub": lambda x, y, **_: np.subtract(x, y), "t": lambda x, **_: x.T,
    "to_numpy": lambda x, **_: x, "values": lambda x, **_: x,
    "view_as": lambda x, **_: x,
}  # fmt: skip


@pytest.mark.parametrize(
    ("home", "name"),
    [("Tensor", n) for n in missing.TENSOR_EXPRESSIONS] + [("ng", n) for n in missing.EXPRESSIONS],
)
def test_expressions_for_names_that_are_absent(home, name):
    table = missing.TENSOR_EXPRESSIONS if home == "Tensor" else missing.EXPRESSIONS
    owner = M if home == "Tensor" else ng
    assert not hasattr(owner, name)
    with pytest.raises(ng.NumgradAttributeError, match=re.escape(f"{table[name]} is the same")):
        getattr(owner, name)
    given = {k: ng.asarray(v) if type(v) is np.ndarray else v for k, v in NAMES.items()}
    found, true = eval(table[name], {"ng": ng, **given}), OF_NUMPY[name](**NAMES)
    for f, t in zip(*((found, true) if type(true) is list else ([found], [true])), strict=True):
        np.testing.assert_allclose(np.asarray(f), t, rtol=1e-11)
        assert np.asarray(f).dtype == np.asarray(t).dtype


@pytest.mark.parametrize(
    ("home", "name", "said"),
    [
        (ng, "cholesky", "ng.linalg.cholesky"),
        (ng, "solve", "ng.linalg.solve"),
        (ng, "inv", "ng.linalg.inv"),
        (ng, "manual_seed", "ng.random.manual_seed"),
        (ng, "rfft", "ng.fft.rfft"),
        (ng, "Linear", "ng.nn.Linear"),
        (ng, "conv2d", "ng.nn.functional.conv2d"),
        (ng, "lfilter", "ng.signal.lfilter"),
        (ng, "brentq", "ng.implicit.root"),
        (ng, "randn", "ng.random.default_rng"),
        (ng, "minimise", "the nearest is minimize"),
        (ng, "zzzz", "nothing comes near it"),
        (T, "to", "astype"),
        (T, "cuda", "no other device"),
        (T, "view", "reshape"),
        (T, "expandd", "the nearest is expand"),
        (T, "logg_", "the nearest is log_"),
        (T, "zzzz", "nothing comes near it"),
    ],
)
def test_names_that_are_elsewhere(home, name, said):
    with pytest.raises(ng.NumgradAttributeError, match=re.escape(said)):
        getattr(home, name)
    assert not hasattr(home, "__wrapped__")


def test_eye_that_requires_grad():
    x = ng.eye(2, 3, 1, requires_grad=True)
    (x * np.arange(6.0).reshape(2, 3)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(6.0).reshape(2, 3))
    assert not ng.eye(2).requires_grad
    with pytest.raises(ng.NumgradRuntimeError, match="dtype int64"):
        ng.eye(2, dtype=int, requires_grad=True)
