"""Numbers, dtypes and errors of Tensors, as PyTorch has them: one list for both."""

import pytest

import numgrad.torch as face

INF, NAN = float("inf"), float("nan")

RESULTS = {
    "a short integer by a large number": (
        lambda T: T.tensor([3, 6], dtype=T.int8) / 300, "float32", [0.01, 0.02]),
    "a number by short integers": (lambda T: 300 / T.tensor([3], dtype=T.uint8), "float32", [100]),
    "a double without axes does not decide": (
        lambda T: T.ones(1) / T.tensor(2.0, dtype=T.float64), "float32", [0.5]),
    "a sum in a short dtype": (
        lambda T: T.full((17,), 16, dtype=T.uint8).sum(dtype=T.uint8), "uint8", 16),
    "running sums in a dtype": (
        lambda T: T.tensor([True, True]).cumsum(0, dtype=T.int32), "int32", [1, 2]),
    "the largest boolean": (
        lambda T: T.tensor([[True, False]]).max(1).values, "bool", [True]),
    "the inverse of a factor whose other triangle is not zero": (
        lambda T: T.cholesky_inverse(T.tensor([[2.0, 9.0], [0.0, 1.0]])), "float32",
        [[0.25, 0], [0, 1]]),
    "differences with what is put before and behind": (
        lambda T: T.diff(T.ones(3), n=4, prepend=T.ones(1), append=T.ones(1)), "float32", [0]),
    "weights of counts": (
        lambda T: T.bincount(T.tensor([0, 2]), T.tensor([0.5, 2.0])), "float32", [0.5, 0, 2]),
    "a histogram of one point": (
        lambda T: T.histc(T.tensor([1.0, 2, 1]), bins=2, min=5, max=5), "float32", [2, 1]),
    "fractions written to integers": (
        lambda T: T.zeros(2, dtype=T.int32).masked_fill(T.tensor([True, False]), 2.7), "int32",
        [2, 0]),
    "integers to negative powers": (
        lambda T: T.tensor([-2, 2, 1, -1]) ** T.tensor([-1, -2, -1, -3]), "int64", [0, 0, 1, -1]),
    "steps of integers": (
        lambda T: T.heaviside(T.tensor([0, 2]), T.tensor([7, 7])), "int64", [7, 1]),
    "a number to the power of Tensors": (
        lambda T: T.float_power(2, T.tensor([3.0])), "float64", [8]),
    "the trapezoidal rule of integers": (
        lambda T: T.trapezoid(T.tensor([1, 2, 4])), "float32", 4.5),
    "slopes of integers": (lambda T: T.gradient(T.tensor([1, 2, 4]))[0], "float32", [1, 1.5, 2]),
    "signs of booleans": (lambda T: T.sign(T.tensor([True, False])), "bool", [True, False]),
    "squares of booleans": (lambda T: T.square(T.tensor([True, False])), "int64", [1, 0]),
    "the trace of bytes": (lambda T: T.ones(2, 2, dtype=T.uint8).trace(), "int64", 2),
    "numbers among others": (lambda T: T.isin(2, T.tensor([1, 2])), "bool", True),
    "the sum of two numbers": (lambda T: T.add(2, 3), "int64", 5),
    "booleans that are close": (
        lambda T: T.isclose(T.tensor([True, False]), T.tensor([True, True])), "bool",
        [True, False]),
    "products of two shapes": (
        lambda T: T.inner(T.ones(2), T.tensor(2.0, dtype=T.float64)), "float32", [2, 2]),
    "where a number is not zero": (lambda T: T.where(T.tensor(5))[0], "int64", [0]),
    "the median of nothing": (lambda T: T.median(T.ones(0)), "float32", NAN),
}  # fmt: skip

ERRORS = {
    "booleans have no difference": (lambda T: T.ones(2) - T.tensor([True, True]), RuntimeError),
    "no order of complex numbers": (lambda T: T.ones(2, dtype=T.complex64).max(), RuntimeError),
    "nor by operators": (lambda T: T.ones(2, dtype=T.complex64) < 1j, RuntimeError),
    "nor sorted": (lambda T: T.sort(T.ones(2, dtype=T.complex64)), RuntimeError),
    "nor in place": (
        lambda T: T.ones(2, dtype=T.complex64).lt_(T.ones(2, dtype=T.complex64)), RuntimeError),
    "no determinant of integers": (lambda T: T.linalg.det(T.eye(2).long()), RuntimeError),
    "a name that is none": (lambda T: T.sum(T.ones(2), foo=1), TypeError),
    "too few arguments": (lambda T: T.add(T.ones(2)), TypeError),
    "too many arguments": (lambda T: T.sin(T.ones(2), 1, 2), TypeError),
    "a number for a Tensor": (lambda T: T.sin(1.0), TypeError),
    "text for a Tensor": (lambda T: T.mul(T.ones(2), "a"), TypeError),
    "a Tensor for several": (lambda T: T.cat(T.ones(2)), TypeError),
    "a dimension that is text": (lambda T: T.sum(T.ones(2), "a"), TypeError),
    "a dimension that is not there": (lambda T: T.sum(T.ones(2), 1), IndexError),
    "nothing to search": (lambda T: T.argmax(T.ones(0)), IndexError),
    "shapes in place": (lambda T: T.ones(3).add_(T.ones(2, 3)), RuntimeError),
    "no part": (lambda T: T.chunk(T.ones(3), 0), RuntimeError),
    "uneven parts": (lambda T: T.ones(3).hsplit(2), RuntimeError),
    "too few dimensions": (lambda T: T.ones(3).fliplr(), RuntimeError),
    "an operand of no kind": (lambda T: T.ones(3).__iadd__(object()).foo, AttributeError),
    "a fraction of integers": (lambda T: T.ones(2).long().add(1, alpha=0.5), RuntimeError),
    "a complex number written to integers": (
        lambda T: T.ones(2).long().masked_fill(T.tensor(True), 1j), RuntimeError),
}  # fmt: skip


def _check_result(library, name):
    function, dtype, values = RESULTS[name]
    x = function(library)
    assert x.dtype is getattr(library, dtype)
    expected = library.tensor(values, dtype=x.dtype)
    assert x.shape == expected.shape
    assert library.allclose(x, expected, equal_nan=True)


@pytest.mark.parametrize("name", RESULTS)
def test_results(name):
    _check_result(face, name)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    with pytest.raises(ERRORS[name][1]):
        ERRORS[name][0](face)


def test_both_lists_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for name in RESULTS:
        _check_result(torch, name)
    for function, kind in ERRORS.values():
        with pytest.raises(kind):
            function(torch)


def test_entropies_have_gradients_at_zero():
    p = face.tensor([0.0, 0.0, 2.0], requires_grad=True)
    face.xlogy(p, p).sum().backward()
    assert p.grad.tolist()[0] == 0
    face.special.xlog1py(p, face.tensor([-1.0, -1.0, 1.0])).sum().backward()
    assert p.grad.isfinite().all()
