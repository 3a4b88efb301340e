"""What transforms return is copied and sent to other processes as functions are."""

import copy
import functools
import inspect
import multiprocessing
import pickle
import re

import numpy as np
import pytest

import numgrad as ng

X = np.array([0.5, 1.5, -2.0])


def cubes(x):
    return np.sum(x**3)


def sines(x):
    return np.sin(x) * np.array([1.0, 2.0, 3.0])


def row(x):
    return np.sum(x * x)


def scaled(x, scale=2.0):
    return np.sum(x * x) * scale


def keep(x):
    return x * 1.0, None


def double(_, g):
    return (2 * g,)


def along(primals, tangents):
    return primals[0] * 1.0, 3 * tangents[0]


def times_one(x):
    return x * 1.0


class Model:
    """Functions made of methods, and methods made of functions."""

    def __init__(self):
        self.factor = 2.0

    def loss(self, x):
        return np.sum(x**3) * self.factor

    slope = ng.grad(loss, argnums=1)
    compiled = ng.jit(loss)

    @ng.vmap
    def squares(x):  # called as a function of the class
        return x * x


@ng.grad
def decorated(x):
    return np.sum(x**3)


@ng.custom_vjp
def ruled(x):
    return x * 1.0


ruled.defvjp(lambda x: (ruled(x), None), lambda _, g: (2 * g,))
named = ng.custom_vjp(times_one)
named.defvjp(keep, double)
forwards = ng.custom_jvp(times_one)
forwards.defjvp(along)
PATTERN = np.eye(3)


MODEL = Model()


def summed(f, x):
    return np.sum(f(x))


TRANSFORMED = {
    "grad": (ng.grad(cubes), 3 * X**2),
    "argnames": (functools.partial(ng.grad(scaled, argnames="scale"), scale=3.0), np.array(6.5)),
    "value_and_grad": (ng.value_and_grad(cubes), ((X**3).sum(), 3 * X**2)),
    "jacobian": (ng.jacobian(sines), np.diag(np.cos(X) * [1, 2, 3])),
    "jacrev": (ng.jacrev(sines), np.diag(np.cos(X) * [1, 2, 3])),
    "jacfwd": (ng.jacfwd(sines), np.diag(np.cos(X) * [1, 2, 3])),
    "hessian": (ng.hessian(cubes), np.diag(6 * X)),
    "hvp": (functools.partial(ng.hvp(cubes), v=np.ones(3)), 6 * X),
    "vmap": (ng.vmap(np.sin), np.sin(X)),
    "jit": (ng.jit(cubes), (X**3).sum()),
    "grad of jit": (ng.grad(ng.jit(cubes)), 3 * X**2),
    "jit of grad": (ng.jit(ng.grad(cubes)), 3 * X**2),
    "vmap of grad": (ng.vmap(ng.grad(row)), 2 * X),
    "grad of grad": (ng.grad(functools.partial(summed, ng.grad(cubes))), 6 * X),
    "jit of vmap of grad": (ng.jit(ng.vmap(ng.grad(row))), 2 * X),
    "partial": (functools.partial(ng.grad(scaled), scale=3.0), 6 * X),
    "grad of partial": (ng.grad(functools.partial(scaled, scale=3.0)), 6 * X),
    "grad of a method": (ng.grad(Model().loss), 6 * X**2),
    "jit of a method": (ng.jit(Model().loss), 2 * (X**3).sum()),
    "method of grad": (MODEL.slope, 6 * X**2),
    "method of jit": (MODEL.compiled, 2 * (X**3).sum()),
    "in a class": (Model.squares, X**2),
    "decorated": (decorated, 3 * X**2),
    "custom_vjp": (ng.grad(functools.partial(summed, ruled)), np.full(3, 2.0)),
    "named custom_vjp": (ng.grad(functools.partial(summed, named)), np.full(3, 2.0)),
    "custom_jvp": (ng.grad(functools.partial(summed, forwards)), np.full(3, 3.0)),
}


def tree_equal(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            tree_equal(one, other)
    else:
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-13)


COPIES = {
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_copies_give_the_same_numbers(name):
    function, expected = TRANSFORMED[name]
    tree_equal(function(X), expected)
    for make in COPIES.values():
        tree_equal(make(function)(X), expected)


def test_cloudpickle_and_dask_take_them():
    cloudpickle = pytest.importorskip("cloudpickle")
    factor = 2.0
    local = {
        "vmap": (ng.vmap(lambda x: x * factor), 2 * X),
        "grad": (ng.grad(lambda x: np.sum(x * x) * factor), 4 * X),
        "jit": (ng.jit(ng.grad(lambda x: np.sum(x * x) * factor)), 4 * X),
        "no_grad": (ng.no_grad()(lambda x: x * factor), 2 * X),
    }
    for function, expected in [*TRANSFORMED.values(), *local.values()]:
        tree_equal(pickle.loads(cloudpickle.dumps(function))(X), expected)
    dask = pytest.importorskip("dask")
    for function, expected in (TRANSFORMED["vmap of grad"], local["vmap"]):
        tree_equal(dask.delayed(function)(X).compute(scheduler="threads"), expected)


def _results(data):
    return [function(X) for function in pickle.loads(data)]


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_processes_that_are_started_anew_take_them(start):
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{start} is not there")
    functions = [function for function, _ in TRANSFORMED.values()]
    with multiprocessing.get_context(start).Pool(1) as pool:
        found = pool.apply_async(_results, (pickle.dumps(functions),)).get(timeout=240)
    for result, (_, expected) in zip(found, TRANSFORMED.values(), strict=True):
        tree_equal(result, expected)


def test_records_of_one_call_are_not_pickled():
    for name, product in (
        ("vjp", ng.vjp(cubes, X)[1]),
        ("linearize", ng.linearize(cubes, X)[1]),
    ):
        with pytest.raises(ng.NumgradTypeError, match=f"^{name}: .* cannot be pickled"):
            pickle.dumps(product)
        assert copy.deepcopy(product) is product


def test_a_jitted_method_of_another_name_is_kept_with_its_object():
    tree_equal(Model().compiled(X), 2 * (X**3).sum())  # nothing else holds the object


def test_hooks_are_not_lost_without_a_word():
    x = ng.tensor(X, requires_grad=True)
    pickle.dumps(x)
    handle = x.register_hook(lambda g: 2 * g)
    with pytest.warns(UserWarning, match=re.escape("tensor of shape (3,)")) as seen:
        pickle.dumps(x)
    assert seen[0].filename == __file__
    handle.remove()
    pickle.dumps(x)


def test_an_operation_that_the_other_process_does_not_know():
    data = pickle.dumps(ng.sin).replace(b"\x03sin", b"\x03sim")
    with pytest.raises(ng.NumgradRuntimeError, match="operation sim was declared in"):
        pickle.loads(data)


def test_wrappers_look_like_what_they_wrap():
    made = ng.value_and_grad(scaled)
    assert (made.__name__, made.__module__, made.__doc__) == ("scaled", __name__, scaled.__doc__)
    assert inspect.signature(made) == inspect.signature(scaled)
    assert repr(ng.vmap(scaled)).startswith("<vmap of <function scaled")
    assert made != ng.value_and_grad(scaled)
    assert len({made, made}) == 1
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):  # as of a lambda
        pickle.dumps(ng.grad(lambda x: x))
