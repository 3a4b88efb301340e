"""SciPy's minimizers over Tensors: every method, what it is given, what is left behind."""

import subprocess
import sys

import numpy as np
import pytest
import scipy

import numgrad as ng
from numgrad.cli import nist
from numgrad.optim import minimize

pytestmark = pytest.mark.slow

GRADIENT = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP"]
SECOND_ORDER = ["Newton-CG", "dogleg", "trust-ncg", "trust-exact", "trust-krylov", "trust-constr"]
FREE = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]


def rosenbrock(start=(-1.2, 1.0), dtype="float64"):
    x = ng.tensor(np.array(start[0], dtype), requires_grad=True)
    y = ng.tensor(np.array([[start[1]]], dtype), requires_grad=True)
    return [x, y], lambda: ((1 - x) ** 2 + 100 * (y - x**2) ** 2).sum()


def quadratic():
    """Six unknowns in two tensors, with the minimum at 0, 1, 2, 3, 4, 5."""
    a = ng.zeros((2, 2), requires_grad=True)
    b = ng.zeros(2, requires_grad=True)
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    def loss():
        return ((a.reshape(-1) - np.arange(4)) ** 2 * weights).sum() + ((b - [4, 5]) ** 2).sum()

    return [a, b], loss


def values(tensors):
    return np.concatenate([t.detach().numpy().ravel() for t in tensors])


# ----------------------------------------------------------------------------------- all methods


@pytest.mark.parametrize("method", [None, *GRADIENT, *SECOND_ORDER])
def test_rosenbrock(method):
    params, loss = rosenbrock()
    result = minimize(params, loss, method)
    assert result.success
    np.testing.assert_allclose(values(params), 1, atol=2e-3 if method == "TNC" else 1e-3)
    assert [x.shape for x in result.x] == [(), (1, 1)]
    np.testing.assert_array_equal(values(result.x), values(params))
    assert result.fun == loss().item()


@pytest.mark.parametrize("method", FREE)
def test_without_gradients(method, monkeypatch):
    def no_backward(*args, **kwargs):
        raise AssertionError("a backward was run")

    monkeypatch.setattr("numgrad.autograd.engine.backward.grad", no_backward)
    x, y = ng.zeros(()), ng.zeros(2)
    tol = 1e-6 if method != "Powell" else 1e-10
    result = minimize([x, y], lambda: (x - 1) ** 2 + ((y - [2, 3]) ** 2).sum(), method, tol=tol)
    np.testing.assert_allclose([x.item(), *y.numpy()], [1, 2, 3], atol=1e-4)
    assert result.nfev > 3


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "trust-exact", "SLSQP"])
def test_a_problem_of_nist(method):
    problem = nist.load("Misra1a")
    scale = problem.starts[1]
    b = ng.ones(scale.shape, requires_grad=True)
    result = minimize(b, lambda: np.log(np.sum(problem.residual(b * scale) ** 2)), method, tol=1e-9)
    np.testing.assert_allclose(b.detach().numpy() * scale, problem.certified, rtol=1e-6)
    assert np.exp(result.fun) == pytest.approx(problem.rss, rel=1e-9)


def test_a_method_of_ones_own():
    def descend(fun, x0, jac, callback=None, **options):
        x = x0
        for _ in range(200):
            x = x - 0.1 * jac(x)
        return scipy.optimize.OptimizeResult(x=x, fun=fun(x), success=True)

    params, loss = quadratic()
    minimize(params, loss, descend)
    np.testing.assert_allclose(values(params), np.arange(6), atol=1e-8)


def test_scipy_sees_what_it_would_of_functions_of_arrays():
    params, loss = rosenbrock()
    ours = minimize(params, loss, "BFGS")
    theirs = scipy.optimize.minimize(
        scipy.optimize.rosen, [-1.2, 1.0], jac=scipy.optimize.rosen_der, method="BFGS"
    )
    np.testing.assert_allclose(values(ours.x), theirs.x, rtol=1e-6)
    assert abs(ours.nfev - theirs.nfev) <= 2
    np.testing.assert_allclose(ours.hess_inv, theirs.hess_inv, rtol=1e-2)


# ---------------------------------------------------------------------------------- derivatives


def test_value_and_gradient_are_one_evaluation():
    params, loss = rosenbrock()
    calls = []

    def counted():
        calls.append(1)
        return loss()

    result = minimize(params, counted, "L-BFGS-B")
    assert len(calls) == result.nfev == result.njev


@pytest.mark.parametrize("hess", ["product", "matrix"])
@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_the_two_ways_to_give_second_derivatives(method, hess):
    params, loss = rosenbrock()
    assert minimize(params, loss, method, hess=hess).success
    np.testing.assert_allclose(values(params), 1, atol=1e-3)


def test_second_derivatives_are_exact():
    x = ng.tensor([0.5, -0.7, 1.1], requires_grad=True)
    y = ng.tensor([1.0 + 2.0j, 0.3 - 1.0j], requires_grad=True)
    linear = ng.tensor(3.0, requires_grad=True)
    unused = ng.tensor(1.0, requires_grad=True)
    seen = {}

    def loss():
        s, length = (x * x * x).sum(), (y * y.conj()).real.sum()
        return s * s + length * length * s + linear

    def method(fun, x0, jac, hess=None, hessp=None, **options):
        seen.update(x0=x0, jac=jac(x0), **({"H": hess(x0)} if hess else {}))
        if hessp:
            seen["H v"] = np.array([hessp(x0, v) for v in np.eye(x0.size)])
        step = 1e-6
        seen["differences"] = np.array(
            [(jac(x0 + step * e) - jac(x0 - step * e)) / (2 * step) for e in np.eye(x0.size)]
        )
        return scipy.optimize.OptimizeResult(x=x0, fun=fun(x0))

    for hess in ("matrix", "product"):
        minimize([x, y, linear, unused], loss, method, hess=hess)
    np.testing.assert_array_equal(seen["x0"], [0.5, -0.7, 1.1, 1, 2, 0.3, -1, 3, 1])
    np.testing.assert_allclose(seen["H"], seen["differences"], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(seen["H v"], seen["H"], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(seen["jac"][7:], [1, 0])


def test_a_linear_loss_has_no_curvature():
    x = ng.ones(2, requires_grad=True)

    def method(fun, x0, hessp, **options):
        np.testing.assert_array_equal(hessp(x0, np.ones(2)), 0)
        return scipy.optimize.OptimizeResult(x=x0, fun=fun(x0))

    minimize(x, lambda: (3 * x).sum(), method, hess="product")


@pytest.mark.parametrize("method", ["BFGS", "trust-exact"])
def test_gradients_are_enabled_for_the_closure(method):
    params, loss = rosenbrock()
    with ng.no_grad():
        assert minimize(params, loss, method).success
        assert not ng.is_grad_enabled()


def test_complex_parameters():
    z = ng.tensor([1.0 + 1.0j, 0.5j], dtype="complex128", requires_grad=True)
    target = np.array([2.0 - 3.0j, -1.0 + 0.25j])
    for method in ("BFGS", "trust-ncg", "Nelder-Mead"):
        with ng.no_grad():
            z.fill_(1.0)
        result = minimize(z, lambda: (np.abs(z - target) ** 2).sum(), method)
        np.testing.assert_allclose(z.detach().numpy(), target, atol=1e-3)
        assert result.x[0].dtype == "complex128"


@pytest.mark.parametrize("method", ["CG", "TNC", "SLSQP", "L-BFGS-B", "Newton-CG"])
def test_single_precision(method):
    params, loss = rosenbrock(dtype="float32")
    result = minimize(params, loss, method, tol=1e-4)
    assert [p.dtype for p in params] == [x.dtype for x in result.x] == ["float32"] * 2
    np.testing.assert_allclose(values(params), 1, atol=0.1)


def test_mixed_dtypes_and_empty_parameters():
    a = ng.zeros(2, dtype="float32", requires_grad=True)
    b, empty = ng.zeros((1, 2), requires_grad=True), ng.zeros((0, 3), requires_grad=True)
    result = minimize(
        (p for p in (a, empty, b)), lambda: ((a - 1) ** 2).sum() + ((b - a) ** 2).sum()
    )
    np.testing.assert_allclose(values([a, b]), 1, atol=1e-4)
    assert [x.shape for x in result.x] == [(2,), (0, 3), (1, 2)]


# ------------------------------------------------------------------------------------- closures


@pytest.mark.parametrize("as_number", [False, True])
def test_a_closure_that_calls_backward_itself(as_number):
    params, loss = rosenbrock()
    optimizer = ng.optim.SGD(params)

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value.item() if as_number else value

    result = minimize(params, closure)
    np.testing.assert_allclose(values(params), 1, atol=1e-4)
    reference, loss = rosenbrock()
    assert result.nfev == minimize(reference, loss).nfev
    np.testing.assert_array_equal(values(reference), values(params))


def test_a_closure_that_calls_backward_has_no_second_derivatives():
    params, loss = rosenbrock()

    def closure():
        value = loss()
        value.backward()
        return value

    with pytest.raises(RuntimeError, match="which frees the graph"):
        minimize(params, closure, "Newton-CG")
    np.testing.assert_array_equal(values(params), [-1.2, 1.0])


def test_a_module_may_be_trained():
    x = np.linspace(-1, 1, 20)[:, None]
    generator = np.random.default_rng(0)
    model = ng.nn.Sequential(ng.nn.Linear(1, 8), ng.nn.Linear(8, 1))
    for p in model.parameters():
        p.detach().copy_(generator.normal(size=p.shape))

    def loss():
        return ((model[1](np.tanh(model[0](x))) - np.sin(3 * x)) ** 2).mean()

    result = minimize(model.parameters(), loss, "L-BFGS-B")
    assert result.fun == loss().item() < 1e-3


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG"])
def test_row_sparse_gradients(method):
    table = ng.nn.Embedding(4, 2, sparse=True, dtype="float64")
    before = table.weight.detach().numpy().copy()
    rows, target = np.array([2, 0, 2]), np.array([[1.0, 2.0], [3.0, 4.0], [2.0, 3.0]])
    minimize(table.parameters(), lambda: ((table(rows) - target) ** 2).sum(), method)
    expected = np.stack([[3, 4], before[1], [1.5, 2.5], before[3]])
    np.testing.assert_allclose(table.weight.detach().numpy(), expected, atol=1e-5)


def test_a_constant_far_from_the_start_has_no_gradient():
    x = ng.tensor(1.0, requires_grad=True)
    result = minimize(x, lambda: -np.log(x) + x if x.item() > 0 else np.inf, "BFGS")
    np.testing.assert_allclose(x.item(), 1, atol=1e-4)
    assert result.fun == pytest.approx(1)


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "Nelder-Mead", "SLSQP"])
def test_gradients_are_as_before(method):
    params, loss = rosenbrock()
    loss().backward()
    grads = [p.grad for p in params]
    kept = [g.numpy().copy() for g in grads]
    minimize(params, loss, method, options={"maxiter": 3})
    for p, grad, array in zip(params, grads, kept, strict=True):
        assert p.grad is grad
        np.testing.assert_array_equal(grad.numpy(), array)


@pytest.mark.parametrize("method", [*GRADIENT, *SECOND_ORDER, *FREE])
def test_an_exception_leaves_everything_as_it_was(method):
    params, loss = rosenbrock()
    loss().backward()
    grads, calls = [p.grad for p in params], []

    def closure():
        calls.append(1)
        if len(calls) == 4:
            raise KeyError("in the closure")
        return loss()

    with pytest.raises(KeyError, match="in the closure"):
        minimize(params, closure, method)
    np.testing.assert_array_equal(values(params), [-1.2, 1.0])
    assert [p.grad for p in params] == grads
    assert all(p.requires_grad and p.is_leaf for p in params)


def test_a_search_that_ends_nowhere_leaves_the_best_point():
    x = ng.tensor(1.0, requires_grad=True)

    def nowhere(fun, x0, **options):
        fun(x0 - 0.5)
        fun(x0 + 1)
        return scipy.optimize.OptimizeResult(x=x0 * np.nan, fun=np.nan, success=True)

    result = minimize(x, lambda: x**2, nowhere)
    assert (x.item(), result.x[0].item(), result.fun) == (0.5, 0.5, 0.25)
    assert not result.success


# --------------------------------------------------------------------------- bounds, constraints


@pytest.mark.parametrize("method", [None, "L-BFGS-B", "TNC", "SLSQP", "trust-constr", "COBYQA"])
def test_bounds(method):
    params, loss = quadratic()
    bounds = [(np.array([[0.5], [2.5]]), 2.75), (None, ng.tensor([4.5, 4.5]))]
    minimize(params, loss, method, bounds=bounds)
    expected = [0.5, 1, 2.5, 2.75, 4, 4.5]
    np.testing.assert_allclose(values(params), expected, atol=2e-3)


def test_bounds_of_some_parameters():
    params, loss = quadratic()
    minimize(params, loss, bounds=[None, (-1, 1)])
    np.testing.assert_allclose(values(params), [0, 1, 2, 3, 1, 1], atol=1e-4)


def test_fixed_values():
    for method in ("L-BFGS-B", "TNC", "SLSQP"):
        params, loss = quadratic()
        minimize(params, loss, method, bounds=[None, (2.0, [2.0, 7.0])], callback=lambda r: None)
        np.testing.assert_allclose(values(params), [0, 1, 2, 3, 2, 5], atol=1e-3)


def test_bounds_hold_in_single_precision():
    x = ng.tensor(np.float32(0.05), requires_grad=True)
    minimize(x, lambda: -np.log(0.1 + x), bounds=[(0, 0.1)])
    assert x.item() <= 0.1
    assert x.item() == pytest.approx(0.1)
    minimize(x, lambda: np.exp(x), bounds=[(0.1 + 1e-9, 1e300)])
    assert x.item() >= 0.1 + 1e-9


@pytest.mark.parametrize("method", [None, "SLSQP", "trust-constr", "COBYLA", "COBYQA"])
def test_constraints(method):
    x, y = ng.tensor(2.0, requires_grad=True), ng.tensor(0.5, requires_grad=True)
    constraints = [
        {"type": "ineq", "fun": lambda: np.stack([1 - x * x - y * y, x + 5])},
        scipy.optimize.NonlinearConstraint(lambda: x - y, 0.2, np.inf),
    ]
    result = minimize([x, y], lambda: -(x + 2 * y), method, constraints=constraints)
    assert result.fun == pytest.approx(-(x.item() + 2 * y.item()))
    expected = [0.1 + np.sqrt(0.49), np.sqrt(0.49) - 0.1]
    np.testing.assert_allclose([x.item(), y.item()], expected, atol=2e-3)


def test_one_constraint_and_linear_ones():
    x = ng.zeros(2, requires_grad=True)
    for constraint in (
        {"type": "eq", "fun": lambda: x.sum() - 1},
        scipy.optimize.LinearConstraint([[1, 1]], 1, 1),
        ({"type": "eq", "fun": lambda: x[0] - 0.5}, {"type": "eq", "fun": lambda: 0.5 - x[1]}),
    ):
        minimize(x, lambda: (x**2).sum(), constraints=constraint)
        np.testing.assert_allclose(x.detach().numpy(), 0.5, atol=1e-6)


# ------------------------------------------------------------------------------------- callback


@pytest.mark.parametrize("method", [*GRADIENT, *SECOND_ORDER, *FREE])
def test_callback(method):
    params, loss = rosenbrock()
    seen = []

    def callback(result):
        np.testing.assert_array_equal(values(result.x), values(params))
        assert result.fun == pytest.approx(loss().item())
        seen.append(result.x)

    options = {"maxfun" if method == "TNC" else "maxiter": 30}
    minimize(params, loss, method, callback=callback, options=options)
    assert len(seen) > 2
    assert [x.shape for x in seen[0]] == [(), (1, 1)]
    assert not np.array_equal(values(seen[0]), values(seen[-1]))


@pytest.mark.parametrize("method", ["BFGS", "trust-ncg", "Nelder-Mead", "L-BFGS-B"])
def test_a_callback_may_stop(method):
    params, loss = rosenbrock()
    seen = []

    def callback(result):
        seen.append(values(result.x))
        if len(seen) == 3:
            raise StopIteration

    result = minimize(params, loss, method, callback=callback)
    assert len(seen) == 3
    assert not result.success
    np.testing.assert_array_equal(values(params), seen[-1])


# --------------------------------------------------------------------------------------- errors

ONE = ng.tensor([1.0, 2.0], requires_grad=True)
COMPLEX = ng.tensor([1.0 + 0j], requires_grad=True)


@pytest.mark.parametrize(
    ("params", "closure", "options", "error", "message"),
    [
        ([], None, {}, ValueError, "nothing to minimize over"),
        ([ng.zeros(0, requires_grad=True)], None, {}, ValueError, "nothing to minimize over"),
        ([np.ones(2)], None, {}, TypeError, "type ndarray"),
        ([ONE, ONE], None, {}, ValueError, "given twice"),
        ([ng.tensor([1])], None, {}, TypeError, "parameter 0 has dtype int64"),
        ([ONE, ONE * 2], None, {}, ValueError, r"parameter 1, of shape \(2,\), is the result of"),
        ([ng.ones(2)], None, {}, ValueError, "parameter 0, of shape .* does not require grad"),
        ([ONE], lambda: "x", {}, TypeError, "returned a str of dtype"),
        ([COMPLEX], lambda: COMPLEX.sum(), {}, TypeError, "returned a Tensor of dtype complex128"),
        ([ONE], lambda: ONE * 2, {}, ValueError, r"returned shape \(2,\)"),
        ([ONE], lambda: 3.0, {}, RuntimeError, "returned a float that does not depend"),
        ([ONE], lambda: ONE.detach().sum(), {}, RuntimeError, "Tensor that does not depend"),
        ([ONE], None, {"bounds": [None] * 2}, ValueError, "bounds for 2 parameters, there are 1"),
        ([ONE], None, {"bounds": [3]}, ValueError, "bounds of parameter 0 are 3; give"),
        ([ONE], None, {"bounds": [(1, [0, 2])]}, ValueError, "parameter 0 leave no value"),
        ([ONE], None, {"bounds": [(0, np.nan)]}, ValueError, "parameter 0 leave no value"),
        ([ONE], None, {"bounds": [(0, [1, 2, 3])]}, ValueError, r"shape \(3,\) does not broadc"),
        ([COMPLEX], None, {"bounds": [(0, 1)]}, TypeError, "parameter 0 is complex"),
        ([ONE], None, {"constraints": [3]}, ValueError, "constraint 0 is 3"),
        ([ONE], None, {"constraints": {"fun": 3}}, ValueError, "constraint 0 is"),
        ([ONE], None, {"constraints": [{"type": 3, "fun": 3}]}, ValueError, "constraint 0 is"),
    ],
)  # fmt: skip
def test_errors(params, closure, options, error, message):
    with pytest.raises(error, match=message) as caught:
        minimize(params, closure or (lambda: (ONE**2).sum()), **options)
    assert isinstance(caught.value, ng.NumgradError)
    np.testing.assert_array_equal(ONE.detach().numpy(), [1, 2])


def test_a_start_that_is_not_finite():
    x = ng.tensor(1.0, requires_grad=True)
    with pytest.raises(ValueError, match="is nan at the start"):
        minimize(x, lambda: np.log(-x))
    assert x.item() == 1.0


def test_what_was_recorded_is_forgotten_when_a_constraint_moves_the_parameters():
    x = ng.tensor([2.0, 0.5], requires_grad=True)
    circle = scipy.optimize.NonlinearConstraint(lambda: (x**2).sum(), 1.0, 1.0)
    result = minimize(x, lambda: ((x - 1) ** 4).sum() + x[0], "trust-constr", constraints=circle)

    def same(p):
        return np.sum((p - 1) ** 4) + p[0]

    again = ng.minimize(
        same,
        [2.0, 0.5],
        method="trust-constr",
        constraints=ng.constraint(lambda p: np.sum(p**2), 1, 1),
    )
    np.testing.assert_allclose(x.detach().numpy(), again.x, atol=1e-5)
    assert abs(result.x[0].numpy() @ result.x[0].numpy() - 1) < 1e-6


def test_an_unknown_method_is_scipys_to_refuse():
    params, loss = rosenbrock()
    with pytest.raises(ValueError, match="Unknown solver"):
        minimize(params, loss, "descent")


def test_scipys_optimizers_are_imported_when_needed():
    program = (
        "import sys, numgrad; numgrad.nn, numgrad.optim, numgrad.data; "
        "print([m for m in sys.modules if m.startswith('scipy')])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"
