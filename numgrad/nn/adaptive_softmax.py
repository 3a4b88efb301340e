"""Softmax over many classes, of which few are frequent (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradValueError
from numgrad.nn.activation import log_softmax
from numgrad.nn.container import ModuleList, Sequential
from numgrad.nn.linear import Linear
from numgrad.nn.module.module import Module
from numgrad.operations.join import concat
from numgrad.operations.reduce import argmax
from numgrad.operations.shape import reshape
from numgrad.operations.take import take_along_axis
from numgrad.tensors.creation import asarray, tensor


class ASMoutput(NamedTuple):
    """Result of ``AdaptiveLogSoftmaxWithLoss``."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-likelihood of classes that are sorted by frequency, with less work for rare ones.

    The first classes and one entry for each cluster of others are told apart by a first linear
    layer, those of a cluster by two, the first of which has fewer features.

    Parameters
    ----------
    in_features
        Length of the vectors.
    n_classes
        Number of classes.
    cutoffs
        Increasing numbers of classes, where clusters begin.
    div_value
        By what features are divided from one cluster to the next.
    head_bias
        Whether the first layer has a bias.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        If cutoffs do not increase from 1 to below ``n_classes``, or a cluster has no features.

    Examples
    --------
    >>> import numgrad as ng
    >>> loss = ng.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10], div_value=2.0)
    >>> out = loss(ng.ones((3, 8)), ng.tensor([0, 7, 19]))
    >>> out.output.shape, out.loss.shape
    ((3,), ())
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        edges = [int(c) for c in cutoffs]
        rising = all(a < b for a, b in zip([0, *edges], [*edges, n_classes], strict=True))
        if not edges or edges != list(cutoffs) or not rising:
            raise NumgradValueError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs are integers that increase from 1 to below "
                f"n_classes={n_classes}; got {list(cutoffs)}"
            )
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs, self.head_bias = [*edges, n_classes], head_bias
        self.shortlist_size, self.n_clusters = edges[0], len(edges)
        self.head_size = self.shortlist_size + self.n_clusters
        made = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for k, (low, high) in enumerate(zip(edges, self.cutoffs[1:], strict=True)):
            inner = int(in_features // div_value ** (k + 1))
            if inner < 1:
                raise NumgradValueError(
                    f"AdaptiveLogSoftmaxWithLoss: cluster {k} would have no features: "
                    f"in_features={in_features} over div_value={div_value} to the power of {k + 1}"
                )
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **made),
                    Linear(inner, high - low, bias=False, **made),
                )
            )

    def reset_parameters(self) -> None:
        """Draw new weights."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input: Any, target: Any) -> ASMoutput:
        """Log-likelihoods of the targets, and the mean of their negatives."""
        x, classes = asarray(input), np.asarray(asarray(target).detach())
        if classes.ndim > 1 or x.ndim != classes.ndim + 1 or x.shape[:-1] != classes.shape:
            raise NumgradValueError(
                f"AdaptiveLogSoftmaxWithLoss: an input of shape {tuple(x.shape)} and targets of "
                f"shape {classes.shape} do not fit; they are (batch, features) and (batch,)"
            )
        if classes.dtype.kind not in "iu":
            raise NumgradValueError(
                f"AdaptiveLogSoftmaxWithLoss: targets are integers, got {classes.dtype}"
            )
        if classes.size and not (classes.min() >= 0 and classes.max() < self.n_classes):
            raise NumgradValueError(
                f"AdaptiveLogSoftmaxWithLoss: targets are from 0 to {self.n_classes - 1}, got some "
                f"from {classes.min()} to {classes.max()}"
            )
        single = x.ndim == 1
        x, classes = (x[None], classes[None]) if single else (x, classes)
        cluster = np.searchsorted(self.cutoffs, classes, side="right")
        entry = np.where(cluster == 0, classes, self.shortlist_size + cluster - 1)
        output: Any = _chosen(log_softmax(self.head(x), dim=1), entry)
        for k, layers in enumerate(self.tail, 1):
            (rows,) = np.nonzero(cluster == k)
            if rows.size:
                within = _chosen(
                    log_softmax(layers(x[rows]), dim=1), classes[rows] - self.cutoffs[k - 1]
                )
                place = (np.arange(len(classes))[:, None] == rows).astype(x.dtype)
                output = output + np.matmul(place, within)
        loss = -output.mean()
        return ASMoutput(output[0] if single else output, loss)

    def log_prob(self, input: Any) -> Tensor:
        """Log-likelihoods of all classes for each row of (batch, features)."""
        x = asarray(input)
        head = log_softmax(self.head(x), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for k, layers in enumerate(self.tail):
            place = self.shortlist_size + k
            parts.append(log_softmax(layers(x), dim=1) + head[:, place : place + 1])
        return concat(parts, axis=1)

    def predict(self, input: Any) -> Tensor:
        """The likeliest class of each row of (batch, features)."""
        return argmax(self.log_prob(input), axis=1)


def _chosen(scores: Any, columns: np.ndarray) -> Any:
    """An element of each row."""
    return reshape(take_along_axis(scores, tensor(columns[:, None]), axis=1), (len(columns),))
