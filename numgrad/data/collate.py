"""A batch from samples of equal kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.codegen.dtypes import check_dtype
from numgrad.core.masks import refuse_mask
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.operations.join import stack
from numgrad.tensors.tensor import Tensor


def default_collate(samples: Sequence[Any]) -> Any:
    """One value with a new first axis, along which the samples are.

    Numbers, arrays and Tensors become a Tensor of the dtype they have; tuples (named ones too),
    lists and dicts are gone into and come back as what they are; strings and bytes stay in a list.

    Parameters
    ----------
    samples : sequence
        At least one; all of one kind, arrays of one shape.

    Raises
    ------
    NumgradValueError
        If shapes, lengths or keys differ between samples, or there are none.
    NumgradTypeError
        If a sample holds anything else.

    Examples
    --------
    >>> import numpy as np
    >>> import numgrad as ng
    >>> x, label = ng.data.default_collate([(np.zeros(2), 3), (np.ones(2), 4)])
    >>> x
    tensor([[0., 0.],
            [1., 1.]])
    >>> label
    tensor([3, 4])
    """
    if not len(samples):
        raise NumgradValueError("default_collate: there are no samples to make a batch of")
    first = samples[0]
    if isinstance(first, Tensor | np.ndarray | np.generic | bool | int | float | complex):
        return _stack(samples)
    for sample in samples:
        if type(sample) is not type(first):
            raise NumgradTypeError(
                f"default_collate: a sample is {type(first).__name__} and another "
                f"{type(sample).__name__}; give all samples one form, or pass collate_fn"
            )
    if isinstance(first, str | bytes):
        return list(samples)
    if isinstance(first, Mapping):
        _check_equal("keys", [set(sample) for sample in samples])
        return {key: default_collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple | list):
        _check_equal("lengths", [len(sample) for sample in samples])
        parts = [default_collate(part) for part in zip(*samples, strict=True)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return tuple(parts) if isinstance(first, tuple) else parts
    raise NumgradTypeError(
        f"default_collate: knows no batch of {type(first).__name__}; samples are numbers, arrays, "
        "Tensors, strings, and tuples, lists and dicts of these; for others pass collate_fn"
    )


def _stack(samples: Sequence[Any]) -> Tensor:
    _check_equal("shapes", [getattr(sample, "shape", ()) for sample in samples])
    if any(isinstance(sample, Tensor) and sample.requires_grad for sample in samples):
        return stack(samples)  # pyright: ignore
    rows = [sample.numpy() if isinstance(sample, Tensor) else sample for sample in samples]
    refuse_mask("default_collate", rows)
    batch = np.asarray(rows)
    check_dtype("default_collate", batch.dtype)
    return Tensor(batch)


def _check_equal(what: str, found: list[Any]) -> None:
    for other in found:
        if other != found[0]:
            raise NumgradValueError(
                f"default_collate: samples of one batch have the {what} {found[0]} and {other}; "
                "make them equal, or pass collate_fn"
            )
