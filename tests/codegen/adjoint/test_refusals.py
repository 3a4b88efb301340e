"""What is no kernel is refused with its line and a remedy."""

import inspect
import math

import numpy as np
import pytest

import numgrad as ng

X = np.linspace(0.1, 1.0, 6)


class Thing:
    gain = 2.0


def listed(x):
    items = []  # here
    for i in range(len(x)):
        items.append(x[i])
    return items[0]


def mapped(x):
    table = {"a": x[0]}  # here
    return table["a"]


def comprehended(x):
    return sum([x[i] for i in range(len(x)) if x[i] > 0.0])  # here


def worded(x):
    mode = "fast"  # here
    if mode == "fast":
        return x[0]
    return x[1]


def recursive(x, k):
    if k == 0:
        return x[0]
    return x[k] * recursive(x, k - 1)  # here


def without_rule(x):
    s = 0.0
    for i in range(len(x)):
        s += np.spacing(x[i])  # here
    return s


def sorting(x):
    y = np.sort(x)  # here
    return y[0]


def solving(x):
    y = np.linalg.inv(np.outer(x, x) + np.eye(6))  # here
    return y[0, 0]


def drawing(x):
    return x[0] + np.random.normal()  # here


def printing(x):
    print(x[0])  # here
    return x[0]


def protected(x):
    try:  # here
        return 1.0 / x[0]
    except ZeroDivisionError:
        return 0.0


def asserting(x):
    for i in range(len(x)):
        assert x[i] > 0.0  # here
    return x[0]


def raising(x):
    s = np.sum(x)
    if s < 0.0:
        raise ValueError("negative")  # here
    return x[0]


def generating(x):
    for i in range(len(x)):
        yield x[i]  # here


def managed(x):
    with np.errstate(all="ignore"):  # here
        return x[0]


def nested(x):
    def inner(u, k=2.0):
        return u * u * k

    return inner(x[0])  # here


def walrus(x):
    k = 0
    while (v := x[k]) < 0.5:  # here
        k += 1
    return v


def objects(x):
    thing = Thing()  # here
    return x[0] * thing.gain


def becomes_another(x, y):
    w = x
    for i in range(3):
        w[i] = y[i]  # here
        w = y
    return w[0]


def fancy(x, q):
    z = np.outer(x, x)
    y = np.outer(x, x).reshape(6, 3, 2)[1, :, q]  # here
    return y[0, 0] * z[0, 0]


def reshaped_and_written(x):
    y = x.copy()
    z = y.reshape(2, 3)
    z[0, 0] = 1.0  # here
    return y[0]


def array_after_its_loop(x):
    for i in range(3):
        y = x[i:] * 2.0
    return y[0]  # here


def two_names_of_an_array_made_anew(x):
    y = x * 2.0
    for i in range(3):
        old = y[:3]
        y = y + x[i]  # here
        y[0] += old[0]
    return y[0]


def other_length(x):
    y = x * 2.0
    for i in range(3):
        y = y[y > 0.1 * i]  # here
    return y[0]


def other_dtype(x):
    y = np.zeros(6, np.float32)
    for _ in range(3):
        y = y + x  # here
    return y[0]


def reads_unassigned(x):
    return t  # here  # noqa: F821


def float_index(x):
    return x[len(x) / 2]  # here


def starred(x, *more):  # here
    return x[0]


def returns_differ(x):
    if x[0] > 0.5:
        return x[0]
    return x[0], x[1]  # here


def global_changed(x):
    global COUNT  # here
    COUNT = 1
    return x[0]


COUNT = 0


def of_the_library(x):
    return ng.special.h1vp(1.0, x[0]).real  # here


REFUSED = {
    of_the_library: (X,),
    listed: (X,), mapped: (X,), comprehended: (X,), worded: (X,), recursive: (X, 2),
    without_rule: (X,), sorting: (X,), solving: (X,), drawing: (X,), printing: (X,),
    protected: (X,), asserting: (X,), raising: (X,), generating: (X,), managed: (X,),
    nested: (X,), walrus: (X,), objects: (X,),
    becomes_another: (X, X.copy()), reshaped_and_written: (X,),
    array_after_its_loop: (X,), fancy: (X, np.array([1, 0])),
    reads_unassigned: (X,), two_names_of_an_array_made_anew: (X,),
    other_length: (X,), other_dtype: (X,), float_index: (X,), starred: (X,), returns_differ: (X,),
    global_changed: (X,),
}  # fmt: skip


def marked_line(function):
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if "# here" in line)


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_refused_with_line_and_remedy(function):
    with pytest.raises(ng.errors.NumgradKernelError) as caught:
        ng.kernel(function)(*REFUSED[function])
    text = str(caught.value)
    assert f"line {marked_line(function)}" in text
    assert function.__name__ in text
    problem, _, remedy = text.partition("; ")
    assert problem, text
    assert remedy, text


def test_an_argument_that_is_written_but_not_named():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            y[i] = s  # here
            s += x[i]
        return s

    with pytest.raises(ng.errors.NumgradKernelError, match=f"line {marked_line(f)}") as caught:
        ng.kernel(f)
    assert "y" in str(caught.value)
    assert "writes" in str(caught.value)


@pytest.mark.parametrize("kind", ["view", "transpose", "swap", "helper", "slice", "alias"])
def test_an_argument_that_is_written_by_another_name(kind):
    """At decoration if it can be seen there, else with the first signature."""

    def view(z):
        row = z[0]
        row[1] = 2.0  # here

    def transpose(z):
        z.T[0, 1] = 2.0  # here

    def swap(z):
        w = np.zeros_like(z)
        z, w = w, z
        w[0, 0] = 1.0  # here
        return z[0, 0]

    def helper(z):
        overwrite(z[1])  # here

    def slice(z):
        z[1:, 0] += 1.0  # here

    def alias(z):
        w = z
        w[0, 0] = 3.0  # here

    function = locals()[kind]
    with pytest.raises(ng.errors.NumgradKernelError) as caught:
        ng.kernel(function)(np.ones((3, 3)))
    assert "writes" in str(caught.value)
    if kind != "helper":
        assert f"line {marked_line(function)}" in str(caught.value)


def overwrite(row):
    row[0] = 5.0


def test_names_that_the_rewriting_of_exits_gives():
    def f(x):
        left_ = 2.0  # here
        for i in range(len(x)):
            if x[i] > 0.5:
                return left_
        return x[0]

    with pytest.raises(ng.errors.NumgradKernelError, match=f"left_.*line {marked_line(f)}"):
        ng.kernel(f)(X)


def test_a_name_in_writes_that_is_no_argument():
    def f(x):
        x[0] = 1.0

    with pytest.raises((ng.errors.NumgradValueError, ng.errors.NumgradTypeError), match="z"):
        ng.kernel(f, writes=("x", "z"))


def test_a_function_without_text():
    for function in (math.sin, len, eval("lambda x: x * x")):
        with pytest.raises(ng.errors.NumgradTypeError):
            ng.kernel(function)


def test_arguments_that_overlap_in_memory():
    def f(x, y):
        for i in range(len(x)):
            x[i] = y[i] * 2.0

    k = ng.kernel(f, writes="x")
    memory = np.arange(10.0)
    np.testing.assert_array_equal(np.asarray(k(memory[:5], memory[5:])), memory[5:] * 2)
    for one, other in ((memory[:5], memory[3:8]), (memory, memory), (memory[::2], memory[:5])):
        with pytest.raises(ng.errors.NumgradValueError, match=r"overlap|share") as caught:
            k(one, other)
        assert "y may share elements with x" in str(caught.value)
        assert "copy" in str(caught.value)
    for transformed in (ng.jit, ng.grad, lambda f: ng.jit(ng.grad(f))):
        with pytest.raises(ng.errors.NumgradValueError, match="y may share elements with x"):
            transformed(lambda x: k(x, x).sum())(memory)
    np.testing.assert_array_equal(memory, np.arange(10.0))


def test_a_default_that_is_no_number():
    @ng.kernel
    def weighted(x, w=None):
        return np.sum(x if w is None else x * w)

    with pytest.raises(ng.errors.NumgradTypeError, match=r"w is None.*; pass an array.* np\.ones"):
        weighted(X)


def test_arguments_of_which_none_is_written_may_overlap():
    def f(x, y):
        s = 0.0
        for i in range(len(x)):
            s += x[i] * y[i]
        return s

    memory = np.arange(6.0)
    assert float(ng.kernel(f)(memory[:4], memory[2:])) == float(memory[:4] @ memory[2:])


@pytest.mark.parametrize(
    "arguments",
    [
        (X,),
        (X, X, X),
        (X, "word"),
        (X, [1, [2]]),
        (X, None),
        (X, X.astype(object)),
        (X, X.astype("M8[s]")),
    ],
    ids=["few", "many", "word", "list", "None", "objects", "dates"],
)
def test_arguments_that_do_not_fit(arguments):
    def f(x, y):
        return x[0] * y[0]

    with pytest.raises(ng.errors.NumgradTypeError):
        ng.kernel(f)(*arguments)


def test_more_than_four_axes():
    def f(x):
        return x[0, 0, 0, 0, 0]

    with pytest.raises(ng.errors.NumgradError):
        ng.kernel(f)(np.ones((1, 1, 1, 1, 1)))


def test_indices_out_of_range_do_not_read_elsewhere_when_bounds_are_checked(monkeypatch):
    """With NUMGRAD_BOUNDSCHECK=1, in a process of its own."""
    import os
    import subprocess
    import sys

    text = """
import numpy as np, numgrad as ng
def f(x):
    s = 0.0
    for i in range(len(x) + 1):
        s += x[i]
    return s
try:
    ng.kernel(f)(np.ones(3))
except IndexError:
    print("IndexError")
"""
    out = subprocess.run(
        [sys.executable, "-c", "import runpy, sys, tempfile, os\n"
         "f = tempfile.NamedTemporaryFile('w', suffix='.py', delete=False)\n"
         f"f.write({text!r}); f.close()\n"
         "runpy.run_path(f.name); os.unlink(f.name)"],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "NUMGRAD_BOUNDSCHECK": "1", "NUMGRAD_MACHINE_CODE": "0"},
    )  # fmt: skip
    assert out.stdout.strip() == "IndexError", out.stderr


def test_an_operand_without_a_derivative_is_named():
    def f(x):
        return ng.special.kn(x[0], x[1])

    with pytest.raises(ng.errors.NumgradKernelError, match=r"kn has no derivative .* operand 1"):
        ng.grad(ng.kernel(f))(np.array([2.0, 0.5]))
