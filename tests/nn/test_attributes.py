"""Attributes of a user's own on parameters and buffers, as PyTorch takes them on any tensor."""

import contextlib
import copy
import gc
import inspect
import itertools
import pickle
import weakref

import numpy as np
import pytest

import numgrad as ng


@pytest.fixture(params=["Parameter", "Buffer"])
def make(lib, request):
    return lambda: getattr(lib.nn, request.param)(lib.ones(2))


def marked(make):
    p = make()
    p.no_decay, p.info = True, {"steps": [1]}
    return p


def test_they_are_set_changed_and_deleted(make):
    p = marked(make)
    assert p.no_decay is True
    p.no_decay = False
    assert p.no_decay is False
    del p.no_decay
    assert not hasattr(p, "no_decay")
    with pytest.raises(AttributeError, match="no_decay"):
        print(p.no_decay)


@pytest.mark.parametrize("copied", [copy.copy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_have_them(make, copied):
    twin = copied(marked(make))
    assert (twin.no_decay, twin.info) == (True, {"steps": [1]})


def test_deep_copies_have_them_too(lib):
    """PyTorch's deep copies of parameters lose them, those of other tensors do not."""
    for make in (lib.nn.Parameter, lib.nn.Buffer):
        p = marked(lambda make=make: make(lib.ones(2)))
        p.me = p
        twin = copy.deepcopy(p)
        if lib is ng or make is lib.nn.Buffer:
            assert twin.no_decay is True
            assert twin.info == p.info
            assert twin.info is not p.info
        if lib is ng:
            assert twin.me is twin


def test_a_module_keeps_them(lib):
    model = lib.nn.Linear(2, 2)
    model.weight.no_decay = True
    model.to(lib.float32)
    model.load_state_dict(model.state_dict())
    model.requires_grad_(False)
    assert model.weight.no_decay is True
    assert pickle.loads(pickle.dumps(model)).weight.no_decay is True
    groups = [[p for p in model.parameters() if getattr(p, "no_decay", False) is k] for k in (1, 0)]
    assert groups[0] == []
    decayed = [name for name, p in model.named_parameters() if not hasattr(p, "no_decay")]
    assert decayed == ["bias"]


def test_results_and_views_have_none(lib):
    p = lib.nn.Parameter(lib.ones(2))
    p.no_decay = True
    for derived in (p * 1, p.detach(), p[:], p.clone()):
        assert not hasattr(derived, "no_decay")


def test_a_class_of_a_users_own():
    class Measured(ng.Tensor):
        pass

    x = Measured(np.ones(2))
    x.unit = "m"
    for twin in (copy.copy(x), copy.deepcopy(x)):
        assert type(twin) is Measured
        assert twin.unit == "m"


def test_a_cycle_through_them_is_collected():
    p = ng.nn.Parameter(ng.ones(2))
    p.me = p
    gone = weakref.ref(p)
    del p
    gc.collect()
    assert gone() is None


def test_gradients_are_as_without(lib):
    p = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
    p.no_decay = True
    (p * p).sum().backward()
    assert p.grad.tolist() == [2.0, 4.0]


def test_compiled_functions_see_changes():
    p = ng.nn.Parameter(ng.ones(2))
    p.scale = 2.0
    f = ng.jit(lambda x: np.sum(x * p * p.scale))
    assert f(np.ones(2)).item() == 4.0
    p.scale = 3.0
    assert f(np.ones(2)).item() == 6.0
    p.scale = ng.tensor(4.0)
    assert f(np.ones(2)).item() == 8.0
    p.scale.fill_(5.0)
    assert f(np.ones(2)).item() == 10.0


def test_compiled_functions_see_which_parameters_have_them():
    model = ng.nn.Linear(2, 2)

    @ng.jit
    def count(x):
        found = np.sum(model(x)) * 0
        for p in model.parameters():
            if getattr(p, "no_decay", False):
                found = found + 1
            if hasattr(p, "other"):
                found = found + 10
        return found

    x = np.ones(2)
    assert count(x).item() == 0
    model.weight.no_decay = True
    assert count(x).item() == 1
    model.bias.no_decay = True
    model.bias.other = None
    assert count(x).item() == 12
    del model.bias.no_decay, model.bias.other
    assert count(x).item() == 1


WORDS = {"padding_mode": "circular", "nonlinearity": "relu", "mode": "sum", "approximate": "tanh"}
"""Other values of options that are words."""
LAYERS = [
    c
    for c in vars(ng.nn).values()
    if isinstance(c, type)
    and issubclass(c, ng.nn.Module)
    and "Upsampling" not in c.__name__  # which say a mode that they do not take
    and "Lazy" not in c.__name__  # which say 0 for what their first input says
    and c is not ng.nn.Transformer  # which has layers inside, of 44 million elements
]


def with_an_option_each(cls):
    """A layer as it is by default, and others with one option changed."""
    options = inspect.signature(cls).parameters.values()
    needed = {o.name: 2 for o in options if o.default is o.empty and o.kind is not o.VAR_POSITIONAL}
    changes = [{}]
    for option in options:
        if isinstance(option.default, bool):
            changes.append({option.name: not option.default})
        elif isinstance(option.default, int | float):
            changes.append({option.name: option.default + 1})
        elif option.name in WORDS:
            changes.append({option.name: WORDS[option.name]})
    for change in changes:
        with contextlib.suppress(ng.NumgradError, TypeError):  # what does not go together
            yield cls(**needed, **change)


@pytest.mark.filterwarnings("ignore")  # of options that do nothing alone
def test_a_layer_is_made_by_what_its_repr_says():
    scope = {**vars(ng.nn), **{word: word for word in WORDS.values()}}
    said = set()
    for layer in itertools.chain.from_iterable(map(with_an_option_each, LAYERS)):
        text = repr(layer)
        if "\n" not in text:  # of one that has layers inside
            twin = eval(text, dict(scope))
            assert repr(twin) == text
            assert shapes(twin) == shapes(layer), text
            said.add(text)
    assert len(said) > 290


def shapes(layer):
    return {name: tensor.shape for name, tensor in layer.state_dict().items()}
