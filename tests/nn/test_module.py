"""Members of modules: registration, walkers, dtypes, copies, texts. SEMANTICS.md, section 11."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn


def toy(lib):
    class Toy(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = lib.nn.Linear(2, 3)
            self.scale = lib.nn.Parameter(lib.ones(3))
            self.register_buffer("mean", lib.zeros(3))
            self.second = lib.nn.Linear(3, 1, bias=False)

        def forward(self, x):
            return self.second((self.first(x) - self.mean) * self.scale)

    return Toy()


class Line(nn.Module):
    """Defined here, where pickle finds it."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(ng.tensor(2.0))
        self.mean = nn.Buffer(ng.zeros(2), persistent=False)
        self.inner = nn.Linear(2, 1)

    def forward(self, x):
        return self.slope * x


# ----------------------------------------------------------------------------------- registration


def test_init_comes_before_members(lib, raises):
    """Promise 115."""

    class Early(lib.nn.Module):
        def __init__(self, member):
            self.member = member

    for member in (lib.nn.Parameter(lib.ones(1)), lib.nn.Identity(), lib.nn.Buffer(lib.ones(1))):
        with raises(AttributeError, "super"):
            Early(member)
    empty = lib.nn.Module.__new__(lib.nn.Module)
    with raises(AttributeError, "super"):
        empty.register_parameter("weight", None)
    with raises(AttributeError, "super"):
        empty.register_buffer("mean", None)


def test_a_parameters_place_takes_parameters_only(lib, raises):
    """Promise 115."""
    model = toy(lib)
    for value in (lib.ones(3), 3, "text"):
        with raises(TypeError, "Parameter"):
            model.scale = value
    for value in (lib.nn.Identity(), lib.nn.Buffer(lib.ones(3))):
        with raises(TypeError, "Parameter"):
            model.scale = value
    for value in (3, lib.ones(1), lib.nn.Buffer(lib.ones(3))):
        with raises(TypeError, "Module"):
            model.first = value
    with raises(TypeError, "Tensor"):
        model.mean = 3
    assert next(model.named_parameters())[0] == "scale"
    model.scale = None  # the place stays
    assert model.scale is None
    assert "scale" in model._parameters
    assert "scale" not in dict(model.named_parameters())


def test_names_in_use_are_refused(lib, raises):
    """Promise 115."""
    model = toy(lib)
    model.plain = 3
    parameter, buffer, module = lib.nn.Parameter(lib.ones(1)), lib.ones(1), lib.nn.Identity()
    for name in ("plain", "mean", "first", "forward", "training"):
        with raises(KeyError, name):
            model.register_parameter(name, parameter)
    for name in ("plain", "scale", "first", "forward"):
        with raises(KeyError, name):
            model.register_buffer(name, buffer)
    for name in ("plain", "scale", "mean", "forward"):
        with raises(KeyError, name):
            model.add_module(name, module)
    for name in ("", "a.b"):
        for register in (model.register_parameter, model.register_buffer, model.add_module):
            with raises(KeyError, "dot"):
                register(name, None)
    for register in (model.register_parameter, model.register_buffer, model.register_module):
        with raises(TypeError, "string"):
            register(3, None)
    with raises(TypeError, "Parameter"):
        model.register_parameter("new", lib.ones(1))
    with raises(TypeError, "Module"):
        model.add_module("new", 3)
    with raises(TypeError, "Tensor"):
        model.register_buffer("new", 3)


def test_parameters_are_leaves(lib):
    """Promise 116."""
    x = lib.ones(2, requires_grad=True)
    for data in (x * 2, x.detach(), x):
        parameter = lib.nn.Parameter(data)
        assert parameter.is_leaf
        assert parameter.requires_grad
        assert parameter.grad_fn is None
        assert isinstance(parameter, lib.Tensor if lib is ng else lib.nn.Parameter)
    assert "Parameter" in repr(parameter)
    assert not lib.nn.Parameter(lib.ones(1), requires_grad=False).requires_grad
    y = lib.ones(2)
    shared = lib.nn.Parameter(y)
    with lib.no_grad():
        shared[0] = 5
    assert y[0] == 5


def test_an_attribute_becomes_a_member(lib):
    model = toy(lib)
    model.plain = 3
    model.plain = lib.nn.Parameter(lib.ones(1))  # from plain to parameter
    assert "plain" in model._parameters
    model.mean = lib.nn.Identity()  # from buffer to module
    assert "mean" in model._modules
    assert "mean" not in model._buffers
    model.mean = lib.nn.Parameter(lib.ones(1))  # to parameter
    assert "mean" in model._parameters
    assert "mean" not in model._modules
    del model.plain, model.mean
    model.plain = lib.nn.Buffer(lib.ones(1), persistent=False)
    assert "plain" in model._buffers
    assert "plain" not in model.state_dict()
    model.plain = lib.ones(2)  # still one, still not persistent
    assert model._buffers["plain"].shape == (2,)
    assert "plain" not in model.state_dict()
    del model.plain
    assert not hasattr(model, "plain")
    assert "plain" not in model._buffers
    del model.scale, model.first
    assert [name for name, _ in model.named_parameters()] == ["second.weight"]
    with pytest.raises(AttributeError):
        del model.nothing


def test_changes_of_the_registries_show_as_attributes(lib):
    model = toy(lib)
    new = lib.nn.Parameter(lib.zeros(3))
    model._parameters["scale"] = new
    assert model.scale is new
    del model._parameters["scale"]
    assert not hasattr(model, "scale")
    model._parameters["late"] = new
    assert model.late is new
    assert model._parameters.pop("late") is new
    assert model._parameters.pop("late", 3) == 3
    with pytest.raises(KeyError):
        model._parameters.pop("late")
    model._buffers.update({"mean": new}, other=new)
    assert model.mean is new
    assert model.other is new
    model._buffers.clear()
    assert not hasattr(model, "mean")
    first = model.first
    model._modules.setdefault("first", None)
    model._modules.setdefault("third", first)
    assert model.third is first
    assert model._modules.popitem() == ("third", first)
    assert not hasattr(model, "third")
    model._modules |= {"fourth": first}
    assert model.fourth is first
    model._modules = {"fifth": first}
    assert model.fifth is first
    assert not hasattr(model, "fourth")


def test_registration_hooks(lib):
    hooks = lib.nn.modules.module if lib is not ng else nn
    seen, double = [], lib.nn.Parameter(lib.full((2,), 2.0))

    def note(kind):
        return lambda module, name, member: seen.append((kind, name))

    handles = [
        hooks.register_module_parameter_registration_hook(note("parameter")),
        hooks.register_module_parameter_registration_hook(lambda *args: double),
        hooks.register_module_buffer_registration_hook(note("buffer")),
        hooks.register_module_module_registration_hook(note("module")),
    ]
    try:
        model = lib.nn.Module()
        model.weight = lib.nn.Parameter(lib.ones(2))
        model.register_parameter("nothing", None)
        model.register_buffer("mean", lib.ones(2))
        model.inner = lib.nn.Identity()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("parameter", "weight"), ("buffer", "mean"), ("module", "inner")]
    assert model.weight is double
    model.late = lib.nn.Parameter(lib.ones(2))
    assert len(seen) == 3


# ---------------------------------------------------------------------------------------- walking


def test_walkers(lib):
    model = toy(lib)
    names = ["scale", "first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in model.named_parameters()] == names
    assert [name for name, _ in model.named_parameters(prefix="m")] == [f"m.{n}" for n in names]
    assert [name for name, _ in model.named_parameters(recurse=False)] == ["scale"]
    assert [name for name, _ in model.named_buffers()] == ["mean"]
    assert next(model.buffers(recurse=False)) is model.mean
    assert [name for name, _ in model.named_children()] == ["first", "second"]
    assert [name for name, _ in model.named_modules()] == ["", "first", "second"]
    assert [name for name, _ in model.named_modules(prefix="m")] == ["m", "m.first", "m.second"]
    assert list(model.modules())[1] is model.first
    assert len(list(model.parameters())) == 4
    seen = []
    assert model.apply(seen.append) is model
    assert seen == [model.first, model.second, model]


def test_members_with_several_names_come_once(lib):
    model = toy(lib)
    model.again = model.first
    model.tied = model.scale
    assert len(list(model.parameters())) == 4
    assert len(list(model.children())) == 2
    assert len(list(model.modules())) == 3
    every = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert set(every) >= {"scale", "tied", "first.weight", "again.weight"}
    assert len(list(model.named_modules(remove_duplicate=False))) == 4
    memo = {model.first}
    assert [name for name, _ in model.named_modules(memo=memo)] == ["", "second"]
    assert model in memo


def test_finding_by_dotted_name(lib, raises):
    model = lib.nn.Sequential(toy(lib))
    assert model.get_submodule("") is model
    assert model.get_submodule("0.first") is model[0].first
    assert model.get_parameter("0.first.weight") is model[0].first.weight
    assert model.get_buffer("0.mean") is model[0].mean
    for target in ("0.third", "0.scale", "1"):
        with raises(AttributeError, "get_submodule"):
            model.get_submodule(target)
    for target in ("0.mean", "0.first.nothing", "0.first"):
        with raises(AttributeError, "get_parameter"):
            model.get_parameter(target)
    for target in ("0.scale", "0.nothing"):
        with raises(AttributeError, "get_buffer"):
            model.get_buffer(target)


def test_set_submodule(lib, raises):
    model = lib.nn.Sequential(toy(lib))
    new = lib.nn.Identity()
    model.set_submodule("0.first", new)
    assert model[0].first is new
    model.set_submodule("0.third", new)
    assert model[0].third is new
    model.set_submodule("0.first", new, strict=True)
    with raises(AttributeError, "nowhere"):
        model.set_submodule("0.nowhere", new, strict=True)
    with raises(AttributeError, "nowhere"):
        model.set_submodule("nowhere.first", new)
    with raises(AttributeError, "scale"):
        model.set_submodule("0.scale", new)
    with raises(ValueError, "empty"):
        model.set_submodule("", new)
    with raises(ValueError, "Module"):
        model.set_submodule("0.first", 3)


# --------------------------------------------------------------------------------------- switches


def test_train_and_eval(lib, raises):
    model = toy(lib)
    assert model.training
    assert model.eval() is model
    assert not model.first.training
    assert model.train() is model
    assert model.second.training
    with raises(ValueError, "mode"):
        model.train("yes")


def test_requires_grad_(lib):
    model = toy(lib)
    assert model.requires_grad_(False) is model
    assert not any(p.requires_grad for p in model.parameters())
    assert all(p.requires_grad for p in model.requires_grad_().parameters())


def test_zero_grad(lib):
    model = toy(lib)
    model(lib.ones(1, 2) if lib is not ng else lib.ones((1, 2))).sum().backward()
    before = model.scale.grad
    model.zero_grad(set_to_none=False)
    assert model.scale.grad is before
    assert not before.any()
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_dtypes(lib):
    model = toy(lib)
    scale, weight = model.scale, model.first.weight
    model.register_buffer("count", lib.tensor(3))
    model(lib.ones((1, 2))).sum().backward()
    gradient = scale.grad.detach().numpy().copy()
    assert model.to(lib.float32) is model
    assert model.scale is scale
    assert weight.dtype == scale.grad.dtype == model.mean.dtype == lib.float32
    assert model.count.dtype == lib.int64
    np.testing.assert_allclose(scale.grad.numpy(), gradient, rtol=1e-6)
    assert model.double().scale.dtype == lib.float64
    assert model.float().scale.dtype == lib.float32
    assert model.to(lib.ones(1)).scale.dtype == lib.float64
    assert model.to("cpu").scale is scale
    assert scale.requires_grad
    assert scale.is_leaf
    with pytest.raises(TypeError):
        model.to(lib.int64)
    for p in model.parameters():
        p.grad = None
    model.requires_grad_(False).type(lib.int64)
    assert model.scale.dtype == lib.int64


@pytest.mark.filterwarnings("ignore:Complex modules")
def test_complex_dtypes(lib):
    model = toy(lib).to(lib.complex64)
    assert model.scale.dtype == model.mean.dtype == lib.complex64
    model.double()  # real ones only
    assert model.scale.dtype == lib.complex64
    with pytest.warns(UserWarning, match="imaginary|Casting complex"):
        model.to(lib.float64)
    assert model.scale.dtype == lib.float64


def test_conversion_between_forward_and_backward_is_found():
    model = nn.Linear(2, 1)
    y = model(ng.ones((1, 2), requires_grad=True)).sum()
    model.float()
    with pytest.raises(RuntimeError, match="version"):
        y.backward()


def test_other_arguments_of_to():
    model = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="cuda"):
        model.to("cuda:0")
    with pytest.raises(ValueError, match="meta"):
        model.to(device="meta")
    with pytest.raises(TypeError, match="memory_format"):
        model.to(ng.float32, memory_format=3)
    assert model.to(dtype=ng.float32, non_blocking=True).weight.dtype == ng.float32
    assert model.to("float64").cpu() is model
    with pytest.raises(TypeError, match="float16"):
        model.to(np.float16)


# ------------------------------------------------------------------------- attributes and texts


def test_absent_attributes(lib, raises):
    model = toy(lib)
    with raises(AttributeError, "Toy has no attribute 'nothing'"):
        model.nothing  # noqa: B018
    if lib is ng:
        with raises(AttributeError, "one process"):
            model.share_memory()
        with raises(AttributeError, "CPU"):
            model.cuda()
    assert "scale" in dir(model)
    assert "forward" in dir(model)
    assert "0" not in dir(lib.nn.Sequential(model))


def test_a_subclass_may_look_elsewhere_for_attributes(lib):
    class Wrapper(lib.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    inner = toy(lib)
    wrapper = Wrapper(inner)
    assert wrapper.inner is inner
    assert wrapper.scale is inner.scale


def test_a_module_without_forward(lib):
    with pytest.raises(NotImplementedError):
        lib.nn.Module()(3)


def test_repr(lib):
    class Named(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = lib.nn.Sequential(lib.nn.Identity(), lib.nn.Linear(1, 2))
            self.last = lib.nn.Flatten()

        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Named()) == (
        "Named(\n"
        "  a=1\n"
        "  b=2\n"
        "  (inner): Sequential(\n"
        "    (0): Identity()\n"
        "    (1): Linear(in_features=1, out_features=2, bias=True)\n"
        "  )\n"
        "  (last): Flatten(start_dim=1, end_dim=-1)\n"
        ")"
    )
    assert repr(lib.nn.Module()) == "Module()"


# ----------------------------------------------------------------------------------------- copies


def test_deepcopy(lib):
    model = toy(lib)
    model.tied = model.scale
    model(lib.ones((1, 2))).sum().backward()
    twin = copy.deepcopy(model)
    assert twin.scale is twin._parameters["scale"]
    assert twin.scale is not model.scale
    assert twin.tied is twin.scale
    assert twin.first.weight is not model.first.weight
    assert twin.scale.grad is not model.scale.grad
    with lib.no_grad():
        twin.scale.fill_(7)
    assert model.scale[0] == 1
    twin.scale = None
    assert model.scale is not None
    assert twin._modules["first"] is twin.first


def test_pickle():
    line = Line()
    twin = pickle.loads(pickle.dumps(line))
    assert twin.slope is twin._parameters["slope"]
    assert isinstance(twin.slope, nn.Parameter)
    assert twin.inner.weight.requires_grad
    assert isinstance(twin.mean, nn.Buffer)
    assert not twin.mean.persistent
    assert list(twin.state_dict()) == list(line.state_dict())
    assert twin(ng.tensor(2.0)) == 4
    twin.slope = nn.Parameter(ng.tensor(3.0))
    assert twin._parameters["slope"] == 3


def test_a_shallow_copy_has_registries_of_its_own():
    line = Line()
    twin = copy.copy(line)
    assert twin.slope is line.slope
    twin.slope = nn.Parameter(ng.tensor(3.0))
    assert line.slope == line._parameters["slope"] == 2
    assert twin.slope == 3


def test_a_buffer_can_be_copied():
    buffer = nn.Buffer(np.ones(2), persistent=False)
    for twin in (copy.copy(buffer), copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert isinstance(twin, nn.Buffer)
        assert not twin.persistent
        assert twin[0] == 1
    with pytest.raises(TypeError, match="str"):
        nn.Buffer("text")
    assert nn.Buffer().shape == (0,)


def test_modules_are_freed_at_once():
    gc.disable()
    try:
        line = Line()
        line(ng.ones(2)).sum().backward()
        alive = weakref.ref(line)
        del line
        assert alive() is None
    finally:
        gc.enable()
