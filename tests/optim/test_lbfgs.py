"""L-BFGS: against PyTorch, against dense BFGS matrices, and on problems with known minima."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import numgrad as ng
from numgrad.codegen import threads
from numgrad.codegen.cpython.addresses import copied_addresses
from numgrad.kernels import quasi_newton
from numgrad.optim.lbfgs import Trial, strong_wolfe

DATA = np.random.default_rng(0).standard_normal((20, 6))
LABELS = (np.random.default_rng(1).standard_normal(20) > 0) * 1.0


def rosenbrock(library, x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def logistic(library, weights, offset):
    z = library.tensor(DATA) @ weights + offset
    return ((z.exp() + 1).log() - z * library.tensor(LABELS)).sum() + 0.01 * (weights**2).sum()


def square_root(library, z, r):
    """Least where ``z * z`` is ``1 + 2j`` and ``r`` is the real part of ``z``."""
    error = z * z - (1 + 2j)
    return (error * error.conj()).real.sum() + ((r - z.real) ** 2).sum()


PROBLEMS = {
    "rosenbrock": (rosenbrock, [np.array([-1.2, 1.0, -0.5, 0.8, 2.0])]),
    "logistic": (logistic, [np.zeros(6), np.zeros(())]),
    "complex": (square_root, [np.array([0.3 + 0.1j, -1 + 1j]), np.array([0.5, 0.2])]),
}
EASY = {"lr": 0.5, "history_size": 3, "max_iter": 7}


class Run:
    """A problem, its parameters and an optimizer."""

    def __init__(self, name, library=ng, **options):
        self.function, start = PROBLEMS[name]
        self.library, self.losses = library, []
        self.params = [library.tensor(a.copy(), requires_grad=True) for a in start]
        self.optimizer = library.optim.LBFGS(self.params, **options)

    def closure(self):
        self.optimizer.zero_grad()
        loss = self.function(self.library, *self.params)
        loss.backward()
        self.losses.append(float(loss.detach()))
        return loss

    def steps(self, count):
        return [float(self.optimizer.step(self.closure).detach()) for _ in range(count)]

    def arrays(self):
        return [p.detach().numpy().copy() for p in self.params]

    @property
    def state(self):
        return self.optimizer.state[self.params[0]]


def plain(value):
    """A value of a state as nested lists of numbers."""
    if isinstance(value, list):
        return [plain(v) for v in value if v is not None]
    return value.tolist() if hasattr(value, "tolist") else value


# ------------------------------------------------------------------------------ trajectories


@pytest.mark.slow
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", [{}, EASY], ids=["defaults", "options"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_trajectories_are_those_of_pytorch(torch, problem, options, search):
    if problem == "rosenbrock" and search is None:
        options = {**options, "lr": 0.01}  # full steps go to infinity, there and here
    ours, theirs = (Run(problem, lib, line_search_fn=search, **options) for lib in (ng, torch))
    assert_allclose(ours.steps(3), theirs.steps(3), rtol=1e-10, atol=1e-10)
    assert_allclose(ours.losses, theirs.losses, rtol=1e-10, atol=1e-10)
    for a, b in zip(ours.arrays(), theirs.arrays(), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    assert set(ours.state) == set(theirs.state)
    for key in ("n_iter", "func_evals"):
        assert ours.state[key] == theirs.state[key]
    for key in ("d", "t", "old_stps", "prev_flat_grad", "prev_loss"):
        assert_allclose(plain(ours.state[key]), plain(theirs.state[key]), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_minima_are_found(search):
    run = Run("complex", line_search_fn=search, max_iter=100, tolerance_change=1e-14)
    run.steps(1)
    z, r = run.arrays()
    assert_allclose(z * z, np.full(2, 1 + 2j), rtol=1e-7)
    assert_allclose(r, z.real, rtol=1e-7)
    run = Run("rosenbrock", line_search_fn="strong_wolfe", max_iter=200)
    run.steps(1)
    assert_allclose(run.arrays()[0], np.ones(5), rtol=1e-5)


def test_float32_and_mixed_dtypes():
    for dtypes in ((np.float32, np.float32), (np.float32, np.float64)):
        params = [ng.tensor(np.array([3.0, -1.0], d), requires_grad=True) for d in dtypes]
        optimizer = ng.optim.LBFGS(params, line_search_fn="strong_wolfe")

        def closure(params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = sum(((p - 1) ** 2 * (2.0 * k + 1)).sum() for k, p in enumerate(params))
            loss.backward()
            return loss

        optimizer.step(closure)
        for p, d in zip(params, dtypes, strict=True):
            assert p.dtype == d
            assert_allclose(p.detach().numpy(), 1, rtol=1e-5)
        assert optimizer.state[params[0]]["d"].dtype == dtypes[1]


def test_layouts_idle_parameters_and_row_sparse_gradients():
    memory = np.array([[4.0, 0.0], [-2.0, 0.0]])
    w = ng.from_numpy(memory[:, :1]).requires_grad_()
    idle = ng.tensor([5.0], requires_grad=True)
    rows = ng.nn.Embedding(3, 2, sparse=True)
    before = rows.weight.detach().numpy().copy()
    optimizer = ng.optim.LBFGS([w, idle, rows.weight])

    def closure():
        optimizer.zero_grad()
        loss = ((w - 1) ** 2).sum() + ((rows([1]) - 2) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert_allclose(memory, [[1, 0], [1, 0]], atol=1e-7)
    assert_array_equal(idle.detach().numpy(), [5.0])
    found = rows.weight.detach().numpy()
    assert_allclose(found[1], 2, atol=1e-7)
    assert_array_equal(found[[0, 2]], before[[0, 2]])


# --------------------------------------------------------------------------------- direction


def history(count, size, dtype, seed=2):
    """Pairs of a step and a change, as a quadratic gives them, and a gradient."""
    rng = np.random.default_rng(seed)
    steps = [rng.standard_normal(size).astype(dtype) for _ in range(count)]
    curvature = rng.uniform(0.5, 2.0, size).astype(dtype)
    return steps, [s * curvature for s in steps], rng.standard_normal(size).astype(dtype)


def direction(steps, changes, g, scale, number_of_threads=0):
    count, dtype = len(steps), g.dtype
    pairs = copied_addresses([*steps, *changes], count, 2, -1, dtype).pointers
    inverses = np.array([1 / float(s @ y) for s, y in zip(steps, changes, strict=True)])
    d, shares = np.empty_like(g), np.empty(count)
    call = (pairs, inverses, scale, g, d, shares)
    if number_of_threads:
        entry = quasi_newton.direction_kernel(dtype, True)
        return d, threads.launch(entry, number_of_threads, *call)
    return d, quasi_newton.direction_kernel(dtype)(*call)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_direction_is_that_of_the_dense_bfgs_matrix(count):
    steps, changes, g = history(count, 7, np.float64)
    inverse = 0.3 * np.eye(7)
    for s, y in zip(steps, changes, strict=True):
        v = np.eye(7) - np.outer(y, s) / (y @ s)
        inverse = v.T @ inverse @ v + np.outer(s, s) / (y @ s)
    found, slope = direction(steps, changes, g, 0.3)
    assert_allclose(found, -inverse @ g, rtol=1e-12, atol=1e-12)
    assert slope == pytest.approx(-g @ inverse @ g, rel=1e-12)


@pytest.mark.slow(cases=0)
def test_any_number_of_threads_gives_the_same_bits():
    size = 3 * quasi_newton.BLOCK + 17
    steps, changes, g = history(3, size, np.float64)
    expected, slope = direction(steps, changes, g, 0.3)
    for number_of_threads in (1, 2):
        found, other = direction(steps, changes, g, 0.3, number_of_threads)
        assert_array_equal(found, expected)
        assert slope == other
    results = []
    for parallel in (False, True):
        s, y = np.empty_like(g), np.empty_like(g)
        entry = quasi_newton.pair_kernel(g.dtype, parallel)
        sums = np.empty(2)
        call = (g, steps[0], steps[1], 0.7, s, y, sums)
        threads.launch(entry, 2, *call) if parallel else entry(*call)
        assert sums.tolist() == pytest.approx([s @ y, y @ y])
        assert_array_equal(y, g - steps[0])
        assert_array_equal(s, 0.7 * steps[1])
        results.append((sums.tobytes(), s.tobytes(), y.tobytes()))
    assert results[0] == results[1]


# ------------------------------------------------------------------------------- line search


LINES = {
    "quadratic": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "steep": (lambda t: np.exp(5 * t) - 10 * t, lambda t: 5 * np.exp(5 * t) - 10),
    "flat": (lambda t: -np.tanh(t / 50), lambda t: -1 / (50 * np.cosh(t / 50) ** 2)),
    "waves": (lambda t: 0.1 * t * t - np.sin(3 * t), lambda t: 0.2 * t - 3 * np.cos(3 * t)),
}


@pytest.mark.parametrize("first", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("line", LINES)
def test_line_search_ends_at_a_point_of_strong_wolfe(line, first):
    loss, slope = LINES[line]
    seen = []

    def evaluate(t):
        seen.append(t)
        return Trial(t, loss(t), slope(t), np.zeros(1))

    origin = Trial(0.0, loss(0.0), slope(0.0), np.zeros(1))
    found, count = strong_wolfe(evaluate, origin, first, 1.0, 1e-12, 50)
    assert count == len(seen) <= 25
    assert found.loss <= origin.loss + 1e-4 * found.t * origin.slope
    assert abs(found.slope) <= 0.9 * abs(origin.slope)


def test_line_search_out_of_evaluations_keeps_the_best_end():
    loss = lambda t: -t if t < 1e9 else np.nan  # noqa: E731
    found, count = strong_wolfe(
        lambda t: Trial(t, loss(t), -1.0, np.zeros(1)), Trial(0.0, 0.0, -1.0, np.zeros(1)),
        1.0, 1.0, 1e-9, 0,
    )  # fmt: skip
    assert (found.t, count) == (1.0, 1)
    rising = Trial(2.0, 5.0, 1.0, np.zeros(1))
    found, count = strong_wolfe(
        lambda t: rising, Trial(0.0, 0.0, -1.0, np.zeros(1)), 2.0, 1e-12, 1e-9, 10
    )
    assert (found.t, count) == (0.0, 1)  # the interval is too small to matter


# ------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("problem", ["logistic", "complex"])
def test_a_loaded_state_goes_on_bit_by_bit(problem):
    run = Run(problem, line_search_fn="strong_wolfe", **EASY)
    run.steps(1)
    other = Run(problem)
    with ng.no_grad():
        for p, q in zip(other.params, run.params, strict=True):
            p.copy_(q)
    other.optimizer.load_state_dict(copy.deepcopy(run.optimizer.state_dict()))
    run.steps(2)
    other.steps(2)
    for a, b in zip(run.arrays(), other.arrays(), strict=True):
        assert_array_equal(a, b)
    assert {k: plain(v) for k, v in run.state.items()} == {
        k: plain(v) for k, v in other.state.items()
    }


def test_all_state_is_under_the_first_parameter():
    run = Run("logistic")
    run.steps(1)
    assert list(run.optimizer.state) == run.params[:1]
    assert set(run.state) == {
        "H_diag", "al", "d", "func_evals", "n_iter", "old_dirs", "old_stps", "prev_flat_grad",
        "prev_loss", "ro", "t",
    }  # fmt: skip
    assert run.state["func_evals"] == len(run.losses)
    assert len(run.state["old_dirs"]) == len(run.state["ro"]) <= len(run.state["al"]) == 100


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("call", [1, 2, 4])
def test_a_closure_that_raises_leaves_everything_as_it_was(search, call):
    run = Run("logistic", line_search_fn=search, lr=0.1)
    for _ in range(2):  # without and with a state
        before = run.arrays(), {k: plain(v) for k, v in run.state.items()}
        count = len(run.losses)

        def failing(count=count):
            loss = run.closure()
            if len(run.losses) == count + call:
                raise KeyError("stop")
            return loss

        with pytest.raises(KeyError, match="stop"):
            run.optimizer.step(failing)
        for a, b in zip(run.arrays(), before[0], strict=True):
            assert_array_equal(a, b)
        assert {k: plain(v) for k, v in run.state.items()} == before[1]
        run.steps(1)


def test_where_the_gradient_is_small_nothing_moves():
    x = ng.tensor([1.0], requires_grad=True)
    optimizer = ng.optim.LBFGS([x], tolerance_grad=10.0)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure).detach()) == 1.0
    assert_array_equal(x.detach().numpy(), [1.0])
    assert optimizer.state[x] == {"func_evals": 1, "n_iter": 0}


def test_no_history_is_gradient_descent_with_a_scale():
    run = Run("logistic", history_size=0, lr=0.5)
    run.steps(3)
    assert run.state["old_dirs"] == []
    assert_allclose(
        run.state["d"].numpy(), -run.state["H_diag"] * run.state["prev_flat_grad"].numpy()
    )


def test_numbers_of_iterations_and_evaluations():
    run = Run("rosenbrock", max_iter=8)
    assert run.optimizer.param_groups[0]["max_eval"] == 10
    run = Run("rosenbrock", max_iter=8, max_eval=3, lr=0.01)
    run.steps(1)
    assert len(run.losses) == 3
    run = Run("rosenbrock", max_iter=4, lr=ng.tensor([0.01]))
    run.steps(1)
    assert run.state["n_iter"] == len(run.losses) == 4  # none after the last iteration
    assert isinstance(run.state["t"], float)


# ------------------------------------------------------------------------------------ errors


def test_constructor_errors():
    x, y = (ng.tensor([1.0], requires_grad=True) for _ in range(2))
    for options, match in (
        ({"lr": ng.tensor([1.0, 2.0])}, "lr is a Tensor"),
        ({"lr": -1.0}, "lr is -1.0"),
    ):
        with pytest.raises(ng.NumgradValueError, match=f"LBFGS: {match}"):
            ng.optim.LBFGS([x], **options)
    with pytest.raises(ng.NumgradValueError, match="2 parameter groups"):
        ng.optim.LBFGS([{"params": [x]}, {"params": [y]}])


def test_errors_of_a_step():
    run = Run("logistic")
    with pytest.raises(ng.NumgradTypeError, match="closure"):
        run.optimizer.step()
    run.optimizer.param_groups[0]["line_search_fn"] = "other"
    with pytest.raises(ng.NumgradRuntimeError, match="line_search_fn is 'other'"):
        run.optimizer.step(run.closure)
    run.optimizer.add_param_group({"params": [ng.tensor([1.0], requires_grad=True)]})
    with pytest.raises(ng.NumgradAssertionError, match="2 parameter groups"):
        run.optimizer.step(run.closure)
    assert run.losses == []
    for make, error, match in (
        (lambda: ng.tensor([1]), ng.NumgradTypeError, "int64"),
        (lambda: ng.from_numpy(np.broadcast_to(1.0, (2,))), ng.NumgradRuntimeError, "written"),
    ):
        optimizer = ng.optim.LBFGS([make()])
        with pytest.raises(error, match=match):
            optimizer.step(lambda: 1.0)
        assert not optimizer.state_dict()["state"]


def test_vectors_of_other_parameters_are_refused():
    run = Run("logistic")
    run.steps(1)
    run.state["d"] = ng.zeros(3)
    before = run.arrays()
    with pytest.raises(ng.NumgradRuntimeError, match=r"shape \(3,\) for 7"):
        run.steps(1)
    for a, b in zip(run.arrays(), before, strict=True):
        assert_array_equal(a, b)
