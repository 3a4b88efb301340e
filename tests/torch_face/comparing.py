"""The base class of PyTorch's public tests: unittest's, with comparisons of tensors."""

from __future__ import annotations

import contextlib
import re
import unittest
import warnings
from collections.abc import Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import pytest

TOLERANCES = {
    "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "float16": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
"""Relative and absolute tolerances of ``torch.testing.assert_close``."""


def test_case(torch: Any) -> type[unittest.TestCase]:
    """The class ``TestCase`` whose tensors are those of the library."""

    class TestCase(unittest.TestCase):
        _precision, _rel_tol, precision, rel_tol = 0.0, 0.0, 0.0, 0.0
        maxDiff = None

        def setUp(self) -> None:
            torch.manual_seed(1234)
            np.random.seed(1234)

        def assertEqual(self, x: Any, y: Any, msg: Any = None, **options: Any) -> None:
            difference = _difference(torch, x, y, self, options)
            if difference:
                told = msg(difference) if callable(msg) else msg
                raise self.failureException(told or difference)

        def assertNotEqual(self, x: Any, y: Any, msg: Any = None, **options: Any) -> None:
            if not _difference(torch, x, y, self, options):
                raise self.failureException(msg or f"equal: {x} and {y}")

        def assertEqualIgnoreType(self, *args: Any, **options: Any) -> None:
            self.assertEqual(*args, exact_dtype=False, **options)  # noqa: PT009

        def assertEqualBroadcasting(self, x: Any, y: Any, **options: Any) -> None:
            self.assertEqual(x, torch.full_like(x, y), **options)  # noqa: PT009

        def assertEqualTypeString(self, x: Any, y: Any) -> None:
            assert (x.device, x.dtype, x.is_sparse) == (y.device, y.dtype, y.is_sparse)

        def compare_with_numpy(
            self, of_torch: Any, of_numpy: Any, values: Any, device: Any = None, dtype: Any = None,
            **options: Any,
        ) -> None:  # fmt: skip
            x = values if isinstance(values, torch.Tensor) else torch.tensor(values, dtype=dtype)
            expected = torch.from_numpy(np.array(of_numpy(_array(x))))
            options = {"exact_dtype": False, "equal_nan": True, **options}
            self.assertEqual(of_torch(x), expected, **options)  # noqa: PT009

        def assertExpectedInline(self, actual: Any, expect: str, skip: int = 0) -> None:
            if re.sub(r"\s+", "", str(actual)) != re.sub(r"\s+", "", expect):
                raise self.failureException(f"{actual} is not {expect}")

        def assertExpectedRaisesInline(
            self, kind: Any, callable: Any, expect: str, *args: Any, **kwargs: Any
        ) -> None:
            with pytest.raises(kind):
                callable(*args, **kwargs)

        def assertRaisesRegex(self, kind: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:
            return self.assertRaises(kind, *args, **kwargs)  # noqa: PT027 - messages are our own

        @contextlib.contextmanager
        def assertWarnsOnceRegex(self, category: Any, regex: str = "") -> Iterator[None]:
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("always")
                yield
            assert [w for w in log if issubclass(w.category, category)]

        def assertWarnsRegex(self, kind: Any, regex: Any, *args: Any, **kwargs: Any) -> Any:
            return self.assertWarns(kind, *args, **kwargs)

        @contextlib.contextmanager
        def _assert_no_warning(self, *args: Any) -> Iterator[None]:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                yield

        def assertNotWarn(self, function: Any, msg: str = "") -> None:
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("always")
                function()
            assert len(log) == 0

    TestCase.assertExpected = TestCase.assertExpectedInline  # type: ignore[attr-defined]
    return TestCase


def _difference(torch: Any, x: Any, y: Any, case: Any, options: Mapping[str, Any]) -> str:
    """How two values differ, or nothing."""
    if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
        return _of_tensors(torch, x, y, case, options)
    if isinstance(x, str | bytes) or isinstance(y, str | bytes) or x is None or y is None:
        return "" if x == y else f"{x!r} is not {y!r}"
    if isinstance(x, np.ndarray | np.generic) or isinstance(y, np.ndarray | np.generic):
        return _of_arrays(np.asarray(x), np.asarray(y), case, {**options, "exact_dtype": False})
    if isinstance(x, Number) and isinstance(y, Number) and not isinstance(x, bool):
        return _of_arrays(*_of_numbers(x, y), case, {**options, "exact_dtype": False})
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        if set(x) != set(y):
            return f"keys {list(x)} are not {list(y)}"
        return next(filter(None, (_difference(torch, x[k], y[k], case, options) for k in x)), "")
    if isinstance(x, Sequence) and isinstance(y, Sequence):
        if len(x) != len(y):
            return f"{len(x)} items, not {len(y)}"
        pairs = zip(x, y, strict=True)
        return next(filter(None, (_difference(torch, *p, case, options) for p in pairs)), "")
    return "" if x == y else f"{x!r} is not {y!r}"


def _of_numbers(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Python's numbers, compared as closely as float32."""
    exact = isinstance(x, int) and isinstance(y, int)
    dtypes = [None if exact else "F" if isinstance(v, complex) else "f" for v in (x, y)]
    return np.asarray(x, dtypes[0]), np.asarray(y, dtypes[1])


def _of_tensors(torch: Any, x: Any, y: Any, case: Any, options: Mapping[str, Any]) -> str:
    if x is None or y is None:
        return f"{x} is not {y}"
    if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
        options = {**options, "exact_dtype": False}
    if isinstance(y, Number) and x.numel() == 1:
        x = x.reshape(())
    x, y = (torch.as_tensor(v) if not isinstance(v, torch.Tensor) else v for v in (x, y))
    if options.get("exact_dtype", True) and x.dtype != y.dtype:
        return f"dtype {x.dtype} is not {y.dtype}"
    if options.get("exact_stride") and x.stride() != y.stride():
        return f"strides {x.stride()} are not {y.stride()}"
    return _of_arrays(_array(x), _array(y), case, options)


def _array(x: Any) -> np.ndarray:
    if "sparse" in str(getattr(x, "layout", "")):
        x = x.to_dense()
    return x.detach().resolve_conj().resolve_neg().cpu().numpy()


def _of_arrays(x: np.ndarray, y: np.ndarray, case: Any, options: Mapping[str, Any]) -> str:
    if x.shape != y.shape:
        return f"shape {x.shape} is not {y.shape}"
    rtol, atol = map(
        max, zip(*(TOLERANCES.get(a.dtype.name, (0.0, 0.0)) for a in (x, y)), strict=True)
    )
    given_rtol, given_atol = options.get("rtol"), options.get("atol")
    atol = max(atol, case.precision) if given_atol is None else given_atol
    rtol = max(rtol, case.rel_tol) if given_rtol is None else given_rtol
    if x.dtype.kind not in "biufc" or y.dtype.kind not in "biufc":
        return "" if np.array_equal(x, y) else f"{x} is not {y}"
    with np.errstate(all="ignore"):
        near = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=options.get("equal_nan", True))
    if np.all(near):
        return ""
    return f"{x[~near].ravel()[:3]} is not {y[~near].ravel()[:3]}" if x.ndim else f"{x} is not {y}"
