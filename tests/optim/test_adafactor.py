"""Adafactor: against PyTorch, and against its formulas in NumPy."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import numgrad as ng

OPTIONS = [
    {"eps": (1e-9, 1e-3)},
    {"lr": 0.5, "weight_decay": 0.1, "d": 2.0, "beta2_decay": -0.5, "eps": (0.1, 0.2)},
    {"eps": (1e-9, 1e-3), "maximize": True, "foreach": True},
]
SHAPES = [(3, 4), (5,), (), (2, 3, 4), (0, 3), (1, 1)]
# chunks of several small matrices, of a part of a matrix, of a few wide rows, of a part of a vector
LARGE = [(300, 3, 10), (2, 300, 40), (3, 9000), (10_000, 2), (9001,)]


def start(shapes, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def tensors(arrays):
    return [ng.tensor(a, requires_grad=True) for a in arrays]


def steps(optimizer, params, count, make, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        for p in params:
            g = rng.standard_normal(tuple(p.shape)) * 10.0 ** rng.integers(-3, 2)
            p.grad = make(g.astype(str(p.dtype).removeprefix("torch.")))
        optimizer.step()


def state_arrays(optimizer, param):
    return {k: np.asarray(v) for k, v in optimizer.state[param].items() if v is not None}


class Reference:
    """The formulas, one parameter at a time, with every array written out."""

    def __init__(self, params, *, lr=0.01, beta2_decay=-0.8, eps, d=1.0, weight_decay=0.0,
                 maximize=False, foreach=None):  # fmt: skip
        self.params, self.maximize = params, maximize
        self.numbers = lr, beta2_decay, *eps, d, weight_decay
        self.t, self.state = 0, [{} for _ in params]

    def step(self, grads):
        lr, beta2_decay, eps1, eps2, d, weight_decay = self.numbers
        self.t += 1
        weight = self.t**beta2_decay
        for p, g, state in zip(self.params, grads, self.state, strict=True):
            if not p.size:
                continue
            g = -g if self.maximize else g
            squares = g * g

            def average(name, new, state=state):
                old = state.get(name, np.zeros_like(new))
                state[name] = old + weight * (new - old)
                return state[name]

            if p.ndim > 1:
                row = average("row_var", squares.mean(axis=-1, keepdims=True))
                col = average("col_var", squares.mean(axis=-2, keepdims=True))
                v = row @ col / np.maximum(row.mean(axis=-2, keepdims=True), eps1)
            else:
                v = average("variance", squares)
            u = g / np.sqrt(np.maximum(v, eps1**2))
            size = np.maximum(eps2, np.sqrt(np.mean(p * p))) * min(lr, self.t**-0.5)
            p *= 1 - lr * weight_decay
            p -= size / max(1.0, np.sqrt(np.mean(u * u)) / d) * u


@pytest.mark.parametrize("shapes", [SHAPES, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "all", "maximize"])
def test_steps_are_the_formulas(options, shapes):
    arrays = start(shapes)
    params, expected = tensors(arrays), [a.copy() for a in arrays]
    optimizer, reference = ng.optim.Adafactor(params, **options), Reference(expected, **options)
    rng = np.random.default_rng(5)
    for _ in range(3):
        grads = [rng.standard_normal(a.shape) for a in arrays]
        for p, g in zip(params, grads, strict=True):
            p.grad = ng.tensor(g)
        optimizer.step()
        reference.step(grads)
    for p, e, state in zip(params, expected, reference.state, strict=True):
        assert_allclose(p.detach().numpy(), e, rtol=1e-12, atol=1e-13)
        found = state_arrays(optimizer, p)
        assert found.pop("step") == 3
        for name, value in state.items():
            assert_allclose(found[name], value, rtol=1e-12, atol=1e-14)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "all", "maximize"])
def test_ten_steps_as_in_pytorch(torch, options):
    ours = tensors(start(SHAPES[:4]))
    theirs = [torch.tensor(a, requires_grad=True) for a in start(SHAPES[:4])]
    a, b = ng.optim.Adafactor(ours, **options), torch.optim.Adafactor(theirs, **options)
    steps(a, ours, 10, ng.tensor)
    steps(b, theirs, 10, torch.tensor)
    for p, t in zip(ours, theirs, strict=True):
        assert_allclose(p.detach().numpy(), t.detach().numpy(), rtol=1e-10, atol=1e-10)
        mine, other = state_arrays(a, p), state_arrays(b, t)
        assert set(mine) == set(other)
        for name, value in other.items():
            assert mine[name].shape == value.shape
            assert_allclose(mine[name], value, rtol=1e-10, atol=1e-10)


def test_float32_and_its_own_epsilon():
    arrays = start([(3, 4), (5,)], dtype=np.float32)
    single, double = tensors(arrays), tensors([a.astype(np.float64) for a in arrays])
    eps = float(np.finfo(np.float32).eps)
    steps(ng.optim.Adafactor(single), single, 4, ng.tensor)
    steps(ng.optim.Adafactor(double, eps=(eps, 1e-3)), double, 4, ng.tensor)
    for p, q in zip(single, double, strict=True):
        assert p.dtype == np.float32
        assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4)


def test_groups_mix_dtypes_and_layouts():
    base = start([(3, 4)])[0]
    arrays = [base, base.astype(np.float32), np.asfortranarray(base), base[:, ::2], base[0]]
    together = [ng.asarray(a.copy(order="K")).requires_grad_() for a in arrays]
    together[3] = ng.from_numpy(base.copy()[:, ::2]).requires_grad_()
    optimizer = ng.optim.Adafactor(together, lr=0.1)
    steps(optimizer, together, 2, ng.tensor)
    alone = tensors([np.ascontiguousarray(a) for a in arrays])
    rng = np.random.default_rng(1)
    optimizers = [ng.optim.Adafactor([p], lr=0.1) for p in alone]
    for _ in range(2):
        for p, single in zip(alone, optimizers, strict=True):
            g = rng.standard_normal(p.shape) * 10.0 ** rng.integers(-3, 2)
            p.grad = ng.tensor(g.astype(p.dtype))
            single.step()
    for p, q in zip(together, alone, strict=True):
        assert_array_equal(p.detach().numpy(), q.detach().numpy())


@pytest.mark.slow(cases=0)
def test_any_number_of_threads_gives_the_same_bits():
    found, before = [], ng.get_num_threads()
    for threads in (1, 2):
        ng.set_num_threads(threads)
        try:
            params = tensors(start(LARGE))
            optimizer = ng.optim.Adafactor(params)
            steps(optimizer, params, 2, ng.tensor)
        finally:
            ng.set_num_threads(before)
        found.append([p.detach().numpy() for p in params])
        found[-1] += [a for p in params for a in state_arrays(optimizer, p).values()]
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)


def test_a_loaded_state_goes_on_bit_by_bit():
    params = tensors(start(SHAPES))
    optimizer = ng.optim.Adafactor(params, lr=0.3)
    steps(optimizer, params, 3, ng.tensor)
    others = tensors([p.detach().numpy() for p in params])
    loaded = ng.optim.Adafactor(others)
    loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for o, p in ((optimizer, params), (loaded, others)):
        steps(o, p, 2, ng.tensor, seed=3)
    for p, q in zip(params, others, strict=True):
        assert_array_equal(p.detach().numpy(), q.detach().numpy())
    assert set(state_arrays(optimizer, params[0])) == {"step", "row_var", "col_var"}
    assert set(state_arrays(optimizer, params[1])) == {"step", "variance"}


def test_parameters_without_a_gradient_and_closures():
    x, y = tensors(start([(2, 2), (3,)]))
    before = y.detach().numpy().copy()
    optimizer = ng.optim.Adafactor([x, y])
    version = x._version

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    expected = float((x.detach() ** 2).sum())
    assert float(optimizer.step(closure).detach()) == pytest.approx(expected)
    assert x._version == version + 1
    assert_array_equal(y.detach().numpy(), before)
    assert y not in optimizer.state


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"lr": ng.tensor([0.1, 0.2])}, "lr is a Tensor"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"beta2_decay": 0.5}, "beta2_decay"),
        ({"eps": (-1.0, 1e-3)}, r"eps\[0\]"),
        ({"eps": (None, -1.0)}, r"eps\[1\]"),
        ({"d": 0.5}, "d is 0.5; it must be at least 1"),
        ({"weight_decay": -0.1}, "weight_decay"),
    ],
)
def test_options_out_of_range(options, match):
    with pytest.raises(ng.NumgradValueError, match=rf"Adafactor: .*{match}"):
        ng.optim.Adafactor(tensors(start([(2,)])), **options)


def test_parameters_that_cannot_be_stepped_change_nothing():
    good = tensors(start([(2, 2)]))[0]
    before = good.detach().numpy().copy()
    good.grad = ng.ones((2, 2))

    def refused(param, error, match, state=None):
        optimizer = ng.optim.Adafactor([good, param])
        if state:
            optimizer.state[param].update(state)
        with pytest.raises(error, match=match):
            optimizer.step()
        assert_array_equal(good.detach().numpy(), before)
        assert good not in optimizer.state

    z = ng.tensor([1j], requires_grad=True)
    z.grad = ng.tensor([1j])
    refused(z, ng.NumgradRuntimeError, "complex")
    rows = ng.nn.Embedding(3, 2, sparse=True)
    rows([1]).sum().backward()
    refused(rows.weight, ng.NumgradRuntimeError, "row-sparse")
    k = ng.tensor([1, 2])
    k.grad = ng.tensor([1, 1])
    refused(k, ng.NumgradTypeError, "int64")
    w = tensors(start([(2, 3)]))[0]
    w.grad = ng.ones((2, 3))
    state = {"step": ng.tensor(1.0), "row_var": ng.zeros((2, 1)), "col_var": ng.zeros((1, 2))}
    refused(w, ng.NumgradRuntimeError, "col_var of shape", state)
