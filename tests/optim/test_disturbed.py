"""Steps after something happened to an optimizer: those of one that was left alone, or an error."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import numgrad as ng

OPTIONS = {
    "Adadelta": {}, "Adafactor": {}, "Adagrad": {}, "Adam": {"amsgrad": True}, "AdamW": {},
    "Adamax": {}, "ASGD": {}, "LBFGS": {"max_iter": 2}, "Muon": {}, "NAdam": {}, "RAdam": {},
    "RMSprop": {"centered": True, "momentum": 0.5}, "Rprop": {},
    "SGD": {"momentum": 0.9, "dampening": 0.5}, "SparseAdam": {},
}  # fmt: skip
FEW = ("Adafactor", "Adam", "LBFGS", "Muon")
EACH = pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in OPTIONS]
)


class Run:
    """Two matrices, of which a loss pulls each elsewhere, and their optimizer."""

    def __init__(self, name):
        rng = np.random.default_rng(1)
        self.params = [ng.tensor(rng.normal(size=s), requires_grad=True) for s in [(3, 4), (4, 4)]]
        self.sparse = name == "SparseAdam"
        if name not in ("Muon", "SparseAdam"):
            self.params.append(ng.tensor(rng.normal(size=5), requires_grad=True))
        self.optimizer = getattr(ng.optim, name)(self.params, **OPTIONS[name])

    def loss(self):
        self.optimizer.zero_grad()
        value = 0.0
        for k, p in enumerate(self.params):
            if not p.requires_grad:
                continue
            used = ng.nn.functional.embedding([0, 2], p, sparse=True) if self.sparse else p
            value = value + ((used - k) ** 2 * (k + 1)).sum()
        value.backward()
        return value

    def step(self, times=1):
        for _ in range(times):
            if isinstance(self.optimizer, ng.optim.LBFGS):
                self.optimizer.step(self.loss)
            else:
                self.loss()
                self.optimizer.step()
        return self

    def state(self):
        return self.optimizer.state[self.params[0]]

    def values(self):
        return [p.detach().numpy().copy() for p in self.params]

    def replace(self, change):
        """Put ``change`` of each state array in its place."""
        for state in self.optimizer.state.values():
            for key, value in state.items():
                if isinstance(value, ng.Tensor):
                    state[key] = change(value)
                elif isinstance(value, list) and value and isinstance(value[0], ng.Tensor):
                    state[key] = [change(v) for v in value]


def again(run):
    run.params, run.optimizer = pickle.loads(pickle.dumps((run.params, run.optimizer)))


def deepcopied(run):
    run.params, run.optimizer = copy.deepcopy((run.params, run.optimizer))


def shallow(run):
    run.optimizer = copy.copy(run.optimizer)


def loaded(change):
    def disturb(run):
        other = Run(type(run.optimizer).__name__)
        for ours, theirs in zip(other.params, run.params, strict=True):
            ours.detach().copy_(theirs.detach())
        run.replace(change)
        other.optimizer.load_state_dict(run.optimizer.state_dict())
        run.params, run.optimizer = other.params, other.optimizer

    return disturb


def torch_tensor(value):
    return pytest.importorskip("torch").tensor(value.numpy())


def strided(value):
    if not value.ndim:
        return value
    memory = np.zeros((*value.shape[:-1], 2 * value.shape[-1]))
    memory[..., ::2] = value.detach().numpy()
    return ng.asarray(memory[..., ::2])


def column_major(value):
    return ng.asarray(np.asfortranarray(value.detach().numpy()))


def moved(change):
    def disturb(run):
        for p in run.params:
            p.data = change(p)

    return disturb


def grown(run):
    if len(run.optimizer.param_groups[0]["params"]) == len(run.params):
        extra = ng.ones((2, 2), requires_grad=True)
        if not isinstance(run.optimizer, ng.optim.LBFGS):
            run.optimizer.add_param_group({"params": [extra]})


HARMLESS = {
    "pickle": again,
    "deepcopy": deepcopied,
    "copy": shallow,
    "load": loaded(lambda t: t),
    "load ndarrays": loaded(lambda t: t.numpy()),
    "load tensors of torch": loaded(torch_tensor),
    "load column-major": loaded(column_major),
    "states strided": lambda run: run.replace(strided),
    "states column-major": lambda run: run.replace(column_major),
    "states moved": lambda run: run.replace(lambda t: t.clone()),
    "parameters moved": moved(lambda p: p.detach().clone()),
    "parameters strided": moved(strided),
    "parameters column-major": moved(column_major),
    "group added": grown,
    "frozen": lambda run: [p.requires_grad_(False).requires_grad_() for p in run.params],
}


@pytest.mark.filterwarnings("ignore:.data hides")
@EACH
@pytest.mark.parametrize("disturb", HARMLESS)
def test_steps_go_on_as_if_nothing_had_happened(name, disturb):
    alone, run = Run(name).step(2), Run(name).step(2)
    HARMLESS[disturb](run)
    exact = {"rtol": 1e-13, "atol": 1e-15} if name == "Muon" else {"rtol": 0}  # BLAS knows layouts
    for a, b in zip(alone.step(2).values(), run.step(2).values(), strict=True):
        np.testing.assert_allclose(b, a, **exact)


def read_only(value):
    array = value.detach().numpy().copy()
    array.flags.writeable = False
    return ng.asarray(array)


STATES = {
    "ndarrays": lambda t: t.numpy().copy(),
    "numbers": lambda t: 1.0,
    "None": lambda t: None,
    "read-only": read_only,
    "no dimensions": lambda t: ng.tensor(0.5),
    "longer": lambda t: ng.zeros((*t.shape, 2)),
    "float32": lambda t: ng.asarray(t, np.float32),
    "integers": lambda t: ng.asarray(t, np.int64),
    "bytes swapped": lambda t: t.numpy().astype(">f8"),
    "empty": lambda t: ng.zeros((0,)),
    "strings": lambda t: "one",
}
PARAMETERS = {
    "longer": lambda p: ng.zeros((*p.shape, 2)),
    "shorter": lambda p: p.detach()[:1].clone(),
    "float32": lambda p: ng.asarray(p.detach(), np.float32),
    "complex": lambda p: ng.asarray(p.detach(), np.complex128),
    "read-only": read_only,
    "empty": lambda p: ng.zeros((0, 4)),
}


def goes_on_or_refuses(run):
    """A step that either raises an error of ours and leaves parameters alone, or is taken."""
    before = run.values()
    try:
        run.step()
    except ng.NumgradError:
        for a, b in zip(run.values(), before, strict=True):
            assert_array_equal(a, b)


@EACH
@pytest.mark.parametrize("kind", STATES)
def test_states_of_any_kind_are_used_or_refused(name, kind):
    run = Run(name).step(2)
    run.replace(STATES[kind])
    goes_on_or_refuses(run)


@EACH
@pytest.mark.parametrize("kind", STATES)
def test_a_loaded_state_of_any_kind_is_taken_or_refused_at_once(name, kind):
    run, other = Run(name).step(2), Run(name).step(1)
    run.replace(STATES[kind])
    before = copy.deepcopy(other.optimizer.state_dict())
    try:
        other.optimizer.load_state_dict(run.optimizer.state_dict())
    except ng.NumgradError:
        after = other.optimizer.state_dict()
        assert str(after) == str(before)
        other.step()
    else:
        goes_on_or_refuses(other) if name == "LBFGS" else other.step()


@pytest.mark.filterwarnings("ignore:.data hides")
@EACH
@pytest.mark.parametrize("stale", [False, True], ids=["new gradient", "stale gradient"])
@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters_with_other_data_are_stepped_or_refused(name, kind, stale):
    run = Run(name).step(2)
    if stale and name != "LBFGS":
        run.loss()
        run.params[0].data = PARAMETERS[kind](run.params[0])
        before = run.values()
        try:
            run.optimizer.step()
        except ng.NumgradError:
            for a, b in zip(run.values(), before, strict=True):
                assert_array_equal(a, b)
    else:
        run.params[0].data = PARAMETERS[kind](run.params[0])
        goes_on_or_refuses(run)


BROKEN = [
    (None, TypeError, "takes a dictionary"),
    ({}, ValueError, "'state', a dictionary"),
    ({"state": {}}, ValueError, "'param_groups'"),
    ({"state": [], "param_groups": []}, ValueError, "'state', a dictionary"),
    ({"state": {}, "param_groups": [{}]}, ValueError, "group 0"),
    ({"state": {}, "param_groups": [{"params": [[0], [1], [2]]}]}, ValueError, "group 0"),
    ({"state": {0: 3}, "param_groups": [{"params": [0, 1, 2], "lr": 1}]}, ValueError, "not a dict"),
    ({"state": {}, "param_groups": [{"params": [0, 1, 2]}]}, ValueError, "group 0 .* no 'lr'"),
    (
        {"state": {0: {"step": 1}}, "param_groups": [{"params": [0, 1, 2], "lr": 1}]},
        ValueError,
        "parameter 0 has no exp_avg, exp_avg_sq",
    ),
]


@pytest.mark.parametrize(("state", "error", "message"), BROKEN)
def test_a_state_with_parts_missing_is_refused_at_once(state, error, message):
    run = Run("Adam").step()
    before = str(run.optimizer.state_dict())
    with pytest.raises(error, match=message) as raised:
        run.optimizer.load_state_dict(state)
    assert isinstance(raised.value, ng.NumgradError)
    assert str(run.optimizer.state_dict()) == before
    run.step()


def test_options_that_a_state_lacks_stay_as_they_are():
    run, other = Run("Adam").step(), Run("Adam").step()
    state = run.optimizer.state_dict()
    for option in ("betas", "amsgrad"):
        del state["param_groups"][0][option]
    other.optimizer.load_state_dict(state)
    assert other.optimizer.param_groups[0]["betas"] == (0.9, 0.999)
    other.step()


@pytest.mark.parametrize(
    "name",
    [
        name if name == "Adam" else pytest.param(name, marks=pytest.mark.slow)
        for name in OPTIONS
        if name not in ("Muon", "SparseAdam", "ASGD")
    ],
)
def test_a_state_of_torch_goes_on_here(name):
    torch = pytest.importorskip("torch")
    run = Run(name)
    theirs = [torch.tensor(v, requires_grad=True) for v in run.values()]
    other = getattr(torch.optim, name)(theirs, **OPTIONS[name])

    def loss():
        other.zero_grad()
        value = sum(((p - k) ** 2 * (k + 1)).sum() for k, p in enumerate(theirs))
        value.backward()
        return value

    for k in range(4):
        if k == 2:
            for p, t in zip(run.params, theirs, strict=True):
                p.detach().copy_(t.detach().numpy())
            run.optimizer.load_state_dict(other.state_dict())
        other.step(loss)
    for p, t in zip(run.step(2).values(), theirs, strict=True):
        np.testing.assert_allclose(p, t.detach().numpy(), rtol=1e-6)
