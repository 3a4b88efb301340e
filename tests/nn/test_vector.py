"""The parameters of a model as one vector, and back."""

from collections import OrderedDict

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn.utils import (
    consume_prefix_in_state_dict_if_present,
    parameters_to_vector,
    vector_to_parameters,
)


def parameters():
    shapes = [(2, 3), (), (0,), (4, 1)]
    generator = np.random.default_rng(0)
    return [ng.tensor(generator.normal(size=s), requires_grad=True) for s in shapes]


def test_there_and_back():
    ps = parameters()
    vector = parameters_to_vector(ps)
    expected = np.concatenate([p.detach().numpy().ravel() for p in ps])
    np.testing.assert_array_equal(vector.detach().numpy(), expected)
    vector_to_parameters(2 * vector, ps)
    np.testing.assert_array_equal(parameters_to_vector(ps).detach().numpy(), 2 * expected)
    assert all(p.is_leaf and p.requires_grad for p in ps)


def test_gradients_flow_through_the_vector():
    ps = parameters()
    weights = np.arange(1.0, 12.0)
    (parameters_to_vector(p for p in ps) ** 2 @ weights).backward()
    start = 0
    for p in ps:
        w = weights[start : start + p.size].reshape(p.shape)
        np.testing.assert_allclose(p.grad.numpy(), 2 * w * p.detach().numpy())
        start += p.size
    assert ng.testing.gradcheck(lambda *t: parameters_to_vector(t), tuple(ps))


def test_values_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    arrays = [p.detach().numpy() for p in parameters()]
    theirs = torch.nn.utils.parameters_to_vector([torch.tensor(a) for a in arrays])
    np.testing.assert_array_equal(parameters_to_vector(ng.tensor(a) for a in arrays), theirs)
    targets = [torch.zeros(a.shape, dtype=torch.float64) for a in arrays]
    torch.nn.utils.vector_to_parameters(theirs, targets)
    ours = [ng.zeros(a.shape) for a in arrays]
    vector_to_parameters(ng.tensor(theirs.numpy()), ours)
    for a, b in zip(ours, targets, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_dtypes_and_memory_stay():
    memory = np.zeros((2, 4))
    ps = [ng.zeros(2, dtype="float32"), ng.asarray(memory[:, ::2]), ng.zeros(1, dtype="complex64")]
    vector = parameters_to_vector(ps)
    assert vector.dtype == "complex128"
    version = ps[0]._version
    vector_to_parameters(ng.arange(1, 8) * 1.5, ps)
    assert [p.dtype for p in ps] == ["float32", "float64", "complex64"]
    np.testing.assert_array_equal(memory, [[4.5, 0, 6, 0], [7.5, 0, 9, 0]])
    assert ps[2].item() == 10.5
    assert ps[0]._version == version + 1


def test_the_vector_may_share_memory_with_the_parameters():
    whole = ng.tensor([1.0, 2.0, 3.0])
    vector_to_parameters(whole, [whole[1:], whole[:1]])
    np.testing.assert_array_equal(whole.numpy(), [3, 1, 2])


def test_a_backward_notices_that_parameters_were_overwritten():
    p = ng.tensor([1.0, 2.0], requires_grad=True)
    y = (p**2).sum()
    vector_to_parameters(ng.zeros(2), [p])
    with pytest.raises(RuntimeError, match="in-place operations"):
        y.backward()


@pytest.mark.parametrize(
    ("vector", "error", "message"),
    [
        (np.ones(11), TypeError, "is a ndarray, not a Tensor"),
        (ng.ones(10), ValueError, r"shape \(10,\), and the parameters 11 elements"),
        (ng.ones((1, 11)), ValueError, r"shape \(1, 11\)"),
        (ng.ones(11, dtype="complex128"), TypeError, "complex128 does not fit into.*float64"),
    ],
)
def test_vectors_that_do_not_fit(vector, error, message):
    ps = parameters()
    before = parameters_to_vector(ps).detach().numpy()
    with pytest.raises(error, match=message) as caught:
        vector_to_parameters(vector, ps)
    assert isinstance(caught.value, ng.NumgradError)
    np.testing.assert_array_equal(parameters_to_vector(ps).detach().numpy(), before)


def test_no_parameters():
    with pytest.raises(ValueError, match="there are no parameters"):
        parameters_to_vector([])
    with pytest.raises(TypeError, match="got one of type float"):
        parameters_to_vector([1.0])
    vector_to_parameters(ng.zeros(0), [])


def test_a_prefix_is_taken_away_from_names_and_versions():
    inner = ng.nn.Linear(2, 1)
    state = ng.nn.Sequential(OrderedDict(module=inner)).state_dict()
    state["modules.x"] = 3
    state._metadata["modules"] = {}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["modules.x", "weight", "bias"]
    assert set(state._metadata) == {"", "modules"}
    assert state._metadata[""] == inner.state_dict()._metadata[""]
    del state["modules.x"]
    assert not inner.load_state_dict(state).missing_keys
