"""``ng.testing.assert_close``."""

from collections import OrderedDict

import numpy as np
import pytest

import numgrad as ng

close = ng.testing.assert_close
X = ng.tensor([1.0, 2.0], requires_grad=True)
SINGLE = ng.tensor([1.0, 2.0], dtype=np.float32)


def test_values_that_are_close():
    close(X, X + 1e-8)
    close(SINGLE, SINGLE + np.float32(1e-6))
    close({"a": [X, (1.0, None)]}, {"a": [X * 1, (1.0 + 1e-8, None)]})
    close(OrderedDict(b=2, a=X), OrderedDict(a=X, b=2))
    close(np.array([np.nan]), np.array([np.nan]), equal_nan=True)
    close(X, X.detach().astype(np.float32), check_dtype=False)
    close(X, X + 0.1, rtol=0, atol=0.2)
    close(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (X, X + 1e-3, r"2 of 2 elements differ: 1.0 is not 1.001 at \(0,\)"),
        (X, SINGLE, "dtype float64 is not float32"), (X, X[:1], r"shape \(2,\) is not"),
        ([X, X], [X], "nested otherwise"), ({"a": X}, {"b": X}, "nested otherwise"),
        ((X, 1.0), (X, 2.0), r"^\[1\]: 1 of 1"), ({"a": [1]}, {"a": [2]}, r"^\['a'\]\[0\]"),
        (np.array(np.nan), np.array(np.nan), "nan"), (True, False, "True is not False"),
        (np.array([1, 2**60]), np.array([1, 2**60 + 1]), "1 of 2"),
    ],
)  # fmt: skip
def test_the_first_difference_is_told(a, b, told):
    with pytest.raises(ng.NumgradAssertionError, match=told):
        close(a, b)


def test_options():
    with pytest.raises(AssertionError, match=r"^mine$"):
        close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match=r"^so: 1 of 1"):
        close(1.0, 2.0, msg=lambda text: f"so: {text}")
    with pytest.raises(AssertionError, match="strides"):
        close(np.ones((2, 2)), np.ones((2, 2)).T[::-1], check_stride=True)
    with pytest.raises(ng.NumgradValueError, match="rtol and atol"):
        close(X, X, rtol=0.1)
    for a, b in [(X, [1.0, 2.0]), (X, X.detach().numpy()), ("a", "a"), (1.0, None)]:
        with pytest.raises(ng.NumgradTypeError, match="assert_close"):
            close(a, b)
