"""Keywords and methods of NumPy's and SciPy's ufuncs on Tensors, against the same on arrays."""

import functools

import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad.core.arguments import signature_of
from numgrad.core.elementwise import Elementwise
from numgrad.operations.special_functions.declare import SpecialFunction
from numgrad.tensors import numpy_protocol
from numgrad.tensors.numpy_ufuncs import scipy_ufuncs, title
from tests.crossed import each_first
from tests.tensors.test_numpy_parameters import assert_same, leaf

X = np.array([[0.5, 0.25, 0.75], [0.125, 0.625, 0.375]])
I = np.array([[3, 1, 2], [6, 5, 4]])  # noqa: E741
MASK = np.array([[True, False, True], [False, True, True]])

TAKEN = {
    "dtype": {"dtype": np.float32},
    "casting": {"dtype": np.float32, "casting": "unsafe"},
    "order": {"order": "C"},
    "subok": {"subok": False},
}
REFUSED = {
    "where": {"where": MASK},
    "order": {"order": "F"},
    "signature": {"signature": "dd->d"},
    "axes": {"axes": [(-2, -1), (-2, -1), (-2, -1)]},
    "keepdims": {"keepdims": True},
}
# Of special functions some of SciPy's loops iterate in float32, or refuse floats as an order.
UFUNCS = {
    title(f): f
    for f, op in numpy_protocol._function_table().items()
    if isinstance(f, np.ufunc)
    and isinstance(op, Elementwise)
    and (not isinstance(op, SpecialFunction) or f in (scipy.special.jv, scipy.special.xlogy))
}
FEW = ["np.add", "np.exp", "np.equal", "np.bitwise_and"]


def operands(ufunc, array):
    return (array,) * ufunc.nin


def test_every_keyword_of_ufuncs_is_tried():
    keywords = {*TAKEN, *REFUSED, "out", "axis"}  # out and axis have tests of their own
    for ufunc in (np.add, np.matmul, scipy.special.erf):
        parameters = signature_of(ufunc).parameters.values()
        assert {p.name for p in parameters if p.kind != p.POSITIONAL_ONLY} <= keywords


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FEW else pytest.mark.slow) for n in UFUNCS]
)
def test_keywords_choose_the_loop_that_numpy_chooses(name):
    ufunc = UFUNCS[name]
    for array in (X, I):
        for keywords in TAKEN.values():
            with np.errstate(all="ignore"):
                try:
                    expected = ufunc(*operands(ufunc, array), **keywords)
                except TypeError:
                    with pytest.raises(ng.NumgradTypeError):
                        ufunc(*operands(ufunc, leaf(array)), **keywords)
                    continue
            try:
                found = ufunc(*operands(ufunc, leaf(array)), **keywords)
            except ng.NumgradTypeError:  # a loop that numgrad has not
                continue
            assert_same(found, expected, f"{name} {keywords}")
    x = leaf(X)
    if ufunc.nin == 1 and expected.dtype == np.float32:
        assert ufunc(x, dtype=np.float32).requires_grad == ufunc(x).requires_grad


@pytest.mark.parametrize("what", REFUSED)
def test_a_keyword_that_is_not_taken_raises(what):
    for ufunc in (np.add, np.exp, np.matmul):
        x = leaf(X[:, :2])
        with pytest.raises(TypeError, match=what):
            ufunc(*operands(ufunc, x), **REFUSED[what])


def test_where_goes_with_out():
    out = ng.tensor(np.full((2, 3), 9.0))
    expected = np.full((2, 3), 9.0)
    np.exp(X, out=expected, where=MASK)
    assert np.exp(ng.tensor(X), out=out, where=MASK) is out
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-15)
    with pytest.raises(ng.NumgradTypeError, match="int64"):
        np.exp(ng.tensor(X), out=ng.zeros((2, 3), dtype=np.int64))
    with pytest.raises(ng.NumgradError, match="boolean"):
        np.exp(ng.tensor(X), out=out, where=I)
    array = X.copy()
    array += ng.tensor(X)
    np.testing.assert_array_equal(array, X + X)
    with pytest.raises(TypeError, match="requires grad"):
        array += leaf(X)


METHODS = {
    "reduce": [
        ((), {}), ((1,), {}), ((None,), {}), ((0, None, None, True), {}), ((), {"axis": (0, 1)}),
        ((1,), {"initial": 1, "where": MASK}), ((), {"keepdims": True}),
    ],
    "accumulate": [((), {}), ((1,), {}), ((), {"axis": -1})],
}  # fmt: skip


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logical_and])
def test_reduce_and_accumulate(ufunc):
    for method, calls in METHODS.items():
        for args, kwargs in calls:
            if ufunc is np.logical_and and "initial" in kwargs:
                continue
            expected = getattr(ufunc, method)(X, *args, **kwargs)
            x = leaf(X)
            found = getattr(ufunc, method)(x, *args, **kwargs)
            assert_same(found, expected, f"{ufunc} {method} {args} {kwargs}")
    assert_same(np.add.reduce(leaf(X), dtype=np.float32), np.add.reduce(X, dtype=np.float32), "")


@pytest.mark.parametrize("ufunc", [np.logaddexp, np.logaddexp2, np.subtract, np.hypot, np.fmax])
@pytest.mark.parametrize("method", ["reduce", "accumulate"])
def test_reduce_and_accumulate_by_any_operation_have_gradients(ufunc, method):
    x = np.array([[0.5, 1.5], [2.0, 0.7], [1.1, 1.2]])
    kwargs = [{}, {"axis": -1}] + [{"axis": 1, "keepdims": True}] * (method == "reduce")
    for given in kwargs:
        call = functools.partial(getattr(ufunc, method), **given)
        np.testing.assert_allclose(call(leaf(x)).detach().numpy(), call(x), rtol=1e-14)
        assert ng.testing.gradcheck(call, leaf(x))
        np.testing.assert_allclose(ng.jit(call)(x), call(x), rtol=1e-14)
    last = functools.partial(getattr(ufunc, method), axis=-1)
    np.testing.assert_allclose(ng.vmap(last)(x), last(x), rtol=1e-14)
    with pytest.raises(ng.NumgradError, match=f"{ufunc.__name__}.{method}: out="):
        getattr(ufunc, method)(leaf(x), out=np.empty(2))


FOLDED = [np.hypot, np.logical_xor, np.fmax, np.divide]
FOLDS = [{}, {"axis": None}, {"axis": (0, 1), "keepdims": True}, {"axis": ()}, {"initial": 1}]


@pytest.mark.slow(cases=len(FOLDED))
@pytest.mark.parametrize(
    ("ufunc", "dtype"),
    each_first(FOLDED, ["float64", "bool", "int64"]),
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
def test_reduce_by_any_operation_as_numpy(ufunc, dtype):
    """Identities, initial values, several axes, none and empty ones."""
    if ufunc(np.ones(1, dtype), np.ones(1, dtype)).dtype == np.float16:
        pytest.skip("Tensors have no float16")
    for shape in ((2, 3), (1, 1), (0, 2)):
        x = (np.arange(1.0, 1 + np.prod(shape)) / 2 + 0.5).reshape(shape).astype(dtype)
        for given in FOLDS:
            call = functools.partial(ufunc.reduce, **given)
            try:
                expected = call(x)
            except ValueError:  # no elements, or an order that matters
                with pytest.raises(ng.NumgradError, match=f"{ufunc.__name__}.reduce"):
                    ng.jit(call)(x)
                continue
            found = np.asarray(ng.jit(call)(x))
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("ufunc", [np.power, np.arctan2])
def test_folds_that_numpy_may_compute_wrongly(ufunc):
    """Its ``reduce`` of these writes to what it still reads, on some CPUs."""
    x = np.array([0.5, 2.0, 3.0, 1.5])
    expected = functools.reduce(ufunc, x)
    for form in (lambda f: f, ng.jit, lambda f: lambda x: ng.value_and_grad(f)(x)[0]):
        np.testing.assert_allclose(form(ufunc.reduce)(ng.tensor(x)).numpy(), expected, rtol=1e-14)


def test_outer_and_reduceat():
    assert_same(np.subtract.outer(leaf(X), leaf(X[0])), np.subtract.outer(X, X[0]), "outer")
    expected = np.add.outer(X, X, dtype=np.float32)
    assert_same(np.add.outer(leaf(X), X, dtype=np.float32), expected, "outer")
    with pytest.raises(ng.NumgradTypeError, match="where"):
        np.add.outer(leaf(X), X, where=False)
    plain = ng.tensor(X)
    np.testing.assert_array_equal(np.add.reduceat(plain, [0, 1]), np.add.reduceat(X, [0, 1]))
    with pytest.raises(ng.NumgradTypeError, match="out="):
        np.add.reduceat(plain, [0, 1], out=ng.zeros((2, 3)))


def test_axis_of_vecdot():
    assert_same(np.vecdot(leaf(X), leaf(X), axis=0), np.vecdot(X, X, axis=0), "vecdot")


# Ufuncs of SciPy that an operation of another name, or one of ``ng`` computes.
SCIPY = {
    "expit": "sigmoid", "logit": "logit", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv",
    "gamma": "gamma", "gammaln": "gammaln", "digamma": "digamma", "psi": "digamma",
    "expm1": "expm1", "log1p": "log1p", "exp2": "exp2", "cbrt": "cbrt", "round": "rint",
    "log_expit": "log_sigmoid", "ndtr": "ndtr",
}  # fmt: skip


def test_which_ufuncs_of_scipy_have_an_operation():
    ng.special.gammainc  # noqa: B018 (declares them)
    table = scipy_ufuncs()
    ufuncs = {n: f for n, f in vars(scipy.special).items() if isinstance(f, np.ufunc)}
    found = {n: table[f].name for n, f in ufuncs.items() if f in table}
    assert found == SCIPY | {n: n for n in found if n not in SCIPY} | {"jn": "jv"}
    # what has no operation, so that a gradient would be lost, is known
    gone = {"sph_harm"} & set(ufuncs)  # before SciPy 1.17
    assert set(found) | set(WITHOUT.split()) | gone == set(ufuncs)
    assert set(found) <= set(ng.special.__all__)


WITHOUT = """
agm airye bdtri bdtrik bdtrin bei beip ber berp besselpoly btdtria btdtrib chdtriv
chndtr chndtridf chndtrinc chndtrix cosdg cotdg ellipj elliprc elliprd elliprf elliprg
elliprj eval_chebyc eval_chebys eval_sh_chebyt eval_sh_chebyu eval_sh_jacobi eval_sh_legendre
fdtridfd gdtria gdtrib gdtrix hankel1 hankel1e hankel2 hankel2e it2i0k0 it2j0y0 it2struve0
itairy iti0k0 itj0y0 itmodstruve0 itstruve0 kei keip kelvin ker kerp kolmogi kolmogorov
log_wright_bessel lpmv mathieu_a mathieu_b mathieu_cem mathieu_modcem1 mathieu_modcem2
mathieu_modsem1 mathieu_modsem2 mathieu_sem modfresnelm modfresnelp nbdtri nbdtrik
nbdtrin ncfdtr ncfdtri ncfdtridfd ncfdtridfn ncfdtrinc nctdtr nctdtridf nctdtrinc nctdtrit
nrdtrimn nrdtrisd obl_ang1 obl_ang1_cv obl_cv obl_rad1 obl_rad1_cv obl_rad2 obl_rad2_cv pbdv pbvv
pbwa pdtri pdtrik pro_ang1 pro_ang1_cv pro_cv pro_rad1 pro_rad1_cv pro_rad2 pro_rad2_cv radian
sindg smirnov smirnovi stdtridf tandg tklmbda voigt_profile wright_bessel zetac
"""


@pytest.mark.parametrize("name", SCIPY)
def test_ufuncs_of_scipy(name):
    ufunc = getattr(scipy.special, name)
    dtypes = [np.float64] if name not in ("expit", "cbrt") else [np.float64, np.float32, np.int32]
    for dtype in dtypes:
        x = X.astype(dtype)
        y = ufunc(leaf(x))
        assert_same(y, ufunc(x), name)
    assert ufunc(leaf(X)).requires_grad
    for other in (scipy.special.zetac, scipy.special.nctdtr):
        with pytest.raises(ng.NumgradTypeError, match=r"scipy\.special\.\w+: has no gradient"):
            other(*[leaf(X)] * other.nin)
        np.testing.assert_array_equal(other(*[ng.tensor(X)] * other.nin), other(*[X] * other.nin))


def test_calls_that_numpy_makes_itself():
    t = ng.tensor([1.0, 2.0])
    np.testing.assert_array_equal(np.add(t, 1, casting="safe").numpy(), [2.0, 3.0])
    a = np.eye(2)
    a @= ng.tensor([[1.0, 2.0], [3.0, 4.0]])  # NumPy calls matmul with out= and axes=
    np.testing.assert_array_equal(a, [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ng.NumgradTypeError, match=r"np\.matmul.*requires grad"):
        a @= ng.tensor(np.eye(2), requires_grad=True)
    with pytest.raises(ng.NumgradTypeError, match=r"pow.*np\.remainder"):
        pow(t, 2, 3)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("ufunc", [np.subtract, np.divide, np.hypot, np.add, np.maximum])
def test_methods_give_tensors_whether_they_are_recorded_or_not(ufunc, requires_grad):
    values = np.array([0.5, 2.0, 3.0])
    x = ng.tensor(values, requires_grad=requires_grad)
    for found, expected in (
        (ufunc.reduce(x), ufunc.reduce(values)),
        (ufunc.accumulate(x), ufunc.accumulate(values)),
        (ufunc.reduceat(x, [0, 2]), ufunc.reduceat(values, [0, 2])),
    ):
        assert isinstance(found, ng.Tensor)
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-15)


def test_numbers_are_reduced_along_the_axis_that_they_lack():
    for ufunc in (np.add, np.maximum, np.logical_and):
        for axis in (0, -1, None):
            assert_same(
                ufunc.reduce(leaf(X[0, 0]), axis=axis), ufunc.reduce(X[0, 0], axis=axis), ""
            )
