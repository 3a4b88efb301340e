import numpy as np
import pytest

import numgrad as ng
from numgrad.viz import make_dot
from tests.viz.dot_parser import Graph

GREY, BLUE, GREEN, BASE, ORANGE = (
    *("lightgrey", "lightblue", "darkolivegreen1"),
    *("darkolivegreen3", "orange"),
)


@pytest.fixture
def w():
    return ng.ones((2, 3), requires_grad=True)


def test_leaf_accumulator_nodes_and_output(w):
    graph = Graph(make_dot(np.sin(w * 2.0).sum(), params={"weight": w}))
    assert graph.labels(BLUE) == ["weight\n(2, 3)"]
    assert graph.labels(GREEN) == ["()"]
    assert graph.labels(GREY) == [
        *("AccumulateGrad", "MultiplyBackward", "SinBackward", "SumBackward"),
    ]
    assert graph.links() == [
        ("AccumulateGrad", "MultiplyBackward"),
        ("MultiplyBackward", "SinBackward"),
        ("SinBackward", "SumBackward"),
        ("SumBackward", "()"),
        ("weight\n(2, 3)", "AccumulateGrad"),
    ]


def test_names_may_be_pairs_and_unnamed_tensors_show_their_shape(w):
    b = ng.ones(3, requires_grad=True)
    graph = Graph(make_dot(w + b, params=iter([("w", w)])))
    assert graph.labels(BLUE) == ["(3,)", "w\n(2, 3)"]


def test_an_operand_twice_is_one_node_and_two_arrows(w):
    graph = Graph(make_dot(w * w))
    assert graph.links().count(("AccumulateGrad", "MultiplyBackward")) == 2
    assert len(graph.labels(BLUE)) == 1


def test_what_several_nodes_and_outputs_share_is_drawn_once(w):
    shared = np.sin(w)
    graph = Graph(make_dot((shared.sum(), np.exp(shared)), params={"w": w}))
    assert graph.labels(GREY).count("SinBackward") == 1
    assert graph.labels(GREEN) == ["()", "(2, 3)"]
    assert graph.labels(BLUE) == ["w\n(2, 3)"]
    listed = make_dot([shared, shared])
    assert Graph(listed).labels(GREEN) == ["(2, 3)"]


def test_a_view_hangs_on_its_base_by_a_dotted_arrow(w):
    y = np.exp(w)
    graph = Graph(make_dot(y[0]))
    assert graph.labels(GREEN) == ["(3,)"]
    assert graph.labels(BASE) == ["(2, 3)"]
    assert graph.links(style="dotted") == [("(2, 3)", "(3,)")]
    assert ("ExpBackward", "(2, 3)") in graph.links()


def test_a_view_of_a_leaf(w):
    graph = Graph(make_dot(w[0], params={"w": w}))
    assert graph.labels(BLUE) == ["w\n(2, 3)"]
    assert graph.labels(BASE) == []
    assert graph.links(style="dotted") == [("w\n(2, 3)", "(3,)")]


def test_a_tensor_without_history_is_a_box_by_itself(w):
    for alone in (ng.zeros(2), w):
        graph = Graph(make_dot(alone))
        assert graph.labels(GREEN) == [str(alone.shape)]
        assert len(graph.nodes) == 1
        assert not graph.edges


def test_a_leaf_that_is_an_output_too_stays_green(w):
    graph = Graph(make_dot((w, np.sin(w))))
    assert graph.labels(GREEN) == ["(2, 3)", "(2, 3)"]
    assert graph.labels(BLUE) == []
    assert ("(2, 3)", "AccumulateGrad") in graph.links()


def test_constants_are_not_drawn(w):
    graph = Graph(make_dot(w * np.ones(3)))
    assert sum(node["fillcolor"] != GREY for node in graph.nodes.values()) == 2


def test_saved_tensors(w):
    y = np.exp(w * 2.0)
    graph = Graph(make_dot(y * np.sin(w), params={"w": w}, show_saved=True))
    assert graph.labels(ORANGE) == ["a\n(2, 3)", "b\n(2, 3)"]
    # y is saved by two nodes, the leaf has its box already
    assert graph.links(dir="none") == [
        ("a\n(2, 3)", "ExpBackward"),
        ("a\n(2, 3)", "MultiplyBackward"),
        ("b\n(2, 3)", "MultiplyBackward"),
        ("w\n(2, 3)", "SinBackward"),
    ]
    assert not Graph(make_dot(y, params={"w": w})).labels(ORANGE)


def test_saved_result_of_an_output_has_a_box_of_its_own(w):
    graph = Graph(make_dot(np.exp(w), show_saved=True))
    assert graph.labels(ORANGE) == ["result\n(2, 3)"]
    assert graph.links(dir="none") == [("result\n(2, 3)", "ExpBackward")]


def test_saved_tensors_of_a_function_and_of_a_tuple(w):
    class Scale(ng.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x, None, factor)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g, None

    graph = Graph(make_dot(Scale.apply(w, ng.zeros(3)), show_saved=True, show_attrs=True))
    assert graph.labels(ORANGE) == ["tensors[2]\n(3,)"]
    (function,) = [label for label in graph.labels(GREY) if label.startswith("Scale")]
    assert "tensors: [saved tensors]" in function


def test_attributes_are_what_was_saved_and_the_parameters(w):
    graph = Graph(make_dot((w**3.0).sum(axis=1), show_attrs=True))
    power, total = graph.labels(GREY)[1:]
    assert power.splitlines()[0] == "PowerBackward"
    assert set(power.splitlines()[1]) == {"-"}
    assert "a: [saved tensor]" in power
    assert power.splitlines()[3].split() == ["b:", "3.0"]
    lines = [line.split() for line in total.splitlines()]
    assert ["axis", ":", "1"] in lines
    assert ["keepdims:", "False"] in lines


@pytest.mark.parametrize(("most", "shown"), [(10, "slice(N..."), (3, "..."), (0, "...")])
def test_long_values_are_cut(w, most, shown):
    graph = Graph(make_dot(w[::2], show_attrs=True, max_attr_chars=most))
    (getitem,) = [label for label in graph.labels(GREY) if label.startswith("Getitem")]
    assert getitem.splitlines()[2] == f"index: {shown}"


def test_a_freed_graph(w):
    y = np.exp(w).sum()
    y.backward()
    with pytest.raises(ng.NumgradRuntimeError, match=r"freed.*ExpBackward.*retain_graph=True"):
        make_dot(y, show_saved=True)
    graph = Graph(make_dot(y, show_attrs=True))
    assert any("result: [freed]" in label for label in graph.labels(GREY))
    kept = np.exp(w).sum()
    kept.backward(retain_graph=True)
    assert Graph(make_dot(kept, show_saved=True)).labels(ORANGE)


def test_drawing_runs_no_hooks_and_checks_no_versions(w):
    def fail(_):
        raise AssertionError("unpacked")

    with ng.autograd.graph.saved_tensors_hooks(lambda t: t, fail):
        y = np.sin(w)
    assert Graph(make_dot(y, show_saved=True)).labels(ORANGE) == ["x\n(2, 3)"]
    v = w * 1.0
    s = np.sin(v)
    v += 1.0  # what sin saved is stale now
    assert Graph(make_dot((s, v), show_saved=True)).labels(ORANGE) == ["x\n(2, 3)"]


def test_large_arrays_of_users_are_saved_behind_a_guard(w):
    constant = np.ones((100, 100, 2))
    graph = Graph(make_dot(constant @ w, show_saved=True))
    assert "a\n(100, 100, 2)" in graph.labels(ORANGE)


def test_a_graph_deeper_than_the_stack(w):
    y = w
    for _ in range(3000):
        y = np.negative(y)
    drawing = make_dot(y)
    assert len(Graph(drawing).labels(GREY)) == 3001
    assert drawing.svg().count("<g ") == 3003


def test_equal_graphs_give_equal_drawings():
    def draw():
        x, u = ng.ones(3, requires_grad=True), ng.ones(3, requires_grad=True)
        y = np.sin(x * u) + np.exp(x) * u
        return make_dot((y, y[1:]), {"x": x, "u": u}, show_attrs=True, show_saved=True)

    first, second = draw(), draw()
    assert first.source == second.source
    assert first.svg() == second.svg()


@pytest.mark.parametrize("output", [3.0, np.zeros(2), {"y": 1}, [1.0], None])
def test_only_tensors_have_graphs(output):
    with pytest.raises(ng.NumgradTypeError, match="make_dot: draws the graph of a Tensor"):
        make_dot(output)


def test_params_are_tensors(w):
    with pytest.raises(ng.NumgradTypeError, match=r"'b' is a ndarray"):
        make_dot(w * 2.0, params={"w": w, "b": np.zeros(2)})
