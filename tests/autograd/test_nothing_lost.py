"""No gradient and no tangent is lost silently: it flows, or there is an error, or none is meant."""

import copy
import math
import random

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import NumgradError

fw = ng.autograd.forward_ad
A = np.array([1.0, 2.0])

# what a number t goes through, and the derivative of the sum of the result by t at 0.5
FLOWS = {
    "ng.asarray of a list": (lambda t: ng.asarray([t, 1.0, t * t]), 2.0),
    "ng.asarray nested": (lambda t: ng.asarray([[t, 1], (2.0, t)]), 2.0),
    "ng.asarray with a dtype": (lambda t: ng.asarray(t, dtype=np.float32), 1.0),
    "ng.asarray with a copy": (lambda t: ng.asarray(t, copy=True), 1.0),
    "ng.full": (lambda t: ng.full((2, 3), t), 6.0),
    "ng.full_like": (lambda t: ng.full_like(A, t), 2.0),
    "np.stack": (lambda t: np.stack([t, t]), 2.0),
    "into ng.zeros": (lambda t: _written(ng.zeros(3), t), 1.0),
    "list": (lambda t: sum(list(t * A)), 3.0),
    "max": (lambda t: max([t, t * 3]), 3.0),
    "sorted": (lambda t: sorted([t * 3, t])[0], 1.0),
    "random.choice": (lambda t: random.choice(t * np.ones(2)), 1.0),
    "list operand": (lambda t: [1.0, 2.0] * t, 3.0),
    "copy.copy": (lambda t: copy.copy(t * 2), 2.0),
    "add.reduce": (lambda t: np.add.reduce(t * A), 3.0),
    "multiply.outer": (lambda t: np.multiply.outer(A, t * A), 9.0),
    "np.broadcast_arrays": (lambda t: np.broadcast_arrays(t, A)[0], 2.0),
    "clone": (lambda t: t.clone(), 1.0),
}
# what needs the numbers alone
REFUSED = {
    "float": float,
    "int": int,
    "complex": complex,
    "math.sqrt": math.sqrt,
    "math.floor": math.floor,
    "math.fsum": lambda t: math.fsum([t, t]),
    "np.float64": np.float64,
    "np.array": np.array,
    "np.asarray": np.asarray,
    "np.array of a list": lambda t: np.array([t, t]),
    "np.asarray mixed": lambda t: np.asarray([[t, 1.0], [2.0, t]]),
    "np.full": lambda t: np.full(3, t),
    "np.stack of lists": lambda t: np.stack([[t, t], [t, t]]),
    "into np.zeros": lambda t: _written(np.zeros(3), t),
    "into a part": lambda t: _written(np.zeros(3), t, slice(None)),
    "ndarray.fill": lambda t: np.zeros(3).fill(t),
    "into an ndarray": lambda t: np.zeros(()).__iadd__(t),
    "np.fromiter": lambda t: np.fromiter((v for v in t * A), float),
    "ng.tensor": ng.tensor,
    "ng.tensor of a list": lambda t: ng.tensor([t, 1.0]),
    "ng.arange": lambda t: ng.arange(t, 3.0),
    "numpy": lambda t: t.numpy(),
    "np.vectorize": lambda t: np.vectorize(lambda v: v * 2)(t * A),
    "np.frompyfunc": lambda t: np.frompyfunc(lambda v: v * 2, 1, 1)(t * A),
    "reduceat into out": lambda t: np.add.reduceat(t * A, [0, 1], out=np.zeros(2)),
    "out": lambda t: np.sin(t, out=np.zeros(())),
    "deepcopy": lambda t: copy.deepcopy(t * 1),
    "np.testing": lambda t: np.testing.assert_allclose(t, t),
    "ng.random": lambda t: ng.random.default_rng(0).poisson(t),
    "np.random": lambda t: np.random.default_rng(0).normal(t, 1.0),
    "np.nditer": lambda t: list(np.nditer(t * A)),
    "np.r_": lambda t: np.r_[t, t],
    "masked array": lambda t: np.ma.array(A, mask=[0, 1]) * t,
    "np.ma.sqrt": np.ma.sqrt,
    "view": lambda t: np.asarray((t * A)[1:]),
}
# the way out, on purpose or since the derivative is zero
MEANT = {
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "detach": lambda t: t.detach().numpy(),
    "detach and float": lambda t: float(t.detach()),
    "force": lambda t: t.numpy(force=True),
    "bool": bool,
    "format": lambda t: f"{t:.1f}",
    "repr": repr,
    "comparison": lambda t: t > 0.1,
    "in": lambda t: 0.5 in t * A,
    "allclose": lambda t: np.allclose(t, 0.5),
    "astype": lambda t: t.astype(int),
    "zeros_like": np.zeros_like,
    "shape": np.shape,
}


def _written(array, value, index=0):
    array[index] = value
    return array


@pytest.mark.parametrize("name", FLOWS)
def test_it_flows(name):
    function, derivative = FLOWS[name]
    t = ng.tensor(0.5, requires_grad=True)
    np.sum(function(t)).backward()
    assert t.grad.item() == derivative
    _, tangent = fw.jvp(lambda t: np.sum(function(t)), [ng.tensor(0.5)], [ng.tensor(1.0)])
    assert tangent.item() == derivative


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name):
    function = REFUSED[name]
    with fw.dual_level():
        for t in (
            ng.tensor(0.5, requires_grad=True),
            fw.make_dual(ng.tensor(0.5), ng.tensor(1.0)),
        ):
            # NumPy says ValueError of its own where an element cannot be set; the cause is ours
            with pytest.raises((NumgradError, ValueError)) as caught:
                function(t)
            error = caught.value
            assert isinstance(error, NumgradError) or isinstance(error.__cause__, NumgradError)


@pytest.mark.parametrize("name", MEANT)
def test_it_is_meant(name):
    function = MEANT[name]
    with fw.dual_level():
        for t in (
            ng.tensor(0.5, requires_grad=True),
            fw.make_dual(ng.tensor(0.5), ng.tensor(1.0)),
        ):
            found = function(t)
            assert not (isinstance(found, ng.Tensor) and found.requires_grad)


def test_errors_name_the_way_out():
    w = ng.tensor(0.5, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"float\(\).*np.sqrt.*ng.zeros.*\.item\(\)"):
        math.sqrt(w)
    with pytest.raises(RuntimeError, match=r"ndarray.*ng.asarray.*ng.zeros.*\.detach\(\)"):
        np.asarray([w])
    with pytest.raises(RuntimeError, match=r"ng\.asarray"):
        ng.tensor([w])
    with pytest.raises(RuntimeError, match=r"random\.poisson.*detach\(\)"):
        ng.random.default_rng(0).poisson(w)
    with ng.no_grad():  # nothing is to be differentiated
        assert (float(w), math.sqrt(w), ng.tensor([w]).tolist()) == (0.5, 0.5**0.5, [0.5])


def test_a_view_of_what_was_written_to_since_is_refused_too():
    x, w = ng.zeros(2), ng.tensor([1.0, 2.0], requires_grad=True)
    view = x[:1]
    x[...] = w
    with pytest.raises(RuntimeError, match="requires grad"):
        view.numpy()


def test_creation_inside_a_compiled_function_keeps_it():
    function = ng.jit(
        ng.grad(lambda t: np.sum(ng.asarray([t, 1.0, t * t])) + np.sum(ng.full(3, t)))
    )
    assert function(0.5) == 5.0


def test_stacks_are_checked_as_arrays_are():
    t = ng.tensor(0.5, requires_grad=True)
    with pytest.raises(ValueError, match="ragged"):
        ng.asarray([[t], [t, t]])
    with pytest.raises(ValueError, match="copy=False"):
        ng.asarray([t], copy=False)
    assert ng.asarray([t], copy=True).requires_grad
    assert ng.asarray([ng.tensor(1.0), 2]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "operation", [lambda t, a: t * a, lambda t, a: np.add(a, t), lambda t, a: ng.asarray(a)]
)
def test_a_mask_is_not_dropped(operation):
    with pytest.raises(TypeError, match="mask"):
        operation(ng.ones(2), np.ma.array(A, mask=[0, 1]))
    with pytest.raises(TypeError, match="mask"):
        ng.grad(np.sum)(np.ma.array(A, mask=[0, 1]))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_is_not_taken_for_an_array():
    matrix = np.asmatrix(np.eye(2))
    for operation in (lambda t: t * matrix, lambda t: matrix * t):
        with pytest.raises(TypeError, match="matrix"):
            operation(ng.ones((2, 2)))
    assert (ng.ones((2, 2)) @ matrix).shape == (2, 2)


def test_operands_of_pandas():
    pandas = pytest.importorskip("pandas")
    series, frame = pandas.Series(A), pandas.DataFrame({"a": A})
    for operation in (
        lambda t: series * t,
        lambda t: t * series,
        lambda t: np.multiply(series, t),
        lambda t: (t * np.ones(2)) * series,
        lambda t: series * (t * np.ones(2)),
        lambda t: frame["a"] * t,
        lambda t: (t * np.ones((1, 2))) @ frame,
    ):
        t = ng.tensor(0.5, requires_grad=True)
        result = np.sum(operation(t))
        result.backward()
        assert (result.item(), t.grad.item()) == (1.5, 3.0)
    with pytest.raises(TypeError, match="numeric"):
        ng.ones(2) * pandas.Series(["a", "b"])


def test_sparse_matrices_of_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_array(np.eye(2))
    np.testing.assert_array_equal(matrix @ ng.ones(2), [1.0, 1.0])
    for operation in (lambda t: matrix @ t, lambda t: t @ matrix, matrix.dot):
        t = ng.ones(2, requires_grad=True)
        operation(t).sum().backward()
        np.testing.assert_array_equal(t.grad, [1.0, 1.0])
    for operation in (lambda t: matrix * t, lambda t: t * matrix):
        with pytest.raises(RuntimeError, match="requires grad"):
            operation(ng.ones(2, requires_grad=True))


class SinOfUsers(ng.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.sin(x)

    @staticmethod
    def backward(ctx, g):
        return g * np.cos(ctx.saved_tensors[0])


@pytest.mark.parametrize("sin", [np.sin, SinOfUsers.apply], ids=["operation", "Function"])
def test_second_derivatives_miss_the_history_of_what_was_detached(sin):
    """sin(x)' = cos(x), whose derivative needs x as it came to be."""
    x = ng.tensor(0.5, requires_grad=True)
    inner = x * 1
    y = sin(inner) + x * x
    inner.detach_()
    (first,) = ng.autograd.grad(y, x, retain_graph=True)
    assert math.isclose(first.item(), math.cos(0.5) + 1.0)
    with pytest.raises(NumgradError, match=r"Sin\w*Backward: .* detach_\(\) took that away"):
        ng.autograd.grad(y, x, create_graph=True)


def test_old_values_are_copied_inside_the_context_only():
    """A backward outside would read what was written since."""
    x = ng.tensor([1.0, 2.0], requires_grad=True)
    with ng.autograd.graph.allow_mutation_on_saved_tensors():
        inner = x * 1
        y = (inner * inner).sum() + (inner * inner * inner).sum()
    inner.mul_(10)
    with pytest.raises(AssertionError, match="outside"):
        y.backward()
    assert x.grad is None
