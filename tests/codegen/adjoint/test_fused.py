"""Fused sweeps: which loops are reversed iteration by iteration, and that gradients are right."""

import math

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import judge
from tests.codegen.adjoint.sums import as_sum
from tests.codegen.adjoint.test_drawn_programs import truth_of
from tests.codegen.adjoint.writer import Writer

X = np.random.default_rng(3).uniform(0.3, 1.2, 6)
Y = np.random.default_rng(4).uniform(0.3, 1.2, 6)


def fuses(function, *arguments, writes=()):
    """How many loops are fused, all gradients compared with exact ones."""
    kernel = ng.kernel(function, writes=writes)
    names = kernel.definition.scope.parameters
    written = [names.index(w) for w in writes]
    rng = np.random.default_rng(0)
    exact = hyperdual.run(
        function, list(arguments), written, lambda v: rng.normal(size=np.shape(v))
    )
    tensors = [
        ng.tensor(a, requires_grad=True) if hyperdual.differentiable(a) else a for a in arguments
    ]
    out = kernel(*tensors)
    outs = out if isinstance(out, tuple) else (out,)
    total = sum(np.sum(o * w) for o, w in zip(outs, exact.weights, strict=True))
    total.backward()
    for tensor, wanted in zip(tensors, exact.gradients, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(np.asarray(tensor.grad), wanted, rtol=1e-11, atol=1e-12)
    program = kernel.program(kernel.arrays(arguments))
    return len(program.backward(program.all_inputs).fused)


def pairs(x, a):
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            d = x[i] - x[j]
            if d > 0.0:
                s += math.exp(-a * d * d)
            else:
                s -= d
    return s


def test_sums_over_nested_loops_are_fused():
    assert fuses(pairs, X, 0.7) == 2


def test_what_follows_the_sum_is_known_before_it():
    def f(x, a):
        s = 0.0
        n = 0.0
        for i in range(len(x)):
            s += math.sin(a * x[i])
        for i in range(len(x)):
            n = n - x[i] * x[i] * a
        return math.exp(a) * (s - n) / (1.0 + a * a)

    assert fuses(f, X, 0.7) == 2

    def g(x, a):  # the cotangent of the sum depends on the sum
        s = 0.0
        for i in range(len(x)):
            s += math.sin(a * x[i])
        return s * s

    assert fuses(g, X, 0.7) == 0

    def h(x, a):  # and here on another one that is computed later
        s = 0.0
        for i in range(len(x)):
            s += math.sin(a * x[i])
        t = 1.0
        for i in range(len(x)):
            t = t * x[i]
        return s * t

    assert fuses(h, X, 0.7) == 0


def test_an_inner_loop_that_is_no_sum_is_kept_for_one_iteration():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            p = x[i]
            for _ in range(i + 1):
                p = a * p * (1.0 - p)
            s += p * p
        return s

    assert fuses(f, X, 0.7) == 1
    kernel = ng.kernel(f)
    source = kernel.source("backward", X, 0.7)
    assert source.count("for k0_") == 1
    assert source.count("for k1_") == 2


def test_arrays_of_an_iteration_and_arrays_that_are_shared():
    def local(x, a):
        s = 0.0
        for i in range(len(x)):
            w = np.zeros(3)
            for k in range(3):
                w[k] = a * x[i] * (k + 1)
                if k > 0:
                    w[k] += w[k - 1] * w[k - 1]
            s += w[2] * w[1]
        return s

    assert fuses(local, X, 0.7) == 1

    def before(x, a):  # a table that is made before
        w = np.empty(len(x))
        for i in range(len(x)):
            w[i] = math.exp(a * x[i])
        s = 0.0
        for i in range(len(x)):
            s += w[i] * w[0]
        return s

    assert fuses(before, X, 0.7) == 1

    def shared(x, a):  # what an iteration writes, a later one reads
        w = np.zeros(len(x) + 1)
        s = 0.0
        for i in range(len(x)):
            w[i + 1] = w[i] * a + x[i]
            s += w[i + 1] * w[i + 1]
        return s

    assert fuses(shared, X, 0.7) == 0

    def after(x, a):  # written after it is read
        w = np.zeros(2)
        w[0] = a
        s = 0.0
        for i in range(len(x)):
            s += x[i] * w[i % 2]
        w[0] = a * a
        for i in range(len(x)):
            s += x[i] * w[i % 2]
        return s

    assert fuses(after, X, 0.7) == 1

    def inner_after(x, a):  # the same within an iteration
        s = 0.0
        for i in range(len(x)):
            w = np.zeros(2)
            w[0] = a * x[i]
            for k in range(2):
                s += x[i] * w[k]
            w[0] = a * a
            s += w[0] * x[i]
        return s

    assert fuses(inner_after, X, 0.7) == 1


def test_sums_that_something_reads_are_not_fused():
    def read(x, a):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * a
            if s > 2.0:
                s += x[i] * x[i]
        return s

    assert fuses(read, X, 0.7) == 0

    def scaled(x, a):
        s = 0.0
        for i in range(len(x)):
            s = s * a + x[i]
        return s

    assert fuses(scaled, X, 0.7) == 0

    def other(x, a):
        s = 0.0
        t = 1.0
        for i in range(len(x)):
            t = t * x[i] * a
            s += t
        return s

    assert fuses(other, X, 0.7) == 0

    def replaced(x, a):
        s = 0.0
        for i in range(len(x)):
            s = x[i] * a if x[i] > 0.9 else s + x[i]
        return s

    assert fuses(replaced, X, 0.7) == 0

    def twice(x, a):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * a
        return s + s

    assert fuses(twice, X, 0.7) == 0

    def doubled(x, a):
        s = 0.0
        for i in range(len(x)):
            s = s + s + x[i] * a
        return s

    assert fuses(doubled, X, 0.7) == 0

    def subtracted(x, a):
        s = 0.0
        for i in range(len(x)):
            s = x[i] * a - s
        return s

    assert fuses(subtracted, X, 0.7) == 0


def test_an_inner_sum_that_counts_in_some_iterations():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            t = 0.0
            for j in range(i):
                t += x[j] * a
            if x[i] > 0.8:
                s += t * x[i]
        return s

    assert fuses(f, X, 0.7) == 1


def test_several_results_are_not_fused():
    def f(x, a):
        s = 0.0
        t = 0.0
        for i in range(len(x)):
            s += x[i] * a
            t += x[i] * x[i]
        return s, t

    assert fuses(f, X, 0.7) == 0

    def g(x, u):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * u[i]
            u[i] = u[i] * x[i]
        return s

    assert fuses(g, X, Y, writes=("u",)) == 0

    def early(x, a):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * a
            if x[i] > 1.1:
                return s * a
        return s

    assert fuses(early, X, 0.7) == 0


def test_both_forms_and_seeds():
    """Seeds of 0, of NaN, and of what would overflow before it is scaled."""
    kernel = ng.kernel(pairs)

    def gradient(seed, x=X, a=0.7):
        t = ng.tensor(x, requires_grad=True)
        out = kernel(t, a)
        out.backward(np.asarray(seed))
        return np.asarray(t.grad)

    one = gradient(1.0)
    np.testing.assert_array_equal(gradient(0.0), np.zeros(6))
    np.testing.assert_allclose(gradient(-2.5), -2.5 * one, rtol=1e-15)
    assert np.isnan(gradient(np.nan)).all()

    def steep(x, c):
        s = 0.0
        for i in range(len(x)):
            s += c * (c * x[i])
        return s

    steep_kernel = ng.kernel(steep)
    t = ng.tensor(X, requires_grad=True)
    steep_kernel(t, 1e200).backward(np.asarray(1e-300))
    np.testing.assert_allclose(np.asarray(t.grad), np.full(6, 1e100), rtol=1e-12)


def test_backwards_do_not_share_the_unit_gradient():
    kernel = ng.kernel(pairs)
    t = ng.tensor(X, requires_grad=True)
    out = kernel(t, 0.7)
    exact = hyperdual.run(pairs, [X, 0.7], (), [1.0]).gradients[0]
    for times in (1, 2):
        out.backward(retain_graph=True)
        np.testing.assert_allclose(np.asarray(t.grad), times * exact, rtol=1e-12)
    np.asarray(t.grad)[...] = 100.0
    t.grad = None
    out.backward(np.asarray(2.0))
    np.testing.assert_allclose(np.asarray(t.grad), 2.0 * exact, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            s += (x[i] * x[i] * a).real
        return s

    x = (X + (1j * Y if dtype == "complex128" else 0)).astype(dtype)
    kernel = ng.kernel(f)
    program = kernel.program(kernel.arrays((x, 0.5)))
    if dtype == "complex128":
        assert program.backward(program.all_inputs).fused
    g = np.asarray(ng.grad(kernel)(x, np.asarray(0.5, X.astype(dtype).real.dtype)))
    np.testing.assert_allclose(g, np.conj(x), rtol=1e-6)


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("seed", range(16))
def test_sums_of_drawn_programs(seed):
    _check(seed, small=True)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("first", range(20_000, 21_000, 20))
def test_sums_of_large_drawn_programs(first):
    for seed in range(first, first + 20):
        _check(seed, small=False)


def _check(seed: int, small: bool) -> None:
    program = as_sum(Writer(seed, small).write())
    drawn = None if program is None else truth_of(program)
    if program is None or drawn is None:
        return
    function, arguments, truth, directions = drawn
    try:
        judge(
            ng.kernel(function), truth, directions, arguments,
            tolerance=2e-3 if program.single else 1e-9,
        )  # fmt: skip
    except Exception as error:
        error.add_note(f"seed {seed}\n{program.text}")
        raise


# branches


def test_what_one_side_of_a_branch_uses_is_reversed_in_it():
    def root(x, a):
        s = 0.0
        for i in range(len(x)):
            r = math.sqrt(x[i] * x[i])  # of infinite slope at 0, where nothing uses it
            if x[i] > 0.0:
                s += a * r
        return s

    x = np.array([0.0, 0.5, -0.3, 2.0])
    for factor in (1.0, 3.0):
        t, a = ng.tensor(x, requires_grad=True), ng.tensor(0.7, requires_grad=True)
        (factor * ng.kernel(root)(t, a)).backward()
        np.testing.assert_array_equal(t.grad, factor * 0.7 * (x > 0.0))
        np.testing.assert_allclose(a.grad, factor * 2.5)
    split = ng.kernel(root).program(ng.kernel(root).arrays((x, 0.7))).split(("x", "a"))
    assert split is not None
    assert "x__b" not in split.reverse.plain.partition("if (")[0].partition("for ")[2]


def test_branches_in_branches():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            u, v = x[i] * a, math.sin(x[i])
            w = u * v
            if x[i] > 0.5:
                if x[i] > 0.9:
                    s += w * u
                else:
                    s -= v * a
                t = math.exp(u)
                if t > 2.0:
                    s += t * v
            else:
                s += u
        return s

    assert fuses(f, X, 0.7) == 1


def test_elements_that_are_written_beside_a_branch():
    def f(x, a):
        s = 0.0
        b = np.zeros(2)
        for i in range(len(x)):
            b[0] = x[i] * a
            t = b[0]
            b[0] = t * t
            u = b[0]
            b[0] = 1.0
            if x[i] > 0.7:
                s += t * u + b[0]
            b[1] += u
        return s + b[1]

    fuses(f, X, 0.7)


def test_conditions_that_change_between_branches():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            c = x[i] > 0.7
            t = 0.0
            if c:
                t = x[i] * a
                c = t < 0.6
            if c:
                s += t * t
        return s

    assert fuses(f, X, 0.7) == 1


def test_less_computes_elementary_functions_again():
    def f(x, a):
        s = 0.0
        for i in range(len(x)):
            u = x[i]
            for _ in range(4):
                u = u * math.exp(-a * u)
            s += u
        return s

    exact = hyperdual.run(f, [X, 0.7], (), [1.0])
    count = {}
    for save in ("all", "less"):
        kernel = ng.kernel(f, save=save)
        gradients = ng.value_and_grad(kernel, argnums=(0, 1))(X, 0.7)[1]
        for own, wanted in zip(gradients, exact.gradients, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-12)
        count[save] = len(kernel.report(X, 0.7).kept)
    assert count == {"all": 2, "less": 1}
