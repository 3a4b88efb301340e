"""What assembles arrays, beyond the sweeps: ranges, brackets, functions of parts, reductions."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.testing import gradcheck, gradgradcheck

V = np.array([1.0, 2.0])
X = np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -0.5]])


def leaf(value):
    return ng.tensor(value, requires_grad=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.linspace(a, b, 4),
        lambda a, b: np.linspace(a, b, 3, endpoint=False, retstep=True)[1],
        lambda a, b: np.geomspace(a, b, 4),
        lambda a, b: np.logspace(a, b, 3, base=1.5),
        lambda a, b: np.logspace(0.5, a, 3, base=b),
        lambda a, b: np.pad(np.stack([a, b]), 3, "reflect", reflect_type="odd"),
        lambda a, b: np.pad(np.stack([a, b]), (2, 1), "median"),
        lambda a, b: np.pad(np.stack([a, a]), (2, 1), "linear_ramp", end_values=[a, b]),
    ],
)
def test_gradients_of_ends(function):
    ends = leaf(1.25), leaf(3.5)
    assert gradcheck(function, ends)
    assert gradgradcheck(function, ends)


def test_ends_of_ranges_are_exact():
    for name in ("linspace", "geomspace"):
        out = getattr(np, name)(leaf(0.1), leaf(0.7), 11)
        assert (out[0].item(), out[-1].item()) == (0.1, 0.7)
    with pytest.raises(ValueError, match=r"geomspace: .* 0"):
        np.geomspace(leaf(1.0), 0, 3)
    with pytest.raises(ValueError, match=r"linspace: .*negative"):
        np.linspace(leaf(1.0), 0, -1)


def test_compiled_as_eager():
    def f(x, v):
        parts = (
            np.append(x, v),
            np.insert(x, [0, 2], v, axis=1).ravel(),
            np.delete(x, 1, axis=1).ravel(),
            ng.r_[v, 0.5, np.linspace(v[0], v[1], 3)],
            np.block([[x, x], [x * 2, x]]).ravel(),
            np.pad(x, 2, "mean").ravel(),
            np.lib.stride_tricks.sliding_window_view(x, 2, axis=1).ravel(),
            np.select([x > 0, x < -1], [x, x**2], v[0]).ravel(),
        )
        return np.sum(np.sin(np.concatenate(parts)))

    value, gradients = ng.value_and_grad(f, (0, 1))(X, V)
    compiled, of_compiled = ng.jit(ng.value_and_grad(f, (0, 1)))(X, V)
    np.testing.assert_allclose(compiled, value, rtol=1e-13)
    for a, b in zip(of_compiled, gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert gradcheck(f, (leaf(X), leaf(V)))


BRACKETS = [
    "[t, 1.0]", "[t]", "['0,2', t, t]", "['0,2,0', t, t]", "['1,2,0', t, t]", "['0,3,1', t, t]",
    "['-1', x, x]", "[x, x]", "[t, 5:7]", "[0:1:3j, t]", "['0,2,-1', t, x[:, :2]]", "[1, 2, 3]",
    "[np.float32(1), 2]", "['0,3,-2', t, t]", "['0,3,2', t, t]", "['0,3,0', x, x]", "['s', t]",
    "['0,3,1', x, x]", "[t, 'a']", "[()]",
]  # fmt: skip


@pytest.mark.parametrize("name", ["r_", "c_"])
@pytest.mark.parametrize("items", BRACKETS)
def test_brackets_join_as_numpy(name, items):
    try:
        expected = eval(f"np.{name}{items}", {"np": np, "t": V, "x": X})
        if isinstance(expected, np.matrix):
            raise ValueError
    except (ValueError, IndexError):
        with pytest.raises(ng.NumgradError, match=r"r_|c_|concat"):
            eval(f"ng.{name}{items}", {"ng": ng, "np": np, "t": leaf(V), "x": leaf(X)})
        return
    found = eval(f"ng.{name}{items}", {"ng": ng, "np": np, "t": leaf(V), "x": leaf(X)})
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(force=True), expected)


def test_numpys_brackets_lose_no_gradient():
    with pytest.raises(RuntimeError, match=r"requires grad.*ng\.r_"):
        np.r_[leaf(V), 1.0]
    np.testing.assert_array_equal(np.r_[ng.tensor(V), 1.0], [1.0, 2.0, 1.0])
    t = leaf(V)
    ng.c_[t, t].sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), [2.0, 2.0])


def test_functions_of_parts():
    x = leaf(X)
    assert gradcheck(lambda x: np.apply_along_axis(lambda v: v[:2] * np.sum(v), 1, x), (x,))
    assert gradcheck(lambda x: np.apply_over_axes(np.sum, x**2, (0, 1)), (x,))
    # where a condition does not hold its function is not called: sqrt has no NaN there
    assert gradcheck(lambda x: np.piecewise(x, [x > 0], [np.sqrt, np.square]), (x,))
    with pytest.raises(ValueError, match="no vectors"):
        ng.apply_along_axis(np.sum, 0, np.zeros((2, 0)))
    with pytest.raises(ValueError, match="must be equal"):
        ng.apply_along_axis(lambda v: v[v > 0.6], 1, X)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_is_that_of_torch(reduce, include_self):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    x, source, weights = rng.normal(size=(3, 4)), rng.normal(size=(3, 5)), rng.normal(size=(3, 4))
    if include_self:  # torch counts ties with what is not included
        x, source = np.round(x), np.round(source)
    index = rng.integers(0, 4, (3, 5))
    theirs = [torch.tensor(a, requires_grad=True) for a in (x, source)]
    ours = [leaf(a) for a in (x, source)]
    expected = theirs[0].scatter_reduce(
        1, torch.tensor(index), theirs[1], reduce, include_self=include_self
    )
    found = ours[0].scatter_reduce(index, ours[1], axis=1, reduce=reduce, include_self=include_self)
    np.testing.assert_allclose(found.numpy(force=True), expected.detach().numpy(), rtol=1e-14)
    (expected * torch.tensor(weights)).sum().backward()
    np.sum(found * weights).backward()
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12, atol=1e-14)
    whole = ng.scatter_reduce([1, 2], [0, 0], [4, 6], axis=0, reduce=reduce)
    numbers = torch.tensor([1, 2]).scatter_reduce(
        0, torch.tensor([0, 0]), torch.tensor([4, 6]), reduce
    )
    np.testing.assert_array_equal(whole.numpy(), numbers.numpy())


def test_diagonals_and_windows_are_those_of_torch():
    torch = pytest.importorskip("torch")
    x = np.arange(24.0).reshape(2, 3, 4)
    for given in ((0, -2, -1), (1, 0, 2), (-2, 3, 1), (0, 1, 0)):
        expected = torch.diag_embed(torch.tensor(x), *given).numpy()
        np.testing.assert_array_equal(ng.diag_embed(ng.tensor(x), *given).numpy(), expected)
    expected = torch.tensor(x).unfold(1, 2, 1).numpy()
    np.testing.assert_array_equal(ng.tensor(x).unfold(1, 2, 1).numpy(), expected)
    with pytest.raises(ValueError, match="must differ"):
        ng.diag_embed(x, 0, 1, 1)
    with pytest.raises(ValueError, match="window of 9"):
        ng.unfold(x, 1, 9)


def test_a_diagonal_is_filled_in_place():
    v = leaf(V)
    x = v * np.ones((5, 2))
    assert x.fill_diagonal_(v[0], wrap=True) is x
    expected = V * np.ones((5, 2))
    np.fill_diagonal(expected, V[0], wrap=True)
    np.testing.assert_array_equal(x.numpy(force=True), expected)
    x.sum().backward()
    np.testing.assert_array_equal(v.grad.numpy(), [3 + 4, 3])
    with pytest.raises(ValueError, match="fill_diagonal_"):
        ng.zeros(3).fill_diagonal_(1.0)
