"""``state_dict`` and ``load_state_dict``: SEMANTICS.md, promise 117, and the hooks of both."""

import copy
from collections import OrderedDict

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn


def toy(lib):
    class Inner(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2))
            self.register_buffer("mean", lib.zeros(2))
            self.register_buffer("scratch", lib.zeros(2), persistent=False)
            self.register_parameter("bias", None)

    class Toy(lib.nn.Module):
        _version = 3

        def __init__(self):
            super().__init__()
            self.a, self.b = Inner(), Inner()

    return Toy()


def with_extra(lib):
    class Extra(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2))
            self.note = "first"

        def get_extra_state(self):
            return {"note": self.note}

        def set_extra_state(self, state):
            self.note = state["note"]

    return Extra()


def values(model):
    return {name: np.array(t.detach()) for name, t in model.state_dict().items()}


def equal(a, b):
    return a.keys() == b.keys() and all((a[name] == b[name]).all() for name in a)


def test_state_dict(lib):
    model = toy(lib)
    state = model.state_dict()
    assert list(state) == ["a.weight", "a.mean", "b.weight", "b.mean"]
    assert isinstance(state, OrderedDict)
    assert state._metadata[""] == {"version": 3}
    assert state._metadata["a"] == {"version": 1}
    assert not state["a.weight"].requires_grad
    with lib.no_grad():
        model.a.weight[0] = 5
    assert state["a.weight"][0] == 5
    assert model.state_dict(keep_vars=True)["a.weight"] is model.a.weight
    given = {"x": 1}
    assert model.state_dict(destination=given, prefix="m.") is given
    assert list(given) == ["x", "m.a.weight", "m.a.mean", "m.b.weight", "m.b.mean"]


def test_load_state_dict(lib):
    model, other = toy(lib), toy(lib)
    with lib.no_grad():
        other.a.weight.fill_(3)
        other.b.mean.fill_(4)
    weight = model.a.weight
    keys = model.load_state_dict(other.state_dict())
    assert (keys.missing_keys, keys.unexpected_keys) == ([], [])
    assert repr(keys) == "<All keys matched successfully>"
    assert model.a.weight is weight
    assert weight[0] == 3
    assert model.b.mean[1] == 4
    assert weight is not other.a.weight
    assert weight.requires_grad


def test_everything_that_does_not_fit_in_one_error():
    """Promise 117."""
    model = toy(ng)
    before = values(model)
    state = {
        "a.weight": ng.ones(3),
        "a.mean": ng.zeros(2, dtype=ng.complex128),
        "b.weight": "text",
        "b.nothing": ng.ones(1),
        "c": ng.ones(1),
        "a": ng.ones(1),
        "a.weight.more": ng.ones(1),
    }
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    lines = str(caught.value).splitlines()
    assert "Toy" in lines[0]
    wanted = {
        "a.weight": r"(3,)",
        "a.mean": "complex",
        "b.weight": "str",
        "b.mean": "missing",
        "b.nothing": "no place",
        "c": "no place",
        "a": "no place",
        "a.weight.more": "no place",
    }
    found = {line.split(":")[0].strip(): line for line in lines[1:]}
    assert found.keys() == wanted.keys()
    assert all(word in found[name] for name, word in wanted.items())
    assert equal(values(model), before)


@pytest.mark.parametrize("wrong", ["missing", "unexpected", "size"])
def test_strict_loading_refuses_what_does_not_fit(lib, wrong):
    """Promise 117."""
    model = toy(lib)
    state = copy.copy(model.state_dict())
    if wrong == "missing":
        del state["a.mean"]
    elif wrong == "unexpected":
        state["a.more"] = lib.ones(1)
    else:
        state["a.mean"] = lib.ones(3)
    state["b.weight"] = lib.full((2,), 7.0)
    with pytest.raises(RuntimeError):
        model.load_state_dict(state)
    if lib is ng:
        assert model.b.weight[0] == 1
    if wrong == "size":
        with pytest.raises(RuntimeError):
            model.load_state_dict(state, strict=False)
        return
    keys = model.load_state_dict(state, strict=False)
    assert keys == (["a.mean"] * (wrong == "missing"), ["a.more"] * (wrong == "unexpected"))
    assert model.b.weight[0] == 7
    assert "IncompatibleKeys" in repr(keys)


def test_values_are_converted(lib):
    model = toy(lib)
    state = {name: lib.full((2,), 2.0, dtype=lib.float32) for name in model.state_dict()}
    model.load_state_dict(state)
    assert model.a.weight.dtype == lib.float64
    assert model.a.weight[0] == 2
    with pytest.raises(TypeError):
        model.load_state_dict([("a", 1)])


def test_ndarrays_can_be_loaded():
    model = toy(ng)
    model.load_state_dict({name: np.full(2, 2.0) for name in model.state_dict()})
    assert model.b.weight[1] == 2
    model.load_state_dict({name: np.full(2, 3.0) for name in model.state_dict()}, assign=True)
    assert model.b.weight[1] == 3
    assert isinstance(model.b.weight, nn.Parameter)


def test_assign(lib):
    model = toy(lib)
    model.b.weight.requires_grad_(False)
    before = model.a.weight
    state = {name: lib.full((2,), 2.0, dtype=lib.float32) for name in model.state_dict()}
    parameter = state["a.weight"] = lib.nn.Parameter(state["a.weight"])
    model.load_state_dict(state, assign=True)
    assert model.a.weight is parameter
    assert model.a.weight is not before
    assert model.b.weight.dtype == lib.float32
    assert isinstance(model.b.weight, lib.nn.Parameter)
    assert not model.b.weight.requires_grad
    assert model.b.mean is state["b.mean"]


def test_the_callers_dictionary_is_left_alone(lib):
    model = toy(lib)
    model.a.register_load_state_dict_pre_hook(
        lambda module, state, prefix, *rest: state.pop(f"{prefix}old", None)
    )
    state = dict(model.state_dict(), **{"a.old": lib.ones(1)})
    model.load_state_dict(state)
    assert "a.old" in state


def test_extra_state(lib):
    model, other = with_extra(lib), with_extra(lib)
    other.note = "second"
    state = other.state_dict()
    assert state["_extra_state"] == {"note": "second"}
    model.load_state_dict(state)
    assert model.note == "second"
    del state["_extra_state"]
    with pytest.raises(RuntimeError, match="_extra_state"):
        model.load_state_dict(state)
    assert model.load_state_dict(state, strict=False).missing_keys == ["_extra_state"]
    plain = toy(lib)
    with pytest.raises(RuntimeError, match="_extra_state"):
        plain.load_state_dict(dict(plain.state_dict(), **{"a._extra_state": 3}))
    for call in (plain.get_extra_state, lambda: plain.set_extra_state(3)):
        with pytest.raises((NotImplementedError, RuntimeError)):
            call()


def test_what_a_failing_extra_state_has_changed_is_taken_back():
    model = nn.Sequential(with_extra(ng), with_extra(ng))
    state = copy.deepcopy(model.state_dict())
    state["0.weight"].fill_(5)
    state["0._extra_state"] = {"note": "second"}
    state["1._extra_state"] = {}
    with pytest.raises(KeyError, match="note"):
        model.load_state_dict(state)
    assert model[0].note == "first"
    assert model[0].weight[0] == 1


def test_state_dict_hooks(lib):
    model, seen = toy(lib), []
    model.a.register_state_dict_pre_hook(lambda module, prefix, keep: seen.append((prefix, keep)))
    model.a.register_state_dict_post_hook(
        lambda module, state, prefix, local: state.update({f"{prefix}more": local["version"]})
    )
    assert model.state_dict(keep_vars=True)["a.more"] == 1
    assert seen == [("a.", True)]
    with model._register_state_dict_hook(lambda module, state, prefix, local: {"other": state}):
        assert list(model.state_dict()) == ["other"]
    with (
        model.a.register_state_dict_post_hook(lambda module, state, *rest: state),
        pytest.raises(RuntimeError),
    ):
        model.state_dict()


def test_load_state_dict_hooks(lib):
    model, seen = toy(lib), []

    def rename(module, state, prefix, local, strict, missing, unexpected, errors):
        seen.append((prefix, local, strict, missing, unexpected, errors))
        state[f"{prefix}weight"] = state.pop(f"{prefix}old")

    def forgive(module, keys):
        seen.append(keys.missing_keys.copy())
        keys.missing_keys.clear()

    model.a.register_load_state_dict_pre_hook(rename)
    model.b._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append(prefix))
    model.b.register_load_state_dict_post_hook(forgive)
    state = model.state_dict()
    state["a.old"] = lib.full((2,), 4.0)
    del state["a.weight"], state["b.mean"]
    model.load_state_dict(state)
    assert seen[0][:3] == ("a.", {"version": 1}, True)
    assert seen[1] == "b."
    assert seen[2] == ["b.mean"]
    assert model.a.weight[0] == 4


def test_what_was_loaded_before_a_failing_post_hook_is_taken_back():
    def fails(module, keys):
        assert module.b.weight[0] == 9  # loaded
        raise KeyError("hook")

    model = toy(ng)
    handle = model.register_load_state_dict_post_hook(fails)
    before = values(model)
    state = {name: np.full(2, 9.0) for name in before}
    for assign in (False, True):
        with pytest.raises(KeyError, match="hook"):
            model.load_state_dict(state, assign=assign)
        assert equal(values(model), before)
    handle.remove()
    with (
        model.register_load_state_dict_post_hook(lambda module, keys: 3),
        pytest.raises(RuntimeError, match="return None"),
    ):
        model.load_state_dict(state)
    assert equal(values(model), before)
    with model.register_load_state_dict_post_hook(lambda m, keys: keys[0].append("more")):
        with pytest.raises(RuntimeError, match="more: missing"):
            model.load_state_dict(state)
        assert equal(values(model), before)


def test_a_class_may_load_older_layouts(lib):
    class Renamed(lib.nn.Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2))

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            if local_metadata.get("version", 1) < 2:
                state_dict[f"{prefix}weight"] = state_dict.pop(f"{prefix}w")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    model = lib.nn.Sequential(Renamed())
    model.load_state_dict({"0.w": lib.full((2,), 3.0)})
    assert model[0].weight[0] == 3
    model.load_state_dict(model.state_dict())


def test_a_module_loads_alone(lib):
    """As an override of ``_load_from_state_dict`` may call it for a module of its own."""
    model = toy(lib)
    missing = []
    model.a._load_from_state_dict(
        {"x.weight": lib.full((2,), 3.0)}, "x.", {}, True, missing, [], []
    )
    assert missing == ["x.mean"]
    assert model.a.weight[0] == 3


class Foreign:
    """What an array of another library looks like."""

    def __init__(self, array, requires_grad=False):
        self.array, self.requires_grad = array, requires_grad

    def detach(self):
        return Foreign(self.array)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("requires grad")
        return self.array


@pytest.mark.parametrize("assign", [False, True])
def test_arrays_of_other_libraries_are_loaded(assign):
    weight = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    weight.flags.writeable = False
    model = nn.Linear(3, 2)
    model.load_state_dict(
        {"weight": Foreign(weight, requires_grad=True), "bias": np.ones(2, ">f8")}, assign=assign
    )
    np.testing.assert_array_equal(model.weight.detach().numpy(), weight)
    assert model.weight.dtype == (np.float32 if assign else np.float64)
    assert model.weight.detach().numpy().flags.writeable
    assert model.weight.requires_grad
    assert model.bias.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Foreign(np.array(["a", "b"])), "Foreign of dtype <U1"),
        (Foreign(None), "gives no ndarray"),
        (np.array([None, None]), "ndarray of dtype object"),
        ([1.0, 2.0], "is a list"),
        (1.0, "is a float"),
        (np.ones(2, np.complex64), "cannot hold complex"),
        (np.ones(3), r"has shape \(3,\)"),
    ],
)
def test_values_that_are_no_arrays_for_it_are_refused_and_nothing_changes(value, message, assign):
    model = nn.Linear(3, 2)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    with pytest.raises(ng.NumgradRuntimeError, match=message):
        model.load_state_dict({"weight": np.ones((2, 3)), "bias": value}, assign=assign)
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), before[name].numpy())


def test_assigned_values_have_dtypes_that_can_be_trained():
    for bad in (np.ones(2, np.float16), np.ones(2, np.int64)):
        with pytest.raises(ng.NumgradRuntimeError, match="has dtype"):
            nn.Linear(3, 2).load_state_dict({"weight": np.ones((2, 3)), "bias": bad}, assign=True)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("model.safetensors", "ng.load the file first"),
        (nn.ReLU(), r"give its state_dict\(\)"),
        (None, "takes a dictionary, got NoneType"),
        ({1: np.ones(2)}, "keys are dotted names, got 1"),
    ],
    ids=str,
)
def test_what_is_no_state_is_named_with_the_remedy(state, message):
    with pytest.raises(ng.NumgradTypeError, match=f"^Linear.load_state_dict: .*{message}"):
        nn.Linear(3, 2).load_state_dict(state)


def test_states_of_before_batches_were_counted_are_loaded():
    layer = nn.BatchNorm1d(2)
    layer.num_batches_tracked.add_(3)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked: missing"):
        layer.load_state_dict(state)
    state._metadata[""] = {"version": 1}
    layer.load_state_dict(state)
    assert layer.num_batches_tracked.item() == 3
    del state["running_mean"]
    with pytest.raises(RuntimeError, match="running_mean: missing"):
        layer.load_state_dict(state)
