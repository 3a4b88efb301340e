"""Seeing inside: graphs, sources, machine code, reports, counts."""

import io
import re
import sys
import time
from xml.etree import ElementTree

import numpy as np
import pytest

import numgrad as ng
from numgrad.codegen.nests.account import VectorLoop, judge, source_loops, vector_loops
from numgrad.compiler import messages

RNG = np.random.default_rng(0)


def loss(w, x):
    z = x @ w
    return np.mean(np.exp(z) * z)


@pytest.fixture(scope="module")
def compiled():
    """A compiled function that was called once, and an array of its arguments."""
    fast = ng.jit(ng.value_and_grad(loss), parallel=False)
    arguments = (RNG.random(3), RNG.random((500, 3)))
    fast(*arguments)
    return fast, arguments


# ---------------------------------------------------------------------------------------- graphs


def test_a_graph_shows_the_users_lines():
    text = str(ng.jit(loss).graph(np.ones(3), np.ones((4, 3))))
    first = loss.__code__.co_firstlineno
    assert f"# {__file__}:{first + 1}: z = x @ w" in text
    assert f"# {__file__}:{first + 2}: return np.mean(np.exp(z) * z)" in text
    assert "x0: float64[n0]  # w" in text
    assert re.search(r"v\d+: float64\[n1\] = matmul\(x1, x0\)", text)


def test_a_graph_is_a_picture():
    def f(x, y):
        y[:] = x * 2
        return x + 1

    graph = ng.jit(f, donate="y").graph(np.ones(3), np.ones(3))
    drawn = ElementTree.fromstring(graph._repr_svg_())
    texts = ["".join(found.itertext()) for found in drawn.iter() if found.tag.endswith("text")]
    assert "multiply(x0, 2)" in texts
    assert "-> y" in texts  # what is written
    assert any(re.fullmatch(r"test_report\.py:\d+", t) for t in texts)
    dot = graph.to_dot()
    assert dot.startswith("digraph {")
    assert str(ng.viz.make_dot(graph)) == dot
    assert ng.viz.make_dot(graph).svg() == graph.svg()


def test_a_result_that_is_an_input_or_a_number_is_drawn():
    graph = ng.jit(lambda x: (x, 2.0, x * 0 + x.shape[0])).graph(np.ones(3))
    assert graph.svg().count("return") >= 2


# ------------------------------------------------------------------------------- what was compiled


@pytest.mark.slow(cases=0)
def test_source_llvm_and_assembly(compiled):
    fast, _ = compiled
    assert "def nest_0(" in fast.source
    assert "def run(x0, x1):" in fast.source
    assert re.search(r"^define ", fast.llvm, re.MULTILINE)
    assert "ret" in fast.asm


def test_they_are_of_the_last_specialisation_and_compiled_on_demand():
    fast = ng.jit(lambda x: x * 3)
    for ask in ("source", "llvm", "asm"):
        with pytest.raises(ng.NumgradRuntimeError, match="not compiled yet; call it once"):
            getattr(fast, ask)
    fast(np.ones(2, np.float32))
    assert "float32" in fast.source
    fast(np.ones(2))
    assert "float32(" not in fast.source.split("def nest_0")[1]


def test_report(compiled):
    fast, _ = compiled
    text = fast.report()
    file, first = "test_report.py", loss.__code__.co_firstlineno
    assert "1 calls, 1 traces, 1 kernels" in text
    assert re.search(r"passes: \d+ nodes became \d+", text)
    assert "here n0 = 3, n1 = 500" in text
    assert re.search(rf"{file}:{first + 1}: matmul", text)
    assert re.search(rf"{file}:{first + 2}: .*exp", text)
    assert "threads: one" in text
    assert re.search(r"reads .*; writes t\d+", text)
    assert "n1 = 500 exp" in text
    assert re.search(r"for .*  \[vectorised, \d+ x double\]", text)
    assert "not known" not in text
    assert "guards: none" in text


def test_estimates_are_those_of_a_reader():
    fast = ng.jit(lambda x, y: np.sqrt(x * y) + x, parallel=False)
    fast(np.ones((10, 20)), np.ones((10, 20)))
    # two arrays read and one written; a product, a root and a sum for each element
    assert "about 24*n0*n1 = 4,800 bytes moved; 3*n0*n1 = 600 flops" in fast.report()


def test_gradients_for_both_operands_share_the_solution_of_a_banded_system():
    bands, b = np.array([[0.0, 1, 1], [4, 5, 6], [1, 2, 0]]), np.array([1.0, 2, 3])
    step = ng.jit(ng.grad(lambda ab, b: np.sum(ng.linalg.solve_banded((1, 1), ab, b) ** 2), (0, 1)))
    of_bands, of_b = step(bands, b)
    matrix = np.diag(bands[1]) + np.diag(bands[0, 1:], 1) + np.diag(bands[2, :-1], -1)
    x = np.linalg.solve(matrix, b)
    z = np.linalg.solve(matrix.T, 2 * x)
    np.testing.assert_allclose(of_b, z, rtol=1e-12)
    np.testing.assert_allclose(of_bands[1], -z * x, rtol=1e-12)
    assert str(step.report()).count("segment: banded_solution") == 2


def test_segments_are_reported_with_their_reason():
    class Twice(ng.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return ng.tensor(x.numpy() * 2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    fast = ng.jit(lambda x: (Twice.apply(x) + 1, x * 3, x.sum()))
    results = fast(ng.tensor(np.ones(3)))
    assert [result.tolist() for result in results] == [[3.0] * 3, [3.0] * 3, 3.0]
    text = fast.report()
    assert re.search(r"segment: a call of a Python function \(.*test_report\.py:\d+\)", text)


def test_reasons_and_guards_are_reported():
    fast = ng.jit(lambda x, y: x + y)
    fast(np.ones(3), np.ones(3))
    fast(np.ones(3), 2.0)
    text = fast.report()
    assert "made because argument y was an ndarray, now a number (float)" in text
    assert "n1 == n0" in text or "n0 == n1" in text or "guards: none" in text


# -------------------------------------------------------------------------------- vectorised loops

LINES = """\
def nest_0(lo, hi, a1, a2, a3):
    for i0 in range(0, n):
        store(C0, a3, i0, 0, 4)
    for i0 in range(lo, hi):
        e1 = load(float64, a1, i0, 1, 4)
        for i1 in range(4):
            e2 = load(float64, a2, i1, 2, 4)
            store(e1 + e2, a3, i1, 3, 4)
    for i2 in range(lo, hi):
        e3 = load(float64, a1, i2, 1, 4)
        acc = add_any_order(acc, e3)
""".splitlines()


def verdicts(*found):
    loops = source_loops(LINES)
    vectorised = [VectorLoop("4 x double", frozenset(f)) for f in found if f is not None]
    judge(loops, None if None in found else vectorised)
    return [loop.verdict for loop in loops]


def test_loops_are_told_apart_by_what_they_access():
    loops = source_loops(LINES)
    assert [loop.depth for loop in loops] == [0, 0, 1, 0]
    assert [loop.scopes for loop in loops] == [{0}, {1, 2, 3}, {2, 3}, {1}]
    assert [loop.innermost for loop in loops] == [True, False, True, True]
    assert loops[2].reads == ["a2"]
    assert loops[2].stores == ["a3"]
    yes = "vectorised, 4 x double"
    assert verdicts() == ["fills memory", "", "not vectorised", "not vectorised"]
    assert verdicts({2, 3}) == ["fills memory", "", yes, "not vectorised"]
    assert verdicts({1}) == ["fills memory", "", "not vectorised", yes]
    unrolled = "unrolled in a vectorised loop"
    assert verdicts({1, 3}) == ["fills memory", yes, unrolled, "not vectorised"]
    assert verdicts(None) == ["not known", "", "not known", "not known"]


def test_what_a_loop_stores_tells_more():
    lines = [*LINES[:5], "        store(e1, a3, i0, 3, 4)", *LINES[8:]]
    loops = source_loops(lines)
    judge(loops, [VectorLoop("4 x double", frozenset({1}), frozenset({3}))])
    assert [loop.verdict for loop in loops][1:] == ["vectorised, 4 x double", "not vectorised"]


def test_loops_that_look_alike_are_not_told_apart():
    alike = [*LINES, *(line.replace("i2", "i3") for line in LINES[-3:])]
    loops = source_loops(alike)
    judge(loops, [VectorLoop("8 x float", frozenset({1}))])
    assert [loop.verdict for loop in loops[-2:]] == ["not known: vectorised, or one like it"] * 2
    both = [VectorLoop("8 x float", frozenset({1}), size=n) for n in (4, 16)]
    judge(loops, both)
    assert [loop.verdict for loop in loops[-2:]] == ["vectorised, 8 x float"] * 2


def test_vector_loops_hold_others_or_never_end():
    """A loop within another is part of that; a label to which nothing branches back is none."""
    module = """\
define i32 @nest_0(ptr %a) {
full.1:
  %1 = add <8 x i64> %i, %j
  br label %full.2
full.2:
  %2 = load <4 x float>, ptr %p
  br i1 %c, label %full.2, label %full.3
full.3:
  %3 = load <2 x double>, ptr %p
  br i1 %c, label %full.1, label %vector.body
vector.body:
  %4 = load <2 x float>, ptr %p
  br i1 %c, label %end, label %end
end:
  ret i32 0
}
"""
    assert vector_loops(module) == {"nest_0": [VectorLoop("8 x i64", frozenset(), size=2)]}


def test_vector_loops_of_a_module():
    module = """\
define i32 @_ZN3jit12nest_0_abcdeB3v1(ptr %a) {
entry:
  br label %vector.body
vector.body:                                      ; preds = %entry
  %0 = load <4 x float>, ptr %p, align 8, !alias.scope !1, !noalias !2
  %1 = add <4 x i64> %i, %j
  br i1 %c, label %end, label %vector.body, !llvm.loop !9
vec.epilog.vector.body:
  %2 = load <2 x float>, ptr %p, align 8, !alias.scope !2
  br i1 %c, label %end, label %vec.epilog.vector.body, !llvm.loop !9
scalar:
  br i1 %c, label %vector.body7, label %end
vector.body7:
  store <8 x double> %x, ptr %p, align 8, !alias.scope !1, !noalias !2
  br i1 %c, label %end, label %vector.body7, !llvm.loop !8
end:
  ret i32 0
}

define i32 @_ZN3jit12nest_1_abcdeB3v1(ptr %a) {
  ret i32 0
}

!1 = !{!3}
!2 = !{!4}
!3 = !{!"numgrad array 5", !7}
!4 = !{!"numgrad array 6", !7}
!7 = !{!"numgrad arrays"}
"""
    assert vector_loops(module) == {
        "nest_0": [
            VectorLoop("4 x float", frozenset({5}), size=3),
            VectorLoop("8 x double", frozenset({5}), frozenset({5}), 2),
        ],
        "nest_1": [],
    }


# ------------------------------------------------------------------------------------ what it costs


def test_time_and_kernels_are_counted_as_they_are_made():
    def f(x):
        return (x * 5).sum()

    fast = ng.jit(f, parallel=False)
    assert fast.statistics.compiles == 0
    fast(np.ones(3))
    first = fast.statistics
    assert (first.traces, first.compiles) == (1, 1)
    (step,) = fast.specialisations[0].steps
    assert 0 < step.seconds < first.seconds
    fast(np.ones(4))
    assert fast.statistics.seconds == first.seconds
    fast(np.ones(3, np.float32))
    assert fast.statistics.compiles == 2
    assert fast.statistics.seconds > first.seconds


def test_a_backward_counts_when_it_is_compiled():
    x = ng.tensor(np.ones(3), requires_grad=True)
    fast = ng.jit(lambda x: (x * x * x).sum())
    y = fast(x)
    assert fast.statistics.compiles == 1
    y.backward()
    assert fast.statistics.compiles == 2


def test_progress_is_one_line(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(messages, "PATIENCE", 0.01)
    monkeypatch.setattr(messages, "is_interactive", lambda: True)
    monkeypatch.setattr(sys, "stderr", written)
    with messages.announced("compiling f"), messages.announced("compiling a kernel of f"):
        deadline = time.monotonic() + 60
        while not written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert re.fullmatch(r"numgrad: compiling f \.\.\. \d+\.\d s\n", written.getvalue())
    with messages.announced("again"):  # what is over does not count
        deadline = time.monotonic() + 60
        while "again" not in written.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "again" in written.getvalue()


class Stream(io.StringIO):
    """What is written, and a wait until something is."""

    def wait(self):
        deadline = time.monotonic() + 60
        while not self.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)


def test_progress_without_a_terminal_is_one_plain_line_after_longer(monkeypatch):
    out, err = Stream(), Stream()
    monkeypatch.setattr(messages, "PATIENCE", 0.0)
    monkeypatch.setattr(messages, "LONG", 0.05)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    begin = time.monotonic()
    with messages.announced("compiling f"), messages.announced("compiling a kernel of f"):
        err.wait()
        assert time.monotonic() - begin >= 0.05
    assert err.getvalue() == "numgrad: compiling f takes more than 0.05 s\n"
    monkeypatch.setattr(messages, "LONG", 10.0)
    with messages.announced("g"):
        pass
    assert "g" not in err.getvalue().split("than")[1]
    assert out.getvalue() == ""


def test_progress_in_a_notebook_is_on_stdout(monkeypatch):
    notebook = type("OutStream", (Stream,), {"__module__": "ipykernel.iostream"})
    out, err = notebook(), notebook()
    monkeypatch.setattr(messages, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with messages.announced("compiling f"):
        out.wait()
    assert re.fullmatch(r"numgrad: compiling f \.\.\. \d+\.\d s\n", out.getvalue())
    assert err.getvalue() == ""
