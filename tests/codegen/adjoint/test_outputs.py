"""Arrays that a kernel makes for its outputs: ``writes={"out": ng.like("x")}``."""

import math
import pickle

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import judge
from tests.codegen.adjoint.test_traps import RNG, X, Z


def waves(x, a, out):
    for i in range(len(x)):
        out[i] += a * x[i] * x[i - 1]
        if i > 1:
            out[i] *= math.sin(out[i - 1])
    return out[2] * x[0]


def bands(x, k, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[i + j] * x[i]


KERNEL = ng.kernel(waves, writes={"out": ng.like("x")})


def check(kernel, function, arguments, made):
    """All modes against the plain function, which gets arrays of zeros."""
    rng = np.random.default_rng(3)
    written = range(len(arguments), len(arguments) + len(made))
    directions = [
        rng.normal(size=np.shape(a)) if hyperdual.differentiable(a) else None
        for a in (*arguments, *made)
    ]
    directions[len(arguments) :] = [np.zeros(np.shape(a)) for a in made]
    truth = hyperdual.run(
        function, [*arguments, *made], written, lambda a: rng.normal(size=np.shape(a)), directions
    )
    judge(kernel, truth, directions[: len(arguments)], arguments)


def test_an_output_like_an_argument():
    check(KERNEL, waves, [X, 0.7], [np.zeros(6)])


@pytest.mark.parametrize("shape", [("len(x) - k + 1", "k"), (4, 3), ("x.shape[0] - 2", 3)])
def test_a_shape_of_its_own(shape):
    kernel = ng.kernel(bands, writes={"out": ng.like("x", shape=shape)})
    check(kernel, bands, [X, 3], [np.zeros((4, 3))])


def test_a_single_length_and_a_dtype():
    def counts(x, out):
        for i in range(len(x)):
            out[i % 2] += 1 if x[i] > 0.0 else 0

    kernel = ng.kernel(counts, writes={"out": ng.like("x", shape=2, dtype=np.int64)})
    out = np.asarray(kernel(X))
    assert out.dtype == np.int64
    np.testing.assert_array_equal(out, [(X[::2] > 0).sum(), (X[1::2] > 0).sum()])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_dtype_and_rank_are_those_of_the_argument(dtype):
    def double(z, out):
        for i in range(z.shape[0]):
            for j in range(z.shape[1]):
                out[i, j] = z[i, j] + z[i, j]

    kernel = ng.kernel(double, writes={"out": ng.like("z")})
    z = Z.astype(dtype).T
    out = np.asarray(kernel(z))
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, 2 * z)


def test_arrays_that_are_made_stand_beside_those_that_are_overwritten():
    def f(x, out, u):
        for i in range(len(x)):
            u[i] *= x[i]
            out[i] = u[i] * u[0]
        return u[1]

    kernel = ng.kernel(f, writes={"u": None, "out": ng.like("u")})
    u = RNG.normal(size=6)
    value, overwritten, made = map(np.asarray, kernel(X, u))
    np.testing.assert_allclose(overwritten, u * X, rtol=1e-15)
    np.testing.assert_allclose(made, u * X * u[0] * X[0], rtol=1e-15)
    assert value == overwritten[1]
    gradient = ng.grad(lambda u: np.sum(kernel(X, u)[2]))(u)
    wanted = X * u[0] * X[0]
    wanted[0] += np.sum(u * X) * X[0]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12)


def test_made_arrays_take_turns():
    def f(x, u, v):
        for i in range(len(x)):
            u[i] = x[i] * x[i]
        for k in range(3):
            for i in range(len(x)):
                v[i] = u[i] * u[i - 1] + 0.1 * k
            u, v = v, u

    kernel = ng.kernel(f, writes={"u": ng.like("x"), "v": ng.like("x")})
    check(kernel, f, [X], [np.zeros(6), np.zeros(6)])


def test_compiled_and_batched_and_differentiated_twice():
    np.testing.assert_allclose(
        np.asarray(ng.jit(lambda x: KERNEL(x, 0.7)[1])(X)), np.asarray(KERNEL(X, 0.7)[1])
    )
    xs = RNG.normal(size=(3, 6))
    rows = [np.asarray(KERNEL(x, 0.7)[1]) for x in xs]
    np.testing.assert_allclose(np.asarray(ng.vmap(KERNEL, in_axes=(0, None))(xs, 0.7)[1]), rows)
    bands_of = ng.kernel(bands, writes={"out": ng.like("x", shape=("len(x) - 2", 3))})
    np.testing.assert_allclose(
        np.asarray(ng.jit(lambda x: bands_of(x, 3))(X)), np.asarray(bands_of(X, 3))
    )

    def total(x):
        return np.sum(KERNEL(x, 0.7)[1])

    h = 1e-6
    wanted = [(ng.grad(total)(X + h * e) - ng.grad(total)(X - h * e)) / (2 * h) for e in np.eye(6)]
    np.testing.assert_allclose(ng.hessian(total)(X), wanted, rtol=1e-6, atol=1e-7)


def test_a_kernel_is_pickled():
    again = pickle.loads(pickle.dumps(KERNEL))
    np.testing.assert_array_equal(np.asarray(again(X, 0.7)[1]), np.asarray(KERNEL(X, 0.7)[1]))


def test_parameters_are_those_that_are_passed():
    assert KERNEL.inputs == ("x", "a")
    with pytest.raises(ng.errors.NumgradTypeError):
        KERNEL(X, 0.7, np.zeros(6))
    np.testing.assert_array_equal(np.asarray(KERNEL(a=0.7, x=X)[1]), np.asarray(KERNEL(X, 0.7)[1]))


WRONG = {
    "no_parameter": {"z": ng.like("x")},
    "like_none": {"out": ng.like("y")},
    "like_another_that_is_made": {"out": ng.like("out")},
}


@pytest.mark.parametrize("word", WRONG)
def test_declarations_that_do_not_fit(word):
    with pytest.raises(ng.errors.NumgradValueError, match="waves"):
        ng.kernel(waves, writes=WRONG[word])


@pytest.mark.parametrize("value", ["x", 3, True])
def test_a_declaration_is_made_by_like(value):
    with pytest.raises(ng.errors.NumgradTypeError, match="like"):
        ng.kernel(waves, writes={"out": value})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"shape": ()}, ng.errors.NumgradValueError),
        ({"shape": -1}, ng.errors.NumgradValueError),
        ({"shape": "(("}, ng.errors.NumgradValueError),
        ({"shape": 1.5}, ng.errors.NumgradTypeError),
        ({"shape": (2, True)}, ng.errors.NumgradTypeError),
        ({"dtype": "U3"}, ng.errors.NumgradTypeError),
        ({"dtype": "uint64"}, ng.errors.NumgradTypeError),
        ({"dtype": "nothing"}, ng.errors.NumgradTypeError),
    ],
)
def test_lengths_and_dtypes_that_are_none(options, error):
    with pytest.raises(error, match="like"):
        ng.like("x", **options)
    with pytest.raises(ng.errors.NumgradTypeError, match="name"):
        ng.like(np.zeros(3))


@pytest.mark.parametrize(
    ("declaration", "word"),
    [
        (ng.like("a"), "shape"),
        (ng.like("x", shape=("m",)), "m"),
        (ng.like("x", shape=(1, 1, 1, 1, 1)), "axes"),
        (ng.like("x", shape=("a",)), "integer"),
    ],
)
def test_what_only_a_call_shows(declaration, word):
    with pytest.raises(ng.errors.NumgradKernelError, match=word):
        ng.kernel(waves, writes={"out": declaration})(X, 0.7)
