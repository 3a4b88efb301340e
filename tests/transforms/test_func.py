"""Transforms of functions: grad, value_and_grad, jacobian, hessian."""

import numpy as np
import pytest

import numgrad as ng


def cube(x):
    return np.sum(x**3)


def test_kind_in_is_kind_out():
    x = np.array([1.0, 2.0])
    value, gradient = ng.value_and_grad(cube)(x)
    assert value == 9.0
    assert type(gradient) is np.ndarray
    np.testing.assert_array_equal(gradient, [3.0, 12.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])
    assert isinstance(ng.grad(cube)(ng.tensor(x)), ng.Tensor)
    assert ng.grad(lambda x: x * x)(3) == 6.0
    assert ng.grad(cube)(x.astype(np.float32)).dtype == np.float32


def test_argnums_aux_and_trees():
    def f(a, b, scale=1.0):
        return np.sum(a["w"] * b) * scale, a["w"]

    a, b = {"w": np.array([1.0, 2.0])}, np.array([3.0, 4.0])
    (value, aux), (ga, gb) = ng.value_and_grad(f, argnums=(0, 1), has_aux=True)(a, b, scale=2.0)
    assert value == 22.0
    np.testing.assert_array_equal(aux, a["w"])
    assert type(aux) is np.ndarray
    np.testing.assert_array_equal(ga["w"], [6.0, 8.0])
    np.testing.assert_array_equal(gb, [2.0, 4.0])
    gradient, aux = ng.grad(f, argnums=-1, has_aux=True)(a, b)
    np.testing.assert_array_equal(gradient, [1.0, 2.0])
    nested = ng.grad(lambda t: np.sum(t[0] * t[1][0]))((b, [b * 2]))
    np.testing.assert_array_equal(nested[1][0], b)


def test_jacobian_and_hessian():
    rng = np.random.default_rng(0)
    m, x = rng.standard_normal((3, 2)), rng.standard_normal(2)

    def f(x):
        return np.sin(np.sum(x * m, axis=1))

    jacobian = ng.jacobian(f)(x)
    np.testing.assert_allclose(jacobian, np.cos(m @ x)[:, None] * m, rtol=1e-13)
    assert ng.jacobian(lambda a, b: a * b, argnums=(0, 1))(x, x)[1].shape == (2, 2)
    hessian = ng.hessian(lambda x: np.sum(np.exp(x)) + x[0] * x[1])(x)
    np.testing.assert_allclose(hessian, np.diag(np.exp(x)) + np.eye(2)[::-1], rtol=1e-13)
    np.testing.assert_array_equal(ng.jacobian(lambda x: np.ones(2))(x), np.zeros((2, 2)))


def test_hessians_of_several_results():
    """As the Jacobian of the Jacobian, and written out."""

    def f(x):
        return {"sine": np.sin(x) * x[::-1], "pair": (np.sum(x**3), np.outer(x, x**2))}

    x = np.array([0.3, 1.2, -0.5])
    found = ng.hessian(f)(x)
    np.testing.assert_allclose(found["pair"][0], np.diag(6 * x))
    outer = np.zeros((3, 3, 3, 3))
    for i in range(3):
        for j in range(3):  # x[i] * x[j]**2
            outer[i, j, i, j] += 2 * x[j]
            outer[i, j, j, i] += 2 * x[j]
            outer[i, j, j, j] += 2 * x[i]
    np.testing.assert_allclose(found["pair"][1], outer)
    for part in (lambda y: y["sine"], lambda y: y["pair"][0], lambda y: y["pair"][1]):
        one = lambda x, part=part: part(f(x))  # noqa: E731
        np.testing.assert_allclose(part(found), ng.jacobian(ng.jacobian(one))(x), atol=1e-14)
        np.testing.assert_allclose(part(found), ng.jit(ng.hessian(one))(x), atol=1e-14)
        np.testing.assert_allclose(part(found), ng.vmap(ng.hessian(one))(x[None])[0], atol=1e-14)
    np.testing.assert_allclose(ng.grad(lambda x: np.sum(ng.hessian(lambda x: x**4)(x)))(x), 24 * x)


def test_hessians_of_vectors_by_several_arguments():
    x, y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    (xx, xy), (yx, yy) = ng.hessian(lambda x, y: x * y**2, (0, 1))(x, y)
    diagonal = np.arange(2), np.arange(2), np.arange(2)
    for found, expected in ((xx, 0 * x), (xy, 2 * y), (yx, 2 * y), (yy, 2 * x)):
        whole = np.zeros((2, 2, 2))
        whole[diagonal] = expected
        np.testing.assert_array_equal(found, whole)
    nested = ng.hessian(lambda p: p["w"] * np.sum(p["v"]))({"w": x, "v": np.ones(3)})
    assert nested["w"]["v"].shape == (2, 2, 3)
    np.testing.assert_array_equal(nested["w"]["v"][0], [[1, 1, 1], [0, 0, 0]])
    values, aux = ng.hessian(lambda x: (x**2, "beside"), has_aux=True)(x)
    assert (values.shape, aux) == ((2, 2, 2), "beside")
    assert ng.hessian(lambda x: np.ones(4))(x).tolist() == np.zeros((4, 2, 2)).tolist()
    assert ng.hessian(lambda x: x[:0])(x).shape == (0, 2, 2)
    assert ng.hessian(lambda z: z**3, holomorphic=True)(x + 0j)[1, 1, 1] == 12


def test_nesting():
    def inner(x):
        return ng.grad(lambda y: np.sum(y**3 * x))(x).sum()

    x = ng.tensor([2.0], requires_grad=True)
    assert ng.grad(inner)(x).item() == pytest.approx(36.0)  # d/dx 3 x^3 with y = x through both


def test_no_backward_inside_a_transform():
    """Promise 110."""
    parameter = ng.tensor(2.0, requires_grad=True)

    def f(x):
        (x.sum() * parameter).backward()
        return x.sum()

    with pytest.raises(RuntimeError, match="inside a function that ng"):
        ng.grad(f)(np.ones(2))
    assert parameter.grad is None
    (parameter * 3).backward()  # and outside all is as before
    assert parameter.grad.item() == 3.0


def test_what_has_no_gradient_is_refused():
    """Promise 110."""
    with pytest.raises(RuntimeError, match="jacobian"):
        ng.grad(lambda x: x * 2)(np.ones(2))
    with pytest.raises(RuntimeError, match=r"hessian.*complex"):
        ng.hessian(lambda x: x * 2j)(np.ones(2))
    with pytest.raises(ValueError, match="argument 1"):
        ng.grad(cube, argnums=1)(np.ones(2))
    with pytest.raises(TypeError, match="int64"):
        ng.grad(cube)(np.ones(2, int))
    with pytest.raises(TypeError, match="pair"):
        ng.grad(cube, has_aux=True)(np.ones(2))


def test_result_that_does_not_depend():
    np.testing.assert_array_equal(ng.grad(lambda x: np.sum(np.ones(2)))(np.ones(2)), [0, 0])
    with ng.no_grad():
        np.testing.assert_array_equal(ng.grad(cube)(np.ones(2)), [3, 3])


# -------------------------------------------------------------------------- rows, columns, batches


def counting(function):
    """A function, and the list to which each call adds one."""
    calls = []

    def counted(x):
        calls.append(1)
        return function(x)

    return counted, calls


@pytest.mark.parametrize(("inputs", "outputs"), [(3, 200), (150, 150), (40, 2), (2, 3), (1, 20)])
def test_a_jacobian_of_any_shape(inputs, outputs):
    """One after the other, in batches of rows (more than one batch), of columns."""
    rng = np.random.default_rng(0)
    m, x = rng.standard_normal((outputs, inputs)), rng.standard_normal(inputs)
    f, calls = counting(lambda x: np.cumsum(np.tanh(m @ (x * x))))
    expected = np.cumsum((1 - np.tanh(m @ (x * x)) ** 2)[:, None] * m * 2 * x, axis=0)
    found = ng.jacobian(f)(x)
    columns_by_duals = inputs <= 24 and outputs > 4 * inputs + 16
    assert len(calls) == 1 + columns_by_duals  # however many rows or columns
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    for strategy in ("reverse-mode", "forward-mode"):
        of_torch = ng.autograd.functional.jacobian(f, x, vectorize=True, strategy=strategy)
        np.testing.assert_allclose(of_torch, expected, rtol=1e-11, atol=1e-14)
    single = ng.jacobian(f)(x.astype(np.float32))
    assert single.dtype == np.float32  # as that by which it is


def test_an_input_that_only_some_outputs_depend_on():
    x, y = np.linspace(0, 1, 30), np.linspace(1, 2, 2)
    by_x, by_y = ng.jacobian(lambda x, y: x * 2, (0, 1))(x, y)
    np.testing.assert_array_equal(by_x, 2 * np.eye(30))
    np.testing.assert_array_equal(by_y, np.zeros((30, 2)))
    by_y = ng.jacobian(lambda x, y: np.repeat(x, 4) * 2, 1)(x, y)
    np.testing.assert_array_equal(by_y, np.zeros((120, 2)))
    hessian = ng.hessian(lambda x, y: np.sum(x**3), (0, 1))(x, y)
    np.testing.assert_array_equal(hessian[0][0], np.diag(6 * x))
    np.testing.assert_array_equal(hessian[1][0], np.zeros((2, 30)))
    assert ng.jacobian(lambda x: x[:0])(x).shape == (0, 30)
    assert ng.jacobian(lambda x: np.sum(x) * np.ones(30))(x[:0]).shape == (30, 0)


class Cube(ng.autograd.Function):
    """Has no rule for batches, so rows are computed one after the other."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


def test_what_has_no_rule_for_batches_is_computed_one_by_one():
    x = np.linspace(0.5, 2, 20)
    np.testing.assert_allclose(ng.jacobian(Cube.apply)(x), np.diag(3 * x**2), rtol=1e-14)
    hessian = ng.hessian(lambda x: Cube.apply(x).sum())(x)
    np.testing.assert_allclose(hessian, np.diag(6 * x), rtol=1e-14)

    def written(x):
        y = np.sin(x).clone()
        y[0] = x[1] * 2
        return y

    expected = np.diag(np.cos(x))
    expected[0, :2] = 0, 2
    np.testing.assert_allclose(ng.jacobian(written)(x), expected, rtol=1e-14)
    forward = ng.autograd.functional.jacobian(written, x, vectorize=True, strategy="forward-mode")
    np.testing.assert_allclose(forward, expected, rtol=1e-14)


class Doubled(ng.autograd.Function):
    """Its backward leaves the tape: right once, not twice."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return ng.asarray(g.detach().numpy() * 2)


def test_code_of_the_users_gets_one_row_after_the_other():
    x, seen = np.array([0.5, 2.0]), []
    for f in (lambda x: np.repeat(Doubled.apply(x), 50), lambda x: Doubled.apply(np.repeat(x, 50))):
        found = ng.jacobian(f)(x)
        np.testing.assert_array_equal(found, 2 * np.repeat(np.eye(2), 50, axis=0))
    found = ng.jit(ng.jacobian(lambda x: np.repeat(Cube.apply(x), 2)))(x)
    np.testing.assert_array_equal(found, 3 * np.repeat(np.diag(x**2), 2, axis=0))

    def hooked(x):
        y = np.repeat(x, 20)
        y.register_hook(lambda g: seen.append(g.numpy()) or g * 3)
        return y * 1.0

    np.testing.assert_array_equal(ng.jacobian(hooked)(x), 3 * np.repeat(np.eye(2), 20, axis=0))
    np.testing.assert_array_equal(seen, np.eye(40))


def test_many_rows_lead_outside():
    w = ng.tensor(3.0, requires_grad=True)

    def columns(x):  # fewer than rows
        return np.repeat(np.sin(x * w), 50)

    for f, x, times in ((lambda x: np.sin(x * w), np.linspace(0.5, 2, 20), 1),
                        (columns, np.linspace(0.5, 2, 3), 50)):  # fmt: skip
        total = ng.jacobian(f)(x).sum()
        (by_w,) = ng.autograd.grad(total, w)
        inside = ng.grad(lambda s, f=f, x=x: ng.jacobian(lambda y: f(y * s))(x).sum())(1.0)
        expected = np.sum(np.cos(3 * x) - 3 * x * np.sin(3 * x)) * times
        np.testing.assert_allclose(total.item(), np.sum(3 * np.cos(3 * x)) * times, rtol=1e-12)
        np.testing.assert_allclose(by_w, expected, rtol=1e-12)
        np.testing.assert_allclose(inside.item(), 3 * expected, rtol=1e-12)


def test_columns_of_a_function_that_draws_random_numbers_are_of_one_call():
    drawn = []

    def f(x):
        drawn.append(np.random.default_rng(len(drawn)).standard_normal(100))
        return x[0] * drawn[-1] + x[1]

    found = ng.jacobian(f)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(found[:, 0], drawn[0], rtol=1e-14)
