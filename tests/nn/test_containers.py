"""Containers of modules and of parameters."""

from collections import OrderedDict

import pytest

import numgrad as ng
from numgrad import nn


def modules(lib, count):
    class Add(lib.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def forward(self, x):
            return x + self.value

        def extra_repr(self):
            return str(self.value)

    return [Add(k) for k in range(count)]


# ------------------------------------------------------------------------------------- Sequential


def test_sequential(lib):
    a, b, c = modules(lib, 3)
    model = lib.nn.Sequential(a, b, c)
    assert model(lib.tensor(1.0)) == 4
    assert len(model) == 3
    assert list(model) == [a, b, c]
    assert model[0] is a
    assert model[-1] is c
    assert [name for name, _ in model.named_children()] == ["0", "1", "2"]
    named = lib.nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a
    assert list(named[1:]._modules) == ["second"]
    assert isinstance(model[:2], lib.nn.Sequential)
    assert list(model[::2]) == [a, c]
    assert lib.nn.Sequential()(3) == 3


def test_sequential_as_a_list(lib):
    a, b, c, d = modules(lib, 4)
    model = lib.nn.Sequential(a, b)
    assert model.append(c) is model
    assert model.extend([d]) is model
    model[1] = d
    assert list(model) == [a, d, c, d]
    del model[1]
    assert list(model) == [a, c, d]
    assert list(model._modules) == ["0", "1", "2"]
    model.insert(0, b)
    assert list(model) == [b, a, c, d]
    model.insert(4, b)
    assert model.pop(4) is b
    model.insert(-1, b)
    assert list(model) == [b, a, c, b, d]
    del model[1:3]
    assert list(model) == [b, b, d]
    assert model.pop(-1) is d
    model[-1] = a
    assert list(model) == [b, a]
    assert getattr(model, "0") is b
    assert not hasattr(model, "2")


def test_arithmetic_of_sequentials(lib, raises):
    a, b = modules(lib, 2)
    model, other = lib.nn.Sequential(a), lib.nn.Sequential(b)
    assert list(model + other) == [a, b]
    assert list(model * 3) == [a, a, a]
    assert list(2 * model) == [a, a]
    model += other
    assert list(model) == [a, b]
    model *= 2
    assert list(model) == [a, b, a, b]
    with raises(ValueError, "ModuleList"):
        model + lib.nn.ModuleList([a])
    with raises(TypeError, "float"):
        model * 2.0
    with raises(ValueError, "0"):
        model * 0
    assert list(model) == [a, b, a, b]


def test_errors_of_rows(lib, raises):
    (a,) = modules(lib, 1)
    for row in (lib.nn.Sequential(a), lib.nn.ModuleList([a])):
        for index in (1, -2):
            with raises(IndexError, "out of range"):
                row[index]
            with raises(IndexError, "out of range"):
                row[index] = a
            with raises(IndexError, "out of range"):
                del row[index]
        with raises(TypeError, "Module"):
            row.append(3)
        with raises(TypeError, "takes"):
            row.extend(3)
        assert list(row) == [a]
    with raises(IndexError, "out of range"):
        lib.nn.Sequential(a).insert(3, a)
    with pytest.raises((TypeError, AssertionError)):
        lib.nn.Sequential(a).insert(0, 3)
    with raises(TypeError, "Module"):
        lib.nn.Sequential(3)


# ------------------------------------------------------------------------------------- ModuleList


def test_module_list(lib):
    a, b, c = modules(lib, 3)
    row = lib.nn.ModuleList([a])
    row.append(b)
    row += [c]
    assert list(row) == [a, b, c]
    assert len(row) == 3
    assert row[-1] is c
    assert isinstance(row[1:], lib.nn.ModuleList)
    assert list(row[1:]) == [b, c]
    row.insert(1, c)
    assert list(row) == [a, c, b, c]
    assert row.pop(1) is c
    del row[0]
    assert list(row._modules) == ["0", "1"]
    del row[:1]
    assert list(row) == [c]
    row[0] = a
    assert list(row + lib.nn.ModuleList([b])) == [a, b]
    assert list(row) == [a]
    assert row.extend(iter([b, c])) is row
    assert len(row) == 3
    with pytest.raises(NotImplementedError):
        row(3)


def test_repr_of_a_module_list(lib):
    linear = lib.nn.Linear
    row = lib.nn.ModuleList([linear(1, 2), linear(1, 2), lib.nn.Identity(), linear(1, 2)])
    row.append(lib.nn.Sequential(lib.nn.Identity()))
    text = "Linear(in_features=1, out_features=2, bias=True)"
    assert repr(row) == (
        "ModuleList(\n"
        f"  (0-1): 2 x {text}\n"
        "  (2): Identity()\n"
        f"  (3): {text}\n"
        "  (4): Sequential(\n"
        "    (0): Identity()\n"
        "  )\n"
        ")"
    )
    assert repr(lib.nn.ModuleList()) == "ModuleList()"


# ------------------------------------------------------------------------------------- ModuleDict


def test_module_dict(lib):
    a, b, c = modules(lib, 3)
    named = lib.nn.ModuleDict({"a": a})
    named["b"] = b
    assert named["a"] is a
    assert list(named) == list(named.keys()) == ["a", "b"]
    assert list(named.values()) == [a, b]
    assert list(named.items()) == [("a", a), ("b", b)]
    assert "a" in named
    assert "c" not in named
    assert len(named) == 2
    named.update([("c", c)])
    named.update(lib.nn.ModuleDict({"a": b}))
    assert list(named.values()) == [b, b, c]
    assert named.pop("b") is b
    del named["a"]
    assert list(named) == ["c"]
    assert named.c is c
    named.clear()
    assert len(named) == 0


def test_errors_of_module_dict(lib, raises):
    named = lib.nn.ModuleDict()
    with raises(KeyError, "nothing"):
        named["a"]
    with raises(KeyError, "nothing"):
        del named["a"]
    with raises(TypeError, "Module"):
        named["a"] = 3
    with raises(KeyError, "keys"):
        named["keys"] = lib.nn.Identity()
    with raises(TypeError, "int"):
        named.update(3)
    with raises(TypeError, "pairs"):
        named.update([3])
    with raises(ValueError, "1 part"):
        named.update([("a",)])


# ------------------------------------------------------------------------------ parameters


def test_parameter_list(lib):
    one, two = lib.ones(2), lib.nn.Parameter(lib.zeros(2))
    row = lib.nn.ParameterList([one])
    assert row.append(two) is row
    row += ["text"]
    assert len(row) == 3
    assert isinstance(row[0], lib.nn.Parameter)
    assert row[1] is two
    assert row[-1] == "text"
    assert [name for name, _ in row.named_parameters()] == ["0", "1"]
    row[0] = two
    assert next(iter(row)) is two
    assert isinstance(row[:2], lib.nn.ParameterList)
    assert len(row[:2]) == 2
    assert row.extend([one]) is row
    row[-1] = lib.zeros(3)
    assert row[3].shape == (3,)
    assert list(row.state_dict()) == ["0", "1", "3"]


def test_errors_of_parameter_list(lib, raises):
    row = lib.nn.ParameterList([lib.ones(2)])
    with raises(IndexError, "out of range"):
        row[1]
    with raises(TypeError, "int"):
        row.extend(3)
    with raises(RuntimeError, "called"):
        row(3)
    if lib is ng:  # rows of a Tensor would become parameters that are no leaves of anything
        with raises(TypeError, "Tensor"):
            row.extend(lib.ones(2))


def test_parameter_dict(lib):
    one, two = lib.ones(2), lib.nn.Parameter(lib.zeros(2))
    named = lib.nn.ParameterDict({"one": one})
    named["two"] = two
    assert isinstance(named["one"], lib.nn.Parameter)
    assert named.two is two
    assert list(named) == list(named.keys()) == ["one", "two"]
    assert list(reversed(named)) == ["two", "one"]
    assert list(named.values())[1] is two
    assert dict(named.items())["two"] is two
    assert "one" in named
    assert len(named) == 2
    assert named.get("nothing") is None
    assert named.get("two") is two
    assert named.get("nothing", 3) == 3
    assert named.setdefault("two") is two
    assert named.setdefault("three", lib.ones(3)).shape == (3,)
    assert named.copy()["two"] is two
    assert named.popitem()[0] == "three"
    assert named.pop("two") is two
    del named["one"]
    assert not hasattr(named, "one")
    named.update([("b", one), ("a", one)])
    assert next(named.named_parameters())[0] == "b"
    assert list(named.fromkeys(["x", "y"], one)) == ["x", "y"]
    both = named | lib.nn.ParameterDict({"c": one})
    assert set(both) == {"a", "b", "c"}
    named |= lib.nn.ParameterDict({"c": one})
    assert "c" in named
    named.clear()
    assert len(named) == 0


def test_errors_of_parameter_dict(lib, raises):
    named = lib.nn.ParameterDict()
    with raises(KeyError if lib is ng else AttributeError, "nothing"):
        named["a"]
    with raises(KeyError, "nothing"):
        del named["a"]
    with raises(KeyError, "empty"):
        named.popitem()
    with raises(TypeError, "string"):
        named[3] = lib.ones(1)
    with raises(TypeError, "int"):
        named.update(3)
    with raises(RuntimeError, "called"):
        named(3)
    with raises(KeyError, "keys"):
        named["keys"] = lib.ones(1)
    assert lib is not ng or "keys" not in named


def test_repr_of_parameter_containers():
    row = nn.ParameterList([ng.ones((2, 3)), "text"])
    assert repr(row) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [float64 of size 2x3]\n"
        "    (1): Object of type: str\n"
        ")"
    )
    named = nn.ParameterDict({"a": ng.ones(1)})
    assert repr(named) == "ParameterDict(  (a): Parameter containing: [float64 of size 1])"


def test_flatten_and_unflatten(lib, raises):
    x = lib.ones((2, 3, 4, 5))
    assert lib.nn.Flatten()(x).shape == (2, 60)
    assert lib.nn.Flatten(-3, -2)(x).shape == (2, 12, 5)
    assert lib.nn.Flatten(0)(lib.tensor(1.0)).shape == (1,)
    assert lib.nn.Unflatten(1, (3, 1))(x).shape == (2, 3, 1, 4, 5)
    assert lib.nn.Unflatten(-1, (-1, 5))(x).shape == (2, 3, 4, 1, 5)
    with raises(RuntimeError if lib is not ng else ValueError, "comes after"):
        lib.nn.Flatten(2, 1)(x)
    with raises(IndexError, "axis"):
        lib.nn.Flatten(4)(x)
    with raises(RuntimeError if lib is not ng else ValueError, "length 3"):
        lib.nn.Unflatten(1, (2, -1))(x)
    with raises(TypeError, "integers"):
        lib.nn.Unflatten(1, (2.0, 1))
    if lib is ng:
        with raises(TypeError, "names"):
            lib.nn.Unflatten("channels", (2, 1))
    y = lib.ones((2, 6), requires_grad=True)
    lib.nn.Unflatten(1, (2, 3))(y).sum().backward()
    assert y.grad.shape == (2, 6)
