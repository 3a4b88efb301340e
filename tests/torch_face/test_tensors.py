"""Numbers, dtypes and errors of Tensors, as PyTorch has them: one list for both."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import numgrad.torch as face

INF, NAN = float("inf"), float("nan")


def _written_to_a_part(T):
    x = T.zeros(2, 3)
    T.arange(0, 4, out=x.narrow(1, 1, 2))
    return x


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
    "each NaN for itself": (
        lambda T: T.tensor([NAN, 1.0, NAN]).unique().isnan(), "bool", [False, True, True]),
    "one number in the other order": (lambda T: T.tensor(3.0).flip(0), "float32", 3),
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
    "the dtypes of Python": (lambda T: T.zeros(1, dtype=float), "float64", [0]),
    "numbers of NumPy": (lambda T: T.ones(2) * np.float64(2), "float32", [2, 2]),
    "a meshgrid of a list": (
        lambda T: T.meshgrid([T.ones(2), T.zeros(1)], indexing="ij")[0], "float32", [[1], [1]]),
    "powers of short integers": (
        lambda T: T.vander(T.tensor([3], dtype=T.int8), 6), "int64", [[243, 81, 27, 9, 3, 1]]),
    "axes by number": (
        lambda T: T.einsum(T.tensor([[1.0, 2], [3, 4]]), [30, 2], [30]), "float32", [3, 7]),
    "a function of NumPy": (lambda T: np.add(T.ones(2), 1), "float32", [2, 2]),
    "a buffer": (lambda T: T.frombuffer(bytearray(b"ab"), dtype=T.uint8), "uint8", [97, 98]),
    "numbers written to a part": (_written_to_a_part, "float32", [[0, 0, 1], [0, 2, 3]]),
    "another Tensor's memory": (
        lambda T: T.zeros(0).set_(T.arange(6.0).untyped_storage(), 1, (2, 2), (2, 1)), "float32",
        [[1, 2], [3, 4]]),
}  # fmt: skip

ERRORS = {
    "booleans have no difference": (lambda T: T.ones(2) - T.tensor([True, True]), RuntimeError),
    "no order of complex numbers": (lambda T: T.ones(2, dtype=T.complex64).max(), RuntimeError),
    "nor by operators": (lambda T: T.ones(2, dtype=T.complex64) < 1j, RuntimeError),
    "nor sorted": (lambda T: T.sort(T.ones(2, dtype=T.complex64)), RuntimeError),
    "nor in place": (
        lambda T: T.ones(2, dtype=T.complex64).lt_(T.ones(2, dtype=T.complex64)), RuntimeError),
    "no determinant of integers": (lambda T: T.linalg.det(T.eye(2).long()), RuntimeError),
    "an axis that one number lacks": (lambda T: T.tensor(3.0).flip(1), IndexError),
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
    "one integer of none": (lambda T: int(T.ones(0)), ValueError),
    "values that do not fit": (lambda T: T.ones(2).__setitem__(0, T.ones(3)), RuntimeError),
    "no buffer": (lambda T: T.frombuffer([1], dtype=T.uint8), ValueError),
    "an array backwards": (lambda T: T.from_numpy(np.arange(3)[::-1]), ValueError),
    "a storage is not cut": (lambda T: T.ones(2, 3, 4).mT[0, 0].adjoint(), RuntimeError),
    "four dimensions for channels": (
        lambda T: T.ones(2, 3).contiguous(memory_format=T.channels_last), RuntimeError),
    "a value that no byte holds": (lambda T: T.tensor(300, dtype=T.uint8), RuntimeError),
    "a mask of integers": (lambda T: T.ones(2).masked_select(T.tensor([1, 0])), RuntimeError),
    "a condition of integers": (lambda T: T.where(T.tensor([1, 0]), 1.0, 2.0), RuntimeError),
    "a size that is no integer": (lambda T: T.zeros(1.5), TypeError),
    "text in a Tensor": (lambda T: "a" in T.ones(2), RuntimeError),
    "no elements to delete": (lambda T: T.ones(2).__delitem__(0), (TypeError, AttributeError)),
    "grids of matrices": (lambda T: T.meshgrid(T.ones(1, 1), indexing="ij"), RuntimeError),
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


def test_nothing_to_join():
    with pytest.raises(RuntimeError, match="needs tensors"):  # PyTorch: a ValueError
        face.cat([])


def test_both_lists_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy about PyTorch
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


STRIDES = {
    "a copy": lambda T: T.ones(2, 3, 4).permute(2, 0, 1).clone(),
    "a copy of a part": lambda T: T.ones(4, 6)[:, ::2].clone(),
    "zeros like": lambda T: T.zeros_like(T.ones(2, 3, 4).permute(1, 2, 0)),
    "random numbers like": lambda T: T.rand_like(T.ones(2, 3).t()),
    "channels last": lambda T: T.ones(2, 3, 4, 5).contiguous(memory_format=T.channels_last),
    "as channels lay": lambda T: T.empty_like(T.empty(2, 3, 4, 5, memory_format=T.channels_last)),
    "moved to channels last": lambda T: T.ones(2, 3, 4, 5).to(memory_format=T.channels_last),
    "in order": lambda T: T.zeros_like(T.ones(2, 3).t(), memory_format=T.contiguous_format),
}


def test_strides_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    for function in STRIDES.values():
        ours, theirs = function(face), function(torch)
        assert ours.stride() == theirs.stride()
        assert ours.dim_order() == theirs.dim_order()
        for memory_format in ("contiguous_format", "channels_last"):
            given = [getattr(T, memory_format) for T in (face, torch)]
            assert ours.is_contiguous(memory_format=given[0]) == theirs.is_contiguous(
                memory_format=given[1]
            )


def test_views_share_a_storage():
    x = face.arange(6.0)
    part = x[2:]
    assert part.untyped_storage() == x.untyped_storage()
    assert (part.storage_offset(), part.untyped_storage().nbytes()) == (2, 24)
    part.storage()[2] = 9
    assert x.tolist() == [0, 1, 9, 3, 4, 5]
    assert x[2:]._base is x
    assert x.storage().tolist() == x.tolist()
    assert x.conj() is x


def test_nothing_is_iterated():
    assert list(face.ones(0)) == []
    assert face.ones(2, 0, 3).unbind(1) == ()
    assert face.rand(0, 2, out=face.empty(0)).shape == (0, 2)


def test_copies_keep_gradients_and_order():
    x = face.ones(2, 3, requires_grad=True)
    y = x.t().clone()
    assert y.stride() == (1, 3)
    (y * face.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 2, 4], [1, 3, 5]]


TEXTS = {
    "largest": lambda T: T.max(T.tensor([[1.0, 2.0]]), 1),
    "factors": lambda T: T.linalg.qr(T.eye(2)),
    "a fixed parameter": lambda T: T.nn.Parameter(T.ones(2), requires_grad=False),
    "a long suffix": lambda T: T.arange(12.0).reshape(1, 12).double().requires_grad_() * 2,
    "many": lambda T: T.arange(60.0) / 7,
    "complex": lambda T: T.tensor([complex(1, -2), complex(-3, 0.5)]),
    "limits": lambda T: T.finfo(T.float32),
}
OPTIONS = ({}, {"precision": 2}, {"profile": "short"}, {"linewidth": 40}, {"threshold": 5})


def test_texts_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    try:
        for options in OPTIONS:
            for library in (face, torch):
                library.set_printoptions(profile="default")
                library.set_printoptions(**options)
            for function in TEXTS.values():
                assert repr(function(face)) == repr(function(torch))
    finally:
        face.set_printoptions(profile="default")


def test_texts():
    assert repr(TEXTS["largest"](face)) == (
        "torch.return_types.max(\nvalues=tensor([2.]),\nindices=tensor([1]))"
    )
    face.set_printoptions(profile="short")
    face.set_printoptions(profile="default")
    assert repr(face.tensor([0.12345])) == "tensor([0.1235])"


def test_copies_of_several_tensors_share_what_they_shared():
    x = face.zeros(2, 3).t()
    twin, part = copy.deepcopy([x, x[1:]])
    twin.fill_(5)
    assert (part == 5).all()
    assert twin.stride() == (1, 3)
    assert not x.any()
    other = copy.copy(x)
    other.fill_(1)
    assert x.all()
    leaf = face.ones(2, requires_grad=True)
    assert copy.copy(leaf).is_leaf


@pytest.mark.parametrize("value", [face.sin, face.linalg.det, face.max(face.ones(1, 2), 1)])
def test_functions_and_named_tuples_are_pickled(value):
    again = pickle.loads(pickle.dumps(value))
    assert again is value or type(again) is type(value)
