"""NumPy's functions on Tensors."""

import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad.tensors import numpy_protocol


def leaf():
    return ng.tensor([[0.2, 0.5], [0.7, 0.9]], requires_grad=True)


FUNCTIONS = [
    np.tanh, np.sum, np.mean, np.cumsum, np.ravel, np.transpose, np.max,
    lambda x: np.sum(x, axis=0), lambda x: np.where(x > 0.4, x, 0.0), lambda x: np.clip(x, 0.3,
    0.8),
    lambda x: np.concatenate([x, x]), lambda x: np.stack([x, x], axis=1), lambda x: np.add(x, 1),
    lambda x: np.linalg.norm(x), lambda x: np.var(x, axis=1, ddof=1), lambda x: np.add.reduce(x),
    lambda x: np.multiply.accumulate(x, axis=1), lambda x: np.add.outer(x[0], x[1]),
    lambda x: scipy.special.expit(x), lambda x: scipy.special.gammaln(x), np.square,
    lambda x: np.reshape(x, (4,)), lambda x: np.round(x, 1), lambda x: np.nan_to_num(x),
    lambda x: np.multiply(2.0, x), lambda x: np.ones((2, 2)) * x, lambda x: np.float64(2) * x,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_with_an_operation_keep_the_gradient(function):
    x = leaf()
    y = function(x)
    assert isinstance(y, ng.Tensor)
    assert y.requires_grad
    expected = function(x.numpy(force=True))
    np.testing.assert_allclose(y.numpy(force=True), expected, rtol=1e-13)


def test_functions_without_one(monkeypatch):
    """Hardly one is left: as if the operation were not there."""
    monkeypatch.setattr(numpy_protocol, "_operation", lambda function: None)
    monkeypatch.setattr(numpy_protocol, "_translations", {})
    x = leaf()
    with pytest.raises(TypeError, match=r"np\.sort: has no gradient"):
        np.sort(x)
    plain = x.detach()
    np.testing.assert_array_equal(np.sort(plain), np.sort(plain.numpy()))
    assert type(np.sort(plain)) is np.ndarray


DISCRETE = {
    "where": lambda x: np.where(x > 0.4),
    "array_equal": lambda x: np.array_equal(x, x),
    "array_equiv": lambda x: np.array_equiv(x, x[0]),
    "isreal": np.isreal,
    "iscomplex": np.iscomplex,
    "may_share_memory": lambda x: np.may_share_memory(x, np.ones(3)),
    "can_cast": lambda x: np.can_cast(x.dtype, np.float32),
    "result_type": lambda x: np.result_type(x, np.float32),
    "min_scalar_type": np.min_scalar_type,
    "common_type": np.common_type,
    "einsum_path": lambda x: np.einsum_path("ij,jk", x, x)[0],
    "array2string": np.array2string,
}


@pytest.mark.parametrize("name", DISCRETE)
def test_results_without_a_derivative_by_nature_are_those_of_numpy(name):
    x = leaf()
    found, expected = DISCRETE[name](x), DISCRETE[name](x.numpy(force=True))
    assert type(found) is type(expected)
    np.testing.assert_equal(found, expected)


def test_what_writes_files_is_refused_before_it_does(tmp_path):
    with pytest.raises(ng.NumgradTypeError, match=r"np\.savetxt"):
        np.savetxt(tmp_path / "x", leaf())
    assert not list(tmp_path.iterdir())


def test_numpy_does_not_write_to_a_tensor_past_its_version():
    x, target = leaf().detach(), ng.zeros(())
    with pytest.raises(ng.NumgradTypeError, match="out="):
        numpy_protocol._without_operation("np.f", np.median, (x,), {"out": target})
    with pytest.raises(ng.NumgradTypeError, match="overwrite_input"):
        np.median(x, overwrite_input=True)


def test_order_a_follows_the_memory_of_the_operand():
    x = ng.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    weights = np.arange(6.0)
    for flatten in (
        lambda t: np.reshape(t, 6, order="A"),
        lambda t: np.ravel(t, "K"),
        lambda t: t.flatten("A"),
        lambda t: t.T.reshape(6, order="C"),
    ):
        (g,) = ng.autograd.grad((flatten(x.T) * weights).sum(), x)
        expected = np.zeros(6)
        expected[flatten(ng.tensor(np.arange(6).reshape(2, 3)).T).numpy()] = weights
        np.testing.assert_array_equal(g.numpy().ravel(), expected)
    with pytest.raises(ng.NumgradValueError, match="order 'K'"):
        np.ravel(ng.zeros((2, 3, 4)).swapaxes(1, 2), "K")


# Methods with the name of one of ndarray's, and calls that mean the same to both; the second list
# is refused, since an argument by position would mean something else.
METHODS = {
    "sum": (
        ["0", "axis=1, keepdims=True", "0, float", "0, where=[True, False], initial=2"],
        ["0, None, None, True"],
    ),
    "prod": (["0, float"], ["0, None, None, True"]),
    "mean": (["0", "axis=(0, 1)", "1, where=[True, False]"], ["0, None, None, True"]),
    "var": (
        ["0", "ddof=1", "1, mean=a.mean(1, keepdims=True)"],
        ["0, None, None, 1"],
    ),
    "std": (["1", "ddof=1, keepdims=True"], ["0, None, None, 1"]),
    "max": (["0", "axis=1, keepdims=True", "initial=9.0"], ["0, None, True"]),
    "min": (["0"], ["0, None, True"]),
    "any": (["0", "axis=1, keepdims=True"], ["0, None, True"]),
    "all": (["0"], ["0, None, True"]),
    "argmax": (["0", "axis=1, keepdims=True"], ["0, None"]),
    "argmin": (["0"], ["0, None"]),
    "argsort": (["", "0", "axis=None", "0, 'stable'"], ["0, 'stable', 'x'"]),
    "argpartition": (["1", "1, 0"], ["0.5"]),
    "nonzero": ([""], []),
    "searchsorted": ([], []),
    "cumsum": (["0", "axis=1, dtype=float"], ["0, None, None"]),
    "cumprod": (["0", ""], ["0, None, None"]),
    "round": (["", "1", "decimals=1"], ["1, None"]),
    "clip": (["0.3, 0.8", "max=0.6", "min=0.6"], ["0, 1, None"]),
    "reshape": (["4", "2, 2", "(4,)", "(1, 4), order='F'", "-1", "(4,), copy=True"], []),
    "ravel": (["", "'F'", "order='C'"], []),
    "flatten": (["", "'F'"], []),
    "transpose": (["", "1, 0", "(1, 0)"], []),
    "swapaxes": (["0, 1"], []),
    "squeeze": ([""], []),
    "take": (["[0, 3]", "[9], mode='clip'", "[1], 0", "[0], axis=1"], ["[0], 0, None"]),
    "repeat": (["2", "[1, 2], 0", "2, axis=1"], []),
    "diagonal": (["", "1", "0, 1, 0"], []),
    "trace": (["", "1", "0, 0, 1", "dtype=complex"], ["0, 0, 1, None, None"]),
    "dot": (["[1.0, 2.0]"], ["[1.0, 2.0], None"]),
    "astype": (["'float32'", "dtype=int"], ["'float32', 'C'", "int, casting='safe'"]),
    "copy": ([""], ["'F'"]),
    "conj": ([""], []),
    "conjugate": ([""], []),
    "tolist": ([""], []),
    "item": ([], []),
    "to_device": (["'cpu'"], []),
    "compress": (["[True, False]", "[False, True], 1"], ["[True], 0, None"]),
    "choose": ([], []),
    "tobytes": ([], []),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_means_what_that_of_ndarray_means(name):
    x = leaf()
    for arguments in METHODS[name][0]:
        expected = eval(f"a.{name}({arguments})", {"a": x.numpy(force=True)})
        found = eval(f"x.{name}({arguments})", {"a": x, "x": x})
        if isinstance(expected, np.ndarray | np.generic):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), arguments
            found = found.numpy(force=True)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    for arguments in METHODS[name][1]:
        with pytest.raises(TypeError, match=rf"{name}"):
            eval(f"x.{name}({arguments})")


def test_parameters_that_only_numpy_has_are_answered_by_its_function():
    x = leaf()
    mask = x.numpy(force=True) > 0.4
    expected = np.sum(x.numpy(force=True), where=mask)
    found = ng.grad(lambda x: ng.sum(x, where=mask))(x)
    np.testing.assert_array_equal(found.numpy(), mask)
    np.testing.assert_allclose(ng.sum(x, where=mask).item(), expected, rtol=1e-15)
    assert ng.jit(lambda x: ng.sum(x, where=mask))(x.detach()).item() == pytest.approx(expected)
    assert ng.stack([x, x], dtype=np.float32).dtype == np.float32
    assert ng.clip(x, 0, 1, dtype=np.float32, casting="same_kind").dtype == np.float32
    target = ng.zeros(())
    assert ng.sum(x.detach(), out=target) is target
    for call in (
        lambda: ng.sum(x, wher=mask),
        lambda: ng.tile(x, 2, wher=1),
        lambda: ng.softmax(x, where=mask),
        lambda: x.sum(wher=mask),
        lambda: np.clip(x, 0, 1, where=mask),
    ):
        with pytest.raises(ng.NumgradTypeError, match="whe"):
            call()


def test_every_method_shared_with_ndarray_is_tried():
    shared = {n for n in dir(np.ndarray) if not n.startswith("_") and hasattr(ng.Tensor, n)}
    shared -= {"sort", "partition"}  # a method without an underscore writes nowhere
    assert {n for n in shared if callable(getattr(np.ndarray, n))} == METHODS.keys()


def test_out_and_where_of_ufuncs():
    x = leaf()
    with pytest.raises(TypeError, match="requires grad"):
        np.exp(x, out=np.empty((2, 2)))
    with pytest.raises(TypeError, match="where"):
        np.exp(x, where=np.ones((2, 2), bool))
    with pytest.raises(RuntimeError, match="out="):
        np.exp(np.ones((2, 2)), out=x * 2)
    target = ng.zeros((2, 2))
    assert np.exp(x.detach(), out=target) is target
    np.testing.assert_array_equal(target.numpy(), np.exp(x.detach().numpy()))
    assert target._version == 1


def test_helpers():
    x = leaf()
    assert np.shape(x) == (2, 2)
    assert np.ndim(x) == 2
    assert np.size(x) == 4
    assert isinstance(np.zeros_like(x), ng.Tensor)
    assert np.result_type(x, np.float32) == np.float64
    assert not np.iscomplexobj(x)
    assert np.copy(x).requires_grad
    np.testing.assert_array_equal(np.allclose(x, x), True)


def test_array_on_the_left():
    x = leaf()
    a = np.ones((2, 2))
    for y in (a + x, a * x, a - x, a / x, a**x, a < x):
        assert isinstance(y, ng.Tensor)
    (a * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), a)


@pytest.mark.parametrize("name", ["sum", "mean", "var"])
def test_keepdims_by_position_is_refused_by_name(name):
    t = ng.tensor(np.ones((2, 3)))
    for call in (lambda: getattr(t, name)(1, True), lambda: getattr(np, name)(t, 1, True)):
        with pytest.raises(ng.NumgradTypeError, match=f"{name}.*keepdims by name"):
            call()


def test_out_that_carries_no_gradient_is_the_reason_given():
    t = ng.ones(1, requires_grad=True)
    for call in (lambda: np.add(t, 1.0, out=np.zeros(1)), lambda: np.exp(t, out=np.zeros(1))):
        with pytest.raises(ng.NumgradTypeError, match="out= is an ndarray, which carries no grad"):
            call()


def test_functions_that_numpy_has_in_linalg_as_well():
    a, b = np.arange(1.0, 10.0).reshape(3, 3), np.cos(np.arange(9.0)).reshape(3, 3)
    for name, *rest in (("cross", b), ("diagonal",), ("matmul", b), ("matrix_transpose",),
                        ("outer", b[0]), ("tensordot", b), ("trace",), ("vecdot", b)):  # fmt: skip
        first = a[0] if name == "outer" else a
        found = getattr(np.linalg, name)(ng.tensor(first, requires_grad=True), *rest)
        np.testing.assert_allclose(found.detach(), getattr(np.linalg, name)(first, *rest))
