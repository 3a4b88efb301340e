"""Muon: against the same iteration in NumPy, against singular values, roughly against PyTorch."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import numgrad as ng
from numgrad.optim.muon import COEFFICIENTS, orthogonalise

OPTIONS = [
    {},
    {"lr": 0.1, "nesterov": False, "momentum": 0.5, "weight_decay": 0.0},
    {
        "lr": 0.02,
        "adjust_lr_fn": "match_rms_adamw",
        "ns_steps": 3,
        "ns_coefficients": (2, -1.5, 0.5),
    },
    {"lr": 0.02, "adjust_lr_fn": "original", "weight_decay": 0.5, "ns_steps": 0},
]
SHAPES = [(4, 7), (9, 3), (5, 5), (1, 1)]


def start(seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in SHAPES]


def tensors(arrays):
    return [ng.tensor(a, requires_grad=True) for a in arrays]


def steps(optimizer, params, count, make, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        for p in params:
            p.grad = make(rng.standard_normal(tuple(p.shape)))
        optimizer.step()


def orthogonal(m, coefficients, count):
    a, b, c = coefficients
    x = (m.T if m.shape[0] > m.shape[1] else m) / max(np.linalg.norm(m), 1e-7)
    for _ in range(count):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if m.shape[0] > m.shape[1] else x


def reference(arrays, count, *, lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=True,
              ns_coefficients=COEFFICIENTS, ns_steps=5, adjust_lr_fn=None):  # fmt: skip
    arrays, rng = [a.copy() for a in arrays], np.random.default_rng(1)
    averages = [np.zeros_like(a) for a in arrays]
    for _ in range(count):
        for p, average in zip(arrays, averages, strict=True):
            g = rng.standard_normal(p.shape)
            average[...] = momentum * average + (1 - momentum) * g
            m = momentum * average + (1 - momentum) * g if nesterov else average
            n, k = p.shape
            scale = 0.2 * max(n, k) ** 0.5 if adjust_lr_fn == "match_rms_adamw" else 1.0
            scale = max(1.0, (n / k) ** 0.5) if scale == 1.0 else scale
            p *= 1 - lr * weight_decay
            p -= lr * scale * orthogonal(m, ns_coefficients, ns_steps)
    return arrays, averages


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "average", "adamw", "no iteration"])
def test_steps_are_the_iteration(options):
    params = tensors(start())
    optimizer = ng.optim.Muon(params, **options)
    steps(optimizer, params, 4, ng.tensor)
    for p, e, average in zip(params, *reference(start(), 4, **options), strict=True):
        assert_allclose(p.detach().numpy(), e, rtol=1e-12, atol=1e-14)
        assert set(optimizer.state[p]) == {"momentum_buffer"}
        assert_allclose(optimizer.state[p]["momentum_buffer"].numpy(), average, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS[:3], ids=["plain", "average", "adamw"])
def test_steps_are_those_of_pytorch_up_to_its_bfloat16(torch, options):
    ours = tensors(start())
    theirs = [torch.tensor(a, requires_grad=True) for a in start()]
    a, b = ng.optim.Muon(ours, **options), torch.optim.Muon(theirs, **options)
    steps(a, ours, 4, ng.tensor)
    steps(b, theirs, 4, torch.tensor)
    for p, t, before in zip(ours, theirs, start(), strict=True):
        moved = np.abs(t.detach().numpy() - before).max()
        assert_allclose(p.detach().numpy(), t.detach().numpy(), rtol=0, atol=0.06 * moved)
        mine, other = a.state[p]["momentum_buffer"], b.state[t]["momentum_buffer"]
        assert_allclose(mine.numpy(), other.numpy(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(6, 40), (40, 6), (0, 3)])
def test_singular_values_come_near_one(shape, dtype):
    m = np.random.default_rng(2).standard_normal(shape).astype(dtype)
    found = orthogonalise(m, COEFFICIENTS, 5, 1e-7)
    assert found.shape == shape
    assert found.dtype == dtype
    values = np.linalg.svd(found, compute_uv=False)
    assert np.all((values > 0.6) & (values < 1.3))


def test_float32_stays_float32():
    single, double = tensors(start(dtype=np.float32)), tensors(start())
    a, b = ng.optim.Muon(single, lr=0.1), ng.optim.Muon(double, lr=0.1)
    steps(a, single, 2, lambda g: ng.tensor(g.astype(np.float32)))
    steps(b, double, 2, ng.tensor)
    for p, q in zip(single, double, strict=True):
        assert p.dtype == a.state[p]["momentum_buffer"].dtype == np.float32
        assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_any_number_of_threads_gives_the_same_bits():
    found, before = [], ng.get_num_threads()
    for threads in (1, 2):
        ng.set_num_threads(threads)
        try:
            params = tensors(start())
            steps(ng.optim.Muon(params), params, 2, ng.tensor)
        finally:
            ng.set_num_threads(before)
        found.append([p.detach().numpy() for p in params])
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)


def test_a_loaded_state_goes_on_bit_by_bit():
    params = tensors(start())
    optimizer = ng.optim.Muon(params, lr=0.3)
    steps(optimizer, params, 3, ng.tensor)
    others = tensors([p.detach().numpy() for p in params])
    loaded = ng.optim.Muon(others)
    loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for o, p in ((optimizer, params), (loaded, others)):
        steps(o, p, 2, ng.tensor, seed=3)
    for p, q in zip(params, others, strict=True):
        assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_parameters_in_foreign_memory_without_gradients_and_closures():
    memory = start()[0]
    w = ng.from_numpy(memory.T).requires_grad_()
    idle = tensors([np.ones((2, 2))])[0]
    plain = tensors([memory.T.copy()])[0]
    optimizer, other = ng.optim.Muon([w, idle]), ng.optim.Muon([plain])

    def closure():
        loss = (w * w).sum()
        loss.backward()
        return loss

    plain.grad = ng.tensor(2 * memory.T)
    other.step()
    expected, version = float((w.detach() ** 2).sum()), w._version
    assert float(optimizer.step(closure).detach()) == pytest.approx(expected)
    assert w._version == version + 1
    assert_allclose(memory.T, plain.detach().numpy(), rtol=1e-12)
    assert_array_equal(idle.detach().numpy(), np.ones((2, 2)))
    assert idle not in optimizer.state


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"lr": ng.tensor([0.1, 0.2])}, "lr is a Tensor"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"momentum": -0.5}, "momentum"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"adjust_lr_fn": "other"}, "adjust_lr_fn is 'other'"),
    ],
)
def test_options_out_of_range(options, match):
    with pytest.raises(ng.NumgradValueError, match=f"Muon: {match}"):
        ng.optim.Muon(tensors(start()), **options)


def test_only_matrices():
    with pytest.raises(ng.NumgradValueError, match=r"Muon: .* shape \(3,\)"):
        ng.optim.Muon(tensors([np.ones((2, 2)), np.ones(3)]))
    optimizer = ng.optim.Muon(tensors([np.ones((2, 2))]))
    with pytest.raises(ng.NumgradValueError, match=r"shape \(1, 1, 1\)"):
        optimizer.add_param_group({"params": tensors([np.ones((1, 1, 1))])})
    assert len(optimizer.param_groups) == 1


def test_steps_that_are_refused_change_nothing():
    good = tensors([np.ones((2, 2))])[0]
    good.grad = ng.ones((2, 2))

    def refused(param, error, match, **options):
        optimizer = ng.optim.Muon([good, param], **options)
        with pytest.raises(error, match=rf"Muon\.step: .*{match}"):
            optimizer.step()
        assert_array_equal(good.detach().numpy(), np.ones((2, 2)))
        assert good not in optimizer.state

    z = ng.tensor([[1j]], requires_grad=True)
    z.grad = ng.tensor([[1j]])
    refused(z, ng.NumgradRuntimeError, "complex")
    rows = ng.nn.Embedding(3, 2, sparse=True)
    rows([1]).sum().backward()
    refused(rows.weight, ng.NumgradRuntimeError, "row-sparse")
    k = ng.tensor([[1, 2]])
    k.grad = ng.tensor([[1, 1]])
    refused(k, ng.NumgradTypeError, "int64")
    other = tensors([np.ones((3, 2))])[0]
    refused(other, ng.NumgradValueError, "ns_steps is 100", ns_steps=100)
    refused(other, ng.NumgradValueError, "ns_coefficients", ns_coefficients=(1.0, 2.0))
    other.grad = ng.ones((3, 2))
    optimizer = ng.optim.Muon([good, other])
    optimizer.state[other]["momentum_buffer"] = ng.ones((2, 3))
    with pytest.raises(ng.NumgradRuntimeError, match="momentum_buffer of shape"):
        optimizer.step()
    assert_array_equal(good.detach().numpy(), np.ones((2, 2)))
