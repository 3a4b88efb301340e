"""What goes on by use, and is read while a function is traced: iterators, files, Python's draws."""

import itertools
import random
import warnings

import numpy as np
import pytest

import numgrad as ng

X = np.ones(2)


def numbers():
    for k in range(5):
        yield float(k)


ONES = {
    "list": lambda path: iter([1.0, 2.0, 3.0]),
    "range": lambda path: iter(range(4)),
    "count": lambda path: itertools.count(2),
    "generator": lambda path: numbers(),
    "random": lambda path: random.Random(3),
    "file": lambda path: path.open(),
    "bytes": lambda path: path.open("rb"),
}


def taken(one):
    if isinstance(one, random.Random):
        return one.uniform(0.0, 1.0)
    return float(one.readline()) if hasattr(one, "readline") else next(one)


@pytest.mark.parametrize("held", [False, True], ids=["enclosed", "attribute"])
@pytest.mark.parametrize("name", ONES)
def test_what_goes_on_while_traced_warns(name, held, tmp_path):
    path = tmp_path / "numbers"
    path.write_text("1.5\n2.5\n3.5\n")
    one = ONES[name](path)
    holder = type("Holder", (), {})()
    holder.one = one
    fast = ng.jit((lambda x: x * taken(holder.one)) if held else lambda x: x * taken(one))
    with pytest.warns(UserWarning, match=r"while it was traced, and .* each call has the same"):
        fast(X)
    if hasattr(one, "close"):
        one.close()


@pytest.mark.parametrize("name", ONES)
def test_what_is_only_there_does_not_warn(name, tmp_path):
    path = tmp_path / "numbers"
    path.write_text("1.5\n")
    one = ONES[name](path)
    fast = ng.jit(lambda x: x if one is None else 2.0 * x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fast(X), 2.0 * X)
    if hasattr(one, "close"):
        one.close()
