"""Rows of a table at integer indices, and indices as rows of zeros with one 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn.embedding.operation import checked_indices
from numgrad.nn.embedding.operation import _embedding
from numgrad.tensors.creation import asarray
from numgrad.tensors.tensor import Tensor


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table at integer indices.

    Parameters
    ----------
    input
        Integers from 0 to ``n - 1``, any shape.
    weight
        Table of shape ``(n, d)``.
    padding_idx
        A row that gets no gradient; may be negative.
    max_norm
        Rows that are looked up and have a larger norm are scaled to this one first, in place and
        unseen by autograd.
    norm_type
        Order ``p`` of that norm.
    scale_grad_by_freq
        Divide the gradient of each row by the number of times it was looked up in this call.
    sparse
        Make the gradient of a leaf a ``RowSparseTensor``; see ``SparseAdam`` and ``SGD``.

    Returns
    -------
    Tensor
        Of shape ``(*input.shape, d)`` and the dtype of ``weight``.

    Raises
    ------
    NumgradIndexError
        If an index is negative or not below ``n``.
    NumgradTypeError
        If indices are no integers.
    NumgradValueError
        If ``weight`` has not two axes, ``padding_idx`` is no row, or ``sparse`` meets
        ``scale_grad_by_freq``.

    Examples
    --------
    >>> import numgrad as ng
    >>> table = ng.tensor([[0.0, 0.0], [3.0, 4.0], [0.3, 0.4]])
    >>> ng.nn.functional.embedding([[1, 2, 1]], table)
    tensor([[[3. , 4. ],
             [0.3, 0.4],
             [3. , 4. ]]])
    """
    input, weight = asarray(input), asarray(weight)
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    return _embedding(
        weight,
        input,
        padding_idx=padding_idx,
        scale_grad_by_freq=bool(scale_grad_by_freq),
        sparse=bool(sparse),
    )


def _renormalize(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows at ``indices`` whose norm is larger than ``max_norm`` to that norm."""
    rows = np.unique(checked_indices(indices._array, weight._array))
    found = weight._array[rows]
    norms = np.linalg.norm(found, norm_type, axis=1, keepdims=True)
    large = norms[:, 0] > max_norm
    if large.any():
        with no_grad():
            # the small number keeps a rounded product from being larger than max_norm
            weight[rows[large]] = found[large] * (max_norm / (norms[large] + 1e-7))


def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a 1 at each index.

    Parameters
    ----------
    tensor
        Integers from 0 to ``num_classes - 1``, any shape.
    num_classes
        Length of the rows; -1 for the largest index plus 1.

    Returns
    -------
    Tensor
        Of shape ``(*tensor.shape, num_classes)``, int64.

    Raises
    ------
    NumgradTypeError
        If the indices are no integers.
    NumgradValueError
        If an index is negative or not below ``num_classes``, or there is none to tell their number.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.one_hot([0, 2])
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    indices = asarray(tensor)._array
    if indices.size == 0 and indices.dtype == np.float64:  # an empty list
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise NumgradTypeError(f"one_hot: indices must be integers, got dtype {indices.dtype}")
    if num_classes == -1:
        if indices.size == 0:
            raise NumgradValueError(
                f"one_hot: indices of shape {indices.shape} do not tell the number of classes; "
                "give num_classes"
            )
        num_classes = max(1, int(indices.max()) + 1)
    if num_classes < 1:
        raise NumgradValueError(f"one_hot: num_classes must be positive or -1, got {num_classes}")
    if indices.size and not 0 <= indices.min() <= indices.max() < num_classes:
        raise NumgradValueError(
            f"one_hot: indices from {indices.min()} to {indices.max()} with {num_classes} classes; "
            f"they run from 0 to {num_classes - 1}"
        )
    out = np.zeros((*indices.shape, num_classes), np.int64)
    np.put_along_axis(out, indices[..., np.newaxis].astype(np.int64), 1, axis=-1)
    return Tensor(out)
