"""Slips of users: each is an error of the library with its line, or means what it does in NumPy."""

import linecache

import numpy as np
import pytest

import numgrad as ng
from numgrad.errors import (
    NumgradError,
    NumgradKernelError,
    NumgradRuntimeError,
    NumgradTypeError,
    NumgradValueError,
)
from tests.codegen.adjoint.plain import plainly

X = np.array([0.5, 1.5, 2.5])


def function(*lines, head="def f(x):"):
    text = "\n    ".join([head, *lines]) + "\n"
    file = f"<{abs(hash(text)):x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"np": np}
    exec(compile(text, file, "exec"), space)
    return space["f"]


REFUSED = {
    "np.einsum('i,i->', x, x)": "with a string",
    "np.linalg.norm(x, 'fro')": "with a string",
    "x['a']": "string for an index.*use integers",
    "x[0, 'a']": "string for an index",
    "np.where(x > 1, x)": "give one, or three",
    "x.reshape((0, -1))": "give one of them as -1",
    "x.reshape((-1, -1))": "give one of them as -1",
    "'fast'": "no number and no array",
    "(x[0], None)": "no number and no array",
    "np.stack(('a', x))": "not of the language",
    "np.zeros()": "not of the language",
    "x < 'a'": "is no number",
    "min()": "not of the language",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_expressions(expression):
    with pytest.raises(NumgradKernelError, match=REFUSED[expression]) as caught:
        ng.kernel(function(f"return {expression}"))(X)
    assert "line 2" in str(caught.value)


@pytest.mark.parametrize("statement", ["y[:] = 'a'", "y[:] = None", "for i in range(): pass"])
def test_statements(statement):
    with pytest.raises(NumgradKernelError, match="line 3"):
        ng.kernel(function("y = x * 2", statement, "return y"))(X)


def test_the_length_that_is_left():
    kernel = ng.kernel(function("return x.reshape((n, -1))", head="def f(x, n):"))
    with plainly():
        np.testing.assert_array_equal(kernel(X, 1), X[None])
        for n in (0, -1):
            with pytest.raises(NumgradValueError, match="length of 0, line 2"):
                kernel(X, n)


def test_where_of_one_argument():
    f = function("q = np.where(x > 1)[0]", "return np.sum(x[q] * q)")
    with plainly():
        assert ng.kernel(f)(X) == f(X)
        np.testing.assert_array_equal(ng.grad(ng.kernel(f))(X), [0, 1, 2])


@pytest.mark.parametrize("early", ["", "if x[0] > 2.0: return [x[1], x[0]]"])
def test_a_list_of_results(early):
    f = function(early or "pass", "return [x[0], x * 2]" if not early else "return [x[0], x[1]]")
    with plainly():
        for one, other in zip(ng.kernel(f)(X), f(X), strict=True):
            np.testing.assert_array_equal(one, other)


def test_none_beside_what_is_written():
    f = function("for i in range(3):", "    if x[i] > 1: return None", "    x[i] = 3.0", "return")
    with plainly():
        np.testing.assert_array_equal(ng.kernel(f, writes="x")(X.copy()), [3.0, 1.5, 2.5])


@pytest.mark.parametrize("writes", [3, None, True, b"x"])
def test_writes_that_is_no_name(writes):
    with pytest.raises(NumgradTypeError, match="name the arrays that it overwrites"):
        ng.kernel(function("return x[0]"), writes=writes)


@pytest.mark.parametrize(
    "lines",
    [
        ["for k in range(4):", "    if x[0] * k > 1: return x * k", "return x"],
        ["for k in range(4):", "    if x[0] * k > 1: return x, k", "return x * 2, 0"],
        ["if x[0] > 0: return x", "return x[0]"],
    ],
)
def test_early_returns_of_arrays(lines):
    with pytest.raises(NumgradKernelError, match=r"early return of an array.* out") as caught:
        ng.kernel(function(*lines))(X)
    assert "result" not in str(caught.value)


class Model:
    gain = 2.0

    def run(self, x):
        return x[0] * self.gain

    @classmethod
    def made(cls, x):
        return x[0]

    @ng.kernel
    @staticmethod
    def alone(x):
        return x[0] * x[0]


@pytest.mark.parametrize("method", [Model().run, Model.run, Model.made, Model.__dict__["made"]])
def test_methods(method):
    with pytest.raises(NumgradKernelError, match=r"is a method.*staticmethod"):
        ng.kernel(method)


def test_a_static_method():
    with plainly():
        assert Model().alone(X) == 0.25


@pytest.mark.parametrize(("arguments", "options"), [((1, 2, 3), {}), ((1, 2), {"q": 3})])
def test_arguments_that_do_not_exist(arguments, options):
    kernel = ng.kernel(function("return x[0] * a * n", head="def f(x, a, n):"))
    with pytest.raises(NumgradError, match="x, a, n"):
        kernel(X, *arguments, **options)


def test_programs_that_are_written_wrongly_are_a_fault_of_numgrad():
    """Neither compiling them nor reading them again blames the user's text."""
    kernel = ng.kernel(function("return x * 2.0"))
    program = kernel.program(kernel.arrays((X,)))
    text = program.forward
    text.plain = text.plain.replace("= x[", "= missing[")
    for use in (lambda: text.entry, lambda: program.read_text(text)):
        with pytest.raises(NumgradRuntimeError, match=r"fault of numgrad.*report it"):
            use()


def optional(x, y=None):
    return x * 2.0


@pytest.mark.parametrize("change", [lambda k: k, ng.jit, ng.grad, lambda k: ng.jit(ng.grad(k))])
def test_none_is_refused_by_its_name(change):
    """Whoever asks, whether it is given or a default."""
    with pytest.raises(NumgradTypeError, match="optional: y is None; pass"):
        change(ng.kernel(optional))(1.0)


def test_bytes_in_the_other_order_are_converted():
    given = X.astype(X.dtype.newbyteorder())
    kernel = ng.kernel(function("return x[0] * x[1]"))
    with plainly():
        assert kernel(given) == kernel(X)
        np.testing.assert_array_equal(ng.grad(kernel)(given), ng.grad(kernel)(X))


def test_an_empty_index_of_an_array_without_axes():
    scale = np.array(2.5)

    def scaled(x):
        return x[0] * scale[()]

    with plainly():
        assert ng.kernel(scaled)(X) == 1.25
