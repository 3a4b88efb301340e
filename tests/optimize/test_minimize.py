"""``ng.minimize``: every method, containers, dtypes, constraints, what goes wrong."""

import signal
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize

import numgrad as ng
from numgrad.errors import NumgradError
from numgrad.optimize.minimize import METHODS

Pair = namedtuple("Pair", "a b")


@dataclass
class Model:
    a: object
    b: object


def valley(p):
    """Rosenbrock's, of a nesting."""
    return (1 - p["x"]) ** 2 + 100 * (p["y"][0] - p["x"] ** 2) ** 2


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bowl(x):
    return np.sum((x - np.arange(x.size)) ** 2)


START = {"x": -1.2, "y": np.array([1.0])}


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method):
    # dogleg needs a Hessian that is positive definite all the way
    start = {"x": 0.9, "y": np.array([0.8])} if method in ("dogleg", "COBYLA") else START
    options = {"rhobeg": 0.1} if method == "COBYLA" else None
    found = ng.minimize(valley, start, method=method, options=options)
    assert found.success, found.message
    assert isinstance(found.x["x"], float)
    assert found.x["y"].shape == (1,)
    rough = {"TNC": 5e-3, "COBYLA": 0.3}.get(method, 1e-3)
    np.testing.assert_allclose([found.x["x"], found.x["y"][0]], 1, atol=rough)


@pytest.mark.parametrize("method", ["L-BFGS-B", "trust-exact", "trust-krylov"])
def test_compiled_does_the_same(method):
    eager, compiled = (ng.minimize(valley, START, method=method, jit=jit) for jit in (False, True))
    assert compiled.nit == eager.nit
    np.testing.assert_allclose(compiled.x["x"], eager.x["x"], rtol=1e-9)


@pytest.mark.parametrize("method", ["newton-cg", "trust-ncg"])
@pytest.mark.parametrize("n", [2, 50, 10_000])
def test_many_dimensions_by_exact_products(method, n):
    found = ng.minimize(rosenbrock, 1 + 0.5 * np.sin(np.arange(n)), method=method, jit=n > 50)
    assert found.success
    np.testing.assert_allclose(found.x, 1, atol=1e-3)


def test_value_and_gradient_cost_one_evaluation_a_point():
    points = []

    def f(x):
        points.append(x.detach().numpy().copy())
        return rosenbrock(x)

    found = ng.minimize(f, np.zeros(4), method="L-BFGS-B")
    assert len(points) == found.nfev
    points.clear()
    found = ng.minimize(f, np.zeros(4), method="trust-exact")
    assert len(points) <= found.nfev + 1


@pytest.mark.parametrize("container", [list, Pair._make, lambda parts: Model(*parts), tuple])
def test_containers_come_back_as_they_were(container):
    start = container([np.zeros((2, 1)), ng.tensor(np.zeros(3, np.float32))])
    found = ng.minimize(lambda p: sum(bowl(part.reshape(-1)) for part in ng.tree.leaves(p)), start)
    assert type(found.x) is type(start)
    first, second = ng.tree.leaves(found.x)
    assert isinstance(first, np.ndarray)
    assert isinstance(second, ng.Tensor)
    assert (second.dtype, second.requires_grad) == (np.float32, False)
    np.testing.assert_allclose(first, [[0], [1]], atol=1e-5)
    np.testing.assert_allclose(second.numpy(), [0, 1, 2], atol=1e-3)


def test_float32_is_what_the_function_sees():
    seen = set()

    def f(x):
        seen.add(x.dtype)
        return bowl(x)

    found = ng.minimize(f, np.zeros(3, np.float32), tol=1e-4)
    assert seen == {np.dtype(np.float32)}
    assert found.x.dtype == np.float32
    assert found.jac.dtype == np.float64


def test_complex_numbers():
    target = np.array([1 + 2j, -3j])
    found = ng.minimize(lambda z: np.sum(np.abs(z - target) ** 2), np.zeros(2, complex))
    np.testing.assert_allclose(found.x, target, atol=1e-6)


def test_bounds_nested_and_flat():
    found = ng.minimize(valley, START, bounds={"x": (None, 0.5)})
    np.testing.assert_allclose([found.x["x"], found.x["y"][0]], [0.5, 0.25], atol=1e-4)
    bounds = [(0, 1)] * 3
    for given in (bounds, optimize.Bounds(0, 1)):
        found = ng.minimize(bowl, np.full(3, 0.5), bounds=given)
        np.testing.assert_allclose(found.x, [0, 1, 1], atol=1e-8)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_a_portfolio(method):
    returns = np.array([0.04, 0.06, 0.09, 0.12])
    spread = np.array([0.05, 0.09, 0.15, 0.25])
    risk = (0.3 + 0.7 * np.eye(4)) * np.outer(spread, spread)
    wanted = [ng.constraint(np.sum, 1, 1), ng.constraint(lambda w: w @ returns, 0.07)]
    found = ng.minimize(
        lambda w: w @ risk @ w,
        np.full(4, 0.25),
        method=method,
        bounds=[(0, 1)] * 4,
        constraints=wanted,
        options={"ftol": 1e-14} if method == "SLSQP" else {"barrier_tol": 1e-12, "gtol": 1e-10},
    )
    # Both constraints hold as equations and no bound is met: a linear system.
    rows = np.stack([np.ones(4), returns])
    system = np.block([[2 * risk, rows.T], [rows, np.zeros((2, 2))]])
    exact = np.linalg.solve(system, [0, 0, 0, 0, 1, 0.07])[:4]
    assert (exact > 0).all()
    np.testing.assert_allclose(found.x, exact, atol=1e-4)


def test_logistic_regression_as_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = (x @ [1.0, -2.0, 0.5, 0.0] + 0.3 + rng.logistic(size=200) > 0).astype(float)

    def loss(p):
        scores = x @ p["w"] + p["b"]
        return np.sum(np.logaddexp(0, scores) - y * scores) + np.sum(p["w"] ** 2) / 2

    found = ng.minimize(loss, {"w": np.zeros(4), "b": 0.0}, method="trust-exact")
    theirs = linear.LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(found.x["w"], theirs.coef_[0], atol=1e-6)
    np.testing.assert_allclose(found.x["b"], theirs.intercept_[0], atol=1e-6)


def test_callbacks_see_the_containers_and_may_stop():
    seen = []

    def look(state):
        seen.append((state.x["x"], state.fun))
        if len(seen) == 3:
            raise StopIteration

    found = ng.minimize(valley, START, callback=look, method="BFGS")
    assert len(seen) == found.nit == 3
    assert found.fun == seen[-1][1]


def interrupted_at(count):
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) == count:
            signal.raise_signal(signal.SIGINT)
        return rosenbrock(x)

    return f


def test_the_best_point_after_an_interrupt():
    found = ng.minimize(interrupted_at(20), np.zeros(3), on_interrupt="return")
    assert not found.success
    assert "Interrupted" in found.message
    assert found.fun == rosenbrock(found.x) < rosenbrock(np.zeros(3))
    with pytest.raises(KeyboardInterrupt):
        ng.minimize(interrupted_at(20), np.zeros(3))


def test_progress_is_shown_on_stderr_and_in_notebooks_on_stdout(capsys, monkeypatch):
    ng.minimize(bowl, np.zeros(3), progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "minimize: 3 evaluations, best" in err
    monkeypatch.setattr("numgrad.progress.in_notebook", lambda: True)
    ng.minimize(bowl, np.zeros(3), progress=True)
    out, err = capsys.readouterr()
    assert err == ""
    assert "minimize: 3 evaluations, best" in out


def test_what_is_compiled_belongs_to_one_function():
    def f(x):
        return np.sum((x - 1) ** 2)

    ng.minimize(f, np.zeros(2), jit=True)

    def shifted(x):
        return f(x - 1)

    vars(shifted).update(vars(f))  # as functools.wraps does
    np.testing.assert_allclose(ng.minimize(shifted, np.zeros(2), jit=True).x, 2, atol=1e-6)


def test_derivatives_for_other_solvers():
    rng = np.random.default_rng(1)
    start = {"a": rng.normal(size=(2, 2)), "b": rng.normal()}

    def f(p, c):
        return np.sum(np.sin(p["a"]) * p["b"] ** 2) + c * np.sum(p["a"] ** 3) * p["b"]

    for jit in (False, True):
        wanted = ng.objective(f, start, args=(0.5,), jit=jit)
        x, v = wanted.x0, rng.normal(size=5)
        steps = 1e-6 * np.eye(5)
        slopes = [(wanted.fun(x + s) - wanted.fun(x - s)) / 2e-6 for s in steps]
        np.testing.assert_allclose(wanted.jac(x), slopes, rtol=1e-6, atol=1e-8)
        curvatures = [(wanted.jac(x + s) - wanted.jac(x - s)) / 2e-6 for s in steps]
        np.testing.assert_allclose(wanted.hess(x), curvatures, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(wanted.hessp(x, v), wanted.hess(x) @ v, rtol=1e-12)
        value, gradient = wanted.fun_and_jac(start)
        assert value == wanted.fun(x)
        np.testing.assert_array_equal(gradient, wanted.jac(x))
        np.testing.assert_array_equal(wanted.ravel(wanted.unravel(x + 1)), x + 1)


def changing():
    shapes = iter([(), (), (2,), (2,)])
    return lambda x: np.sum(x**2) * np.ones(next(shapes))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ng.minimize(bowl, [np.nan, 1]), ValueError, r"x0\[0\] is nan"),
        (lambda: ng.minimize(lambda x: np.sum(np.log(x)), [-1.0]), ValueError, "is nan at the sta"),
        (lambda: ng.minimize(bowl, [5.0], bounds=[(0, 1)]), ValueError, "outside of its bounds"),
        (lambda: ng.minimize(lambda x: x**2, [1.0, 2.0]), ValueError, "one real number"),
        (lambda: ng.minimize(lambda x: np.sum(x.detach()), [1.0]), RuntimeError, "not depend"),
        (
            lambda: ng.minimize(lambda x: np.sum(x.detach()), [1.0], jit=True),
            RuntimeError,
            "not depend",
        ),
        (lambda: ng.minimize(bowl, np.array([1, "a"], object)), TypeError, "dtype object"),
        (lambda: ng.minimize(bowl, {"a": None}), TypeError, r"x0\['a'\] is a NoneType"),
        (lambda: ng.minimize(bowl, []), ValueError, "nothing to solve for"),
        (lambda: ng.minimize(bowl, [1.0], method="newton"), ValueError, "Newton-CG"),
        (lambda: ng.minimize(changing(), [1.0]), ValueError, r"shape \(2,\)"),
        (lambda: ng.minimize(bowl, [1.0, 2.0], bounds=[(0, 9)]), ValueError, "1 bounds for 2"),
        (lambda: ng.constraint(bowl, 2, 1), ValueError, "no value"),
        (
            lambda: ng.minimize(bowl, [1.0], constraints={"type": "eq"}),
            ValueError,
            "ng.constraint",
        ),
        (lambda: ng.objective(valley, START).fun({"x": 1.0}), ValueError, "nesting is another"),
    ],
)
def test_what_is_wrong_is_named(call, kind, words):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, NumgradError)


def test_an_error_of_the_users_passes():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ng.minimize(f, [1.0])


def test_a_solver_that_fails_says_so():
    found = ng.minimize(rosenbrock, np.zeros(5), method="BFGS", options={"maxiter": 3})
    assert not found.success
    assert "iterations" in found.message.lower()
    assert found.fun == pytest.approx(rosenbrock(found.x))


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA"])
def test_scipys_dictionaries_of_constraints_have_arguments(method):
    total = {"type": "eq", "fun": lambda x, c: np.sum(x) - c, "args": (0.8,)}
    found = ng.minimize(lambda x: np.sum((x - [2, 1]) ** 2), [0.3, 0.3], method=method,
                        constraints=[total])  # fmt: skip
    np.testing.assert_allclose(found.x, [0.9, -0.1], atol=1e-3)


def test_cobyla_takes_bands_and_equations_of_matrices():
    def distance(x):
        return np.sum((x - [2, 1, 3]) ** 2)

    limits = [optimize.LinearConstraint([[1, 1, 0]], 0.8, 0.8),
              ng.constraint(lambda x: x, [-np.inf, 0, -1], [np.inf, 5, 0.5])]  # fmt: skip
    found = ng.minimize(distance, np.full(3, 0.3), method="COBYLA", constraints=limits)
    np.testing.assert_allclose(found.x, [0.8, 0, 0.5], atol=1e-3)


def test_bounds_of_constraints_have_the_shape_of_values():
    high = np.array([[1, 0.5], [0.2, 0.1]])
    found = ng.minimize(
        bowl_of_two, np.zeros((2, 2)), constraints=ng.constraint(lambda x: x, -1, high)
    )
    np.testing.assert_allclose(found.x, high, atol=1e-6)
    for method in ("SLSQP", "COBYLA"):
        with pytest.raises(NumgradError, match=r"constraint 0 has bounds of shape \(3,\)"):
            ng.minimize(bowl_of_two, np.zeros(2), method=method,
                        constraints=ng.constraint(lambda x: x, np.zeros(3)))  # fmt: skip


def bowl_of_two(x):
    return np.sum((x - 2) ** 2)


def test_lists_that_are_no_array_and_unknown_hessians_are_named():
    with pytest.raises(ValueError, match="no rows of one array") as caught:
        ng.minimize(bowl_of_two, [[0.0, 1.0], [2.0]])
    assert isinstance(caught.value, NumgradError)
    with pytest.raises(NumgradError, match="no hess 'foo'"):
        ng.minimize(bowl_of_two, [0.0], method="trust-constr", hess="foo")


@pytest.mark.parametrize("solver", [
    lambda a, jit: ng.minimize(lambda z: ((z - a) ** 2).sum(), np.zeros(2), jit=jit).x,
    lambda a, jit: ng.minimize(
        lambda z, b: ((z - b) ** 2).sum(), np.zeros(2), args=(a,), jit=jit
    ).x,
    lambda a, jit: ng.least_squares(lambda z: z - a, np.zeros(2), jit=jit).x,
    lambda a, jit: ng.root(lambda z: z - a, np.zeros(2), jit=jit).x,
])  # fmt: skip
@pytest.mark.parametrize("jit", [False, True])
def test_a_transform_cannot_follow_a_solution(solver, jit):
    def total(a):
        return (solver(a, jit) * a).sum()

    point = np.array([1.0, 2.0])
    for transform in (ng.grad, ng.hessian):
        with pytest.raises(ng.NumgradError, match=r"differentiated.*ng\.implicit"):
            transform(total)(point)
    if not jit:
        found = ng.grad(lambda a: (solver(a.detach(), jit) * a).sum())(point)
        np.testing.assert_allclose(found, point, rtol=1e-4)
    with ng.no_grad():
        np.testing.assert_allclose(solver(ng.tensor(point), jit), point, rtol=1e-4)


@pytest.mark.parametrize("solver", [ng.minimize, ng.root, ng.least_squares])
def test_a_solver_cannot_follow_the_solution_of_another_one(solver):
    def outer(p):
        def inner(z):
            return (z - p) ** 2 if solver is ng.minimize else z - p

        return (solver(inner, 0.3).x - 3.0) ** 2 + 0.1 * p**2

    with pytest.raises(ng.NumgradError, match=r"differentiated.*ng\.implicit"):
        ng.minimize(outer, 0.5)
    found = ng.minimize(outer, 0.5, method="Nelder-Mead").x
    np.testing.assert_allclose(found, 3.0 / 1.1, rtol=1e-3)


def test_a_solver_within_the_function_of_another_one_gives_a_constant():
    w = ng.tensor(2.0, requires_grad=True)
    found = ng.minimize(lambda p: (p - ng.minimize(lambda z: (z - 3) ** 2, 0.0).x) ** 2, 0.5).x
    np.testing.assert_allclose(found, 3.0, rtol=1e-4)
    np.testing.assert_allclose(ng.minimize(lambda p: (p - w) ** 2, 0.5).x, 2.0, rtol=1e-4)


def test_modes_around_a_solver_are_neither_obeyed_nor_changed():
    for around in (ng.no_grad, ng.enable_grad):
        with around():
            before = ng.is_grad_enabled()
            np.testing.assert_allclose(ng.minimize(bowl, np.zeros(3)).x, [0, 1, 2], atol=1e-5)
            recorded = []

            def f(x, recorded=recorded):
                value = bowl(x)
                recorded.append(value.requires_grad)
                return value

            ng.minimize(f, np.zeros(3), method="Nelder-Mead", options={"maxiter": 5})
            assert not any(recorded)
            assert ng.is_grad_enabled() is before


def test_a_result_that_is_a_number_is_called_one():
    with pytest.raises(ng.NumgradRuntimeError, match="returned a float that does not depend"):
        ng.minimize(lambda x: 3, np.zeros(2))


@pytest.mark.parametrize("method", ["BFGS", "trust-exact"])
def test_unknowns_that_do_not_count_are_named(method):
    def loss(p):
        return (p["a"] - 1.0) ** 2 + p["b"][1] ** 2 + ng.round(p["b"][0]) + (p["c"] > 0)

    start = {"a": 0.0, "b": np.array([0.1, 1.0]), "c": 2.0}
    with pytest.warns(UserWarning, match="minimize: the result does not depend on c at") as met:
        result = ng.minimize(loss, start, method=method)
    assert [w.filename for w in met] == [__file__]
    assert result.x["a"] == pytest.approx(1.0, abs=1e-4)
    with pytest.warns(UserWarning, match="does not depend on c at the start"):
        ng.minimize(loss, start, fixed={"a": 1.0}, method=method)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"jac": True}, "no parameter 'jac': gradients are exact"),
        ({"method": "BFGS", "bounds": [(0, 1)]}, "BFGS takes no bounds; .* L-BFGS-B"),
        ({"method": "L-BFGS-B", "constraints": ng.constraint(np.sum)}, "constraints; .* SLSQP"),
    ],
)
def test_what_methods_do_not_take(options, words):
    with pytest.raises(ng.NumgradError, match=words):
        ng.minimize(lambda x: np.sum(x**2), [0.5], **options)


def test_vectors_of_an_objective():
    wanted = ng.objective(lambda p: p["a"] ** 2 + np.sum(p["b"]), {"a": 1.0, "b": np.ones(2)})
    for point in (
        [2.0, 3.0, 4.0],
        np.array([2.0, 3.0, 4.0]),
        {"a": 2.0, "b": np.array([3.0, 4.0])},
    ):
        assert wanted.fun(point) == 11.0
    for wrong in ([1.0, 2.0], np.ones(4)):
        with pytest.raises(ValueError, match=rf"a vector of {len(wrong)} numbers, the start has 3"):
            wanted.fun(wrong)
