"""Series, frames and arrays of xarray as operands: labels count, or an error says they cannot."""

import copy
import operator
import pickle

import numpy as np
import pytest

import numgrad as ng

NUMBERS = np.array([1.0, 2.0, 3.0])
OTHERS = np.array([4.0, 5.0, 6.0])
FROZEN = pytest.mark.filterwarnings("ignore:jit. .* uses an array of shape")
COMPARISONS = "lt", "le", "eq", "ne", "gt", "ge"
OPERATORS = [
    getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", *COMPARISONS)
]


def series():
    pandas = pytest.importorskip("pandas")
    return pandas.Series(NUMBERS, index=[10, 11, 12])


def nullable():
    pandas = pytest.importorskip("pandas")
    return pandas.Series([1, 2, 3], dtype="Int64")


def column():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": NUMBERS, "b": NUMBERS})["a"]


def values_of_pandas():
    pandas = pytest.importorskip("pandas")
    return pandas.array(NUMBERS)


def index():
    pandas = pytest.importorskip("pandas")
    return pandas.Index(NUMBERS)


def polars_series():
    polars = pytest.importorskip("polars")
    return polars.Series("a", NUMBERS)


def data_array(numbers=NUMBERS, dim="t", labels=(5, 6, 7)):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(numbers, dims=dim, coords={dim: list(labels)})


KINDS = [series, nullable, column, values_of_pandas, index, polars_series]


@pytest.mark.parametrize("kind", [*KINDS, data_array])
def test_functions_take_numbers(kind):
    labelled = kind()
    t = ng.tensor(NUMBERS + 1, requires_grad=True)
    for out in (
        ng.multiply(labelled, t),
        np.dot(t, labelled),
        ng.where(NUMBERS > 1.5, t, labelled),
        ng.concat([t, labelled]),
    ):
        assert isinstance(out, ng.Tensor)
        t.grad = None
        out.sum().backward()
        assert type(t.grad) is ng.Tensor
    found = ng.grad(lambda w, x: ng.sum(w * x))(np.ones(3), labelled)
    np.testing.assert_array_equal(found, NUMBERS)
    x = ng.zeros(3)
    x[:] = labelled
    np.testing.assert_array_equal(x.numpy(), NUMBERS)


@pytest.mark.parametrize("of", OPERATORS)
@pytest.mark.parametrize("kind", KINDS)
def test_operators_of_both_orders(kind, of):
    labelled, numbers, step = kind(), OTHERS + 0.3, 1e-6
    for left in (False, True):

        def both(x, y, left=left):
            return of(x, y) if left else of(y, x)

        found = both(ng.tensor(numbers, requires_grad=True), labelled)
        assert isinstance(found, ng.Tensor)
        np.testing.assert_allclose(found.detach().numpy(), both(numbers, NUMBERS), rtol=1e-15)
        if found.dtype.kind == "f":
            slope = ng.grad(lambda x: np.sum(both(x, labelled)))(numbers)
            true = (both(numbers + step, NUMBERS) - both(numbers - step, NUMBERS)) / (2 * step)
            np.testing.assert_allclose(slope, true, rtol=1e-6, atol=1e-8)


def test_operands_of_numpys_ufuncs_and_in_place():
    s, t = series(), ng.tensor(OTHERS, requires_grad=True)
    for out in (np.multiply(t, s), np.multiply(s, t), s.mul(t)):
        np.testing.assert_array_equal(out.detach().numpy(), NUMBERS * OTHERS)
    x = ng.ones(3)
    x *= s
    np.testing.assert_array_equal(x.numpy(), NUMBERS)
    with pytest.raises(ng.NumgradTypeError, match=r"Series \+= Tensor.*write a = a \+ t"):
        s += t


# ------------------------------------------------------------------------------ labels of pandas


def write(x, index, value):
    x[index] = value
    return x


@FROZEN
def test_series_of_another_order_are_refused():
    pandas = pytest.importorskip("pandas")
    first, second = series(), pandas.Series([10.0, 20.0, 30.0], index=[12, 11, 10])
    p = ng.tensor(3.0, requires_grad=True)
    for program in (
        lambda p: p * first * second,
        lambda p: second * (first * p),
        lambda p: np.exp(p * first) - second,
        lambda p: (p * first) * (p * second),
        lambda p: (p * first)[1:] + second[1:],
        lambda p: (p * first).clone() * second,
        lambda p: np.clip(p * first, 0.0, 9.0) * second,
        lambda p: p * first * pandas.Series(NUMBERS),
        lambda p: p * pandas.Series(NUMBERS) * pandas.Series(NUMBERS)[::-1],
        lambda p: np.where(first > 1, p * first, second),
        lambda p: (p * first) @ second,
        lambda p: ng.add(first, second) * p,
        lambda p: np.cumsum(p * first) + second,
        lambda p: (p * first).cumprod() + second,
        lambda p: np.maximum.accumulate(p * first) + second,
        lambda p: np.logaddexp.accumulate(p * first) + second,
        lambda p: ng.softmax(p * first, 0) + second,
        lambda p: np.ravel(p * first) + second,
        lambda p: (p * first).reshape(-1) + second,
        lambda p: np.flip(p * first) + first,
        lambda p: np.roll(p * first, 1) + first,
        lambda p: np.take(p * first, [2, 1, 0]) + first,
        lambda p: operator.iadd(p * first, second),
        lambda p: (p * first).mul_(p * second),
        lambda p: (p * first).copy_(second),
        lambda p: (p * first)[second > 15],
        lambda p: (p * first)[p * second > 15],
        lambda p: write(p * first, slice(None), second),
        lambda p: write(p * first, second > 15, 0.0),
        lambda p: write(p * first, [10, 11, 12], second),
    ):
        for call in (
            program,
            ng.grad(lambda p, f=program: np.sum(f(p))),
            ng.jit(program),
            lambda p, f=program: ng.jvp(f, (p,), (1.0,)),
        ):
            with pytest.raises(ng.NumgradTypeError, match=r"\.to_numpy\(\)"):
                call(p if call is program else 3.0)


@FROZEN
def test_an_equal_index_is_as_good_as_none():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2026-01-01", periods=3)
    frame = pandas.DataFrame({"x": NUMBERS, "y": OTHERS}, index=days)
    rows = pandas.MultiIndex.from_tuples([(1, 1), (1, 2), (2, 1)])

    def program(p):
        return np.sum(np.exp(-p * frame.x) * frame.y - p * frame.x.rename("z").copy())

    true = np.sum(-NUMBERS * np.exp(-0.5 * NUMBERS) * OTHERS - NUMBERS)
    np.testing.assert_allclose(ng.grad(program)(0.5), true, rtol=1e-14)
    np.testing.assert_allclose(ng.jit(ng.grad(program))(0.5), true, rtol=1e-14)
    found = ng.grad(
        lambda p: np.sum(p * pandas.Series(NUMBERS, rows) * pandas.Series(OTHERS, rows))
    )
    assert found(1.0) == 32.0
    groups = frame.groupby([0, 0, 1])
    found = ng.grad(lambda p: (p * groups.x.sum() * groups.y.mean()).sum())
    assert found(1.0) == 3 * 4.5 + 3 * 6
    assert ng.least_squares(lambda p: p * frame.x - frame.y, 1.0, jit=True).x == pytest.approx(
        32 / 14
    )
    assert ng.minimize(lambda p, s: np.sum((p * s - frame.y) ** 2), 1.0, args=(frame.x,)).x == (
        pytest.approx(32 / 14)
    )
    shuffled = frame.sort_values("y", ascending=False)
    fit = ng.curve_fit(lambda x, a, b: a + b * x, shuffled.x, shuffled.y, p0=[0.0, 0.0])
    np.testing.assert_allclose(fit.parameters, [3.0, 1.0], rtol=1e-8)


def test_elements_that_move_keep_their_labels():
    s, t = series(), ng.tensor(OTHERS, requires_grad=True)
    for moved, places in (
        (np.flip(t * s), [2, 1, 0]),
        (np.roll(t * s, 1), [2, 0, 1]),
        (np.take(t * s, [2, 0, 1]), [2, 0, 1]),
    ):
        out = moved + s.iloc[places]
        np.testing.assert_array_equal(out.detach().numpy(), (NUMBERS * OTHERS + NUMBERS)[places])
    for sums in (np.cumsum(t * s), (t * s).cumsum()):
        np.testing.assert_array_equal((sums + s).detach().numpy(), [5.0, 16.0, 35.0])
    x = t * s
    x += s
    x[s > 2.5] = 0.0
    np.testing.assert_array_equal(x[s < 2.5].detach().numpy(), [5.0, 12.0])
    x[[12, 10]] = s.iloc[[2, 0]]
    np.testing.assert_array_equal(x.detach().numpy(), [1.0, 12.0, 3.0])
    assert type(np.sort(t * s)) is ng.Tensor


def test_reductions_and_conversions_have_no_labels():
    pandas = pytest.importorskip("pandas")
    s = series()
    t = ng.tensor(OTHERS, requires_grad=True)
    x = t * s
    for plain in (x.sum(), x.reshape(3, 1), np.concatenate([x, x]), np.outer(x, x)):
        assert type(plain) is ng.Tensor
    assert ((x.sum() * s[::-1]).detach().numpy() == 32 * NUMBERS[::-1]).all()
    for kept in (
        x.detach(),
        copy.copy(x),
        x[::-1][::-1],
        np.negative(x),
        copy.deepcopy(x.detach()),
    ):
        with pytest.raises(ng.NumgradTypeError, match="different indices"):
            kept * s[::-1]
    assert type(pickle.loads(pickle.dumps(x))) is ng.Tensor
    x.retain_grad()
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * NUMBERS * OTHERS)
    np.testing.assert_array_equal(t.grad.numpy(), 2 * NUMBERS**2 * OTHERS)
    x = t * s
    y = x * x
    x += 1.0
    with pytest.raises(RuntimeError, match="in-place"):
        y.sum().backward()
    with pytest.raises(ng.NumgradTypeError, match="example of a batch"):
        ng.vmap(lambda p: p * s)(NUMBERS)
    np.testing.assert_array_equal(
        ng.vmap(lambda p: p * pandas.Series(NUMBERS))(NUMBERS), np.outer(NUMBERS, NUMBERS)
    )


def test_frames_are_matrices():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": NUMBERS, "b": -NUMBERS})
    w = ng.tensor([1.0, 2.0], requires_grad=True)
    (ng.matmul(frame, w) * frame["a"]).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [14.0, -14.0])
    with pytest.raises(TypeError, match="not numeric"):
        ng.exp(pandas.Series(["a", "b"]))
    for of in OPERATORS:
        for call in (lambda: of(w, frame), lambda: of(frame, w)):  # noqa: B023
            with pytest.raises(ng.NumgradTypeError, match=r"one a column; .*\.to_numpy\(\)"):
                call()


def test_what_is_no_number_is_refused():
    pandas = pytest.importorskip("pandas")
    t = ng.ones(2)
    for labelled in (
        pandas.Series([1, 2], dtype="category"),
        pandas.Categorical([1, 2]),
        pandas.Series([1.0, None], dtype=object),
        pandas.to_timedelta([1, 2]),
        pandas.date_range("2026-01-01", periods=2),
        pandas.MultiIndex.from_tuples([(1, 1), (1, 2)]),
    ):
        with pytest.raises(ng.NumgradTypeError, match="is not numeric"):
            t * labelled
    missing = t * pandas.Series([1, None], dtype="Int64")
    np.testing.assert_array_equal(missing.numpy(), [1.0, np.nan])


def is_series(found, numbers, index):
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_series_equal(found, pandas.Series(numbers, index))
    return True


def test_gradients_of_series_are_series():
    pandas = pytest.importorskip("pandas")
    s, weights = series(), pandas.Series(OTHERS, [10, 11, 12])

    def f(x):
        return np.sum(weights * x**2) + x[11]

    slope = 2 * OTHERS * NUMBERS + [0, 1, 0]
    value, gradient = ng.value_and_grad(f)(s)
    assert value == f(s)
    assert is_series(gradient, slope, s.index)
    assert is_series(ng.jit(ng.grad(f))(s), slope, s.index)
    assert is_series(ng.grad(lambda p: f(p["w"]))({"w": s})["w"], slope, s.index)
    assert is_series(ng.vjp(f, s)[1](1.0), slope, s.index)
    assert is_series(ng.hvp(f)(s, s), 2 * OTHERS * NUMBERS, s.index)
    assert is_series(ng.vjp(lambda x: x * weights, s)[1](np.ones(3)), OTHERS, s.index)
    assert is_series(ng.jacobian(lambda p: p * s)(2.0), NUMBERS, s.index)
    value, tangent = ng.jvp(lambda x: x * weights, (s,), (s,))
    assert is_series(value, NUMBERS * OTHERS, s.index)
    assert is_series(tangent, NUMBERS * OTHERS, s.index)
    assert is_series(ng.fori_loop(0, 3, lambda i, x: x * 2.0, s), 8 * NUMBERS, s.index)
    assert is_series(ng.grad(lambda x: np.sum(x**2))(pandas.Series(NUMBERS)), 2 * NUMBERS, None)
    np.testing.assert_array_equal(ng.vmap(lambda x: x * 2.0)(s), 2 * NUMBERS)
    np.testing.assert_array_equal(ng.tensor(s).numpy(), NUMBERS)
    with pytest.raises(ng.NumgradTypeError, match="different indices"):
        ng.grad(lambda x: np.sum(x * weights))(s.set_axis([12, 11, 10]))
    x = ng.tensor(NUMBERS, requires_grad=True)
    ng.grad(lambda w: np.sum(w * x * weights))(s).sum().backward()  # of an outer Tensor
    np.testing.assert_array_equal(x.grad.numpy(), OTHERS)


def test_brackets_take_labels_as_those_of_series_do():
    pandas = pytest.importorskip("pandas")
    named = pandas.Series(NUMBERS, ["a", "b", "c"])
    moved = pandas.Series(NUMBERS, [2, 0, 1])
    days = pandas.Series(NUMBERS, pandas.date_range("2026-01-01", periods=3))
    for s, key in (
        (named, "b"),
        (named, ["c", "a"]),
        (named, slice("a", "b")),
        (named, slice(1, None)),
        (named, [True, False, True]),
        (moved, 0),
        (moved, [1, 2]),
        (moved, np.array([1])),
        (moved, slice(1)),
        (moved.set_axis([0.5, 1.5, 2.5]), 1.5),
        (pandas.Series(NUMBERS), 2),
        (days, "2026-01-02"),
        (days, slice("2026-01-02", None)),
    ):
        expected = np.zeros(3)
        expected[pandas.Series([0, 1, 2], s.index)[key]] = 1.0
        assert is_series(ng.grad(lambda x, k=key: np.sum(x[k]))(s), expected, s.index)
    assert ng.grad(lambda x: np.sum(x[["c", "a"]] * named[["c", "a"]]))(named).tolist() == [1, 0, 3]
    assert is_series(ng.jit(lambda x: write(x * 2.0, "b", 0.0))(named), [2, 0, 6.0], named.index)
    assert ng.grad(lambda x: x.iloc[0] * x.iloc[1:].sum())(moved).tolist() == [5, 1, 1]
    for s, key in ((named, "z"), (named, ["a", "z"]), (moved, 7), (moved, [0, 7])):
        with pytest.raises(ng.NumgradKeyError, match="is not among them"):
            ng.grad(lambda x, k=key: np.sum(x[k]))(s)
    assert ng.value_and_grad(lambda x: x.var(ddof=1))(named)[0] == named.var()
    assert ng.value_and_grad(np.std)(named)[0] == pytest.approx(NUMBERS.std())
    for name in ("std", "var"):  # of another divisor in pandas
        with pytest.raises(ng.NumgradTypeError, match=f"say which by correction=1 or 0.*{name}"):
            ng.grad(lambda x, n=name: getattr(x, n)())(named)


def test_products_with_frames_match_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": NUMBERS, "b": OTHERS}, index=[10, 11, 12])
    w, y = pandas.Series([1.0, -2.0], ["a", "b"]), series() * 3.0

    def misfit(w):
        return np.sum((ng.matmul(frame, w) - y) ** 2)

    matrix = frame.to_numpy()
    slope = 2 * matrix.T @ (matrix @ w.to_numpy() - y.to_numpy())
    for transform in (ng.grad, lambda f: ng.jit(ng.grad(f))):
        assert is_series(transform(misfit)(w), slope, w.index)
    best = np.linalg.lstsq(matrix, y.to_numpy())[0]
    for result in (
        ng.minimize(misfit, w, method="trust-exact"),
        ng.least_squares(lambda w: ng.matmul(frame, w) - y, w),
    ):
        assert is_series(result.x.round(6), best.round(6), w.index)
    assert is_series(ng.grad(lambda v: np.sum(ng.matmul(v, frame) * w))(y), matrix @ w, y.index)
    for wrong in (w[::-1], w.set_axis(["a", "c"])):
        with pytest.raises(ng.NumgradTypeError, match=r"matmul: two operands.*different ind"):
            ng.grad(misfit)(wrong)
    with pytest.raises(ng.NumgradTypeError, match=r"subtract: two operands.*different ind"):
        ng.grad(lambda w: np.sum(ng.matmul(frame, w) - y[::-1]))(w)


def test_solvers_know_numbers_of_series_by_label():
    pandas = pytest.importorskip("pandas")
    start = pandas.Series([0.9, 0.9, 3.0], ["a", "b", "c"])

    def cost(p):
        return np.sum((p - [1.0, 2.0, 3.0]) ** 2)

    for options, expected in (
        ({}, [1, 2, 3]),
        ({"bounds": {"b": (None, 1.5)}}, [1, 1.5, 3]),
        ({"bounds": [(0, 0.9), None, None]}, [0.9, 2, 3]),
        ({"fixed": {"a": 7.0}}, [7, 2, 3]),
        ({"tie": {"c": "2 * a"}}, [1.4, 2, 2.8]),
    ):
        found = ng.minimize(cost, start, **options).x
        assert is_series(found.round(6), np.asarray(expected, float), start.index)
    both = ng.minimize(lambda p: cost(p["w"]), {"w": start}, fixed=["w['a']"]).x
    assert is_series(both["w"].round(6), [0.9, 2, 3], start.index)
    with pytest.raises(ng.NumgradValueError, match=r"x0\['b'\] is 0\.9 .*outside of its bounds"):
        ng.minimize(cost, start, bounds={"b": (1, 2)})
    fit = ng.curve_fit(lambda x, a, b: a + b * x, NUMBERS, OTHERS, p0=start[["b", "a"]])
    assert is_series(fit.parameters.round(6), [1.0, 3.0], ["b", "a"])


def test_frames_as_arguments_are_refused():
    pandas = pytest.importorskip("pandas")
    for transform in (ng.grad, ng.jit, ng.vmap):
        with pytest.raises(ng.NumgradTypeError, match=r"\.to_numpy\(\)"):
            transform(np.sum)(pandas.DataFrame({"a": NUMBERS}))


@FROZEN
@pytest.mark.parametrize("kind", ["pandas", "xarray"])
def test_compiled_functions_give_each_argument_its_labels(kind):
    def labelled(labels):
        if kind == "xarray":
            return data_array(labels=labels)
        return pytest.importorskip("pandas").Series(NUMBERS, list(labels))

    fast = ng.jit(lambda x: x * 2.0)
    for labels in ((5, 6, 7), (5, 6, 7), (8, 9, 10), (5, 6, 7), (8, 9, 10)):
        found, true = fast(labelled(labels)), labelled(labels) * 2.0
        assert found.equals(true)
        assert list(found["t"] if kind == "xarray" else found.index) == list(labels)


# ------------------------------------------------------------------------------ arrays of xarray


@pytest.mark.parametrize("of", [*OPERATORS, np.add, np.hypot, np.logaddexp])
def test_xarray_matches_names(of):
    xarray = pytest.importorskip("xarray")
    a, t = data_array(), ng.tensor(NUMBERS + 0.5, requires_grad=True)
    for x in (a, a.variable, xarray.Dataset({"a": a})):
        for call in (lambda t: of(t, x), lambda t: of(x, t)):  # noqa: B023
            found, true = call(t), call(NUMBERS + 0.5)
            assert type(found) is type(true)
            if type(x) is xarray.Dataset:
                found, true = found.a, true.a
            assert isinstance(found.data, ng.Tensor)
            assert found.dims == true.dims
            np.testing.assert_allclose(found.data.detach().numpy(), true.data, rtol=1e-15)


def test_gradients_through_xarray():
    a, b = data_array(), data_array(OTHERS, "s")
    slope = NUMBERS * OTHERS.sum()
    for program in (
        lambda t: np.sum((t * a * b).data),
        lambda t: np.sum((b * (a * t)).data),
        lambda t: (t * a * b).sum(),
        lambda t: np.multiply(np.multiply(t, a), b).mean() * 9,
    ):
        np.testing.assert_allclose(ng.grad(program)(OTHERS), slope, rtol=1e-15)
    assert ng.grad(lambda p: np.sum((p * a).data))(2.0) == 6.0


@pytest.mark.parametrize("optimal", [False, True])
def test_products_of_xarray(optimal):
    xarray = pytest.importorskip("xarray")
    a = data_array()

    with xarray.set_options(use_opt_einsum=optimal):
        for program in (
            lambda t: xarray.dot(a, xarray.DataArray(t, dims="t")).data,
            lambda t: (a @ xarray.DataArray(t, dims="t")).data,
        ):
            assert program(ng.tensor(OTHERS)) == 32.0
            np.testing.assert_array_equal(ng.grad(program)(OTHERS), NUMBERS)


@FROZEN
def test_xarray_aligns_by_coordinates():
    a, b = data_array(), data_array(OTHERS, labels=(7, 6, 5))

    def program(p):
        return (p * a * b).sum()

    true = program(1.0).item()
    assert true == np.sum(NUMBERS * OTHERS[::-1])
    assert ng.grad(program)(2.0) == true
    assert ng.jit(ng.grad(program))(2.0) == true
    with pytest.raises(ng.NumgradTypeError, match="differ in their labels"):
        ng.multiply(a, b)
    with pytest.raises(ng.NumgradTypeError, match="differ in their labels"):
        ng.multiply(a, data_array(dim="s"))


def test_elements_by_attribute_and_loc():
    pandas = pytest.importorskip("pandas")
    s = pandas.Series(NUMBERS, ["a", "b", "c"])

    def f(p):
        return p.a * p.loc["b"] ** 2 + np.sum(p.loc["b":"c"]) + p.loc[["a", "c"]]["c"]

    assert f(s) == 4.0 + 5.0 + 3.0
    assert is_series(ng.grad(f)(s), [4.0, 4.0 + 1.0, 2.0], s.index)
    with pytest.raises(AttributeError, match="no attribute 'd'"):
        ng.grad(lambda p: p.d)(s)


def test_jacobians_and_hessians_of_series_are_frames():
    pandas = pytest.importorskip("pandas")
    s, weights = series(), pandas.Series(OTHERS, [10, 11, 12])

    def frame(numbers, index=s.index):
        return pandas.DataFrame(numbers, index, s.index)

    same = pandas.testing.assert_frame_equal
    same(ng.hessian(lambda x: np.sum(weights * x**2))(s), frame(np.diag(2 * OTHERS)))
    for transform in (ng.jacobian, ng.jacrev, ng.jacfwd):
        same(transform(lambda x: x * weights)(s), frame(np.diag(OTHERS)))
        same(transform(lambda x: ng.stack([x[10], x[11]]))(s), frame(np.eye(3)[:2], range(2)))
    blocks = ng.jacobian(lambda p: {"y": p["x"] * weights})({"x": s})
    same(blocks["y"]["x"], frame(np.diag(OTHERS)))
    same(ng.jacobian(lambda p, x: p * x, 1)(3.0, s), frame(3 * np.eye(3)))
    tall = ng.hessian(lambda x: x**2)(s)  # of three axes, which no frame has
    assert tall.shape == (3, 3, 3)


def test_a_cotangent_of_one_labelled_array_may_be_plain():
    a = data_array()
    value, product = ng.vjp(lambda x: (x**2).sum(), a)
    assert value.shape == ()
    assert product(3.0).identical(6.0 * a)
    assert ng.vjp(lambda x: x**2, a)[1](OTHERS).identical(2 * a * OTHERS)
    with pytest.raises(ValueError, match="shape"):
        product(OTHERS)


@FROZEN
def test_labelled_arrays_of_xarray_as_arguments_and_results():
    a, b = data_array(), data_array(OTHERS, "s")
    found = ng.grad(lambda x: (x * x * b).sum())(a)
    assert found.identical(2 * a * OTHERS.sum())
    assert ng.jit(lambda x: x * b)(a).identical(a * b)
    value, tangent = ng.jvp(lambda x: x**2, (a,), (a,))
    assert value.identical(a**2)
    assert tangent.identical(2 * a**2)
    np.testing.assert_array_equal(ng.hessian(lambda x: (x**3).sum())(a), 6 * np.diag(NUMBERS))
    fit = ng.minimize(lambda p: ((p * a - OTHERS) ** 2).sum(), 1.0)
    assert fit.x == pytest.approx(32 / 14)
    for jit in (False, True):
        assert ng.least_squares(lambda p: p * a - OTHERS, 1.0, jit=jit).x == pytest.approx(32 / 14)
        fit = ng.curve_fit(lambda x, c, d: c + d * x, a, OTHERS, p0=[0.0, 0.0], jit=jit)
        np.testing.assert_allclose(fit.parameters, [3.0, 1.0], rtol=1e-8)


def test_what_xarray_labels_is_a_tensor_still():
    x = ng.tensor(NUMBERS, requires_grad=True)
    out = np.sum(np.sin(data_array() * x).data)
    ng.sum(data_array() + x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    assert out.requires_grad
    for call in (lambda: x @ data_array(), lambda: operator.iadd(ng.ones(3), data_array())):
        with pytest.raises(ng.NumgradTypeError, match=r"\.data"):
            call()


# ---------------------------------------------------------------------------------- other kinds


class Lengths(np.ndarray):
    """An ndarray with a unit, which its ufuncs look at."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return getattr(ufunc, method)(*map(np.asarray, inputs), **kwargs).view(Lengths)


def test_arrays_with_rules_of_their_own_are_refused():
    lengths, t = NUMBERS.view(Lengths), ng.tensor(NUMBERS, requires_grad=True)
    for call in (
        lambda: t * lengths,
        lambda: ng.sin(lengths),
        lambda: ng.tensor(lengths),
        lambda: ng.grad(np.sum)(lengths),
        lambda: np.multiply(t, lengths),
    ):
        with pytest.raises(ng.NumgradTypeError, match=r"Lengths is an ndarray with rules"):
            call()
    with pytest.raises(ng.NumgradError):
        lengths * t


def test_arrays_of_dask_are_computed_first():
    dask = pytest.importorskip("dask.array")
    lazy, t = dask.from_array(NUMBERS), ng.tensor(NUMBERS, requires_grad=True)
    for of in (*OPERATORS, operator.matmul):
        for call in (lambda: of(t, lazy), lambda: of(lazy, t)):  # noqa: B023
            with pytest.raises(ng.NumgradTypeError, match=r"array of dask.*\.compute\(\)"):
                call()
    np.testing.assert_array_equal((t * lazy.compute()).detach().numpy(), NUMBERS**2)


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(NUMBERS, [0, 1, 0])
    t = ng.zeros(3)
    for call in (
        lambda: ng.exp(masked),
        lambda: t * masked,
        lambda: ng.tensor(masked),
        lambda: ng.grad(ng.sum)(masked),
        lambda: ng.jit(lambda x: ng.sum(x))(masked),
        lambda: t.__setitem__(slice(None), masked),
        lambda: ng.append(t, masked),
    ):
        with pytest.raises(TypeError, match=r"masked array .*\.filled"):
            call()
