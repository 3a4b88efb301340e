"""Nodes and edges as a user sees them: promises 84 to 90 of SEMANTICS.md."""

import weakref

import numpy as np
import pytest

import numgrad as ng


def leaf(lib, values=(1.0, 2.0)):
    return lib.tensor(list(values), requires_grad=True)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: x * x, "MultiplyBackward"),
        (lambda x: x.sum(), "SumBackward"),
        (lambda x: x[0], "GetitemBackward"),
        (lambda x: ng.matrix_transpose(x.reshape(1, 2)), "MatrixTransposeBackward"),
        (lambda x: ng.log_softmax(x), "LogSoftmaxBackward"),
        (lambda x: x @ x, "MatmulBackward"),
    ],
)
def test_nodes_are_named_after_their_operation(function, name):
    """Promise 84."""
    node = function(leaf(ng)).grad_fn
    assert node.name() == name
    assert repr(node) == f"<{name}>"


def test_the_node_of_a_leaf_is_its_accumulator():
    """Promise 84."""
    node = (leaf(ng) * 2).grad_fn.next_functions[0][0]
    assert node.name() == "AccumulateGrad"
    assert repr(node) == "<AccumulateGrad>"


def test_next_functions_name_a_node_for_each_operand(lib):
    """Promise 85."""
    x, y = leaf(lib), leaf(lib)
    first, second = x * 2, y * 3
    assert (first + second).grad_fn.next_functions == ((first.grad_fn, 0), (second.grad_fn, 0))
    (node, number), constant = (x * lib.ones(2)).grad_fn.next_functions
    assert (node.variable, number) == (x, 0)
    assert constant == (None, 0)
    assert isinstance((x + y).grad_fn.next_functions, tuple)


def test_outputs_are_numbered(lib):
    """Promise 85."""
    parts = ng.split(leaf(ng), 2) if lib is ng else lib.split(leaf(lib), 1)
    assert [p.output_nr for p in parts] == [0, 1]
    assert (parts[1] * 2).grad_fn.next_functions[0] == (parts[0].grad_fn, 1)


def test_nodes_have_metadata_and_sequence_numbers(lib):
    """Promise 86."""
    x = leaf(lib)
    y = x * 2
    y.grad_fn.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}
    z = y * 2
    assert z.grad_fn.metadata == {}
    assert z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr()
    accumulator = y.grad_fn.next_functions[0][0]
    assert accumulator._sequence_nr() > z.grad_fn._sequence_nr()
    (meta,) = y.grad_fn._input_metadata
    assert tuple(meta.shape) == (2,)
    assert meta.dtype == lib.float64


def test_each_output_has_its_metadata():
    """Promise 86."""
    node = ng.split(ng.ones((4, 3), requires_grad=True), 2)[0].grad_fn
    assert [m.shape for m in node._input_metadata] == [(2, 3), (2, 3)]


def test_a_node_can_be_called(lib, raises):
    """Promise 87."""
    x, y = leaf(lib), leaf(lib)
    node = (x * y).grad_fn
    found = node(lib.tensor([10.0, 100.0]))
    assert [g.tolist() for g in found] == [[10.0, 200.0], [10.0, 200.0]]
    for wrong in ((), (lib.ones(2), lib.ones(2))):
        with raises(TypeError, "MultiplyBackward: takes 1 gradients.*got [02]"):
            node(*wrong)


def test_node_is_an_abstract_class(lib):
    """Promise 88."""
    y = leaf(lib) * 2
    Node = lib.autograd.graph.Node
    for node in (y.grad_fn, y.grad_fn.next_functions[0][0]):
        assert isinstance(node, Node)
        assert issubclass(type(node), Node)
        assert Node not in type(node).__mro__
    assert not isinstance(y, Node)
    with pytest.raises(TypeError):
        Node()


def test_saved_values_have_torchs_names(lib):
    """Promise 88."""
    x, y = leaf(lib), leaf(lib)
    assert (x * y).grad_fn._saved_self is x
    assert (x * y).grad_fn._saved_other is y
    assert x.exp().grad_fn._saved_result.tolist() == x.exp().tolist()
    with pytest.raises(AttributeError):
        _ = (x * y).grad_fn._saved_nothing
    with pytest.raises(AttributeError):
        _ = (x * y).grad_fn.nothing


def test_saved_values_have_the_names_of_the_formula():
    """Promise 88."""
    x, y = leaf(ng), leaf(ng)
    node = (x * y).grad_fn
    assert node._saved_a is x
    assert node._saved_b is y
    assert np.exp(x).grad_fn._saved_y.tolist() == np.exp(x).tolist()
    with pytest.raises(AttributeError, match="saved nothing called 'c'; it saved a, b"):
        node.saved_value("c")


def test_one_saved_value_can_have_hooks_of_its_own(lib, raises):
    """Promise 88."""
    x, calls = leaf(lib), []
    y = x * x
    raw = y.grad_fn._raw_saved_self

    def pack(tensor):
        calls.append("pack")
        return tensor

    def unpack(tensor):
        calls.append("unpack")
        return tensor

    raw.register_hooks(pack, unpack)
    assert calls == ["pack"]
    with raises(RuntimeError, "MultiplyBackward has hooks already"):
        raw.register_hooks(pack, unpack)
    with raises(TypeError, "NoneType"):
        y.grad_fn._raw_saved_other.register_hooks(None, unpack)
    assert y.grad_fn._saved_self.tolist() == [1.0, 2.0]
    y.sum().backward()
    assert calls == ["pack", "unpack", "unpack"]
    assert x.grad.tolist() == [2.0, 4.0]


def test_saved_values_take_no_hooks_after_they_were_freed(lib, raises):
    """Promise 88."""
    y = leaf(lib) ** 3
    raw = y.grad_fn._raw_saved_self
    y.sum().backward()
    with raises(RuntimeError, "PowerBackward.*freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_operands_are_saved_as_they_are(lib):
    """Promise 89."""
    x, constant = leaf(lib), lib.ones(2)
    middle = x * 2
    assert (x * constant).grad_fn._saved_other is constant
    assert (middle * middle).grad_fn._saved_self is middle


def test_results_are_saved_as_equal_tensors(lib):
    """Promise 89."""
    y = leaf(lib).exp()
    saved = y.grad_fn._saved_result
    assert saved is not y
    assert saved.tolist() == y.tolist()
    assert saved.grad_fn is y.grad_fn
    assert saved.requires_grad


def test_gradient_edges_stand_for_tensors(lib, raises):
    """Promise 90."""
    x = leaf(lib)
    y = x * 3
    edge = lib.autograd.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    z = (y * y).sum()
    (gy,) = lib.autograd.grad(z, edge, retain_graph=True)
    assert gy.tolist() == [6.0, 12.0]
    (gx,) = lib.autograd.grad(edge, x, lib.ones(2), retain_graph=True)
    assert gx.tolist() == [3.0, 3.0]
    (gx,) = lib.autograd.grad(z, lib.autograd.graph.get_gradient_edge(x))
    assert gx.tolist() == [18.0, 36.0]
    with raises(RuntimeError, "does not require grad"):
        lib.autograd.graph.get_gradient_edge(lib.ones(2))


def test_an_edge_of_one_of_several_outputs(lib):
    """Promise 90."""
    x = leaf(lib)
    first, second = ng.split(x, 2) if lib is ng else lib.split(x, 1)
    edge = lib.autograd.graph.get_gradient_edge(second)
    assert edge.output_nr == 1
    lib.autograd.backward([edge, first], [lib.tensor([5.0]), None])
    assert x.grad.tolist() == [1.0, 5.0]


def test_an_edge_keeps_the_graph_but_not_the_data():
    """Promise 90."""
    x = leaf(ng)
    y = x + 1
    edge = ng.autograd.graph.get_gradient_edge(y)
    gone = weakref.ref(y)
    del y
    assert gone() is None
    ng.autograd.backward(edge, ng.ones(2))
    assert x.grad.tolist() == [1.0, 1.0]


def test_increment_version(lib, raises):
    x, w = lib.ones(2), leaf(lib)
    y = (w * x).sum()
    before = x._version
    lib.autograd.graph.increment_version(x)
    assert x._version == before + 1
    with raises(RuntimeError, "version 0.*version 1"):
        y.backward()
