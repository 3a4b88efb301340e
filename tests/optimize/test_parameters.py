"""Parameters by name: fixed, tied to others, bounded; their errors; data that are missing."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize

import numgrad as ng
from numgrad.errors import NumgradError
from numgrad.optimize.ties import tie

TWO = {"a": 1.0, "b": 2.0}
X = np.linspace(0, 4, 30)
Y = 2 * np.exp(-0.7 * X) + 0.3 + 0.05 * np.cos(40 * X)


def decay(x, amplitude, rate, offset):
    return amplitude * np.exp(-rate * x) + offset


# ------------------------------------------------------------------------- against substitution


@dataclass
class Peak:
    at: object
    width: float


START = {"heights": np.array([1.0, 2.0, 1.0]), "peak": Peak(0.3, 1.0), "c": 0.5}


def nested(p):
    u = (X - p["peak"].at) / p["peak"].width
    h = p["heights"]
    return h[0] * np.exp(-(u**2)) + h[1] * X + h[2] * X**2 + p["c"] - Y


def substituted(q):
    """The same with heights[2] = -0.1, width = 1 + c**2 and heights[1] = sin(c) - heights[0]."""
    h0, at, c = q
    h1 = np.sin(c) - h0
    u = (X - at) / (1 + c**2)
    return h0 * np.exp(-(u**2)) + h1 * X - 0.1 * X**2 + c - Y


HELD = {
    "fixed": {"heights[2]": -0.1},
    "tie": {"peak.width": "1 + c**2", "heights[1]": lambda s, c: np.sin(c) - s},
}


def held(h1):
    return {"fixed": HELD["fixed"], "tie": {**HELD["tie"], "heights[1]": h1}}


@pytest.mark.parametrize("jit", [False, True])
def test_least_squares_is_that_with_values_put_in(jit):
    options = held("np.sin(c) - heights[0]")
    found = ng.least_squares(nested, START, jit=jit, **options)
    expected = optimize.least_squares(
        substituted, [1.0, 0.3, 0.5], jac="cs", ftol=1e-15, xtol=1e-15, gtol=1e-15
    )
    h0, at, c = expected.x
    np.testing.assert_allclose(found.x["heights"], [h0, np.sin(c) - h0, -0.1], rtol=1e-6)
    np.testing.assert_allclose(
        [found.x["peak"].at, found.x["peak"].width, found.x["c"]], [at, 1 + c**2, c], rtol=1e-6
    )
    assert found.jac.shape == (30, 3)
    # By the textbook, with the derivatives of all six by (h0, at, c) written out.
    variance = 2 * expected.cost / 27
    free = variance * np.linalg.inv(expected.jac.T @ expected.jac)
    derivative = np.array(
        [[1, 0, 0], [-1, 0, np.cos(c)], [0, 0, 0], [0, 1, 0], [0, 0, 2 * c], [0, 0, 1]]
    )
    expected_covariance = derivative @ free @ derivative.T
    np.testing.assert_allclose(found.covariance, expected_covariance, rtol=1e-4, atol=1e-12)
    assert found.standard_errors["heights"][2] == 0
    assert found.estimates.names == [
        "heights[0]", "heights[1]", "heights[2]", "peak.at", "peak.width", "c",
    ]  # fmt: skip


@pytest.mark.parametrize("jit", [False, True])
def test_minimize_sees_derivatives_of_any_order_through_ties(jit):
    def f(x):
        return np.sum((x - np.arange(1.0, 5.0)) ** 2) + x[0] * x[3]

    def by_hand(q):
        return f(np.array([q[0], 5.0, q[1], q[0] * np.exp(q[1] / 9)]))

    found = ng.minimize(
        f, np.ones(4), method="trust-exact", jit=jit,
        fixed={1: 5}, tie={3 if jit else "x[3]": "x[0] * exp(x[2] / 9)"},
    )  # fmt: skip
    expected = optimize.minimize(by_hand, [1.0, 1.0], tol=1e-12)
    a, b = expected.x
    np.testing.assert_allclose(found.x, [a, 5, b, a * np.exp(b / 9)], atol=1e-5)
    assert found.nit < 12
    assert found.hess.shape == (2, 2)


def test_constraints_and_callbacks_see_all_parameters():
    seen = []
    found = ng.minimize(
        lambda p: p["a"] ** 2 + p["b"] ** 2 + p["c"] ** 2,
        {"a": 3.0, "b": 2.0, "c": 1.0},
        fixed=["b"], tie={"c": "2 * a"}, constraints=ng.constraint(lambda p: p["c"] + p["b"], 6),
        callback=lambda r: seen.append(r.x),
    )  # fmt: skip
    assert found.x == pytest.approx({"a": 2.0, "b": 2.0, "c": 4.0}, abs=1e-6)
    assert set(seen[0]) == {"a", "b", "c"}


def test_whole_arrays_are_fixed_and_tied():
    target = np.arange(6.0).reshape(2, 3)

    def f(p):
        return ((p["u"] - target) ** 2).sum() + ((p["v"] - 1) ** 2).sum() + (p["w"] ** 2).sum()

    start = {"u": np.ones((2, 3)), "v": np.ones((2, 3)), "w": np.ones(3, np.float32)}
    found = ng.minimize(f, start, fixed={"w": [1, 2, 3]}, tie={"v": "u / 2 + sum(w)"})
    np.testing.assert_allclose(found.x["u"], (target - 0.5 * 5) / 1.25, atol=1e-5)
    np.testing.assert_allclose(found.x["v"], found.x["u"] / 2 + 6, rtol=1e-12)
    assert found.x["w"].dtype == np.float32
    assert found.x["w"].tolist() == [1, 2, 3]


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("jacobian", ["sparse", "operator"])
def test_jacobians_that_are_not_dense(jacobian):
    def f(p):
        return p["x"][1:] - p["x"][:-1] ** 2, p["x"] - 1 - p["c"]

    options = {"fixed": {"x[2]": 0.5}, "tie": {"c": "x[0] / 2"}}
    start = {"x": np.ones(6), "c": 0.0}
    found = ng.least_squares(f, start, jacobian=jacobian, **options)
    dense = ng.least_squares(f, start, **options)
    np.testing.assert_allclose(found.x["x"], dense.x["x"], atol=1e-7)
    assert found.jac.shape == (11, 5)

    def substituted(q):
        values = f({"x": np.insert(q, 2, 0.5), "c": q[0] / 2})
        return np.concatenate([np.ravel(value) for value in values])

    tolerances = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-14)
    by_hand = optimize.least_squares(substituted, np.ones(5), **tolerances)
    np.testing.assert_allclose(np.delete(dense.x["x"], 2), by_hand.x, rtol=1e-5)


def test_a_linear_constraint_needs_all_numbers():
    linear = optimize.LinearConstraint(np.ones(2), 1, 1)
    with pytest.raises(ValueError, match=r"fixed or tied; give ng.constraint"):
        ng.minimize(np.sum, np.ones(2), constraints=[linear], fixed={0: 1})


def test_complex_parameters_are_fixed_by_element():
    z = np.array([1 + 2j, 3 - 1j])
    found = ng.minimize(
        lambda p: np.sum(np.abs(p["z"] - z) ** 2), {"z": np.ones(2, complex)}, fixed={"z[0]": 2j}
    )
    np.testing.assert_allclose(found.x["z"], [2j, 3 - 1j], atol=1e-6)
    fit = ng.least_squares(lambda p: [np.real(p[0]) - 1, np.imag(p[0]), np.real(p[0])], [1j])
    with pytest.raises(TypeError, match="some parameters are complex"):
        fit.estimates.profile("x[0]")
    with pytest.raises(TypeError, match="real and imaginary parts"):
        ng.minimize(np.sum, np.ones(2, complex), tie={"x[0]": "x[1]"})


# ---------------------------------------------------------------------------- how a fit is given


@pytest.mark.parametrize(
    "options", [lambda s: {"fixed": {"a": s}}, lambda s: {"tie": {"a": lambda b: b * s}}]
)
def test_gradients_by_what_is_fixed_are_refused(options):
    def solution(s):
        return ng.least_squares(lambda p: [p["a"] - 1, p["b"] - 2], TWO, **options(s)).x["b"]

    with pytest.raises(RuntimeError, match=r"ng\.implicit, which differentiates solutions"):
        ng.grad(solution)(2.0)


def test_forms_of_parameters_of_a_model():
    options = {"fixed": {"offset": 0.3}, "tie": {"rate": "0.35 * amplitude"}}
    by_place = ng.curve_fit(decay, X, Y, **options)
    one, _ = optimize.curve_fit(lambda x, a: decay(x, a, 0.35 * a, 0.3), X, Y)
    np.testing.assert_allclose(by_place.parameters, [one[0], 0.35 * one[0], 0.3], rtol=1e-7)
    assert type(by_place.parameters) is np.ndarray
    assert by_place.names == ["amplitude", "rate", "offset"]
    by_name = ng.curve_fit(decay, X, Y, {}, **options)
    assert ng.curve_fit(decay, X, Y, {}).names == by_place.names
    assert list(by_name.parameters.values()) == pytest.approx(by_place.parameters)
    whole = ng.curve_fit(lambda x, p: decay(x, *p.values()), X, Y,
                         {"amplitude": 1.0, "rate": 1.0, "offset": 1.0}, **options)  # fmt: skip
    assert whole.names == by_name.names
    assert list(whole.parameters.values()) == pytest.approx(by_place.parameters)
    unnamed = ng.curve_fit(lambda x, *p: decay(x, *p), X, Y, [1.0, 1.0, 0.3],
                           fixed=["p[2]"], tie={"p[1]": "0.35 * p[0]"})  # fmt: skip
    np.testing.assert_allclose(unnamed.parameters, by_place.parameters, rtol=1e-7)
    for fit in (by_place, by_name, whole, unnamed):
        np.testing.assert_allclose(fit.covariance, by_place.covariance, rtol=1e-6)
        np.testing.assert_allclose(fit.confidence_band(X), by_place.confidence_band(), rtol=1e-6)
        np.testing.assert_allclose(fit(X), fit.residuals + Y, rtol=1e-12)


def test_bounds_by_name_and_parameters_of_ties_alone():
    bounds = {"rate": (0.2, 0.6), "offset": (0, None)}
    named = ng.curve_fit(decay, X, Y, bounds=bounds)  # a start at 1 would be outside
    columns = np.stack([np.exp(-0.6 * X), np.ones(30)], axis=1)  # the bound of rate is active
    amplitude, offset = np.linalg.lstsq(columns, Y)[0]
    np.testing.assert_allclose(named.parameters, [amplitude, 0.6, offset], rtol=1e-5)
    fit = ng.curve_fit(
        decay, X, Y, {"gap": 1.0}, tie={"amplitude": "rate + gap"}, bounds={"gap": (0, 1)}
    )
    assert set(fit.names) == {"gap", "amplitude", "rate", "offset"}
    assert fit.parameters["gap"] == pytest.approx(1, abs=1e-6)
    assert fit.parameters["amplitude"] == fit.parameters["rate"] + fit.parameters["gap"]
    row = ng.minimize(lambda x: np.sum((x - 3) ** 2), np.zeros(2), bounds={0: (None, 1)})
    np.testing.assert_allclose(row.x, [1, 3], atol=1e-6)


def test_what_is_fixed_is_an_argument_of_what_is_compiled():
    calls = []

    def model(x, a, b, c):
        calls.append(1)
        return a * np.exp(-b * x) + c

    fit = ng.curve_fit(model, X, Y, jit=True)
    fit.profile("b")
    compiled = len(calls)
    for value in (0.2, 0.3):
        ng.curve_fit(model, X, Y, fixed={"b": value}, jit=True)
    assert len(calls) <= compiled + 2  # the solution is shown without what was compiled


# ------------------------------------------------------------------------------------ expressions


@pytest.mark.parametrize(
    "text",
    ["2*a", "-a + b**2 / 3 % 2", "np.sqrt(a) * sin(b) - pi", "ng.erf(a) // 0.1", "maximum(a, 2*b)",
     "arctan2(a, b) + p.w[1]"],
)  # fmt: skip
def test_expressions_have_the_values_of_python(text):
    from scipy import special

    values = {"a": 0.7, "b": 1.3, "p.w[1]": 4.0}
    made = tie("t", "c", text, values)
    names = vars(np) | {"np": np, "ng": ng, "a": 0.7, "b": 1.3}
    expected = eval(text.replace("p.w[1]", "4.0").replace("ng.erf", "erf"), names | vars(special))
    assert float(made.compute(values)) == pytest.approx(expected, rel=1e-15)
    assert set(made.references) == {name for name in values if name in text}


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "a.__class__", "(lambda: 1)()", "[a]", "a if b else 1", "a +", "open(a)",
     "np.load(a)", "np.ones(3)", "exp(a, out=b)", "a @ b", "'a'", "a < b", "a; b",
     "np.linalg.inv(a)", "True", "1j * a", "{}", "f'{a}'", "a := 1", "exp", "sin(*a)"],
)  # fmt: skip
def test_nothing_else_is_evaluated(text):
    with pytest.raises(NumgradError, match="t: the tie of c"):
        tie("t", "c", text, ["a", "b"])


def test_powers_of_numbers_end():
    assert tie("t", "c", "a * 9**9**2", ["a"]).compute({"a": 1.0}) == 9.0**81
    with pytest.raises(OverflowError):
        tie("t", "c", "a * 9**9**9", ["a"]).compute({"a": 1.0})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fixed": {"q": 1}}, "no parameter 'q'; there are a, b"),
        ({"fixed": {"a": 1}, "tie": {"a": "b"}}, "a is fixed or tied twice"),
        ({"fixed": ["a", "b"]}, "every parameter is fixed or tied"),
        ({"fixed": "a"}, "list of names"),
        ({"fixed": {"a": "x"}}, "a is fixed at 'x'; give real numbers"),
        ({"fixed": {"a": [1, 2]}}, r"array of shape \(2,\), and has shape \(\)"),
        ({"fixed": {"a": np.nan}}, r"\['a'\] is nan by what it is fixed at"),
        ({"tie": {"a": "1 / (b - 2)"}}, r"\['a'\] is inf by what"),
        ({"tie": {"a": "b", "b": "a"}}, "every parameter"),
        ({"tie": {"a": "2 * a"}}, "ties of a lead back to themselves"),
        ({"tie": {"a": "2 * q"}}, "no parameter 'q'; there are a, b"),
        ({"tie": {"a": lambda c: c}}, "is a function of c; its parameters are some of a, b"),
        ({"tie": {"a": 2.0}}, "is a float; give an expression"),
        ({"tie": {"a": lambda b: np.ones(2) * b}}, r"gives shape \(2,\), and the parameter has"),
        ({"tie": {"a": "b"}, "bounds": {"a": (0, 5)}}, "a is tied, and follows others"),
        ({"bounds": {"b": (3, 5)}}, "outside of its bounds"),
        ({"bounds": {"q": (3, 5)}}, "no parameter 'q'; there are a, b"),
        ({"bounds": {"a": (1, 1)}}, r"both bounds of .*a.* are 1.0; fix it, as by fixed={'a': 1"),
        ({"jac": "2-point"}, "there is no parameter 'jac': Jacobians are exact"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(options, words):
    with pytest.raises(NumgradError, match=words):
        ng.least_squares(lambda p: [p["a"] - 1, p["b"] - 2, p["a"] * p["b"]], TWO, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"p0": {"amplitude": 1.0, "phase": 1.0}, "fixed": {"rate": 1}},
            "neither it nor a tie has phase",
        ),
        ({"fixed": {"q": 1}}, "no parameter 'q'; there are amplitude, rate, offset"),
        ({"bounds": {"q": (0, 1)}}, "no parameter 'q'; there are amplitude, rate, offset"),
        ({"nan_policy": "propagate"}, "choose 'raise', or 'omit'"),
        ({"bounds": [(0, 3), (0, 5), (0, 1)]}, "a list of pairs, as for ng.minimize"),
        ({"p0": [1j, 1, 1]}, "p0 has complex numbers"),
        ({"maxfev": 100}, "no parameter 'maxfev': it is max_nfev"),
    ],
)
def test_what_is_wrong_with_a_fit_is_named(options, words):
    with pytest.raises(NumgradError, match=words):
        ng.curve_fit(decay, X, Y, **options)


# ----------------------------------------------------------------------------------- missing data


@pytest.mark.parametrize("sigma", [None, "each", "matrix"])
def test_missing_data_are_left_out_as_scipy_leaves_them_out(sigma):
    x, y = X.copy(), Y.copy()
    x[3], y[[7, 8]] = np.nan, np.nan
    if sigma is not None:
        each = np.linspace(0.01, 0.03, 30)
        sigma = each if sigma == "each" else np.diag(each**2) + 1e-5
    fit = ng.curve_fit(decay, x, y, sigma=sigma, nan_policy="omit")
    kept = np.delete(np.arange(30), [3, 7, 8])
    cut = sigma if sigma is None else sigma[kept] if sigma.ndim == 1 else sigma[np.ix_(kept, kept)]
    expected, covariance = optimize.curve_fit(decay, x[kept], y[kept], sigma=cut)
    np.testing.assert_allclose(fit.parameters, expected, rtol=1e-5)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-3)
    assert fit.y.shape == fit.residuals.shape == (27,)
    with pytest.raises(ValueError, match=r"1 of the 30 numbers in x .*nan_policy='omit'"):
        ng.curve_fit(decay, x, y)


def test_missing_data_of_several_predictors():
    x = np.stack([X, X**2])
    x[1, 4] = np.nan
    fit = ng.curve_fit(lambda x, a, b: a * x[0] + b * x[1], x, 2 * X + X**2, nan_policy="omit")
    np.testing.assert_allclose(fit.parameters, [2, 1], rtol=1e-12)
    assert fit.x.shape == (2, 29)
    with pytest.raises(ValueError, match=r"y has shape \(2, 30\)"):
        ng.curve_fit(lambda x, a: a * x, x, x, nan_policy="omit")
