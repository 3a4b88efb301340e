"""Loops and branches as functions, against the Python loops that they stand for."""

import tracemalloc

import numpy as np
import pytest

import numgrad as ng
from numgrad import errors

RNG = np.random.default_rng(0)
TIMES = np.linspace(0.5, 2.0, 5)
START, WEIGHTS = np.ones(3), np.cos(np.arange(9.0)).reshape(3, 3) / 2


def unrolled(step, carry, xs, reverse=False):
    rows = []
    for x in xs[::-1] if reverse else xs:
        carry, y = step(carry, x)
        rows.append(y)
    return carry, np.stack(rows[::-1] if reverse else rows)


def oscillator(state, t):
    """Position and velocity, one leapfrog step."""
    x, v = state
    v = v - 0.1 * np.sin(x) * t
    x = x + 0.1 * v
    return (x, v), x * v


def energy(loop, reverse):
    def total(x0, v0, times):
        (x, v), path = loop(oscillator, (x0, v0), times, reverse=reverse)
        return np.sum(path**2) + x * v

    return total


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "derive",
    [lambda f: f, ng.grad, ng.hessian, lambda f: ng.jacfwd(ng.grad(f))],
    ids=["value", "gradient", "hessian", "forward over reverse"],
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_scan_is_the_loop(reverse, derive, compiled):
    found = derive(lambda p: energy(ng.scan, reverse)(p[0], p[1], TIMES))
    expected = derive(lambda p: energy(unrolled, reverse)(p[0], p[1], TIMES))
    point = np.array([0.3, -0.2])
    found = ng.jit(found) if compiled else found
    np.testing.assert_allclose(found(point), expected(point), rtol=1e-11)


def test_gradients_of_what_a_step_reads_and_of_xs():
    w = RNG.normal(size=(3, 3))
    xs = RNG.normal(size=(6, 3))

    def loss(loop, w, xs):
        carry, rows = loop(lambda h, x: (np.tanh(w @ h + x), h * h), np.ones(3), xs)
        return np.sum(carry) + np.sum(rows)

    found = ng.grad(lambda w, xs: loss(ng.scan, w, xs), (0, 1))(w, xs)
    expected = ng.grad(lambda w, xs: loss(unrolled, w, xs), (0, 1))(w, xs)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    mapped = ng.vmap(ng.grad(lambda x: loss(ng.scan, w, x)))(np.stack([xs, 2 * xs]))
    np.testing.assert_allclose(
        mapped[1], ng.grad(lambda x: loss(unrolled, w, x))(2 * xs), rtol=1e-12
    )


POLICIES = ["carries", "all", "sqrt", 1, 3, 20, pytest.param(lambda n: n // 2 + 1, id="callable")]


def remembering(save, reverse=False, loop=ng.scan):
    """A recurrent net whose state counts its steps."""

    def total(w, xs):
        def step(c, x):
            h = np.tanh(w @ c["h"] + x)
            return {"h": h, "k": c["k"] + 1}, (h * h, None, np.sum(h) * c["k"])

        c, (a, _, b) = loop(step, {"h": START, "k": 0}, xs, reverse=reverse, save=save)
        return np.sum(c["h"] * c["k"]) + np.sum(a) + np.sum(b**2)

    return total


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("save", POLICIES, ids=str)
def test_gradients_do_not_depend_on_what_is_kept(save, reverse):
    w, xs = WEIGHTS, np.sin(np.arange(33.0).reshape(11, 3))
    f, plain = remembering(save, reverse), remembering(None, reverse)
    found, expected = (ng.value_and_grad(g, (0, 1))(w, xs) for g in (f, plain))
    for a, b in zip(ng.tree.leaves(found), ng.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    if not reverse:
        second = ng.hessian(lambda w: f(w, xs[:4]))(w)
        np.testing.assert_allclose(
            second, ng.hessian(lambda w: plain(w, xs[:4]))(w), rtol=1e-9, atol=1e-11
        )
    assert f(w, xs[:0]) == plain(w, xs[:0])


def test_memory_grows_as_the_root_of_the_length():
    """What is kept, in numbers of the size of a state."""

    def peak(save, n):
        f = ng.grad(
            lambda x: np.sum(ng.fori_loop(0, n, lambda i, c: np.sin(np.cos(c)) + x, x, save))
        )
        f(x)
        tracemalloc.start()
        f(x)
        found = tracemalloc.get_traced_memory()[1] / x.nbytes
        tracemalloc.stop()
        return found

    x = np.ones(20_000)
    assert 2 * peak("sqrt", 64) < 64 <= peak("carries", 64) < peak("all", 64)


def test_nestings_and_kinds():
    def step(carry, x):
        return {"n": carry["n"] + 1, "s": carry["s"] + x["a"]}, {"y": carry["s"], "none": None}

    init, xs = {"n": 0, "s": np.float32(0)}, {"a": np.arange(3, dtype=np.float32)}
    carry, ys = ng.scan(step, init, xs)
    assert carry == {"n": 3, "s": 3.0}
    assert carry["s"].dtype == np.float32
    assert ys["none"] is None
    assert type(ys["y"]) is np.ndarray
    assert isinstance(ng.scan(step, init, {"a": ng.ones(3)})[1]["y"], ng.Tensor)
    carry, ys = ng.scan(step, init, {"a": np.zeros((0,), np.float32)})
    assert (carry["n"], ys["y"].shape, ys["y"].dtype) == (0, (0,), np.float32)
    assert ng.scan(lambda c, _: (2 * c, None), 1, length=5) == (32, None)


def test_a_carry_takes_the_dtype_that_a_step_gives_it():
    total, rows = ng.scan(lambda c, x: (c + x, c), 0, np.arange(3, dtype=np.float32))
    assert (total, total.dtype, rows.dtype) == (3.0, np.float32, np.float32)
    total, rows = ng.scan(lambda c, x: (c + x, c), np.int64(0), np.arange(3.0))
    assert (total.dtype, rows.dtype) == (np.float64, np.float64)
    total = ng.fori_loop(0, 3, lambda i, z: z * 1j, 1.0)
    assert (total, total.dtype) == (-1j, np.complex128)


def test_fori_and_map():
    assert ng.fori_loop(0, 4, lambda i, c: c + i, 0) == 6
    assert ng.fori_loop(4, 0, lambda i, c: c + i, 7) == 7
    assert ng.grad(lambda x: ng.fori_loop(0, 3, lambda i, y: y * x + i, 1.0))(2.0) == 13.0
    rows = RNG.normal(size=(4, 3))
    found = ng.map(lambda r: r.sum() if r[0] > 0 else 0.0, rows)
    np.testing.assert_array_equal(found, [r.sum() if r[0] > 0 else 0.0 for r in rows])


def newton(a):
    """A square root."""
    return ng.while_loop(lambda x: abs(x * x - a) > 1e-12 * a, lambda x: 0.5 * (x + a / x), a)


def logarithms(x):
    """How long the logarithm can be taken: not a number for those that are done."""

    def body(c):
        return np.log(c[0]), c[1] + np.sqrt(c[0] - 1)

    return ng.while_loop(lambda c: c[0] > 1, body, (x, 0.0))[1]


@pytest.mark.parametrize("f", [newton, logarithms])
def test_while_loop(f):
    points = np.array([0.5, 5.0, 50.0, 1.0, 4.0])
    values = np.array([f(x) for x in points])
    slopes = np.array([ng.grad(f)(x) for x in points])
    assert np.all(np.isfinite(slopes))
    for x, slope in zip(points[:3], slopes, strict=False):
        np.testing.assert_allclose(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(ng.vmap(f)(points), values)
    np.testing.assert_allclose(ng.vmap(ng.grad(f))(points), slopes, rtol=1e-12)
    np.testing.assert_allclose(
        ng.vmap(ng.vmap(ng.jacfwd(f)))(np.stack([points, points])), [slopes, slopes], rtol=1e-12
    )


def test_no_step_at_all():
    assert ng.while_loop(lambda x: x > 0, lambda x: x - 1, -1.0) == -1.0
    np.testing.assert_array_equal(ng.vmap(newton)(np.zeros(0)), np.zeros(0))


def test_branches():
    points = np.array([4.0, -1.0, 0.0, 9.0])

    def root(x):
        return ng.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)

    np.testing.assert_array_equal(ng.vmap(root)(points), [2.0, 0.0, 0.0, 3.0])
    np.testing.assert_array_equal(ng.vmap(ng.grad(root))(points), [0.25, 0.0, 0.0, 1 / 6])
    np.testing.assert_array_equal([ng.grad(root)(x) for x in points], [0.25, 0.0, 0.0, 1 / 6])
    assert ng.cond(True, lambda: "text", lambda: 1 / 0) == "text"
    functions = [np.sin, np.cos, np.tan]
    places = [0, 1, 2, 9, -4]
    expected = [functions[k](1.0) for k in (0, 1, 2, 2, 0)]
    assert [ng.switch(k, functions, 1.0) for k in places] == expected
    mapped = ng.vmap(lambda k, x: ng.switch(k, functions, x))(np.array(places), np.ones(5))
    np.testing.assert_array_equal(mapped, expected)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8])
def test_associative_scan(n):
    x = RNG.normal(size=(n, 3))
    np.testing.assert_allclose(ng.associative_scan(np.add, x), np.cumsum(x, 0), rtol=1e-12)
    back = ng.associative_scan(np.multiply, x.T, axis=1, reverse=True)
    np.testing.assert_allclose(back, np.cumprod(x.T[:, ::-1], 1)[:, ::-1], rtol=1e-12)
    if n:
        matrices = RNG.normal(size=(n, 2, 2))
        products = [matrices[0]]
        for matrix in matrices[1:]:
            products.append(matrix @ products[-1])
        found = ng.associative_scan(lambda a, b: b @ a, matrices)
        np.testing.assert_allclose(found, products, rtol=1e-10, atol=1e-13)
        backward = ng.associative_scan(lambda a, b: b @ a, matrices, reverse=True)[0]
        np.testing.assert_allclose(
            backward, np.linalg.multi_dot([np.eye(2), *matrices]), rtol=1e-10, atol=1e-13
        )
    slope = ng.grad(lambda x: np.sum(ng.associative_scan(np.add, x) ** 2))(x)
    np.testing.assert_allclose(slope, 2 * np.cumsum(np.cumsum(x, 0)[::-1], 0)[::-1], rtol=1e-12)


def numbers(c, x):
    return c, x


TABLE = np.array([2.0, 3.0])
ERRORS = {
    "no pair": (lambda: ng.scan(lambda c, x: c, 0.0, np.ones(3)), "returns a pair"),
    "shape": (
        lambda: ng.scan(lambda c, x: (np.ones(2), x), 0.0, np.ones(3)),
        r"shape \(\) at first and \(2,\) after",
    ),
    "nesting": (lambda: ng.scan(lambda c, x: ((c, c), x), 0.0, np.ones(3)), "nested otherwise"),
    "lengths": (
        lambda: ng.scan(numbers, 0.0, (np.ones(3), np.ones(2))),
        r"xs\[0\]: 3, xs\[1\]: 2",
    ),
    "length": (lambda: ng.scan(numbers, 0.0, np.ones(3), length=2), "xs: 3, length: 2"),
    "no length": (lambda: ng.scan(numbers, 0.0), "length is the number of steps"),
    "carry": (lambda: ng.scan(numbers, "a", length=2), "the carry holds a str"),
    "scalar": (lambda: ng.scan(numbers, 0.0, 3.0), "without axes"),
    "function": (lambda: ng.fori_loop(0, 2, 3, 0.0), "takes a function"),
    "condition": (lambda: ng.while_loop(lambda c: c > 0, abs, np.ones(2)), "np.all or np.any"),
    "pred": (lambda: ng.cond(np.ones(2) > 0, np.sin, np.cos, 1.0), "one truth value"),
    "index": (lambda: ng.switch(1.5, [np.sin], 1.0), "one integer"),
    "no branch": (lambda: ng.switch(1, [], 1.0), "no branch"),
    "branches": (
        lambda: ng.vmap(lambda x: ng.cond(x > 0, lambda: (1.0,), lambda: 1.0))(np.array([1.0, -1])),
        "nested otherwise in another branch",
    ),
    "upper": (lambda: ng.fori_loop(0, 2.5, numbers, 0.0), "fori_loop: upper must be an integer"),
    "lower": (lambda: ng.fori_loop(None, 3, numbers, 0.0), "fori_loop: lower must be an integer"),
    "fraction": (lambda: ng.scan(numbers, 0.0, length=2.0), "scan: length must be an integer"),
    "save": (lambda: ng.scan(numbers, 0.0, np.ones(3), save="root"), "'carries', 'all', 'sqrt'"),
    "every": (lambda: ng.scan(numbers, 0.0, np.ones(3), save=0), "one or more"),
    "flag": (lambda: ng.scan(numbers, 0.0, np.ones(3), save=True), "number of steps"),
    "returned": (
        lambda: ng.scan(numbers, 0.0, np.ones(3), save=lambda n: n / 2),
        "what save returned must be an integer",
    ),
    "axis": (
        lambda: ng.associative_scan(np.add, np.ones(3), axis=None),
        "associative_scan: axis must be an integer",
    ),
    "text": (lambda: ng.while_loop(lambda c: "", abs, 1.0), "condition is a str; it is one truth"),
    "nothing": (lambda: ng.while_loop(lambda c: None, abs, 1.0), "condition is a NoneType"),
    "list": (lambda: ng.while_loop(lambda c: [True], abs, 1.0), "condition is a list"),
    "traced bound": (
        lambda: ng.jit(lambda n, x: ng.fori_loop(0, n, lambda i, c: c * x, 1.0))(3.0, 2.0),
        r"fori_loop: upper needs the numbers .*static_argnums",
    ),
    "unknown length": (
        lambda: ng.jit(lambda n, x: ng.fori_loop(0, n, lambda i, c: c * x, 1.0, "sqrt"))(3, 2.0),
        "found while the loop runs",
    ),
    "list of numbers": (lambda: ng.scan(lambda c, x: (c, x), 0.0, [1.0, 2.0]), "np.array makes"),
    "plain table": (
        lambda: ng.jit(lambda x: ng.fori_loop(0, 2, lambda i, c: c * TABLE[i], x))(1.0),
        r"ng\.take\(table, k, axis=0\)",
    ),
    "not associative": (lambda: ng.associative_scan(lambda a, b: a[:1], np.ones(8)), "one by one"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, message = ERRORS[name]
    with pytest.raises(errors.NumgradError, match=message):
        call()


def test_a_table_is_taken_from_by_the_number_of_the_step():
    def f(x):
        return ng.fori_loop(0, 2, lambda i, c: c * x + ng.take(TABLE, i, axis=0), x)

    assert f(2.0) == ng.jit(f)(2.0) == 15  # (2 * 2 + 2) * 2 + 3
    assert ng.grad(f)(2.0) == ng.jit(ng.grad(f))(2.0) == 14  # 3 x**2 + 2


def test_a_range_is_gone_through_without_a_warning_of_arrays_that_change():
    def f(x):
        return ng.scan(lambda c, k: (c * x + k, None), 1.0, range(3))[0]

    assert f(2.0) == ng.jit(f)(2.0) == 12
    assert ng.jit(ng.grad(f))(2.0) == 13  # 3 x**2 + 1


F4 = np.ones(2, np.float32)


@pytest.mark.parametrize(
    "loop",
    [
        lambda c, v, n: ng.scan(lambda c, _: (c * v[0], c), c, length=n),
        lambda c, v, n: ng.scan(lambda s, _: ((s[0] * s[1], s[1]), None), (c, v[0]), length=n)[0],
        lambda c, v, n: ng.fori_loop(0, n, lambda _, c: c * v[0], c),
        lambda c, v, n: ng.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * v), (0, v * c)
        ),
        lambda c, v, n: ng.while_loop(
            lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * F4[0]), (0, c)
        ),
    ],
)
@pytest.mark.parametrize("c", [2, 2.0])
def test_numbers_have_the_dtype_of_what_they_meet(loop, c):
    for n in (0, 2):
        given = loop(c, F4, n)
        for f, args in (
            (lambda c, v: loop(c, v, n), (c, F4)),  # noqa: B023
            (lambda v: loop(c, v, n), (F4,)),  # noqa: B023
        ):
            for a, b in zip(ng.tree.leaves(given), ng.tree.leaves(ng.jit(f)(*args)), strict=True):
                if a is not None:
                    assert a.dtype == b.dtype in (np.float32, np.int64)
                    np.testing.assert_array_equal(a, b)


MADE = {
    "float32": lambda c: c * ng.ones((), dtype=np.float32),
    "complex64": lambda c: c * ng.ones((), dtype=np.complex64),
    "converted": lambda c: ng.asarray(c * 1.5).astype(np.float32),
    "number": lambda c: c * 1.5,
}


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("start", [2, 2.0, np.int32(2), np.float32(2), np.ones(2, np.float32)])
def test_eager_and_compiled_loops_carry_the_same_dtypes(made, start):
    step = MADE[made]
    for n in (0, 2):
        for f in (
            lambda c: ng.fori_loop(0, n, lambda i, c: step(c) + i, c),  # noqa: B023
            lambda c: ng.scan(lambda s, _: ((s[1], step(s[0])), None), (c, c * 0 + 1), length=n),  # noqa: B023
            lambda c: ng.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(s[1])), (0, c)),  # noqa: B023
        ):
            given = [np.asarray(x) for x in ng.tree.leaves(f(start)) if x is not None]
            found = [np.asarray(x) for x in ng.tree.leaves(ng.jit(f)(start)) if x is not None]
            for a, b in zip(given, found, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)


def test_numbers_decide_branches_of_eager_steps():
    xs = np.array([1, -2, 3], np.float32)
    assert ng.scan(lambda c, x: (c + x if x > 0 else c, None), 0.0, xs)[0] == 4


@pytest.mark.parametrize("save", [None, "sqrt"])
def test_the_number_of_a_step_is_one_of_pythons(save):
    f = lambda c: ng.fori_loop(0, 3, lambda i, c: c * 0.5 + i, c, save)  # noqa: E731
    for g in (f, ng.jit(f), ng.jit(ng.grad(lambda c: np.sum(f(c))))):
        assert np.asarray(g(F4)).dtype == np.float32


def test_numbers_in_derived_steps_promote_as_in_the_first():
    """Of branches that return numbers, and arguments of a compiled function."""

    def f(c, number):
        def step(c, _):
            return c * np.sin(c) * ng.cond(c[0] > 0, lambda: 2.0, lambda: 3.0) * number, None

        return np.sum(ng.scan(step, c, length=2)[0])

    c = np.array([0.3, -0.2], np.float32)
    second = lambda c, n: ng.jacfwd(ng.grad(lambda c: f(c, n)))(c)  # noqa: E731
    found, expected = ng.jit(second)(c, 0.7), second(c, 0.7)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    batch = ng.jit(lambda c, n: ng.vmap(ng.grad(lambda c: f(c, n)))(np.stack([c, -c])))(c, 0.7)
    each = [ng.grad(lambda c: f(c, 0.7))(x) for x in (c, -c)]
    np.testing.assert_allclose(batch, each, rtol=1e-5)


def test_loops_without_steps_in_whatever_goes_on_around():
    """A step is traced for the shapes of what it would collect, and writes to what it makes."""

    def written(p, s, save=None):
        def step(c, _):
            v = c * 1.0
            v[:2] *= 0.5
            v[2] = s
            return v, v

        return ng.scan(step, p, length=0, save=save)

    def f(p):
        def step(c, _):
            c = np.sin(c) ** 2
            return np.cos(c + np.sum(written(np.sin(c), c[0])[1])), None

        carry, _ = ng.scan(step, p, length=2, save="carries")
        return np.sum(carry**2) + np.sum(written(p, carry[0])[1])

    def plain(p):
        return np.sum(np.cos(np.sin(np.cos(np.sin(p) ** 2)) ** 2) ** 2)

    p = np.array([0.5, -1.0, 2.0])
    for derive in (ng.grad, ng.jacfwd, lambda f: ng.jacfwd(ng.grad(f))):
        np.testing.assert_allclose(derive(f)(p), derive(plain)(p), rtol=1e-12, atol=1e-15)


def _added(c, x):
    c += x
    return c, c


def _halved_under_another_name(c, x):
    held = {"c": c}
    held["c"] *= 0.5
    return held["c"] + x * x, c * c


OWN_CARRIES = {
    _added: lambda c, x: (c + x, c + x),
    _halved_under_another_name: lambda c, x: (c * 0.5 + x * x, c * c * 0.25),
}


@pytest.mark.parametrize("step", OWN_CARRIES)
@pytest.mark.parametrize("save", [None, "carries", 2])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_step_may_write_to_its_carry(step, save, compiled):
    def loop(step):
        def f(c, xs):
            c, ys = ng.scan(step, c, xs, save=save)
            return np.sum(c * c) + np.sum(np.sin(ys))

        return lambda c, xs: (f(c, xs), *ng.grad(f, argnums=(0, 1))(c, xs))

    start, xs = np.array([1.5, -2.0]), np.array([0.5, 1.5, -0.7])
    f = ng.jit(loop(step)) if compiled else loop(step)
    for a, b in zip(f(start, xs), loop(OWN_CARRIES[step])(start, xs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert start.tolist() == [1.5, -2.0]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_other_loops_whose_steps_write_to_their_carry(compiled):
    form = ng.jit if compiled else lambda f: f

    def numbered(i, c):
        c *= 2.0
        c += i
        return c

    def doubled(c):
        c *= 2.0
        return c

    start = np.array([1.0, 2.0])
    assert form(lambda c: ng.fori_loop(0, 3, numbered, c))(start).tolist() == [12.0, 20.0]
    assert form(lambda c: ng.while_loop(lambda c: c.sum() < 20, doubled, c))(start).tolist() == [
        8.0,
        16.0,
    ]
    doublings = ng.vmap(ng.grad(lambda c: ng.while_loop(lambda c: c < 20, doubled, c)))
    assert form(doublings)(start).tolist() == [32.0, 16.0]
    assert start.tolist() == [1.0, 2.0]
    with ng.inference_mode():
        assert ng.scan(_added, start, np.ones(2))[1].tolist() == [[2.0, 3.0], [3.0, 4.0]]
    assert start.tolist() == [1.0, 2.0]


def test_a_late_write_to_a_carry_changes_nothing_that_was_collected():
    def step(c, x, y=lambda c: c):
        if x > 1:
            c += 1
        return c, y(c)

    xs = np.array([0.0, 0.0, 2.0, 2.0])
    with pytest.raises(errors.NumgradRuntimeError, match="step 2 writes to its carry in place"):
        ng.scan(step, 0.0, xs)
    _, ys = ng.scan(lambda c, x: step(c, x, lambda c: c * 1), 0.0, xs)
    assert ys.tolist() == [0, 0, 1, 2]


# ------------------------------------------------------------------------------- names in errors

ROWS = np.ones((4, 2))
CARRYING = {
    "scan": lambda f, c, n: ng.scan(lambda c, _: (f(c), None), c, ROWS),
    "scan saving": lambda f, c, n: ng.scan(lambda c, _: (f(c), None), c, ROWS, save=3),
    "fori_loop": lambda f, c, n: ng.fori_loop(0, 4, lambda _, c: f(c), c),
    "fori_loop saving": lambda f, c, n: ng.fori_loop(0, 4, lambda _, c: f(c), c, save=3),
    "fori_loop to n": lambda f, c, n: ng.fori_loop(0, n, lambda _, c: f(c), c),
    "while_loop": lambda f, c, n: ng.while_loop(lambda c: ng.sum(c["x"]) < n, f, c),
}
"""Loops of a function of a carry, which is a dict, and a bound."""
WRONG_CARRIES = {
    "the carry after a step is nested": lambda c: [c["x"]],
    r"the carry\['x'\] has shape": lambda c: {"x": np.ones(7)},
    "the carry holds a str": lambda c: {"x": "text"},
}
ZEROS, BOUNDS = np.zeros((2, 2)), np.array([2, 3])
WAYS = {
    "eager": lambda g: g(ZEROS[0], 2),
    "jit": lambda g: ng.jit(g)(ZEROS[0], 2),
    "vmap": lambda g: ng.vmap(g)(ZEROS, BOUNDS),
    "jit of vmap": lambda g: ng.jit(ng.vmap(g))(ZEROS, BOUNDS),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", CARRYING)
def test_errors_of_a_carry_name_the_function_that_was_called(loop, way):
    for message, body in WRONG_CARRIES.items():
        with pytest.raises(errors.NumgradError, match=rf"(^|\d: ){loop.split()[0]}: {message}"):
            WAYS[way](lambda x, n, body=body: CARRYING[loop](body, {"x": x}, n))


WRONG_ROWS = {
    "map xs": ("map: xs holds a ", lambda x: ng.map(np.sin, np.array(["text"]))),
    "map lengths": ("map: there is one number", lambda x: ng.map(np.sin, (ROWS, ROWS[1:]))),
    "map number": ("map: xs is a float without", lambda x: ng.map(np.sin, 1.0)),
    "map none": ("map: xs hold no array", lambda x: ng.map(np.sin, ())),
    "map f": ("map: what is collected holds", lambda x: ng.map(lambda r: "text", ROWS)),
    "scan f": ("scan: what is collected", lambda x: ng.scan(lambda c, r: (c, "text"), x, ROWS)),
    "scan pair": ("scan: the step returned", lambda x: ng.scan(lambda c, r: c, x, ROWS)),
    "scan save": ("scan: save is 0", lambda x: ng.scan(lambda c, r: (c, c), x, ROWS, save=0)),
    "fori save": ("fori_loop: save is 0", lambda x: ng.fori_loop(0, 3, lambda k, c: c, x, 0)),
    "fori save type": (
        "fori_loop: save is True; ",
        lambda x: ng.fori_loop(0, 3, lambda k, c: c, x, True),
    ),
    "while cond": ("while_loop: the condition", lambda x: ng.while_loop(lambda c: ROWS, abs, x)),
    "cond pred": ("cond: the condition is", lambda x: ng.cond(ROWS, abs, abs, x)),
    "switch index": ("switch: the index is one integer", lambda x: ng.switch(0.5, [abs], x)),
    "associative f": (
        "associative_scan: what f returned is nested",
        lambda x: ng.associative_scan(lambda a, b: [a, b], ROWS),
    ),
}


@pytest.mark.parametrize("way", ["eager", "jit"])
@pytest.mark.parametrize("name", WRONG_ROWS)
def test_errors_name_the_function_that_was_called(name, way):
    message, call = WRONG_ROWS[name]
    with pytest.raises(errors.NumgradError, match=rf"(^|\d: ){message}"):
        WAYS[way](lambda x, n: call(x))
