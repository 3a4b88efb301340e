"""The reference backend computes what NumPy computes, for every length of the axes."""

from __future__ import annotations

import numpy as np
import pytest

from numgrad.compiler.graph.evaluate import compile_graph
from numgrad.compiler.graph.graph import CALL, Graph
from numgrad.core.op import OPS
from numgrad.errors import NumgradAssertionError

F4, F8, I8 = (np.dtype(name) for name in ("f4", "f8", "i8"))


def test_lengths_weak_numbers_and_several_outputs():
    graph = Graph()
    n, m = graph.sizes.axis(5), graph.sizes.axis(3)
    x, scale = graph.input((n, m), F4), graph.input((), F8, weak=True)
    (doubled,) = graph.add(OPS["multiply"], (x, graph.constant(2)), {}, [((n, m), F4)])
    (scaled,) = graph.add(OPS["multiply"], (doubled, scale), {}, [((n, m), F4)])
    index = (slice(n - 1, -1, -1), slice(0, m, 1))
    (turned,) = graph.add(OPS["getitem"], (scaled,), {"index": index}, [((n, m), F4)])
    (flat,) = graph.add(OPS["reshape"], (turned,), {"shape": (n * m,)}, [((n * m,), F4)])
    (ratio,) = graph.add(OPS["divide"], (graph.size(n), scale), {}, [((), F8)], weak=True)
    graph.outputs = [flat, ratio, x]
    graph.writes = [(x, turned)]
    graph.verify()
    program = compile_graph(graph)
    for shape in ((5, 3), (2, 7)):
        given = np.arange(shape[0] * shape[1], dtype=F4).reshape(shape)
        flat_result, ratio_result, same, written = program.run(given, 0.3)
        expected = ((given * 2) * 0.3)[::-1]
        np.testing.assert_array_equal(flat_result, expected.ravel())
        np.testing.assert_array_equal(written, expected)
        assert written.flags.c_contiguous
        assert ratio_result == shape[0] / 0.3
        assert same is not given
        np.testing.assert_array_equal(same, given)
        assert [r.dtype for r in (flat_result, ratio_result, same)] == [F4, F8, F4]


@pytest.mark.slow(cases=0)
def test_auxiliaries_absent_inputs_and_calls():
    graph = Graph()
    x, target = graph.input((3, 4), F8), graph.input((3,), I8)
    params = {"ignore_index": -100, "reduction": "mean", "label_smoothing": 0.0}
    args = [np.arange(12.0).reshape(3, 4), np.array([0, 2, 1])]
    out, call = OPS["cross_entropy"].run([*args, None], params)
    metas = [((), F8), *((a.shape, a.dtype) for a in call.aux)]
    params = {**params, "absent": (2,)}
    results = graph.add(OPS["cross_entropy"], (x, target), params, metas)
    (called,) = graph.add(CALL, (x,), {"function": lambda a: (a + 1,)}, [((3, 4), F8)])
    graph.outputs = [*results, called]
    graph.verify()
    found = compile_graph(graph).run(*args)
    for expected, value in zip((out, *call.aux, args[0] + 1), found, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_values_stay_what_they_were_when_a_call_writes_to_their_memory():
    graph = Graph()
    x = graph.input((3,), F8)

    def double(array: np.ndarray) -> tuple[np.ndarray]:
        array *= 2
        return (array,)

    (view,) = graph.add(OPS["reshape"], (x,), {"shape": (3, 1)}, [((3, 1), F8)])
    params = {"function": double, "impure": True, "writes": (x,)}
    (after,) = graph.add(CALL, (x,), params, [((3,), F8)])
    (again,) = graph.add(CALL, (after,), params, [((3,), F8)])
    graph.outputs = [view, x, after]
    graph.writes = [(x, again)]
    given = np.ones(3)
    found = compile_graph(graph).run(given)
    for value, number in zip(found, (1, 1, 2, 4), strict=True):
        np.testing.assert_array_equal(value.ravel(), np.full(3, number, float))
    np.testing.assert_array_equal(given, 4.0)


def test_a_result_that_is_not_what_the_graph_says_raises():
    graph = Graph()
    x = graph.input((3,), F4)
    graph.outputs = list(graph.add(OPS["exp"], (x,), {}, [((3,), F8)]))
    with pytest.raises(NumgradAssertionError, match="exp"):
        compile_graph(graph).run(np.zeros(3, F4))
    with pytest.raises(NumgradAssertionError, match="1 inputs, got 2"):
        compile_graph(graph).run(np.zeros(3, F4), 1.0)
