"""Comparisons for tests: ``torch.testing``."""

from __future__ import annotations

from typing import Any

from numgrad import testing as base
from numgrad.torch.missing import refuse


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, check_device: bool = True,
    check_layout: bool = True, **options: Any,
) -> None:  # fmt: skip
    """Raise unless nested values are close: ``ng.testing.assert_close``.

    Examples
    --------
    >>> import numgrad.torch as torch
    >>> torch.testing.assert_close(torch.ones(2) / 3 * 3, torch.ones(2))
    """
    base.assert_close(actual, expected, **options)


__getattr__ = refuse(globals())
