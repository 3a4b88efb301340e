"""Minimizers of other libraries, run where they are there: solutions, errors, derivatives."""

import numpy as np
import pytest
from scipy import optimize

import numgrad as ng

START = {"x": np.zeros(4), "y": 0.0}


def valley(p):
    return (
        np.sum(100 * (p["x"][1:] - p["x"][:-1] ** 2) ** 2 + (1 - p["x"][:-1]) ** 2)
        + (p["y"] - 2.0) ** 2
    )


def valley_of_vector(v):
    return valley({"x": v[:4], "y": v[4]})


CONSTRAINTS = (
    ng.constraint(lambda p: np.sum(p["x"] ** 2), -np.inf, 2.0),
    ng.constraint(lambda p: p["x"][0] - p["y"], 0.0, 0.0),
)
OF_SCIPY = (
    optimize.NonlinearConstraint(lambda v: np.sum(v[:4] ** 2), -np.inf, 2.0),
    optimize.LinearConstraint([[1.0, 0, 0, 0, -1]], 0.0, 0.0),
)
AT = np.array([0.3, -0.2, 0.5, 0.7, 1.1])


def solution():
    """The constrained minimum, found by SciPy with derivatives by differences."""
    found = optimize.minimize(
        valley_of_vector, np.zeros(5), constraints=OF_SCIPY, method="SLSQP", tol=1e-12
    )
    assert found.success
    return found.x


def differences(f, x, step=1e-5):
    """The Jacobian by central differences."""
    moved = np.eye(x.size) * step
    return np.stack([(np.asarray(f(x + d)) - f(x - d)) / (2 * step) for d in moved], axis=-1)


# ---------------------------------------------------------------------------------------- iminuit


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow(cases=0))])
def test_minuit_has_names_limits_and_errors(jit):
    pytest.importorskip("iminuit")
    data = np.array([1.0, 2.0, 4.0, 7.0])

    def chi_square(p):
        return np.sum((data - p["mean"]) ** 2) + np.sum((p["other"] - 1.0) ** 2) / 0.25

    cost = ng.objective(chi_square, {"mean": 0.0, "other": np.zeros(2)}, jit=jit)
    m = ng.ecosystem.minuit(cost, errordef=1, bounds={"mean": (-20, 20)})
    assert m.parameters == ("mean", "other[0]", "other[1]")
    m.migrad()
    assert m.valid
    assert m.ngrad > 0  # gradients were asked for
    np.testing.assert_allclose(m.values, [3.5, 1, 1], atol=2e-3)  # of errors of 0.5
    np.testing.assert_allclose(m.errors, [0.5, 0.5, 0.5], rtol=1e-2)  # 1 / sqrt(4), and given
    m.minos("mean")
    np.testing.assert_allclose(
        [m.merrors["mean"].lower, m.merrors["mean"].upper], [-0.5, 0.5], 1e-3
    )
    assert m.limits["mean"] == (-20, 20)
    assert m.limits["other[0]"] == (-np.inf, np.inf)
    assert sorted(cost.unravel(np.array(m.values))) == ["mean", "other"]
    m.fixed["mean"] = True
    m.values["mean"] = 1.0
    m.migrad()
    assert m.values["mean"] == 1.0


def test_costs_of_iminuit_take_the_jacobian_of_a_model():
    cost = pytest.importorskip("iminuit.cost")
    iminuit = pytest.importorskip("iminuit")

    def decay(x, a, b):
        return a * np.exp(-b * x)

    x = np.linspace(0, 3, 20)
    jac = ng.curve_jac(decay)
    y = decay(x, 2.0, 0.7)
    with_gradient = cost.LeastSquares(x, y, 0.1, decay, grad=lambda x, *p: jac(x, *p).T)
    m = iminuit.Minuit(with_gradient, 1.0, 1.0)
    m.migrad()
    assert m.valid
    assert m.ngrad > 0
    np.testing.assert_allclose(m.values, [2.0, 0.7], rtol=1e-4)


# ------------------------------------------------------------------------------------------ lmfit


def residual(params, x, y):
    v = params.valuesdict()
    return v["a"] * np.exp(-v["b"] * x) + params["c"] + v["d"] - y


def parameters_of_lmfit(lmfit):
    params = lmfit.Parameters()
    params.add("a", value=1.5, min=0.0)
    params.add("d", value=0.1, vary=False)
    params.add("b", value=1.0, min=0.1, max=3.0)
    params.add("half", expr="sqrt(a) / 2")
    params.add("c", expr="half * b + exp(-half)")
    return params


def test_lmfits_jacobian_follows_expressions_and_leaves_out_what_is_fixed():
    lmfit = pytest.importorskip("lmfit")
    params = parameters_of_lmfit(lmfit)
    x = np.linspace(0, 4, 25)

    def of_vector(p):
        moved = params.copy()
        moved["a"].value, moved["b"].value = p
        moved.update_constraints()
        return residual(moved, x, 0.0)

    found = ng.ecosystem.lmfit_jacobian(residual)(params, x, 0.0)
    assert found.shape == (25, 2)
    np.testing.assert_allclose(found, differences(of_vector, np.array([1.5, 1.0])), atol=1e-8)
    assert params["c"].value == pytest.approx(np.sqrt(1.5) / 2 + np.exp(-np.sqrt(1.5) / 2))
    assert isinstance(params._asteval.symtable["a"], float)  # as it was


@pytest.mark.parametrize("method", ["leastsq", "least_squares"])
def test_lmfit_fits_a_function_with_it(method):
    lmfit = pytest.importorskip("lmfit")
    x = np.linspace(0, 4, 40)
    y = 2 * np.exp(-0.7 * x) + 0.5 + 0.01 * np.cos(40 * x)
    params = parameters_of_lmfit(lmfit)
    plain = lmfit.minimize(residual, params, args=(x, y), method=method)
    dfun = ng.ecosystem.lmfit_jacobian(residual)
    exact = lmfit.minimize(residual, params, args=(x, y), method=method, Dfun=dfun)
    assert exact.nfev < plain.nfev
    for name in params:
        assert exact.params[name].value == pytest.approx(plain.params[name].value, rel=1e-5)
        if params[name].vary:
            assert exact.params[name].stderr == pytest.approx(plain.params[name].stderr, rel=1e-3)


@pytest.mark.parametrize("weights", [None, 3.0])
@pytest.mark.parametrize("method", ["leastsq", "least_squares"])
def test_lmfit_fits_a_composite_model_with_it(method, weights):
    models = pytest.importorskip("lmfit.models")
    model = models.GaussianModel(prefix="g_") + models.LinearModel(prefix="l_")
    x = np.linspace(-5, 5, 60)
    y = 3 * np.exp(-0.5 * (x - 1) ** 2) + 0.2 * x + 1 + 0.01 * np.sin(90 * x)
    start = {"g_amplitude": 5, "g_center": 0.5, "g_sigma": 1.5, "l_slope": 0.0, "l_intercept": 0}
    params = model.make_params(**start)
    weighted = None if weights is None else np.where(x > 0, weights, 1.0)
    plain = model.fit(y, params, x=x, weights=weighted)
    dfun = ng.ecosystem.lmfit_jacobian(model)
    exact = model.fit(y, params, x=x, weights=weighted, method=method, fit_kws={"Dfun": dfun})
    assert exact.success
    assert exact.nfev < plain.nfev
    for name in start:
        assert exact.params[name].value == pytest.approx(plain.params[name].value, rel=1e-5)

    def of_vector(p):
        moved = params.copy()
        for name, value in zip(start, p, strict=True):
            moved[name].value = value
        moved.update_constraints()
        return model._residual(moved, y, weighted, x=x)

    at = np.array([params[name].value for name in start])
    np.testing.assert_allclose(
        dfun(params, y, weighted, x=x), differences(of_vector, at), atol=1e-7
    )


def test_lmfits_complex_residuals_are_pairs():
    lmfit = pytest.importorskip("lmfit")
    omega = np.linspace(1, 3, 30)

    def response(params, y):
        return 1 / (params["k"] - omega**2 + 1j * params["c"] * omega) - y

    y = response({"k": 4.0, "c": 0.3}, 0.0)
    params = lmfit.create_params(k=4.5, c=0.4)
    dfun = ng.ecosystem.lmfit_jacobian(response)
    fit = lmfit.minimize(response, params, args=(y,), Dfun=dfun)
    np.testing.assert_allclose([fit.params["k"].value, fit.params["c"].value], [4.0, 0.3])


# ------------------------------------------------------------------------------------------ NLopt


def test_nlopt_keeps_constraints_and_bounds():
    pytest.importorskip("nlopt")
    cost = ng.objective(valley, START)
    opt = ng.ecosystem.nlopt_problem(cost, "LD_SLSQP", CONSTRAINTS, {"x": (-5, 5)})
    opt.set_xtol_rel(1e-12)
    np.testing.assert_allclose(opt.optimize(cost.x0), solution(), atol=1e-5)
    assert opt.get_upper_bounds().tolist() == [5, 5, 5, 5, np.inf]
    opt = ng.ecosystem.nlopt_problem(cost, "LD_SLSQP", CONSTRAINTS[:1], {"x": (-1, 0.6)})
    opt.set_xtol_rel(1e-12)
    assert opt.optimize(cost.x0)[:4].max() == pytest.approx(0.6)
    lower = ng.constraint(lambda p: p["x"], 0.25, 0.75)  # both ends at work
    target = ng.objective(lambda p: np.sum((p["x"] - np.array([0.0, 1.0])) ** 2), {"x": np.ones(2)})
    opt = ng.ecosystem.nlopt_problem(target, "LD_MMA", lower)
    opt.set_xtol_rel(1e-12)
    np.testing.assert_allclose(opt.optimize(np.full(2, 0.5)), [0.25, 0.75], atol=1e-6)


def test_nlopt_without_gradients_and_its_errors():
    nlopt = pytest.importorskip("nlopt")
    cost = ng.objective(lambda x: np.sum((x - 0.5) ** 2), np.zeros(2))
    opt = ng.ecosystem.nlopt_problem(cost, "LN_BOBYQA")
    opt.set_xtol_rel(1e-8)
    np.testing.assert_allclose(opt.optimize(cost.x0), 0.5, atol=1e-6)
    assert opt.last_optimize_result() > 0
    np.testing.assert_array_equal(cost.jac(np.zeros(2)), [-1, -1])  # the objective is as it was
    with pytest.raises(ng.NumgradValueError, match="no algorithm 'LD_NEWTON'"):
        ng.ecosystem.nlopt_problem(cost, "LD_NEWTON")
    assert nlopt.LD_SLSQP


# ---------------------------------------------------------------------------------------- cyipopt


def banded(p):
    x = p["x"]
    return np.sum((x[1:] - x[:-1] ** 2) ** 2) + p["y"] ** 4


def lagrangian(v, factor, multipliers):
    x, y = v[:4], v[4]
    values = np.array([np.sum(x**2), x[0] - y, *(x[1:] * x[:-1])])
    linear = 2 * v[1] - v[4]
    return factor * banded({"x": x, "y": y}) + multipliers[:5] @ values + multipliers[5] * linear


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_ipopts_functions_have_the_derivatives_that_differences_give(is_sparse):
    from numgrad.ecosystem.minimizers import ipopt_functions

    constraints = (
        *CONSTRAINTS,
        ng.constraint(lambda p: p["x"][1:] * p["x"][:-1], [-1, -2, -3], 4),
        optimize.LinearConstraint([[0, 2.0, 0, 0, -1]], -1.0, 1.0),
    )
    functions, low, high = ipopt_functions(
        "ipopt_problem", ng.objective(banded, START), constraints, is_sparse
    )
    np.testing.assert_array_equal(low, [-np.inf, 0, -1, -2, -3, -1])
    np.testing.assert_array_equal(high, [2, 0, 4, 4, 4, 1])
    np.testing.assert_allclose(
        functions.gradient(AT), differences(functions.objective, AT), atol=1e-8
    )
    matrix = np.zeros((6, 5))
    matrix[functions.jacobianstructure()] = functions.jacobian(AT)
    np.testing.assert_allclose(matrix, differences(functions.constraints, AT), atol=1e-8)
    multipliers = np.array([0.5, -2.0, 1.5, 0.25, 3.0, 7.0])
    rows, columns = functions.hessianstructure()
    assert np.all(rows >= columns)
    whole = np.zeros((5, 5))
    whole[rows, columns] = functions.hessian(AT, multipliers, 0.7)
    whole = whole + np.tril(whole, -1).T

    def slope(v):
        return differences(lambda w: lagrangian(w, 0.7, multipliers), v, 1e-4)

    np.testing.assert_allclose(whole, differences(slope, AT, 1e-4), atol=1e-5)
    assert (len(rows) < 15) is is_sparse
    assert (len(functions.jacobianstructure()[0]) < 30) is is_sparse


def test_ipopts_functions_without_constraints():
    from numgrad.ecosystem.minimizers import ipopt_functions

    functions, low, _ = ipopt_functions(
        "ipopt_problem", ng.objective(lambda x: np.sum(x**3), np.ones(3)), (), True
    )
    assert (
        low.size == functions.constraints(np.ones(3)).size == functions.jacobian(AT[:3]).size == 0
    )
    np.testing.assert_allclose(functions.hessian(np.ones(3), np.zeros(0), 2.0), [12, 12, 12])
    with pytest.raises(ng.NumgradTypeError, match="complex"):
        ipopt_functions("ipopt_problem", ng.objective(lambda z: np.abs(z), 1j), (), True)


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow(cases=0))])
@pytest.mark.parametrize("sparse", [True, False])
def test_ipopt_solves(sparse, jit):
    pytest.importorskip("cyipopt")
    cost = ng.objective(valley, START, jit=jit)
    problem = ng.ecosystem.ipopt_problem(cost, CONSTRAINTS, {"x": (-5, 5)}, sparse=sparse)
    problem.add_option("print_level", 0)
    problem.add_option("sb", "yes")
    problem.add_option("tol", 1e-10)
    x, info = problem.solve(cost.x0)
    assert info["status"] == 0
    np.testing.assert_allclose(x, solution(), atol=1e-5)
