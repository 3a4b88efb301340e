"""Signatures of NumPy's functions under versions that tell those of its C functions or do not."""

import inspect
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad.core import arguments
from numgrad.core.arguments import SIGNATURES, signature_of
from numgrad.core.op import OPS
from numgrad.tensors import numpy_protocol

OTHERS = {"nested_iters", "frompyfunc"}
"""C functions of neither arrays nor numbers; those of dates are others too."""
tells = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.5.0", reason="the table is that of NumPy 2.5 and later"
)


def _of_numpy():
    """NumPy's C functions, as they tell their signatures."""
    lines = []
    for name in dir(np):
        f = getattr(np, name)
        named = getattr(f, "__module__", None) == "numpy" and getattr(f, "__name__", "") == name
        in_c = named and not isinstance(f, type | np.ufunc) and inspect.isroutine(f)
        if not in_c or hasattr(inspect.unwrap(f), "__code__") or name.startswith("_"):
            continue
        if name not in OTHERS and not {"busday", "datetime"} & set(name.split("_")):
            lines.append(f"{name}{inspect.signature(f)}\n")
    return "".join(lines)


@tells
def test_the_table_is_numpys():
    newest = _of_numpy()
    if os.environ.get("NUMGRAD_UPDATE_GOLDEN"):
        file = Path(arguments.__file__)
        file.write_text(file.read_text().replace(SIGNATURES, newest))
    else:
        assert newest == SIGNATURES


@tells
@pytest.mark.parametrize("home", [np, np.linalg, scipy.special])
def test_ufuncs_have_numpys_signature(home):
    ufuncs = [f for f in vars(home).values() if isinstance(f, np.ufunc)]
    for f in [f for f in ufuncs if f.nin < 10]:
        assert str(signature_of(f)) == str(inspect.signature(f)).replace("<no value>", "None"), f


def test_python_functions_have_their_own():
    for f in (np.sum, np.linalg.norm, np.fft.fft, len, lambda a, *, b=2: a):
        assert signature_of(f) == inspect.signature(f)
    with pytest.raises(ValueError, match="signature"):
        signature_of(int.from_bytes.__self__)


def _refuse_c_functions(f, **options):
    """NumPy's answer before version 2.4."""
    if isinstance(f, np.ufunc) or (
        str(getattr(f, "__module__", "")).startswith("numpy")
        and not isinstance(f, type)
        and not hasattr(inspect.unwrap(f), "__code__")
    ):
        raise ValueError(f"no signature found for builtin {f!r}")
    return inspect.Signature.from_callable(f, **options)


@pytest.fixture
def older_numpy(monkeypatch):
    monkeypatch.setattr(inspect, "signature", _refuse_c_functions)
    monkeypatch.setattr(numpy_protocol, "_translations", {})
    for op in OPS.values():
        for name in ("positional", "spellings"):
            op.__dict__.pop(name, None)


def test_every_function_that_an_operation_answers_has_a_signature(older_numpy):
    for function in {**numpy_protocol._function_table(), **numpy_protocol._PLAIN}:
        if callable(function) and getattr(function, "__module__", ""):
            assert signature_of(function).parameters
    for op in OPS.values():
        assert op.positional is not None
        assert op.spellings is not None


x = np.array([1.5, 0.25, 3.0])
a = np.array([[2.0, -1.0, 0.5], [0.25, 3.0, 1.0]])
CALLS = {
    "where": lambda x: np.where(x > 1, x, 0.0),
    "dot": lambda x: np.dot(a, x),
    "inner": lambda x: np.inner(x, a),
    "vdot": lambda x: np.vdot(x, x),
    "concatenate": lambda x: np.concatenate([x, x * x], axis=0),
    "concat": lambda x: np.concat((x, x[:1])),
    "bincount": lambda x: np.bincount(np.array([2, 0, 2]), weights=x, minlength=4),
    "median": lambda x: np.median(x * x),
    "cov": lambda x: np.cov(x, x * x),
    "lexsort": lambda x: x[np.lexsort((x,))],
    "like": lambda x: x * np.zeros_like(x) + np.empty_like(x, dtype=x.dtype).size,
    "percentile": lambda x: np.percentile(x, 30.0, method="linear"),
    "reshape": lambda x: np.reshape(x, (3, 1)) * x,
    "logpdf": lambda x: ng.stats.norm.logpdf(x, 0.5, 2.0),
    "sort": lambda x: np.sort(x, axis=-1),
    "sum": lambda x: ng.sum(x * x, 0, where=x > 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_right_under_versions_that_tell_none(name, older_numpy):
    f = CALLS[name]
    expected = {"logpdf": lambda x: scipy.stats.norm.logpdf(x, 0.5, 2.0),
                "sum": lambda x: np.sum(x * x, 0, where=x > 1)}.get(name, f)  # fmt: skip
    t = ng.tensor(x, requires_grad=True)
    y = f(t)
    np.testing.assert_allclose(y.detach().numpy(), expected(x), rtol=1e-12)
    if name != "bincount":  # whose length depends on numbers
        np.testing.assert_allclose(ng.jit(f)(x), expected(x), rtol=1e-12)
    y.sum().backward()
    steps = 1e-6 * np.eye(3)
    slopes = [np.sum(expected(x + h) - expected(x - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(t.grad.numpy(), slopes, rtol=1e-6, atol=1e-8)


def test_transforms_of_c_functions(older_numpy):
    b = np.array([0.5, -2.0, 1.0])
    np.testing.assert_array_equal(ng.grad(np.dot, argnums=1)(x, b), x)
    np.testing.assert_array_equal(ng.grad(np.dot, argnames="b")(x, b=b), x)
    np.testing.assert_array_equal(ng.jit(np.dot)(x, b), np.dot(x, b))
    np.testing.assert_array_equal(ng.jit(np.where)(x > 1, x, b), np.where(x > 1, x, b))
    np.testing.assert_array_equal(ng.vmap(np.add)(x, b), x + b)
    ruled = ng.custom_vjp(np.dot)
    ruled.defvjp(lambda a, b, out: (np.dot(a, b), b), lambda b, g: (3 * g * b, g, None))
    np.testing.assert_array_equal(ng.grad(lambda x: ruled(a=x, b=b))(x), 3 * b)
