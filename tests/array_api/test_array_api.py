"""The namespace of the Array API standard; its public test suite is run outside of this one."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest

import numgrad as ng
from numgrad import array_api as xp

NAMES = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_shapes broadcast_to can_cast ceil clip complex128 complex64 concat conj
copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal
exp expand_dims expm1 eye fft finfo flip float32 float64 floor floor_divide from_dlpack full
full_like greater greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype isfinite isin
isinf isnan less less_equal linalg linspace log log10 log1p log2 logaddexp logical_and logical_not
logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis
multiply nan negative newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive
pow prod real reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit
sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot
tile tril triu trunc uint16 uint32 uint64 uint8 unique_all unique_counts unique_inverse
unique_values unstack var vecdot where zeros zeros_like
"""


def test_names_are_those_of_the_standard():
    assert set(NAMES.split()) == set(xp.__all__)
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(AttributeError, match="no 'gradient'"):
        _ = xp.gradient
    assert xp.einsum is ng.einsum


def test_a_tensor_leads_to_the_namespace():
    x = ng.tensor([1.0])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"2030\.01"):
        x.__array_namespace__(api_version="2030.01")
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="cuda"):
        x.to_device("cuda")
    with pytest.raises(ValueError, match="zeros: device"):
        xp.zeros(2, device="cuda")


def test_dtypes_and_capabilities():
    info = xp.__array_namespace_info__()
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {
        "bool", "uint8", "uint16", "uint32", "uint64",
    }  # fmt: skip
    assert len(info.dtypes()) == 13
    assert info.default_dtypes()["real floating"] == xp.float64
    assert info.devices() == (info.default_device(),)
    assert info.capabilities()["boolean indexing"] is True
    assert type(xp.finfo(ng.ones(1, dtype="float32")).eps) is float
    assert xp.iinfo(xp.int8).max == 127
    assert xp.isdtype(xp.float32, ("integral", "real floating"))
    assert xp.result_type(ng.ones(1, dtype="float32"), 1.0) == xp.float32
    assert xp.can_cast(ng.ones(1), xp.complex128)
    assert not xp.can_cast(ng.ones(1), xp.float32)


def test_arrays_come_and_go_by_dlpack():
    x = ng.tensor([1.0, 2.0])
    theirs = np.from_dlpack(x)
    assert np.shares_memory(theirs, x.numpy())
    if theirs.flags.writeable:  # from NumPy 2.3 on
        theirs[0] = 5.0
    else:
        x[0] = 5.0
    assert x[0] == theirs[0] == 5.0
    back = xp.from_dlpack(np.arange(3))
    assert type(back) is ng.Tensor
    assert xp.from_dlpack(theirs, copy=True)[0] == 5.0
    with pytest.raises(RuntimeError, match="__dlpack__"):
        np.from_dlpack(ng.tensor([1.0], requires_grad=True))
    with pytest.raises(TypeError, match="no __dlpack__"):
        xp.from_dlpack([1.0])


def test_copies_of_what_is_an_array_already():
    x = ng.tensor([1.0], requires_grad=True)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=True) is not x
    assert xp.asarray(x, copy=True).requires_grad
    assert xp.asarray(x, dtype=xp.float32).requires_grad
    with pytest.raises(ValueError, match="by a copy only"):
        xp.asarray(x, dtype=xp.float32, copy=False)
    with pytest.raises(ValueError, match="by a copy only"):
        xp.asarray([1.0], copy=False)
    array = np.ones(2)
    assert np.shares_memory(xp.asarray(array, copy=False).numpy(), array)
    assert not np.shares_memory(xp.asarray(array, copy=True).numpy(), array)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: xp.std(x, correction=1.0, axis=0),
        lambda x: xp.var(x, keepdims=True),
        lambda x: xp.concat([x, xp.flip(x, axis=0)], axis=1),
        lambda x: xp.reshape(x, (3, 2), copy=True) @ x,
        lambda x: xp.linalg.trace(x) + xp.linalg.outer(x[0], x[1]),
        lambda x: xp.pow(xp.abs(x), 1.5) + xp.diff(x, append=x[:, :1]),
        lambda x: xp.tile(xp.repeat(x, 2, axis=0), (1, 2)) + xp.expand_dims(x[0, 0], axis=0),
    ],
)
def test_gradients_flow(function):
    x = ng.tensor([[0.5, 1.5, -2.0], [1.0, -0.5, 3.0]], requires_grad=True)
    assert ng.testing.gradcheck(function, (x,))


def test_parameters_are_those_of_the_standard():
    for name, keywords in {
        "sort": ["axis", "descending", "stable"],
        "std": ["axis", "correction", "keepdims"],
        "eye": ["k", "dtype", "device"],
        "searchsorted": ["side", "sorter"],
    }.items():
        parameters = inspect.signature(getattr(xp, name)).parameters.values()
        assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == keywords


def test_expm1_of_complex_zeros_has_no_negative_real_part():
    zeros = np.array([complex(a, b) for a in (0.0, -0.0) for b in (0.0, -0.0)])
    for form in (xp.expm1, ng.jit(xp.expm1)):
        found = np.asarray(form(ng.tensor(zeros)))
        assert not np.signbit(found.real).any()
        np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(zeros.imag))


def test_quotients_of_infinities_are_limits():
    """As the standard says, in any form; NumPy has NaN and -1."""
    a = np.array([np.inf, -np.inf, np.inf, -np.inf, 2.0, -2.0, np.inf, 3.0, -0.0])
    b = np.array([2.0, 2.0, -2.0, -2.0, -np.inf, np.inf, np.inf, 0.0, 2.0])
    expected = np.array([np.inf, -np.inf, -np.inf, np.inf, -0.0, -0.0, np.nan, np.inf, -0.0])
    forms = (
        xp.floor_divide,
        lambda a, b: a // b,
        ng.jit(lambda a, b: a // b),
        lambda a, b: divmod(a, b)[0],
    )
    for dtype in (np.float64, np.float32):
        for form in forms:
            found = form(ng.tensor(a.astype(dtype)), ng.tensor(b.astype(dtype))).numpy()
            np.testing.assert_array_equal(found, expected)
            assert np.array_equal(np.signbit(found[:6]), np.signbit(expected[:6]))
    z = xp.tanh(xp.asarray([complex(np.inf, y) for y in (2.0, -2.0, np.nan)])).numpy()
    np.testing.assert_array_equal(z.real, 1)
    np.testing.assert_array_equal(np.signbit(z.imag[:2]), [False, True])


PROGRAM = """
import json, warnings
warnings.simplefilter("ignore")
import numpy as np, numgrad as ng
import scipy.integrate, scipy.optimize, scipy.special, scipy.stats, sklearn
from sklearn import metrics, preprocessing
from sklearn.metrics import pairwise
X = np.random.default_rng(0).uniform(0.5, 2.0, (4, 3))
Y = X[::-1] ** 2
calls = {
    "logsumexp": lambda x: scipy.special.logsumexp(x, axis=0),
    "softmax": lambda x: scipy.special.softmax(x, axis=1),
    "erf": scipy.special.erf,
    "gammainc": lambda x: scipy.special.gammainc(x, 0.7),
    "xlogy": lambda x: scipy.special.xlogy(x, 1 + x),
    "jv": lambda x: scipy.special.jv(1.5, x),
    "chdtr": lambda x: scipy.special.chdtr(x, 1.5),
    "zscore": scipy.stats.zscore,
    "skew": scipy.stats.skew,
    "kurtosis": scipy.stats.kurtosis,
    "gmean": scipy.stats.gmean,
    "circmean": scipy.stats.circmean,
    "trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "rosen": scipy.optimize.rosen,
    "mean_squared_error": lambda x: metrics.mean_squared_error(
        x, ng.tensor(Y) if isinstance(x, ng.Tensor) else Y, multioutput="raw_values"),
    "euclidean_distances": lambda x: pairwise.euclidean_distances(x, x[:2] * 0.5),
    "rbf_kernel": lambda x: pairwise.rbf_kernel(x, x[:2] * 0.5),
    "MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x),
}
direction = np.random.default_rng(1).normal(size=X.shape)
h = 1e-6
found = {}
with sklearn.config_context(array_api_dispatch=True):
    for name, function in calls.items():
        x = ng.tensor(X, requires_grad=True)
        out = function(x)
        weights = np.cos(np.arange(out.size)).reshape(out.shape)
        (out * weights).sum().backward()
        slope = np.sum((function(X + h * direction) - function(X - h * direction)) * weights)
        value = np.allclose(out.numpy(force=True), function(X), rtol=1e-12)
        found[name] = [bool(value), float(np.sum(x.grad.numpy() * direction)), slope / (2 * h)]
print(json.dumps(found))
"""


def test_functions_of_scipy_and_scikit_learn_keep_gradients(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # which SciPy reads when it is imported
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > 10
    for name, (same, gradient, slope) in found.items():
        assert same, name
        assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-8), name
