"""What is put in the place of something that a jitted function found is found at the next call."""

import contextvars
import ctypes
import functools
import gc
import os
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import numgrad as ng
from numgrad import errors

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.array([1.0, 2.0, 3.0])
FACTOR = 2.0
EXPRESSION = "FACTOR * 3"
MODULE = "a_module_that_functions_import"


def follows(function, *changes):
    """Check that a compiled function does as the plain one after each change, traced once each."""
    fast = ng.jit(function)
    np.testing.assert_array_equal(fast(X), function(X))
    for count, change in enumerate(changes):
        change()
        np.testing.assert_array_equal(fast(X), function(X))
        np.testing.assert_array_equal(fast(X), function(X))
        assert len(fast.specialisations) <= count + 2


def code_of(function):
    return function.__code__


# ------------------------------------------------------------------------------- code, arguments


def test_code_that_a_reloader_replaces():
    def helper(x):
        return x * 2

    def own(x):
        return helper(x) + 1

    follows(own, lambda: setattr(helper, "__code__", code_of(lambda x: x * 3)))
    follows(lambda x: own(x), lambda: setattr(helper, "__code__", code_of(lambda x: x * 4)))
    fast = ng.jit(lambda x: helper(x))
    gradient = ng.jit(ng.value_and_grad(lambda x: np.sum(helper(x))))
    fast(X), gradient(X)
    helper.__code__ = code_of(lambda x: x * 5)
    np.testing.assert_array_equal(fast(X), 5 * X)
    np.testing.assert_array_equal(gradient(X)[1], [5.0, 5.0, 5.0])

    def plain(x):
        return x * 2

    follows(plain, lambda: setattr(plain, "__code__", code_of(lambda x: x * 7)))


def test_code_of_methods_and_properties_and_inner_functions():
    class Model:
        def __call__(self, x):
            return self.method(x) * self.scale

        def method(self, x):
            return x * 2

        @property
        def scale(self):
            return 2.0

        @staticmethod
        def static(x):
            return x * 2

        @classmethod
        def of_class(cls, x):
            return x * 2

    def maker(k):
        return lambda x: x * k

    model, inner = Model(), maker(2.0)
    new = code_of(lambda self, x: x * 3)
    follows(lambda x: model(x), lambda: setattr(Model.method, "__code__", new))
    new_call = code_of(lambda self, x: x * 5 * self.scale)
    follows(model, lambda: setattr(Model.__call__, "__code__", new_call))
    follows(model, lambda: setattr(Model.scale.fget, "__code__", code_of(lambda self: 9.0)))
    follows(
        lambda x: Model.static(x) + Model.of_class(x),
        lambda: setattr(Model.static, "__code__", code_of(lambda x: x * 5)),
        lambda: setattr(Model.of_class.__func__, "__code__", code_of(lambda cls, x: x * 7)),
    )
    follows(
        lambda x: inner(x),
        lambda: setattr(inner, "__code__", maker(1.0).__code__.replace(co_name="other")),
    )


def test_code_with_other_parameters_is_refused():
    def function(a, b):
        return a - b

    fast = ng.jit(function)
    assert fast(a=3.0, b=1.0) == 2.0
    function.__code__ = code_of(lambda b, a: a - b)
    with pytest.raises(errors.NumgradTypeError, match=r"were \(a, b\) .* are \(b, a\) .* again"):
        fast(a=3.0, b=1.0)


def test_keywords_of_functions_and_partials_changed_in_place():
    def function(x, *, k=2.0, w=np.ones(3)):  # noqa: B008
        return (x * k + w) * np.std(w)

    def changes(keywords):
        yield lambda: keywords.__setitem__("k", 5.0)
        yield lambda: keywords["w"].__setitem__(0, 7.0)
        yield lambda: keywords.__setitem__("w", np.array([3.0, 1.0, 2.0]))

    follows(function, *changes(function.__kwdefaults__))
    follows(lambda x: function(x), *changes(function.__kwdefaults__))
    follows(function, lambda: setattr(function, "__kwdefaults__", {"k": 1.0, "w": X}))
    bound = functools.partial(function, k=1.0, w=np.ones(3))
    follows(bound, *changes(bound.keywords), lambda: bound.keywords.pop("k"))
    follows(lambda x: bound(x), *changes(bound.keywords))
    w = np.ones(3)
    follows(functools.partial(lambda w, x: x * w * np.std(w), w), lambda: w.__setitem__(0, 7.0))


def test_attributes_replaced_as_a_whole():
    def function(x):
        return x * function.k

    class Thing:
        def of(self, x):
            return x * self.k

    function.k, thing = 1.0, Thing()
    thing.k = 1.0
    follows(function, lambda: setattr(function, "__dict__", {"k": 3.0}))
    follows(lambda x: x * thing.k, lambda: setattr(thing, "__dict__", {"k": 3.0}))
    follows(lambda x: thing.of(x), lambda: setattr(thing, "__dict__", {"k": 5.0}))


# ------------------------------------------------------------------------------------- imports


def test_what_a_function_imports_when_it_runs(monkeypatch):
    module = types.ModuleType(MODULE)
    module.z, module.w, module.settings = 1.0, np.ones(3), {"a": 1.0}
    monkeypatch.setitem(sys.modules, MODULE, module)

    def number(x):
        from a_module_that_functions_import import z

        return x * z

    def array(x):
        from a_module_that_functions_import import w as weight

        return x * weight * weight.sum()

    def mapping(x):
        def inner(y):
            import a_module_that_functions_import as m

            return y * m.settings["a"]

        return inner(x)

    def by_name(x):
        return x * sys.modules[MODULE].z

    follows(number, lambda: setattr(module, "z", 5.0))
    follows(array, lambda: module.w.__imul__(3.0), lambda: setattr(module, "w", X + 1))
    follows(
        mapping,
        lambda: module.settings.__setitem__("a", 4.0),
        lambda: setattr(module, "settings", {"a": 7.0}),
    )
    follows(by_name, lambda: setattr(module, "z", 6.0))
    other = types.ModuleType(MODULE)
    other.z = 11.0
    follows(number, lambda: monkeypatch.setitem(sys.modules, MODULE, other))


def test_imports_within_a_package_that_tracing_begins(tmp_path, monkeypatch):
    package = tmp_path / "a_package_of_the_users"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "settings.py").write_text("rate = 2.0\n")
    (package / "model.py").write_text(
        "def model(x):\n    from .settings import rate\n    return x * rate\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from a_package_of_the_users.model import model  # pyright: ignore

    def change():
        sys.modules["a_package_of_the_users.settings"].rate = 5.0

    follows(model, change)
    for name in [n for n in sys.modules if n.startswith(package.name)]:
        monkeypatch.delitem(sys.modules, name)


# ---------------------------------------------------------------------- objects of Python's own


class Thing:
    """Something with attributes."""

    def __init__(self, a):
        self.a = a


def test_what_is_found_by_weak_references():
    thing = Thing(1.0)
    reference, proxy = weakref.ref(thing), weakref.proxy(thing)
    values, keys = weakref.WeakValueDictionary(k=thing), weakref.WeakKeyDictionary({thing: 3.0})
    follows(lambda x: x * reference().a, lambda: setattr(thing, "a", 4.0))
    follows(lambda x: x * reference().a * thing.a, lambda: setattr(thing, "a", 5.0))
    follows(lambda x: x * proxy.a, lambda: setattr(thing, "a", 6.0))
    follows(lambda x: x * values["k"].a, lambda: setattr(thing, "a", 7.0))
    follows(lambda x: x * keys[thing], lambda: keys.__setitem__(thing, 8.0))


def test_a_weak_reference_whose_object_is_gone():
    things = [Thing(2.0)]
    reference = weakref.ref(things[0])

    def function(x):
        thing = reference()
        return x * 1.0 if thing is None else x * thing.a

    def end():
        things.clear()
        gc.collect()
        assert reference() is None

    follows(function, end)


def test_context_variables_and_attributes_of_threads():
    variable = contextvars.ContextVar("variable")
    variable.set({"a": 1.0})
    empty = contextvars.ContextVar("empty")
    follows(
        lambda x: x * variable.get()["a"],
        lambda: variable.get().__setitem__("a", 3.0),
        lambda: variable.set({"a": 4.0}) and None,
    )
    follows(lambda x: x * empty.get(7.0), lambda: empty.set(2.0) and None)

    class Local(threading.local):
        def of(self, x):
            return x * self.a

    plain, local = threading.local(), Local()
    plain.a = local.a = 1.0
    follows(lambda x: x * plain.a, lambda: setattr(plain, "a", 3.0))
    fast = ng.jit(lambda x: local.of(x) + plain.a)
    found = [fast(X)]

    def run():
        plain.a, local.a = 50.0, 60.0
        found.extend([fast(X), fast(X)])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found, [X + 3, 60 * X + 50, 60 * X + 50])
    np.testing.assert_array_equal(fast(X), X + 3)


def test_properties_and_methods_of_a_metaclass():
    class Kind(type):
        @property
        def q(cls):
            return cls._q * 2

        def of(cls, x):
            return x * cls._q

    class Thing(metaclass=Kind):
        _q = 1.0

    follows(lambda x: x * Thing.q, lambda: setattr(Thing, "_q", 4.0))
    follows(
        lambda x: Thing.of(x),
        lambda: setattr(Thing, "_q", 5.0),
        lambda: setattr(Kind, "of", lambda cls, x: x * 7),
    )


def test_the_environment(monkeypatch):
    monkeypatch.setenv("NUMGRAD_TEST_Q", "2")

    def to(value):
        return lambda: monkeypatch.setenv("NUMGRAD_TEST_Q", value)

    environ, getenv = os.environ, os.getenv
    follows(lambda x: x * float(os.environ["NUMGRAD_TEST_Q"]), to("3"))
    follows(lambda x: x * float(os.getenv("NUMGRAD_TEST_Q", "1")), to("4"))
    follows(lambda x: x * float(environ["NUMGRAD_TEST_Q"]), to("5"))
    follows(
        lambda x: x * float(getenv("NUMGRAD_TEST_Q") or 1),
        lambda: monkeypatch.delenv("NUMGRAD_TEST_Q"),
    )


def test_memory_of_c():
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_double), ("b", ctypes.c_double))

    number, pair, numbers = ctypes.c_double(1.0), Pair(1.0, 2.0), (ctypes.c_double * 2)(1.0, 2.0)
    pointer = ctypes.pointer(number)
    follows(lambda x: x * number.value, lambda: setattr(number, "value", 5.0))
    follows(lambda x: x * pair.b, lambda: setattr(pair, "b", 5.0))
    follows(lambda x: x * numbers[1], lambda: numbers.__setitem__(1, 5.0))
    follows(lambda x: x * pointer.contents.value, lambda: setattr(number, "value", 6.0))
    follows(lambda x: x * pointer[0], lambda: setattr(number, "value", 7.0))


def test_names_in_text_that_is_evaluated(monkeypatch):
    def executed(x):
        found = {"x": x}
        exec("y = x * FACTOR", globals(), found)
        return found["y"]

    def to(value):
        return lambda: monkeypatch.setitem(globals(), "FACTOR", value)

    follows(lambda x: x * eval("FACTOR + 1"), to(3.0))
    follows(executed, to(4.0))
    follows(
        lambda x: x * eval(EXPRESSION),
        to(5.0),
        lambda: monkeypatch.setitem(globals(), "EXPRESSION", "FACTOR * 7"),
    )
