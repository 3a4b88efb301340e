"""Optimizers made of one formula: against PyTorch, against the formula read on ndarrays."""

import copy
import json
import pickle

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import numgrad as ng
from numgrad.codegen.cpython import addresses
from numgrad.optim.formula import as_float
from numgrad.optim.formula_optimizer import FormulaOptimizer
from tests.optim import problems

CASES = pytest.mark.parametrize(
    ("name", "options"), problems.CASES, ids=map(problems.case_id, problems.CASES)
)
PYTORCH_CASES = pytest.mark.parametrize(
    ("name", "options"), problems.PYTORCH_CASES, ids=map(problems.case_id, problems.PYTORCH_CASES)
)
NAMES = pytest.mark.parametrize("name", problems.CONFIGURATIONS)
PYTORCH_NAMES = pytest.mark.parametrize(
    "name", [name for name in problems.CONFIGURATIONS if name not in problems.NOT_IN_PYTORCH]
)


def tensor(array):
    return ng.tensor(array, requires_grad=True)


def optimizer_class(name):
    return getattr(ng.optim, name)


# ------------------------------------------------------------------------------ trajectories


@PYTORCH_CASES
def test_ten_steps_of_a_quadratic_end_where_pytorch_does(name, options):
    expected = json.loads(problems.FILE.read_text())[problems.case_id((name, options))]
    found = problems.arrays(*problems.run_quadratic(tensor, optimizer_class(name), options))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@PYTORCH_CASES
def test_the_recorded_trajectories_are_those_of_the_installed_pytorch(torch, name, options):
    expected = json.loads(problems.FILE.read_text())[problems.case_id((name, options))]
    run = problems.run_quadratic(problems.torch_tensor(torch), getattr(torch.optim, name), options)
    for a, b in zip(problems.arrays(*run), expected, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@PYTORCH_CASES
def test_a_small_network_is_trained_as_by_pytorch(torch, name, options):
    ours = problems.run_mlp(tensor, optimizer_class(name), options)
    theirs = problems.run_mlp(problems.torch_tensor(torch), getattr(torch.optim, name), options)
    assert problems.state_keys(*ours) == problems.state_keys(*theirs)
    for a, b in zip(problems.arrays(*ours), problems.arrays(*theirs), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@PYTORCH_NAMES
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_other_dtypes_step_as_in_pytorch(torch, name, dtype):
    rng = np.random.default_rng(3)
    real = np.empty(0, dtype).real.dtype
    draw = lambda: rng.standard_normal((3, 2)).astype(real)  # noqa: E731
    if np.dtype(dtype).kind == "c":
        draw = lambda f=draw: (f() + 1j * f()).astype(dtype)  # noqa: E731
    start, grads = draw(), [draw() for _ in range(5)]
    ours, theirs = tensor(start), problems.torch_tensor(torch)(start)
    pair = [(ours, optimizer_class(name)([ours]), ng.tensor)]
    pair += [(theirs, getattr(torch.optim, name)([theirs]), torch.tensor)]
    for param, optimizer, make in pair:
        for g in grads:
            param.grad = make(g)
            optimizer.step()
    assert ours.dtype == dtype
    tolerance = 1e-10 if np.finfo(dtype).bits == 64 else 3e-6
    for a, b in zip(
        problems.arrays([ours], pair[0][1]), problems.arrays([theirs], pair[1][1]), strict=True
    ):
        assert_allclose(a, b, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------- the formula on ndarrays


def reference_step(optimizer, group, param, state):
    """New values of a parameter and its state by the formula on ndarrays."""
    settings = optimizer.settings(group)
    formula = optimizer.formula
    values = {"p": param.detach().numpy(), "g": param.grad.numpy()}
    if group.get("maximize"):
        values["g"] = -values["g"]
    values |= dict.fromkeys((*formula.elements, *formula.uniform))
    old = state or optimizer.new_state(param, group)
    values |= {name: old[name].numpy() for name in settings.states}
    switches = dict(settings.switches)
    if "first" in formula.keywords and settings.states and not state:
        switches["first"] = True
    numbers = {n: as_float(v) for n, v in settings.numbers.items()}
    new = formula(**values, **numbers, **switches)
    return {name: np.array(value) for name, value in new.items() if value is not None}


shapes = st.lists(
    st.sampled_from([(), (1,), (0, 3), (5,), (3, 4), (2, 1, 3)]), min_size=1, max_size=6
)


@pytest.mark.slow(cases=0)
@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.sampled_from(problems.CASES), shapes, st.integers(0, 2**16), st.data())
def test_random_groups_step_by_the_formula(case, shapes, seed, data):
    name, options = case
    rng = np.random.default_rng(seed)
    params = []
    for shape in shapes:
        array = rng.standard_normal(shape)
        if data.draw(st.booleans()):
            array = np.ascontiguousarray(array.T).T  # not contiguous where there are two axes
        param = ng.from_numpy(array)
        params.append(param.requires_grad_())
    optimizer = optimizer_class(name)(params, **options)
    for _ in range(2):
        expected = {}
        for param in params:
            param.grad = None
            if data.draw(st.integers(0, 4)):
                param.grad = ng.tensor(rng.standard_normal(param.shape))
                state = optimizer.state[param]
                expected[param] = reference_step(optimizer, optimizer.param_groups[0], param, state)
            else:
                expected[param] = {"p": param.detach().numpy().copy()}
        optimizer.step()
        for param in params:
            new = expected[param]
            assert_allclose(param.detach().numpy(), new.pop("p"), rtol=1e-13, atol=1e-15)
            for key, value in new.items():
                assert_allclose(optimizer.state[param][key].numpy(), value, rtol=1e-13, atol=1e-15)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize(
    "name", list(problems.CONFIGURATIONS)[::3]
)  # the kernels' loops are the same
def test_steps_are_bitwise_the_same_for_any_number_of_threads(name):
    rng = np.random.default_rng(0)
    # small ones and one of several tasks, whose borders lie within tensors
    start = [rng.standard_normal(n) for n in (3, 50_001, 17, 60_000, 0, 9)]
    grads = [rng.standard_normal(a.shape) for a in start]
    found = []
    before = ng.get_num_threads()
    for threads in (1, 2):
        ng.set_num_threads(threads)
        try:
            params = [tensor(a) for a in start]
            optimizer = optimizer_class(name)(params)
            for _ in range(2):
                for param, g in zip(params, grads, strict=True):
                    param.grad = ng.tensor(g)
                optimizer.step()
        finally:
            ng.set_num_threads(before)
        found.append(problems.arrays(params, optimizer))
    for a, b in zip(*found, strict=True):
        assert_array_equal(a, b)


def test_non_finite_gradients_go_where_the_formula_sends_them():
    x = tensor([1.0, 2.0, 3.0])
    optimizer = ng.optim.SGD([x], lr=0.5)
    x.grad = ng.tensor([np.inf, np.nan, 1.0])
    optimizer.step()
    assert_array_equal(x.detach().numpy(), [-np.inf, np.nan, 2.5])


# ----------------------------------------------------------------------------- parameters


def test_a_group_may_mix_dtypes_and_layouts():
    rng = np.random.default_rng(1)
    make = lambda dtype: rng.standard_normal((4, 3)).astype(dtype)  # noqa: E731
    singles = [make(np.float64), make(np.float32), make(np.complex64) * 1j, make(np.float64).T]
    grads = [make(np.float64), make(np.float32), make(np.complex64) * 1j, make(np.float64).T]
    together = [ng.asarray(a.copy(order="K")).requires_grad_() for a in singles]
    optimizer = ng.optim.Adam(together, lr=0.1)
    for _ in range(3):
        for param, g in zip(together, grads, strict=True):
            param.grad = ng.asarray(g)
        optimizer.step()
    for param, a, g in zip(together, singles, grads, strict=True):
        alone = tensor(a)
        other = ng.optim.Adam([alone], lr=0.1)
        for _ in range(3):
            alone.grad = ng.asarray(g.copy())
            other.step()
        assert_array_equal(param.detach().numpy(), alone.detach().numpy())
        assert param.dtype == a.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_addresses_that_numpy_is_asked_for_are_those_that_are_read(monkeypatch, dtype):
    rng = np.random.default_rng(2)
    start = [rng.standard_normal(s).astype(dtype) for s in [(3, 4), (), (0, 2), (5,)]]
    found = []
    for asked in (False, True):
        if asked:
            monkeypatch.setattr(addresses, "_reader", lambda: None)
        params = [*map(tensor, start), ng.from_numpy(start[0].T.copy().T).requires_grad_()]
        optimizer = ng.optim.Adam(params)
        for param in params:
            param.grad = ng.tensor(np.ones(param.shape, dtype))
        optimizer.step()
        found.append(problems.arrays(params, optimizer))
    for a, b in zip(*found, strict=True):
        assert_array_equal(a, b)


def test_a_parameter_in_foreign_memory_is_changed_there():
    memory = np.ones((3, 4))
    param = ng.from_numpy(memory[:, ::2]).requires_grad_()
    param.grad = ng.ones((3, 2))
    ng.optim.SGD([param], lr=0.5).step()
    assert_array_equal(memory, np.tile([0.5, 1.0], (3, 2)))


def test_memory_that_must_not_be_written_is_refused_before_anything_changes():
    memory = np.ones(3)
    other, param = tensor(np.ones(2)), ng.from_numpy(memory).requires_grad_()
    memory.flags.writeable = False
    other.grad, param.grad = ng.ones(2), ng.ones(3)
    optimizer = ng.optim.SGD([other, param], lr=0.5)
    with pytest.raises(
        ng.NumgradRuntimeError, match=r"SGD\.step: parameter .* must\s+not be written"
    ):
        optimizer.step()
    assert_array_equal(other.detach().numpy(), np.ones(2))


def test_state_of_another_shape_is_refused_before_anything_changes():
    x = tensor(np.ones(3))
    optimizer = ng.optim.Adam([x])
    x.grad = ng.ones(3)
    optimizer.step()
    kept = x.detach().numpy().copy()
    optimizer.state[x]["exp_avg"] = ng.zeros(4)
    with pytest.raises(ng.NumgradRuntimeError, match=r"exp_avg has shape \(4,\)"):
        optimizer.step()
    assert_array_equal(x.detach().numpy(), kept)
    assert as_float(optimizer.state[x]["step"]) == 1


def test_what_is_wrong_in_the_last_group_is_found_before_the_first_is_updated():
    x, y = tensor(np.ones(2)), ng.tensor([1, 2])
    optimizer = ng.optim.SGD([{"params": x}, {"params": y}], lr=0.5, momentum=0.9, dampening=0.5)
    x.grad, y.grad = ng.ones(2), ng.tensor([1, 1])
    with pytest.raises(ng.NumgradTypeError):
        optimizer.step()
    assert_array_equal(x.detach().numpy(), np.ones(2))
    assert not optimizer.state.get(x)
    y.grad = None
    optimizer.step()
    assert_array_equal(x.detach().numpy(), [0.5, 0.5])  # as in a first step


def test_integer_parameters_are_refused():
    x = ng.tensor([1, 2])
    optimizer = ng.optim.SGD([x])
    x.grad = ng.tensor([1, 1])
    with pytest.raises(ng.NumgradTypeError, match="dtype int64"):
        optimizer.step()


def test_a_parameter_given_twice_is_updated_twice():
    x = tensor([1.0])
    with pytest.warns(UserWarning, match="twice"):
        optimizer = ng.optim.SGD([x, x], lr=0.25)
    x.grad = ng.tensor([1.0])
    optimizer.step()
    assert_array_equal(x.detach().numpy(), [0.5])


def test_a_step_counts_as_a_write():
    x = tensor([2.0])
    y = x * x
    optimizer = ng.optim.Adam([x])
    version = x._version
    x.grad = ng.ones(1)
    optimizer.step()
    assert x._version == version + 1
    with pytest.raises(ng.NumgradRuntimeError, match="version"):
        y.backward()


def test_a_step_may_change_what_a_graph_saved_where_that_is_allowed():
    with ng.autograd.graph.allow_mutation_on_saved_tensors():
        x = tensor([2.0])
        y = x * x
        x.grad = ng.ones(1)
        ng.optim.Adam([x], lr=0.5).step()
        x.grad = None
        y.backward()
    assert_array_equal(x.grad.numpy(), [4.0])


def test_options_of_a_group_may_change_between_steps():
    x = tensor([1.0])
    optimizer = ng.optim.SGD([x], lr=0.5)
    for lr, momentum in ((0.5, 0), (ng.tensor(0.25), 0), (0.125, 0.5), (0.125, 0.5)):
        optimizer.param_groups[0].update(lr=lr, momentum=momentum)
        x.grad = ng.ones(1)
        optimizer.step()
    assert_array_equal(x.detach().numpy(), [1 - 0.5 - 0.25 - 0.125 - 0.125 * 1.5])


@pytest.mark.parametrize(
    ("name", "option", "key"),
    [("Adam", "amsgrad", "max_exp_avg_sq"), ("RMSprop", "centered", "grad_avg")],
)
def test_an_option_that_needs_more_state_may_be_switched_on(name, option, key):
    x = tensor([1.0, 2.0])
    optimizer = optimizer_class(name)([x])
    for _ in range(2):
        x.grad = ng.ones(2)
        optimizer.step()
        optimizer.param_groups[0][option] = True
    assert optimizer.state[x][key].shape == (2,)
    assert as_float(optimizer.state[x]["step"]) == 2


# --------------------------------------------------------------------------------- state


@CASES
def test_a_saved_state_resumes_bitwise(name, options):
    straight = problems.run_quadratic(tensor, optimizer_class(name), options, steps=7)
    params, optimizer = problems.run_quadratic(tensor, optimizer_class(name), options, steps=4)
    state = copy.deepcopy(optimizer.state_dict())
    params = [tensor(p.detach().numpy()) for p in params]
    resumed = optimizer_class(name)(params, **options)
    resumed.load_state_dict(pickle.loads(pickle.dumps(state)))
    for _ in range(3):
        resumed.zero_grad()
        a, b, c = params
        loss = ((a - 1) ** 2 * 3).sum() + ((b * c - 2) ** 2).sum() + c * c + (a.sum() * b).sum()
        loss.backward()
        resumed.step()
    for x, y in zip(problems.arrays(*straight), problems.arrays(params, resumed), strict=True):
        assert_array_equal(x, y)


# ------------------------------------------------------------------------ differentiable steps

DIFFERENTIABLE = [c for c in problems.CASES if "maximize" not in c[1] or c[0] == "SGD"]


@pytest.mark.parametrize(
    ("name", "options"), DIFFERENTIABLE, ids=map(problems.case_id, DIFFERENTIABLE)
)
def test_a_recorded_step_is_the_compiled_one_and_has_its_derivative(name, options):
    start, target = np.array([0.4, -0.9, 1.3]), np.array([0.1, 0.2, -0.3])

    def unrolled(start, differentiable):
        param = start.clone() if differentiable else tensor(start.detach().numpy())
        settings = {**options, "differentiable": True} if differentiable else options
        optimizer = optimizer_class(name)([param], **settings)
        for _ in range(3):
            param.grad = (
                2 * (param.clone() - target)
                if differentiable
                else ng.tensor(2 * (param.detach().numpy() - target))
            )
            optimizer.step()
        return param

    found = unrolled(tensor(start), True)
    assert_allclose(
        found.detach().numpy(), unrolled(tensor(start), False).detach().numpy(), rtol=1e-12
    )
    assert ng.testing.gradcheck(lambda s: unrolled(s, True), [tensor(start)], atol=1e-5)


@NAMES
def test_every_optimizer_made_of_a_formula_is_tested(name):
    assert issubclass(optimizer_class(name), FormulaOptimizer)


def test_a_step_counts_as_a_write_to_a_state_that_came_from_elsewhere():
    x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    optimizer = ng.optim.Adam([x])
    x.grad = ng.ones(2)
    optimizer.step()
    base = ng.zeros(4)
    optimizer.state[x]["exp_avg"] = base[:2]  # a view: it shares the version of its base
    y = (w * base[:2]).sum()
    optimizer.step()
    with pytest.raises(ng.NumgradRuntimeError, match="version"):
        y.backward()
