"""Operations that users declare, and what ``ng.ops`` shows of any operation."""

import math

import numba
import numpy as np
import pytest
import scipy.special

import numgrad as ng
from numgrad.core.op import OPS
from numgrad.tensors import numpy_protocol
from numgrad.testing import gradcheck, gradgradcheck


@numba.njit
def _omega(x):
    """Solve w + log(w) = x for w > 0 by Newton's method."""
    w = max(x, 0.5)
    for _ in range(50):
        w = w * (1.0 + x - math.log(w)) / (1.0 + w)
    return w


@numba.njit
def _smooth(x, rate, out):
    level = 0.0
    for i in range(x.size):
        level = rate * level + x[i]
        out[i] = level


@pytest.fixture(autouse=True)
def own_operations():
    """Operations of one test do not stay in the table."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]
        for method in {name, f"{name}_"} & set(vars(ng.Tensor)):
            delattr(ng.Tensor, method)


def test_elementwise_by_formula():
    @ng.elementwise(ref=lambda x: x**3 - x)
    def cubic(x):
        """x cubed less x."""
        return x * x * x - x

    cubic.vjp(x=lambda g, x: g * (3 * x * x - 1))
    x = ng.tensor(np.linspace(-2, 2, 12).reshape(3, 4), requires_grad=True)
    np.testing.assert_allclose(
        cubic(x).detach().numpy(), x.detach().numpy() ** 3 - x.detach().numpy()
    )
    assert gradcheck(cubic, (x,))
    assert gradgradcheck(cubic, (x,))
    assert cubic(x.detach().numpy().astype("f4")).dtype == np.float32
    assert x.cubic().grad_fn.name() == "CubicBackward"


def test_elementwise_with_a_users_own_scalar_kernel():
    @ng.elementwise(kernel=_omega)
    def omega(x):
        """Wright's omega function."""

    omega.vjp(x=lambda g, y: g * (y / (1 + y)))
    x = ng.tensor([0.5, 1.0, 3.0], requires_grad=True)
    y = omega(x).detach().numpy()
    np.testing.assert_allclose(y + np.log(y), [0.5, 1.0, 3.0], rtol=1e-14)
    assert gradcheck(omega, (x,))
    assert gradgradcheck(omega, (x,))
    shown = ng.ops["omega"]
    assert "_omega" in shown.formula
    assert shown.signatures[0].startswith("omega_f8")
    assert "user_omega" in shown.source


def test_primitive_with_a_users_own_array_kernel():
    @ng.primitive()
    def smooth(x, *, rate=0.5):
        """Exponential smoothing of a vector."""
        out = np.empty_like(x)
        _smooth(x, rate, out)
        return out

    smooth.vjp(x=lambda g, rate: smooth(g[::-1], rate=rate)[::-1])
    x = ng.tensor([1.0, -2.0, 3.0, 0.5], requires_grad=True)
    expected = [1.0, -1.7, 2.49, 1.247]
    np.testing.assert_allclose(smooth(x, rate=0.3).detach().numpy(), expected)
    assert gradcheck(lambda t: smooth(t, rate=0.3), (x,))
    assert gradgradcheck(smooth, (x,))


def test_primitive_with_a_backward_kernel_of_its_own():
    calls = []

    @ng.primitive()
    def double(x):
        return 2 * x

    double.vjp(x=lambda g: 2 * g)

    @double.vjp_kernel
    def backward(call, mask, g):
        calls.append(mask)
        return [2 * g]

    x = ng.tensor([1.0, 2.0], requires_grad=True)
    ng.sum(double(x)).backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert calls == [1]


@pytest.mark.parametrize(
    ("formula", "named"),
    [(lambda g, z: g * z, "'z'"), (lambda g, meta_z: g, "'meta_z'"), (lambda g, axis: g, "'axis'")],
)
def test_formula_that_names_something_unknown_is_refused_at_once(formula, named):
    @ng.elementwise()
    def plain(x):
        return x + 1

    with pytest.raises(ng.NumgradTypeError, match=f"plain: the gradient formula names {named}"):
        plain.vjp(x=formula)


def test_gradient_of_an_input_that_does_not_exist_is_refused():
    @ng.elementwise()
    def plain(x):
        return x + 1

    with pytest.raises(ng.NumgradTypeError, match="no input is called 'y'"):
        plain.vjp(y=lambda g: g)


def test_name_that_is_taken_is_refused():
    with pytest.raises(ng.NumgradRuntimeError, match="tanh: an operation of this name"):

        @ng.elementwise()
        def tanh(x):
            return x


def test_formula_with_a_python_branch_is_refused():
    @ng.elementwise()
    def branching(x):
        return x if x > 0 else -x

    with pytest.raises(ng.NumgradTypeError, match=r"np\.where"):
        branching(ng.tensor([1.0]))


def test_table_shows_formula_signatures_source_llvm_and_assembly():
    x = ng.tensor([0.5, 1.0], requires_grad=True)
    ng.sum(ng.tanh(x)).backward()
    shown = ng.ops["tanh"]
    assert "return np.tanh(x)" in shown.formula
    real, of_complex = shown.gradients.splitlines()
    assert real == "tanh.vjp(x=lambda g, y: g * np.conj(1 - y * y))"
    assert of_complex == "tanh.complex_vjp(x=lambda g, x: g * np.conj(sech_square(x)))"
    assert "tanh_f8_f8_1_1: void(float64[::1], float64[::1])" in shown.signatures
    assert "def kernel(x0, y0):" in shown.source
    kernel = next(k for k in shown.kernels if k.name == "tanh_f8_f8_1_1")
    assert "define" in kernel.llvm()
    assert "ret" in kernel.asm()
    assert "Hyperbolic tangent" in repr(shown)


def test_unknown_operation_names_near_ones():
    with pytest.raises(KeyError, match="near: tanh"):
        ng.ops["tanhh"]
    assert "tanh" in ng.ops
    assert len(ng.ops) == len(list(ng.ops))


def test_calls_with_wrong_arguments_name_the_operation():
    x = ng.tensor([1.0])
    with pytest.raises(ng.NumgradTypeError, match="add: input 'b' is missing"):
        ng.add(x)
    with pytest.raises(ng.NumgradTypeError, match="exp: input 'x' is missing"):
        ng.exp()
    with pytest.raises(ng.NumgradTypeError, match="sum: no parameter is called 'axes'"):
        ng.sum(x, axes=0)
    with pytest.raises(ng.NumgradTypeError, match="exp: takes x by position"):
        ng.exp(x, x)


UNKNOWN = scipy.special.zetac
"""A ufunc that has no operation."""


def test_a_users_operation_is_declared_anew_as_notebooks_do(request):
    request.addfinalizer(lambda: numpy_protocol._by_function.pop(UNKNOWN, None))
    request.addfinalizer(lambda: OPS.pop("bowl"))
    x = ng.tensor([3.0], requires_grad=True)

    def check(op, value, gradient):
        for call in (op, lambda x: x.bowl(), ng.ops["bowl"].op, UNKNOWN):
            y = call(x)
            assert y.tolist() == [value]
            assert ng.autograd.grad(y, x)[0].tolist() == [gradient]

    @ng.elementwise(ref=UNKNOWN)
    def bowl(x):
        """A bowl."""
        return x * x

    bowl.vjp(x=lambda g, x: 2 * g * x)
    check(bowl, 9.0, 6.0)

    @ng.elementwise(ref=UNKNOWN)
    def bowl(x):
        """A steeper one: the same cell, run again after a change."""
        return 5 * x * x

    bowl.vjp(x=lambda g, x: 10 * g * x)
    check(bowl, 45.0, 30.0)


def test_operations_of_others_are_not_declared_anew():
    def bowl(x):
        """A bowl."""
        return x * x

    def tanh(x):
        """Not this one."""
        return x

    ng.elementwise()(bowl)
    bowl.__module__ = "elsewhere"
    tanh.__module__, tanh.__qualname__ = "numgrad.operations.exponential", "tanh"
    for function in (bowl, tanh):
        with pytest.raises(ng.errors.NumgradRuntimeError, match="registered already"):
            ng.elementwise()(function)


def test_a_parameter_that_no_element_would_see_is_refused():
    def powered(x, *, p=2.0):
        return x**p

    with pytest.raises(ng.NumgradTypeError, match=r"powered: .* 'p' is a keyword-only"):
        ng.elementwise(register=False)(powered)

    @ng.elementwise(register=False)
    def raised(x, p=2.0):
        return x**p

    np.testing.assert_allclose(raised(np.array([1.0, 3.0]), p=3.0), [1.0, 27.0])
    slope = ng.grad(lambda p: np.sum(raised(np.array([1.0, 3.0]), p=p)))(3.0)
    np.testing.assert_allclose(slope, 27 * np.log(3.0))
