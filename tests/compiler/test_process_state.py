"""What compiled code reads of the process, and what ``super()`` leads to, when it changes."""

import datetime
import decimal
import functools
import gc
import os
import secrets
import sys
import threading
import time
import uuid
import warnings

import numpy as np
import pytest

import numgrad as ng
from tests.compiler.emulator import emulating

X = np.array([1.0, 2.0])


class Base:
    factor = 2.0

    def scaled(self, x):
        return np.sum(x * 2)

    @property
    def size(self):
        return 3.0

    @classmethod
    def summed(cls, x):
        return np.sum(x)

    @staticmethod
    def squared(x):
        return np.sum(x * x)


class Middle(Base):
    def scaled(self, x):
        return super().scaled(x) * 3


class Derived(Middle):
    def scaled(self, x):
        return super().scaled(x) + 1

    def named(self, x):
        return super(Middle, self).scaled(x) + 1

    @property
    def size(self):
        return super().size + 1

    @classmethod
    def summed(cls, x):
        return super().summed(x) + 1

    def squares(self, x):
        return super().squared(x) * super().factor


class Descriptor:
    value = 2.0

    def __get__(self, instance, owner):
        return self.value


class Holder:
    described = Descriptor()


class Meta(type):
    factor = 2.0


class Made(metaclass=Meta):
    pass


@functools.singledispatch
def kind_of(x):
    return 1.0


class Kind:
    pass


class Shadowing:
    factor = 2.0

    @classmethod
    def of_class(cls):
        return cls.factor

    @staticmethod
    def of_none():
        return Shadowing.factor

    @property
    def of_type(self):
        return type(self).factor

    def of_object(self):
        return self.__class__.factor


class Settings:
    rate = 2.0

    def doubled(self):
        return self.rate * 2


class Other(Settings):
    def doubled(self):
        return self.rate * 3


class Sharing:
    settings = Settings()
    function = np.sin


def catching(x):
    try:
        return np.sum(x) * LATE
    except NameError:
        return np.sum(x)


def inner_catching(x):
    def inner():
        try:
            return LATE
        except NameError:
            return 2.0

    return np.sum(x) * inner()


def storing(x):
    global STORED
    try:
        weights = STORED
    except NameError:
        weights = STORED = np.full(2, 3.0)
    return np.sum(x * weights)


SHADOWING, SETTINGS, SHARING = Shadowing(), Settings(), Sharing()
SHADOWING.factor = 1.5
OBJECT, HOLDER, KIND = Derived(), Holder(), Kind()
LOCAL = threading.local()
LOCAL.value = 2.0


def matched():
    match SETTINGS:
        case Other():
            return 2.0
        case _:
            return 3.0


CLASSES = {
    "super": (lambda x: OBJECT.scaled(x), Base, "scaled", lambda self, x: np.sum(x) * 5),
    "super in between": (lambda x: OBJECT.scaled(x), Middle, "scaled", lambda self, x: x[0]),
    "super by name": (lambda x: OBJECT.named(x), Base, "scaled", lambda self, x: np.sum(x) * 5),
    "property": (lambda x: np.sum(x) * OBJECT.size, Base, "size", property(lambda self: 9.0)),
    "classmethod": (lambda x: OBJECT.summed(x), Base, "summed", classmethod(lambda c, x: x[0])),
    "staticmethod": (lambda x: OBJECT.squares(x), Base, "squared", staticmethod(lambda x: x[0])),
    "attribute": (lambda x: OBJECT.squares(x), Base, "factor", 7.0),
    "descriptor": (lambda x: np.sum(x) * HOLDER.described, Descriptor, "value", 7.0),
    "descriptor by class": (
        lambda x: np.sum(x) * Holder.described, Descriptor, "value", 7.0,
    ),
    "get": (lambda x: np.sum(x) * HOLDER.described, Descriptor, "__get__", lambda d, o, t: 8.0),
    "metaclass": (lambda x: np.sum(x) * Made.factor, Meta, "factor", 7.0),
    "classmethod of what is shadowed": (
        lambda x: np.sum(x) * SHADOWING.of_class(), Shadowing, "factor", 7.0,
    ),
    "staticmethod of what is shadowed": (
        lambda x: np.sum(x) * SHADOWING.of_none(), Shadowing, "factor", 7.0,
    ),
    "property of what is shadowed": (
        lambda x: np.sum(x) * SHADOWING.of_type, Shadowing, "factor", 7.0,
    ),
    "method of what is shadowed": (
        lambda x: np.sum(x) * SHADOWING.of_object(), Shadowing, "factor", 7.0,
    ),
    "type of what is shadowed": (
        lambda x: np.sum(x) * type(SHADOWING).factor, Shadowing, "factor", 7.0,
    ),
    "object of a class": (
        lambda x: np.sum(x) * SHARING.settings.rate, Sharing.settings, "rate", 7.0,
    ),
    "method of an object of a class": (
        lambda x: np.sum(x) * Sharing.settings.doubled(), Sharing.settings, "rate", 7.0,
    ),
    "another object of a class": (
        lambda x: np.sum(x) * SHARING.settings.doubled(), Sharing, "settings", Other(),
    ),
    "function of a library": (
        lambda x: np.sum(SHARING.function(x)), Sharing, "function", np.cos,
    ),
    "class of an object": (
        lambda x: np.sum(x) * SETTINGS.doubled(), SETTINGS, "__class__", Other,
    ),
    "isinstance": (
        lambda x: np.sum(x) * (2 if isinstance(SETTINGS, Other) else 3),
        SETTINGS, "__class__", Other,
    ),
    "type": (
        lambda x: np.sum(x) * (2 if type(SETTINGS) is Other else 3),
        SETTINGS, "__class__", Other,
    ),
    "match": (lambda x: np.sum(x) * matched(), SETTINGS, "__class__", Other),
    "thread-local": (lambda x: np.sum(x) * LOCAL.value, LOCAL, "value", 7.0),
}  # fmt: skip


@pytest.mark.parametrize("case", CLASSES)
def test_what_classes_lead_to(case, monkeypatch):
    f, holder, name, value = CLASSES[case]
    with emulating():
        fast = ng.jit(f)
        np.testing.assert_allclose(fast(X), f(X))
        monkeypatch.setattr(holder, name, value)
        np.testing.assert_allclose(fast(X), f(X))
        np.testing.assert_allclose(fast(X), f(X))
        assert fast.statistics.traces == 2


LATER = {
    "in globals": lambda x: np.sum(x) * (3.0 if "LATE" in globals() else 1.0),
    "get": lambda x: np.sum(x) * globals().get("LATE", 2.0),
    "NameError": catching,
    "NameError in a function inside": inner_catching,
    "eval": lambda x: np.sum(x) * eval("LATE if 'LATE' in globals() else 2.0"),
}


@pytest.mark.parametrize("case", LATER)
def test_globals_that_come_later(case, monkeypatch):
    f = LATER[case]
    with emulating():
        fast = ng.jit(f)
        np.testing.assert_allclose(fast(X), f(X))
        monkeypatch.setitem(globals(), "LATE", 7.0)
        np.testing.assert_allclose(fast(X), f(X))
        np.testing.assert_allclose(fast(X), f(X))
        assert fast.statistics.traces == 2
        monkeypatch.delitem(globals(), "LATE")
        np.testing.assert_allclose(fast(X), f(X))


def test_a_global_that_the_function_itself_stores(monkeypatch):
    monkeypatch.setitem(globals(), "STORED", None)  # so that it is put back
    del globals()["STORED"]
    with emulating():
        fast = ng.jit(storing)
        assert [fast(X) for _ in range(4)] == [9.0] * 4
        assert fast.statistics.traces <= 2


def test_registrations_of_singledispatch():
    def f(x):
        return np.sum(x) * kind_of(KIND)

    with emulating():
        fast = ng.jit(f)
        assert fast(X) == 3
        kind_of.register(Kind)(lambda x: 5.0)
        assert fast(X) == 15


@pytest.fixture
def state():
    """Puts back what the tests below change."""
    errors, options, folder = np.geterr(), np.get_printoptions(), os.getcwd()
    argv, limit, threads = list(sys.argv), sys.getrecursionlimit(), ng.get_num_threads()
    with decimal.localcontext(), warnings.catch_warnings():
        yield
    np.seterr(**errors)
    np.seterrcall(None)
    np.set_printoptions(**options)
    os.chdir(folder)
    sys.argv[:] = argv
    sys.setrecursionlimit(limit)
    ng.set_num_threads(threads)
    gc.enable()
    os.environ.pop("NUMGRAD_TEST", None)


def by_import(x):
    from os import getcwd

    return np.sum(x) * len(getcwd())


STATES = {
    "geterr": (
        lambda x: np.sum(x) * (2 if np.geterr()["under"] == "ignore" else 3),
        lambda: np.seterr(under="raise"),
    ),
    "geterrcall": (
        lambda x: np.sum(x) * (2 if np.geterrcall() is None else 3),
        lambda: np.seterrcall(print),
    ),
    "printoptions": (
        lambda x: np.sum(x) * np.get_printoptions()["precision"],
        lambda: np.set_printoptions(precision=3),
    ),
    "folder": (lambda x: np.sum(x) * len(os.getcwd()), lambda: os.chdir("/")),
    "folder by import": (by_import, lambda: os.chdir("/")),
    "arguments": (lambda x: np.sum(x) * len(sys.argv), lambda: sys.argv.append("a")),
    "recursion": (
        lambda x: np.sum(x) * sys.getrecursionlimit(),
        lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 50),
    ),
    "decimal": (
        lambda x: np.sum(x) * float(decimal.Decimal(1) / 3),
        lambda: setattr(decimal.getcontext(), "prec", 2),
    ),
    "filters": (
        lambda x: np.sum(x) * len(warnings.filters),
        lambda: warnings.filterwarnings("ignore", "nothing of the kind"),
    ),
    "collector": (lambda x: np.sum(x) * (1 + gc.isenabled()), gc.disable),
    "environment": (
        lambda x: np.sum(x) * float(os.environ.get("NUMGRAD_TEST", "1")),
        lambda: os.environ.__setitem__("NUMGRAD_TEST", "4"),
    ),
    "threads": (
        lambda x: np.sum(x) * ng.get_num_threads(),
        lambda: ng.set_num_threads(3 - min(ng.get_num_threads(), 2)),
    ),
}


@pytest.mark.parametrize("case", STATES)
@pytest.mark.usefixtures("state")
def test_state_of_the_process(case):
    f, change = STATES[case]
    with emulating():
        fast = ng.jit(f)
        np.testing.assert_allclose(fast(X), f(X), rtol=1e-14)
        change()
        np.testing.assert_allclose(fast(X), f(X), rtol=1e-14)
        np.testing.assert_allclose(fast(X), f(X), rtol=1e-14)
        assert fast.statistics.traces == 2


CLOCKS = {
    "time": lambda x: x * time.time(),
    "perf_counter": lambda x: x * time.perf_counter(),
    "monotonic_ns": lambda x: x * time.monotonic_ns(),
    "process_time": lambda x: x * time.process_time(),
    "now": lambda x: x * datetime.datetime.now().microsecond,
    "urandom": lambda x: x * uuid.uuid4().int,
    "token": lambda x: x * secrets.randbelow(100),
}


@pytest.mark.parametrize("case", CLOCKS)
def test_clocks_warn_at_the_line(case):
    fast = ng.jit(CLOCKS[case])
    with emulating():
        with pytest.warns(UserWarning, match="while it was traced, and what that") as met:
            fast(X)
        fast(X)
    assert len(met) == 1
    assert met[0].filename == __file__
    assert met[0].lineno == CLOCKS[case].__code__.co_firstlineno
    assert sys.getprofile() is None


def test_clocks_that_are_not_called_do_not_warn():
    def f(x, timed=False):
        begin = time.perf_counter() if timed else 0.0
        return np.sum(x) + begin

    with emulating():
        assert ng.jit(f)(X) == 3
