"""Split mode: the state of a forward sweep, from a recorded call to its backward sweeps."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import tuple_of
from tests.codegen.adjoint.science import CASES

RNG = np.random.default_rng(5)
X = RNG.uniform(0.2, 1.2, 7)


def chain(x, a):
    """A tape of each iteration, a local array, scalars outside of loops."""
    w = np.empty(len(x))
    total = 1.0
    for i in range(len(x)):
        w[i] = math.exp(a * x[i])
        total = total * w[i] + x[i]
    scale = math.sqrt(total)
    for i in range(1, len(x)):
        w[i] = w[i] * w[i - 1] * scale
    return w[len(x) - 1] * scale


def smooth(u, k):
    """An array that is overwritten, whose last elements the backward sweep reads."""
    for i in range(1, len(u)):
        u[i] = u[i] * k + u[i - 1] * u[i - 1]


def gradients_of(function, arguments, written=(), weights=None):
    return hyperdual.run(function, arguments, written, weights).gradients


@pytest.fixture(scope="module")
def chained():
    return ng.kernel(chain)


@pytest.fixture(scope="module")
def smoothed():
    return ng.kernel(smooth, writes="u")


def recorded(kernel, *arguments, wanted=None):
    """Tensors of the arguments, of which those wanted require grad, and the outputs."""
    tensors = [
        ng.tensor(a, requires_grad=wanted is None or k in wanted)
        if hyperdual.differentiable(a)
        else a
        for k, a in enumerate(arguments)
    ]
    return tensors, kernel(*tensors)


def form_of(output):
    """What a recorded call's node saves besides operands."""
    return [name for name in output.grad_fn.call.saves(0) if name in ("y", "forward state")]


def test_the_graph_may_be_gone_through_again(chained):
    (x, a), out = recorded(chained, X, 0.3)
    assert form_of(out) == ["forward state"]
    out.backward(retain_graph=True)
    first = np.array(x.grad), float(a.grad)
    wanted = gradients_of(chain, [X, 0.3], weights=[1.0])
    np.testing.assert_allclose(first[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(first[1], wanted[1], rtol=1e-12)
    x.grad = a.grad = None
    out.backward()
    np.testing.assert_array_equal(np.asarray(x.grad), first[0])
    assert float(a.grad) == first[1]
    with pytest.raises(ng.errors.NumgradRuntimeError, match="freed"):
        out.backward()


def test_the_state_is_freed_with_what_a_node_saves(chained):
    _, out = recorded(chained, X, 0.3)
    node = out.grad_fn
    state = weakref.ref(node.saved[-1].arrays[0])
    assert state() is not None
    assert node.call.state is None
    out.backward()
    gc.collect()
    assert state() is None


@pytest.mark.parametrize("wanted", [{0}, {1}, {0, 1}])
def test_gradients_by_some_of_the_operands(chained, wanted):
    tensors, out = recorded(chained, X, 0.3, wanted=wanted)
    out.backward()
    exact = gradients_of(chain, [X, 0.3], weights=[1.0])
    for k, tensor in enumerate(tensors):
        if k in wanted:
            np.testing.assert_allclose(np.asarray(tensor.grad), exact[k], rtol=1e-12)
        else:
            assert tensor.grad is None


def test_a_backward_by_fewer_inputs_than_were_recorded(chained):
    (x, a), out = recorded(chained, X, 0.3)
    exact = gradients_of(chain, [X, 0.3], weights=[1.0])
    out.backward(inputs=(a,), retain_graph=True)
    assert x.grad is None
    np.testing.assert_allclose(float(a.grad), exact[1], rtol=1e-12)
    (seen,) = ng.autograd.grad(out, (x,))
    np.testing.assert_allclose(np.asarray(seen), exact[0], rtol=1e-12)


def test_outputs_that_the_backward_reads_are_checked(smoothed):
    (u, k), out = recorded(smoothed, X, 0.5)
    assert form_of(out) == ["y", "forward state"]
    with ng.no_grad():
        out *= 2.0
    with pytest.raises(ng.errors.NumgradRuntimeError, match=r"version|place"):
        np.sum(out).backward()
    (u, k), out = recorded(smoothed, X, 0.5)
    np.sum(out * out).backward()
    values = X.copy()
    smooth(values, 0.5)
    exact = gradients_of(smooth, [X, 0.5], written=(0,), weights=[2 * values])
    np.testing.assert_allclose(np.asarray(u.grad), exact[0], rtol=1e-12)
    np.testing.assert_allclose(float(k.grad), exact[1], rtol=1e-12)


def test_operands_are_checked(chained):
    (x, a), _ = recorded(chained, X, 0.3)
    scaled = x * 1.0
    out = chained(scaled, a)
    with ng.no_grad():
        scaled *= 2.0
    with pytest.raises(ng.errors.NumgradRuntimeError, match=r"version|place"):
        out.backward()


def test_hooks_of_saved_tensors_see_arrays_alone(chained):
    seen = []

    def pack(t):
        seen.append(np.shape(t))
        return np.array(t)

    with ng.autograd.graph.saved_tensors_hooks(pack, ng.tensor):
        (x, _), out = recorded(chained, X, 0.3)
    assert sorted(seen) == [(), (7,)]
    assert form_of(out) == []
    out.backward()
    exact = gradients_of(chain, [X, 0.3], weights=[1.0])
    np.testing.assert_allclose(np.asarray(x.grad), exact[0], rtol=1e-12)


def test_second_derivatives_of_a_recorded_call(chained):
    (_, a), out = recorded(chained, X, 0.3)
    (first,) = ng.autograd.grad(out, (a,), create_graph=True)
    (second,) = ng.autograd.grad(first, (a,))
    h = 1e-4
    ends = [gradients_of(chain, [X, 0.3 + s * h], weights=[1.0])[1] for s in (1, -1)]
    np.testing.assert_allclose(float(second), (ends[0] - ends[1]) / (2 * h), rtol=1e-5)


def test_threads_share_a_kernel(chained):
    exact = {a: gradients_of(chain, [X, a], weights=[1.0])[0] for a in (0.1, 0.2, 0.3, 0.4)}
    wrong = []

    def work(a):
        for _ in range(20):
            (x, _), out = recorded(chained, X, a)
            out.backward()
            if not np.allclose(np.asarray(x.grad), exact[a], rtol=1e-12):
                wrong.append(a)

    threads = [threading.Thread(target=work, args=(a,)) for a in exact]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_state_of_unknown_length_leaves_the_joint_sweep():
    def counted(x, limit):
        total = 1.0
        k = 0
        while total < limit:
            total = total * (1.0 + math.exp(x))
            k += 1
        return total * x

    kernel = ng.kernel(counted)
    (x, _), out = recorded(kernel, 0.3, 50.0)
    out.backward()
    exact = gradients_of(counted, [0.3, 50.0], weights=[1.0])
    np.testing.assert_allclose(float(x.grad), exact[0], rtol=1e-12)


def test_reports_say_what_a_call_holds(chained, smoothed):
    report = chained.report(X, 0.3)
    assert report.form == "split"
    assert [name.rstrip("_0123456789") for name in report.held[:2]] == ["total", "v"]
    assert report.held[-2:] == ("w", "2 numbers")
    assert "holds until its backward" in str(report)
    assert smoothed.report(X, 0.5).held[-1] == "its outputs"
    assert "kept_float64[" in chained.source("augmented", X, 0.3)
    assert "w__b" in chained.source("reverse", X, 0.3)


@pytest.mark.slow(cases=len(CASES) // 6)
@pytest.mark.parametrize("name", [name for k in range(6) for name in [*CASES][k::6]])
def test_joint_and_split_sweeps_have_the_same_gradients(name):
    """Both for all inputs, and the split one for each input alone."""
    case = CASES[name]
    arguments = case.draw(case.size)
    kernel = ng.kernel(case.function, writes=case.writes)
    operands = kernel.arrays(arguments)
    program = kernel.program(operands)
    values = [np.ascontiguousarray(a) if a.ndim else a.item() for a in operands]
    outputs = tuple_of(program.call(*values))
    seeds = [RNG.normal(size=o.shape) if o.dtype.kind in "fc" else None for o in outputs]
    joint = program.vjp(values, seeds)
    size = max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in joint if g is not None))
    for inputs in (program.all_inputs, *[(n,) for n in program.all_inputs]):
        seen, state = program.forward_sweep(values, inputs)
        for a, b in zip(outputs, seen, strict=True):
            np.testing.assert_array_equal(a, b)
        if state is None:
            continue
        split = program.split(inputs)
        given = seen if split.reads_outputs else None
        for _ in range(2):
            gradients = program.backward_sweep(values, given, state, seeds)
            for n, a, b in zip(program.names, joint, gradients, strict=True):
                assert (b is not None) == (n in inputs)
                if b is not None:
                    np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12 * size)
