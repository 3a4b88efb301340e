"""The arrays that a step reads: machine code and Python agree, and see all that was replaced."""

import copy

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.cpython import offsets
from numgrad.optim import group_arrays

NAMES = ("m", "v")


class Other(dict):
    """A state that is no plain dictionary."""


def of_group():
    """Parameters, their states, and the arrays of the states."""
    params = [ng.Tensor(np.full(3, float(k)), requires_grad=True) for k in range(2)]
    params.append(ng.nn.Parameter(np.full(3, 2.0)))
    for p in params:
        p.grad = ng.Tensor(10.0 + p._array)
    state = {p: {name: ng.Tensor(np.zeros(3)) for name in NAMES} for p in params}
    return params, state, [state[p][name]._array for name in NAMES for p in params]


def without_a_gradient(params, state, known):
    params[1].grad = None
    del known[4], known[1]


def with_sparse_gradient(params, state, known):
    rows = ng.nn.Embedding(4, 3, sparse=True)
    rows(ng.tensor([1])).sum().backward()
    params[1]._grad = rows.weight._grad


CHANGES = {
    "nothing": (lambda params, state, known: None, True),
    "a gradient is none": (without_a_gradient, True),
    "another gradient": (lambda p, s, k: setattr(p[0], "grad", ng.ones(3)), True),
    "a gradient vanishes": (lambda p, s, k: setattr(p[1], "grad", None), False),
    "a gradient is sparse": (with_sparse_gradient, False),
    "a state is another Tensor": (lambda p, s, k: s[p[2]].update(v=ng.zeros(3)), False),
    "a state has another array": (lambda p, s, k: setattr(s[p[1]]["m"], "data", ng.ones(3)), False),
    "a state is missing": (lambda p, s, k: s[p[0]].pop("v"), False),
    "a state is an ndarray": (lambda p, s, k: s[p[0]].update(m=k[0]), False),
    "no state of a parameter": (lambda p, s, k: s.pop(p[2]), False),
    "states are swapped": (lambda p, s, k: s.update({p[0]: s[p[1]], p[1]: s[p[0]]}), False),
    "a parameter twice": (lambda p, s, k: p.append(p[0]), False),
    "a parameter less": (lambda p, s, k: p.pop(), False),
    "no parameter": (lambda p, s, k: p.clear(), False),
}


@pytest.fixture(scope="module")
def forms():
    if not offsets.is_readable():
        return [group_arrays._in_python]
    own = group_arrays.Words.of(group_arrays._objects)
    return [group_arrays._machine_code().function("test", own), group_arrays._in_python]


@pytest.mark.parametrize("name", CHANGES)
def test_arrays_are_given_as_long_as_the_states_are_known(name, forms):
    change, given = CHANGES[name]
    params, state, known = of_group()
    change(params, state, known)
    for form in forms:
        arrays = form(params, state, NAMES, known)
        assert (arrays is not None) == given
        if arrays is not None:
            active = [p for p in params if p.grad is not None]
            expected = [p._array for p in active] + [p._grad._array for p in active] + known
            assert list(map(id, arrays)) == list(map(id, expected))


def test_what_is_no_state_of_ours_is_left_to_python(forms):
    params, state, known = of_group()
    for form in forms:
        assert form(params, state, (), known) is None
        assert form([], {}, NAMES, []) in (None, [])
    for strange in (Other(state[params[0]]), copy.copy(state[params[0]])):
        state[params[0]] = strange
        for form in forms:
            arrays = form(params, state, NAMES, known)
            assert arrays is None or arrays[6:] == known


def test_references_are_counted(forms):
    from sys import getrefcount

    params, state, known = of_group()
    for form in forms:
        before = [getrefcount(a) for a in known]
        for names in (NAMES, ("m",), ("m", "absent")):
            for _ in range(3):
                form(params, state, names, known[: 3 * len(names)])
        assert [getrefcount(a) for a in known] == before
        assert getrefcount(params[0]._array) == getrefcount(params[1]._array)


def test_a_step_follows_states_and_gradients_that_are_replaced():
    """Adam after a few steps, beside a new one with the same state."""
    params = [ng.Tensor(np.ones(2), requires_grad=True) for _ in range(3)]
    opt = ng.optim.Adam(params, lr=0.1)

    def steps(optimizer, params):
        for k, p in enumerate(params):
            p.grad = ng.Tensor(np.array([1.0, -2.0]) * (k + 1))
        optimizer.step()
        params[1].grad = None
        optimizer.step()

    for _ in range(60):
        steps(opt, params)
    opt.state[params[0]]["exp_avg"] = ng.Tensor(np.array([5.0, 6.0]))
    opt.load_state_dict(opt.state_dict())
    twins = [ng.Tensor(p._array.copy(), requires_grad=True) for p in params]
    other = ng.optim.Adam(twins, lr=0.1)
    other.load_state_dict(copy.deepcopy(opt.state_dict()))
    for _ in range(3):
        steps(opt, params)
        steps(other, twins)
    for p, q in zip(params, twins, strict=True):
        pairs = [(p, q), (opt.state[p]["exp_avg"], other.state[q]["exp_avg"])]
        assert all(a._array.tolist() == b._array.tolist() for a, b in pairs)


@pytest.mark.parametrize("option", [{}, {"amsgrad": True}], ids=["Adam", "AMSGrad"])
def test_parameters_may_lie_in_memory_in_any_order(option):
    values = np.random.default_rng(4).normal(size=(2, 3, 4))
    orders = [(0, 1, 2), (2, 1, 0), (1, 2, 0)]
    tensors = [
        ng.nn.Parameter(ng.asarray(values.transpose(o).copy().transpose(np.argsort(o))))
        for o in orders
    ]
    tensors.append(ng.nn.Parameter(ng.asarray(np.repeat(values, 2, axis=2)[:, :, ::2])))
    tensors.append(ng.nn.Parameter(ng.asarray(values.T.copy().T)))
    optimizer = ng.optim.Adam(tensors, lr=0.1, **option)
    for k in range(3):
        for x in tensors:
            x.grad = None
            ng.sum(x * x * (values + k)).backward()
        tensors[-1].grad = ng.tensor(tensors[-1].grad.numpy().copy(order="C"))
        optimizer.step()
    for x in tensors[1:]:
        np.testing.assert_array_equal(x.detach().numpy(), tensors[0].detach().numpy())
    assert not np.array_equal(tensors[0].detach().numpy(), values)
