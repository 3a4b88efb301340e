"""Containers of arrays: the same for transforms, ``jit`` and everything else that takes them."""

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

import numgrad as ng
from numgrad.core.tree import container_of, flatten, leaves, map_leaves, paths, register, unflatten

Point = namedtuple("Point", "x y")
Layer = namedtuple("Layer", ("w", "b"), defaults=(None,))


@dataclass
class Record:
    w: object
    b: object = None


@dataclass(frozen=True)
class Line:
    slope: object
    ends: object
    length: object = field(default=0.0, init=False)


class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label


@pytest.fixture(autouse=True)
def registered():
    register(Box, lambda box: ((box.content,), box.label), lambda label, parts: Box(*parts, label))


def values():
    ordered = OrderedDict([("b", 2.0), ("a", 3.0)])
    return {"line": Line(Point(1.0, ordered), [Box(4.0, "red")]), "empty": ()}


def test_taken_apart_and_put_together():
    tree = values()
    found = []
    nesting = flatten(tree, found)
    assert found == leaves(tree) == [1.0, 2.0, 3.0, 4.0, 0.0]
    assert list(paths(nesting, "t")) == [
        "t['line'].slope.x",
        "t['line'].slope.y['b']",
        "t['line'].slope.y['a']",
        "t['line'].ends[0][0]",
        "t['line'].length",
    ]
    again = unflatten(nesting, iter(found))
    assert type(again["line"].slope.y) is OrderedDict
    assert again["line"].slope == tree["line"].slope
    assert (again["line"].ends[0].content, again["line"].ends[0].label) == (4.0, "red")
    assert flatten(again, []) == nesting


def test_what_is_an_array_or_a_function_is_a_leaf():
    for kind in (np.ndarray, ng.Tensor, ng.nn.Linear, str, int):
        assert container_of(kind) is None
    assert map_leaves(lambda x: 2 * x, defaultdict(list, a=1)) == {"a": 2}


def energy(tree):
    line = tree["line"]
    return np.sum(line.slope.x * line.slope.y["a"]) + np.sum(line.ends[0].content ** 2)


def test_gradients_have_the_containers_of_arguments():
    for f in (ng.grad(energy), ng.jit(ng.grad(energy))):
        for _ in range(2):  # the second call is dispatched
            gradient = f(map_leaves(np.float64, values()))
            line = gradient["line"]
            assert type(line) is Line
            assert (float(line.slope.x), dict(line.slope.y)) == (3.0, {"b": 0.0, "a": 1.0})
            assert float(line.ends[0].content) == 8.0
            assert line.ends[0].label == "red"


def test_jit_compiles_anew_for_other_data_of_a_registered_class():
    runs = []

    @ng.jit
    def double(box):
        runs.append(box.label)
        return Box(2 * box.content, box.label)

    for label in ("red", "red", "blue", "red"):
        found = double(Box(np.ones(3), label))
        assert found.label == label
        np.testing.assert_array_equal(found.content, 2 * np.ones(3))
    assert runs == ["red", "blue"]


def test_register_takes_a_class():
    with pytest.raises(ng.NumgradTypeError, match=r"register.*class"):
        register(3, None, None)  # pyright: ignore


# ---------------------------------------------------------------------------------------- ng.tree


def test_the_public_face():
    tree = values()
    found, structure = ng.tree.flatten(tree)
    assert found == ng.tree.leaves(tree) == leaves(tree)
    assert ng.tree.unflatten(structure, found)["line"].slope == tree["line"].slope
    for given in (found[:-1], [*found, 1.0]):
        with pytest.raises(ng.NumgradValueError, match=f"{len(given)} leaves .* {len(found)}"):
            ng.tree.unflatten(structure, given)
    assert ng.tree.register is register


def test_map_takes_several_nestings_by_key():
    summed = ng.tree.map(lambda a, b: (a, b), {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    assert summed == {"a": (1, 10), "b": [(2, 20)]}
    doubled = ng.tree.map(lambda x, y: (x, y), values(), values())
    assert doubled["line"].ends[0].content == (4.0, 4.0)
    others = [
        ({"a": 1, "b": 2}, r"x\['b'\];"),
        ({"a": 1, "b": (2,)}, r"x\['b'\];"),
        ({"a": [1], "b": [2]}, r"x\['a'\];"),
        ({"a": 1, "b": [2, 3]}, r"x\['b'\];"),
        ({"a": 1}, "x;"),
        ([1, [2]], "x;"),
        (3, "x;"),
    ]
    for other, where in others:
        with pytest.raises(ng.NumgradValueError, match=f"map: .*differ at {where}"):
            ng.tree.map(lambda a, b: a, {"a": 1, "b": [2]}, other)


def test_ravel_goes_both_ways():
    tree = {"w": np.arange(6.0).reshape(2, 3), "n": [np.float32(7.0), 8]}
    vector, unravel = ng.tree.ravel(tree)
    np.testing.assert_array_equal(vector, np.arange(9.0)[[0, 1, 2, 3, 4, 5, 7, 8]])
    back = unravel(vector)
    assert [a.dtype for a in ng.tree.leaves(back)] == [np.float64, np.float32, np.int64]
    ng.tree.map(np.testing.assert_array_equal, back, tree)
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    vector, unravel = ng.tree.ravel({"x": x, "c": 3.0})
    (unravel(vector * 2)["x"] * np.array([1.0, 10.0])).sum().backward()
    np.testing.assert_array_equal(x.grad, [2.0, 20.0])
    assert ng.tree.ravel(())[0].shape == (0,)
    assert ng.tree.ravel(())[1](np.zeros(0)) == ()
    with pytest.raises(ng.NumgradValueError, match=r"\(4,\).*\(3,\)"):
        unravel(np.zeros(4))
    with pytest.raises(ng.NumgradTypeError, match="NoneType"):
        ng.tree.ravel({"x": None})


def test_ravel_inside_transforms():
    tree = {"a": np.array([1.0, 2.0]), "b": 3.0}
    start, unravel = ng.tree.ravel(tree)

    def loss(vector):
        t = unravel(vector)
        return np.sum(t["a"] ** 3) * t["b"]

    np.testing.assert_array_equal(ng.grad(loss)(start), [9.0, 36.0, 9.0])
    np.testing.assert_array_equal(ng.jit(ng.grad(loss))(start), [9.0, 36.0, 9.0])
    flat = ng.grad(lambda t: np.sum(ng.tree.ravel(t)[0] ** 2))(tree)
    np.testing.assert_array_equal(flat["a"], [2.0, 4.0])
    assert flat["b"] == 6.0


def test_none_in_containers_has_no_gradient():
    w = np.array([1.0, 2.0])

    def loss(t):
        layer = t["layers"][0]
        return np.sum(layer.w**2) if layer.b is None else np.sum(layer.w * layer.b)

    for kind in (Layer, Record):
        tree = {"layers": [kind(w), None], "rest": (None,)}
        expected = {"layers": [kind(2 * w), None], "rest": (None,)}
        for found in (ng.grad(loss)(tree), ng.jit(ng.grad(loss))(tree)):
            assert repr(found) == repr(expected)
        tangent = {"layers": [kind(np.ones(2)), None], "rest": (None,)}
        assert ng.jvp(loss, (tree,), (tangent,))[1] == 6.0
        assert repr(ng.vjp(loss, tree)[1](1.0)) == repr(expected)
        second = ng.hessian(loss)(tree)["layers"][0].w["layers"][0]
        np.testing.assert_array_equal(second.w, 2 * np.eye(2))
        assert second.b is None
        wrong = {"layers": [kind(np.ones(2), np.ones(2)), None], "rest": (None,)}
        with pytest.raises(ng.NumgradError):
            ng.jvp(loss, (tree,), (wrong,))
    with pytest.raises(ng.NumgradTypeError, match="NoneType"):
        ng.grad(lambda t: 1.0)(None)
