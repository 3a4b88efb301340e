"""One sample of one operation, with both libraries' arguments and results."""

from __future__ import annotations

import sys
import types
import unittest
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

RANDOM = {
    "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "bernoulli",
    "multinomial", "rand_like", "randn", "randn_like", "randint", "randint_like", "empty",
    "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted",
    "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "nn.functional.rrelu",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "resize_", "resize_as_",
}  # fmt: skip
"""Names whose numbers are random, or not set: shapes and dtypes are compared."""
UP_TO_FACTORS = {"linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank"}
"""Names of results that are determined but for factors of modulus 1: moduli are compared."""


class NotCompared(Exception):
    """PyTorch has no result to compare with."""


@dataclass
class Case:
    """An operation called with one sample.

    Attributes
    ----------
    op, call
        The entry of the database; the function of the face.
    args, kwargs, our_args, our_kwargs
        PyTorch's arguments, and the face's.
    theirs, ours
        The results.
    process, our_process
        What is done to a result before it is differentiated.
    shared
        What one check leaves for another.
    """

    op: Any
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    our_args: tuple[Any, ...]
    our_kwargs: dict[str, Any]
    theirs: Any
    ours: Any
    process: Callable[..., Any]
    our_process: Callable[..., Any]
    differentiable: bool
    shared: dict[str, Any] = field(default_factory=dict)

    @property
    def random(self) -> bool:
        """Whether numbers are not compared."""
        return self.op.name in RANDOM or bool(self.kwargs.get("dropout_p"))


def database() -> list[Any]:
    """The public operations that have dtypes on the CPU, which differ between builds of PyTorch.

    What their module imports only for its own tests is stood in for.
    """
    if "expecttest" not in sys.modules:
        try:
            import_module("expecttest")
        except ImportError:
            stand_in = types.ModuleType("expecttest")
            vars(stand_in)["TestCase"] = unittest.TestCase
            sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if op.supported_dtypes("cpu") and not op.name.startswith("torch.")]


def name_of(op: Any) -> str:
    """The name of an entry with that of its variant."""
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
