"""Graphs: what is built, how it reads, and what the verifier finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from numgrad.compiler.graph.graph import CALL, CONSTANT, Graph, TracedNode, Value
from numgrad.core.op import OPS
from numgrad.errors import NumgradAssertionError

F4, F8, I8, BOOL = (np.dtype(name) for name in ("f4", "f8", "i8", "?"))


@pytest.fixture
def graph() -> Graph:
    """``exp(x * 2)``, stored in ``x`` too."""
    graph = Graph()
    x = graph.input((graph.sizes.axis(3), 4), F8)
    (y,) = graph.add(OPS["multiply"], (x, graph.constant(2)), {}, [(x.shape, F8)], line="f.py:7")
    (z,) = graph.add(OPS["exp"], (y,), {}, [(x.shape, F8)])
    graph.outputs, graph.writes = [z], [(x, z)]
    return graph


def test_text(graph):
    graph.verify()
    assert str(graph) == (
        "graph:\n"
        "  x0: float64[n0, 4]\n"
        "  v2: float64[n0, 4] = multiply(x0, 2)  # f.py:7\n"
        "  v3: float64[n0, 4] = exp(v2)\n"
        "  x0 <- v3\n"
        "  return v3"
    )
    assert repr(graph.outputs[0]) == "<float64 (n0, 4) of exp>"
    assert repr(graph.nodes[1].outputs[0]) == "<int64* () of constant>"


@pytest.mark.parametrize(
    ("number", "dtype", "expected", "weak", "operand"),
    [
        (2, None, I8, True, int),
        (2.5, None, F8, True, float),
        (1j, None, np.dtype("c16"), True, complex),
        (True, None, BOOL, True, bool),
        (2, F4, F4, False, F4),
        (np.float32(0.1), None, F4, False, F4),
        (np.bool_(True), None, BOOL, False, BOOL),
    ],
)
def test_constants(number, dtype, expected, weak, operand):
    value = Graph().constant(number, dtype)
    assert (value.dtype, value.weak, value.operand) == (expected, weak, operand)
    assert value.constant == number
    assert value.shape == ()


def test_sizes_as_numbers(graph):
    (n, _) = graph.inputs[0].shape
    value = graph.size(n * 2)
    assert (value.node.name, value.weak, value.dtype) == ("size", True, I8)
    assert graph.size(7).constant == 7
    assert int(n) == 3
    assert graph.size(n * 2).constant == 6


def test_lengths_that_became_known_are_put_into_shapes(graph):
    x = graph.inputs[0]
    (n, _) = x.shape
    assert len(range(n)) == 3
    graph.resolve_sizes()
    assert [type(length) for length in x.shape] == [int, int]


def test_users_and_replacing(graph):
    x, (z,) = graph.inputs[0], graph.outputs
    multiply, exp = graph.nodes[2:]
    (y,) = multiply.outputs
    assert graph.users() == {x: [multiply], graph.nodes[1].outputs[0]: [multiply], y: [exp]}
    assert graph.roots() == [z, z]
    graph.replace(lambda v: {y: x, z: y}.get(v, v))
    assert exp.inputs == (x,)
    assert graph.roots() == [y, y]
    graph.verify()


def _unknown_operand(graph: Graph) -> None:
    other = Graph().input((3,), F8)
    graph.nodes[-1].inputs = (other,)


def _wrong_order(graph: Graph) -> None:
    graph.nodes[-2:] = graph.nodes[:-3:-1]


def _unknown_operation(graph: Graph) -> None:
    graph.nodes[-1].op = "exponential"


def _no_result(graph: Graph) -> None:
    graph.add(OPS["exp"], graph.inputs, {}, [])


def _misplaced(graph: Graph) -> None:
    value = graph.outputs[0]
    value.number = 1


def _weak_array(graph: Graph) -> None:
    graph.outputs[0].weak = True


def _bad_length(graph: Graph) -> None:
    graph.outputs[0].shape = (3, -1)


def _output_of_nobody(graph: Graph) -> None:
    node = TracedNode(CONSTANT, (), {"value": 1}, None)
    graph.outputs.append(Value(node, 0, (), F8))


def _write_to_a_result(graph: Graph) -> None:
    graph.writes = [(graph.outputs[0], graph.outputs[0])]


def _write_of_another_dtype(graph: Graph) -> None:
    graph.writes = [(graph.inputs[0], graph.add(OPS["exp"], (), {}, [((3, 4), F4)])[0])]


def _not_of_the_table(graph: Graph) -> None:
    graph.nodes[-1].op = type(OPS["exp"])(lambda x: x, register=False)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_unknown_operand, "not computed yet"),
        (_wrong_order, "not computed yet"),
        (_unknown_operation, "unknown node"),
        (_no_result, "computes nothing"),
        (_misplaced, "misplaced"),
        (_weak_array, "weak"),
        (_bad_length, "has the length -1"),
        (_output_of_nobody, "is not computed"),
        (_write_to_a_result, "no input"),
        (_write_of_another_dtype, "is stored in"),
        (_not_of_the_table, "not in the table"),
    ],
)
def test_verifier(graph: Graph, damage: Callable[[Graph], None], message: str):
    graph.verify()
    damage(graph)
    with pytest.raises(NumgradAssertionError, match=message):
        graph.verify()


def test_a_call_may_have_effects_alone(graph):
    graph.add(CALL, graph.inputs, {"function": lambda x: ()}, [])
    graph.verify()
