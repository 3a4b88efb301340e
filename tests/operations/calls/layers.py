"""Sample calls of operations: layers."""

import numpy as np

from numgrad.nn.activation_formulas import celu
from numgrad.nn.batch_normalization import batch_normalize, normalize_by
from numgrad.nn.dropout import _dropout
from numgrad.nn.embedding import _embedding, embedding_backward
from numgrad.nn.layer_normalization import _group_norm, _layer_norm, _rms_norm, normalize_groups
from numgrad.nn.linear import _bilinear
from numgrad.nn.loss.cross_entropy import _cross_entropy, _nll_loss, cross_entropy, nll_loss
from numgrad.nn.loss.ctc import ctc, ctc_shares
from numgrad.nn.loss.likelihood import gaussian_error
from numgrad.nn.recurrent_sequences import gru_sequence, lstm_sequence, rnn_sequence
from tests.operations.calls.arrays import ALONG, INDICES

_CLASSES = np.array([[2, 0], [-1, 1]])

_CLASS_WEIGHT = np.array([0.5, 2.0, 1.0])

_TARGETS = np.array([[1, 1], [2, 0]])

_CASES = [
    (((3, 2, 3),), np.array([3, 2]), np.array([2, 1]), False),
    (((2, 2, 3),), np.array([2, 1]), np.array([2, 0]), True),
]

CALLS = {
    # numgrad.nn.dropout
    _dropout: [
        (((3, 4),), lambda x: _dropout(x, 1, p=0.4)),
        (((2, 3, 4),), lambda x: _dropout(x, 1, p=0.4, group=4)),
        (((),), lambda x: _dropout(x, 2, p=0.1)),
        (((0, 3),), lambda x: _dropout(x, 1, p=0.5)),
    ],
    # numgrad.nn.embedding
    _embedding: [
        (((3, 2),), lambda x: _embedding(x, INDICES)),
        (((3, 2),), lambda x: _embedding(x, ALONG)),
        (((3, 2),), lambda x: _embedding(x, np.zeros((0, 2), int))),
        (((3, 0),), lambda x: _embedding(x, INDICES)),
    ],
    embedding_backward: [
        (
            ((3, 2),),
            lambda x: embedding_backward(x, INDICES, rows=4, padding_idx=None, scaled=False),
        ),
        (((2, 2, 2),), lambda x: embedding_backward(x, ALONG, rows=3, padding_idx=-1, scaled=True)),
    ],
    # numgrad.nn.linear
    _bilinear: [
        (((2, 3), (2, 4), (5, 3, 4), (5,)), lambda *operands: _bilinear(*operands)),
        (((3,), (2,), (1, 3, 2)), lambda *operands: _bilinear(*operands)),
    ],
    # numgrad.nn.activation_formulas
    celu: [(((2, 3), ()), lambda x, alpha: celu(x - 1.2, alpha))] * 3,
    # numgrad.nn.loss.cross_entropy
    _cross_entropy: [
        (
            ((2, 3),),
            lambda x: cross_entropy(
                x, np.array([2, 0]), ignore_index=-1, reduction="mean", label_smoothing=0.0
            ),
        ),
        (
            ((3,),),
            lambda x: cross_entropy(
                x, np.array(1), _CLASS_WEIGHT, ignore_index=-1, reduction="sum", label_smoothing=0.2
            ),
        ),
        *[
            (
                ((2, 3, 2),),
                lambda x, how=how: cross_entropy(
                    x, _CLASSES, _CLASS_WEIGHT, ignore_index=-1, reduction=how, label_smoothing=0.2
                ),
            )
            for how in ("none", "mean")
        ],
        (
            ((0, 3),),
            lambda x: cross_entropy(
                x, np.zeros(0, int), ignore_index=-1, reduction="sum", label_smoothing=0.1
            ),
        ),
        (
            ((2, 3, 0),),
            lambda x: cross_entropy(
                x, np.zeros((2, 0), int), ignore_index=-1, reduction="none", label_smoothing=0.0
            ),
        ),
    ],
    _nll_loss: [
        (((2, 3),), lambda x: nll_loss(x, np.array([2, 0]), ignore_index=-1, reduction="sum")),
        *[
            (
                ((2, 3, 2),),
                lambda x, how=how: nll_loss(
                    x, _CLASSES, _CLASS_WEIGHT, ignore_index=-1, reduction=how
                ),
            )
            for how in ("none", "mean")
        ],
        (((0, 3),), lambda x: nll_loss(x, np.zeros(0, int), ignore_index=-1, reduction="sum")),
    ],
    # numgrad.nn.loss.likelihood
    gaussian_error: [
        (((2, 3),) * 3, lambda x, t, var: gaussian_error(x, t, var, 0.1)),
    ],
    # numgrad.nn.batch_normalization
    batch_normalize: [
        (((3, 2, 2), (2,), (2,)), lambda *x: batch_normalize(*x, eps=0.1)),
        (((4, 2),), lambda x: batch_normalize(x, eps=0.1)),
    ],
    normalize_by: [
        (((0, 2), (2,), (2,), (2,)), lambda x, m, v, w: normalize_by(x, m, np.exp(v), w)),
    ],
    # numgrad.nn.layer_normalization
    normalize_groups: [
        (((2, 4, 3), (4,), (4,)), lambda *x: normalize_groups(*x, extents=(2, 2, 2, 3))),
        (((3, 4), (4,)), lambda x, w: normalize_groups(x, w, extents=(3, 2, 2, 1), centered=False)),
        (((3, 4), (4,)), lambda x, b: normalize_groups(x, None, b, extents=(3, 2, 2, 1))),
    ],
    _layer_norm: [
        (((3, 2, 2), (2, 2), (2, 2)), lambda x, w, b: _layer_norm(x, (2, 2), w, b)),
        (((0, 2), (2,), (2,)), lambda x, w, b: _layer_norm(x, 2, w, b)),
    ],
    _rms_norm: [
        (((3, 4), (4,)), lambda x, w: _rms_norm(x, 4, w, 0.1)),
        (((0, 2), (2,)), lambda x, w: _rms_norm(x, 2, w)),
    ],
    _group_norm: [
        (((2, 4, 3), (4,), (4,)), lambda x, w, b: _group_norm(x, 2, w, b)),
        (((2, 4, 0), (4,), (4,)), lambda x, w, b: _group_norm(x, 2, w, b)),
    ],
    # numgrad.nn.recurrent_sequences
    rnn_sequence: [
        (((2, 1, 2), (1, 2), (2, 2)), lambda *x: rnn_sequence(*x)),
        (((3, 2, 2), (2, 2), (2, 2), (2,)), lambda *x: rnn_sequence(*x, nonlinearity="relu")),
    ],
    gru_sequence: [
        (((2, 1, 3), (1, 1), (3, 1), (3,)), lambda *x: gru_sequence(*x, reverse=True)),
    ],
    lstm_sequence: [
        (((2, 1, 4), (1, 1), (4, 1), (4,), (1, 1)), lambda *x: lstm_sequence(*x, reverse=True)),
    ],
}
CALLS |= {
    op: [
        (
            shapes,
            lambda x, op=op, times=times, lengths=lengths, zeros=zeros: op(
                x, _TARGETS, times, lengths, blank=0, zero_infinity=zeros
            ),
        )
        for shapes, times, lengths, zeros in _CASES
    ]
    for op in (ctc, ctc_shares)
}
