"""Every formula of an optimizer, every branch of it: against a second one in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import numgrad as ng
from tests.optim import problems, reference

# what problems.CASES leaves out: an option by itself, another value beside the default of the rest
MORE = [
    ("Adadelta", {"lr": 0.3, "eps": 1e-2}),
    ("Adadelta", {"weight_decay": 0.2}),
    ("Adagrad", {"lr_decay": 0.3}),
    ("Adam", {"weight_decay": 0.2}),
    ("Adam", {"amsgrad": True, "lr": 0.1, "betas": (0.5, 0.6)}),
    ("Adam", {"weight_decay": 0.2, "decoupled_weight_decay": True, "amsgrad": True}),
    ("Adamax", {"lr": 0.1, "eps": 0.3}),
    ("Adamax", {"weight_decay": 0.2}),
    ("ASGD", {"lr": 0.3, "lambd": 0.2, "maximize": True}),
    ("ASGD", {"lr": 0.3, "lambd": 0.2, "alpha": 2.0, "t0": 0}),
    ("NAdam", {"lr": 0.1, "betas": (0.5, 0.6), "eps": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 0.1}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "weight_decay": 0.2, "eps": 0.1}),
    ("Rprop", {"lr": 0.1, "step_sizes": (0.08, 0.15)}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.2, "momentum": 0.9, "nesterov": True, "maximize": True}),
]
CASES = [*problems.CASES, *MORE]


def draw(rng, shape, dtype):
    numbers = rng.standard_normal((2, *shape)) * 10.0 ** rng.integers(-2, 2, (2, *shape))
    return numbers[0] + 1j * numbers[1] if np.dtype(dtype).kind == "c" else numbers[0]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize(("name", "options"), CASES, ids=map(problems.case_id, CASES))
def test_steps_are_those_of_the_paper(name, options, dtype):
    rng = np.random.default_rng(11)
    starts = [draw(rng, shape, dtype) for shape in [(3, 2), ()]]
    grads = [[draw(rng, a.shape, dtype) for _ in range(12)] for a in starts]
    grads[0][5][0] = 0.0  # a sign of zero, and a step that momentum alone makes
    params = [ng.tensor(a, requires_grad=True) for a in starts]
    optimizer = getattr(ng.optim, name)(params, **options)
    walks = [reference.walk(name, a, g, **options) for a, g in zip(starts, grads, strict=True)]
    for t in range(12):
        for param, several in zip(params, grads, strict=True):
            param.grad = ng.tensor(several[t])
        optimizer.step()
        for param, (positions, _) in zip(params, walks, strict=True):
            assert_allclose(param.detach().numpy(), positions[t], rtol=1e-11, atol=1e-13)
    for param, (_, state) in zip(params, walks, strict=True):
        found = {k: v for k, v in optimizer.state[param].items() if v is not None}
        assert set(found) == set(state)
        for key, value in state.items():
            assert_allclose(np.asarray(found[key]), value, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_float32_steps_are_those_of_the_paper_rounded(name):
    rng = np.random.default_rng(12)
    start, *grads = (draw(rng, (4,), np.float64).astype(np.float32) for _ in range(4))
    param = ng.tensor(start, requires_grad=True)
    optimizer = getattr(ng.optim, name)([param], lr=0.1)
    for g in grads:
        param.grad = ng.tensor(g)
        optimizer.step()
    expected = reference.walk(name, np.float64(start), list(map(np.float64, grads)), lr=0.1)[0][-1]
    assert param.dtype == np.float32
    assert_allclose(param.detach().numpy(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_options_that_choose_another_path_change_nothing_else(name):
    """``foreach``, ``capturable``, ``fused`` and a Tensor ``lr`` step as without them."""
    rng = np.random.default_rng(13)
    start, *grads = (draw(rng, (4,), np.float64) for _ in range(4))
    cls = getattr(ng.optim, name)
    known = cls([ng.zeros(1, requires_grad=True)]).defaults
    for options in ({"foreach": True}, {"capturable": True}, {"fused": True}, {"tensor": True}):
        if not set(options) <= {*known, "tensor"}:
            continue
        param = ng.tensor(start, requires_grad=True)
        lr = ng.tensor(0.1) if options.pop("tensor", False) else 0.1
        optimizer = cls([param], lr=lr, **options)
        for g in grads:
            param.grad = ng.tensor(g)
            optimizer.step()
        expected = reference.walk(name, start, grads, lr=0.1)[0][-1]
        assert_allclose(param.detach().numpy(), expected, rtol=1e-11, atol=1e-13)
