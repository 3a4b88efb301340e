"""Lazy layers: what they become, for whom their parameters stay the same."""

import copy
import pickle

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn

SHAPES = {1: (2, 3, 8), 2: (2, 3, 8, 8), 3: (2, 3, 4, 4, 4)}
LAYERS = [("Linear", (4,), (2, 5))] + [
    (f"{kind}{rank}d", arguments, shape)
    for kind, arguments in (
        ("Conv", (6, 2)), ("ConvTranspose", (6, 2)), ("BatchNorm", ()), ("InstanceNorm", ()),
    )
    for rank, shape in SHAPES.items()
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "shape"), LAYERS, ids=[row[0] for row in LAYERS])
def test_it_becomes_the_plain_layer(name, arguments, shape):
    lazy = getattr(nn, f"Lazy{name}")(*arguments)
    before = list(lazy.parameters())
    assert lazy.has_uninitialized_params()
    assert isinstance(lazy, getattr(nn, name))
    assert all(isinstance(p, nn.UninitializedParameter) for p in before)
    x = ng.tensor(np.random.default_rng(0).normal(size=shape), requires_grad=True)
    y = lazy(x)
    length = shape[-1] if name == "Linear" else shape[1]
    whole = {"affine": True, "track_running_stats": True} if "Norm" in name else {}
    plain = getattr(nn, name)(length, *arguments, **whole)
    assert type(lazy) is type(plain)
    assert repr(lazy) == repr(plain)
    plain.load_state_dict(lazy.state_dict())
    if "Norm" in name:
        plain.reset_running_stats()
    np.testing.assert_array_equal(y.detach().numpy(), plain(x).detach().numpy())
    assert [id(p) for p in lazy.parameters()] == [id(p) for p in before]
    y.sum().backward()
    assert all(p.grad.shape == p.shape for p in before)


def test_an_optimizer_and_a_dtype_may_come_first():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d(affine=False))
    optimizer = ng.optim.SGD(model.parameters(), lr=0.5)
    model.float()
    y = model(ng.ones((3, 2), dtype=np.float32))
    assert y.dtype == np.float32
    assert model[2].running_mean.dtype == np.float32
    (y * ng.tensor([[1.0], [2.0], [4.0]], dtype=np.float32)).sum().backward()
    model[0].bias.grad.fill_(1)
    before = model[0].bias.detach().numpy().copy()
    optimizer.step()
    np.testing.assert_allclose(model[0].bias.detach().numpy(), before - 0.5, rtol=1e-6)


def test_a_state_says_the_length_too():
    for lazy, plain in (
        (nn.LazyLinear(3), nn.Linear(5, 3)),
        (nn.LazyConv1d(4, 2, groups=2), nn.Conv1d(6, 4, 2, groups=2)),
        (nn.LazyConvTranspose1d(4, 2), nn.ConvTranspose1d(6, 4, 2)),
        (nn.LazyBatchNorm1d(), nn.BatchNorm1d(7)),
    ):
        with pytest.raises(RuntimeError, match="shape of an uninitialized"):
            plain.load_state_dict(lazy.state_dict())
        lazy.load_state_dict(lazy.state_dict())
        assert lazy.has_uninitialized_params()
        lazy.load_state_dict(plain.state_dict())
        assert not lazy.has_uninitialized_params()
        x = np.ones({"Linear": (2, 5), "BatchNorm1d": (2, 7)}.get(type(plain).__name__, (2, 6, 4)))
        plain.eval()
        lazy.eval()
        np.testing.assert_array_equal(lazy(x).detach(), plain(x).detach())
        assert type(lazy) is type(plain)
        assert repr(lazy) == repr(plain)
        for key, value in plain.state_dict().items():
            np.testing.assert_array_equal(lazy.state_dict()[key], value)


def test_copies_are_lazy_too():
    lazy = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    for other in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert isinstance(other[1].running_mean, nn.UninitializedBuffer)
        assert other(ng.ones((2, 5))).shape == (2, 3)
        assert type(other[1].running_mean) is ng.Tensor
        assert lazy[0].has_uninitialized_params()


class Scale(nn.LazyModuleMixin):
    def __init__(self, whole=True):
        super().__init__()
        self.factor, self.whole = nn.UninitializedParameter(dtype=np.float32), whole
        self.offset = nn.UninitializedBuffer()

    def initialize_parameters(self, x, scale=1.0):
        if self.whole:
            self.factor.materialize(x.shape[-1])
        self.offset.materialize(x.shape[-1:])
        with ng.no_grad():
            self.factor.fill_(scale)
            self.offset.zero_()

    def forward(self, x, scale=1.0):
        return self.factor * x + self.offset


def test_lazy_modules_of_users():
    module = Scale()
    with pytest.raises(ValueError, match="add of an uninitialized parameter"):
        module.factor + 1
    module.register_forward_pre_hook(lambda _, args: (args[0] + 1,))
    y = module(ng.ones(3), scale=2.0)
    np.testing.assert_array_equal(y.detach(), [4, 4, 4])
    assert module.factor.dtype == np.float32
    with ng.no_grad():
        module.factor.zero_()
    assert not module(ng.ones(3)).any()  # filled once
    refused = {"factor": np.ones(3), "offset": np.ones((2, 2)), "more": np.ones(1)}
    other = Scale()
    with pytest.raises(RuntimeError, match="more"):
        other.load_state_dict(refused)
    assert other.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="has left factor without shapes"):
        Scale(whole=False)(ng.ones(3))


def test_refusals():
    with pytest.raises(TypeError, match="in_features is what the first input says"):
        nn.LazyLinear(3, in_features=2)
    with pytest.raises(TypeError, match="LazyLinear: missing"):
        nn.LazyLinear()
    with pytest.raises(ValueError, match="LazyConv1d: an input of shape"):
        nn.LazyConv1d(3, 2)(ng.ones(()))
    with pytest.raises(ValueError, match="Call the model once with an input"):
        ng.jit(nn.LazyLinear(3))(ng.ones((2, 5)))


def test_states_are_not_made_of_what_has_no_shape_yet():
    with pytest.raises(ValueError, match="ninitialized"):
        ng.optim.Adagrad(nn.LazyLinear(2).parameters())
