"""How each operation of the table is called where its gradients are checked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.op import Composite, Elementwise
from numgrad.op.base import OPS, Op
from numgrad.ops.region import Region
from numgrad.testing.samples import Sample, draw, samples
from tests.ops.reference import NEURAL

Calls = dict[str, list[tuple[tuple, Callable[..., Any]]]]

TABLE = [
    op
    for op in OPS.values()
    if op.__module__.startswith("numgrad.")
    and op.differentiable
    and (op.formulas or isinstance(op, Composite))
]
"""Every differentiable operation, those of users apart."""

INDICES = np.array([2, 0, 0])
ALONG = np.array([[2, 0], [1, 1]])
MASK = np.array([[True, False, True], [False, True, False]])
CLASSES = np.array([[2, 0], [-1, 1]])
CLASS_WEIGHT = np.array([0.5, 2.0, 1.0])


def place(x: Any, *, spread: bool = False) -> Region:
    """Where a view with steps lies in an array like ``x`` of shape (2, 3), or a broadcast row."""
    whole = np.zeros((2, 3), x.dtype)
    return Region(whole, np.broadcast_to(whole[0], (2, 3)) if spread else whole[:, ::2].T)


# How to call what neither is elementwise, nor works along axes, nor declares samples: shapes of the
# operands, and a function of the operation and the operands.
CALLS: Calls = {
    "bilinear": [
        (((2, 3), (2, 4), (5, 3, 4), (5,)), lambda op, *operands: op(*operands)),
        (((3,), (2,), (1, 3, 2)), lambda op, *operands: op(*operands)),
    ],
    "clip": [
        (((2, 3),), lambda op, x: op(x, -0.5, 0.7)),
        (((2, 3), (3,)), lambda op, x, low: op(x, low)),
        (((2, 3), ()), lambda op, x, high: op(x, None, high)),
    ],
    "round": [(((2, 3),), lambda op, x: op(x, 1))],
    "nan_to_num": [(((2, 3),), lambda op, x: op(x))],
    "deg2rad": [(((2, 3),), lambda op, x: op(x))],
    "rad2deg": [(((2, 3),), lambda op, x: op(x))],
    "polygamma": [(((3,),), lambda op, x, n=n: op(n, x + 3)) for n in (0, 1, 3)],
    "real": [(((2, 3),), lambda op, x: op(x))],
    "imag": [(((2, 3),), lambda op, x: op(x))],
    "astype": [
        (((2, 3),), lambda op, x: op(np.real(x), dtype=np.float64)),
        (((2, 3),), lambda op, x: op(x, dtype=np.complex128)),
    ],
    "norm": [
        (((2, 3),), lambda op, x, k=k: op(x, k, axis=1))
        for k in (1, 2, 3, 2.5, 0.5, -1, np.inf, -np.inf)
    ]
    + [(((2, 3),), lambda op, x: op(x)), (((3,),), lambda op, x: op(x, keepdims=True))]
    + [(((2, 3, 2),), lambda op, x, k=k: op(x, k, axis=(2, 0))) for k in (1, -np.inf, "fro")],
    "vector_norm": [
        (((2, 3, 2),), lambda op, x: op(x, axis=(0, 2), ord=3)),
        (((2, 3),), lambda op, x: op(x, ord=1, keepdims=True)),
    ],
    "matrix_norm": [
        (((2, 3, 2),), lambda op, x: op(x, ord=-1)),
        (((2, 3),), lambda op, x: op(x, ord=np.inf, keepdims=True)),
    ],
    "flatten": [(((2, 3),), lambda op, x: op(x)), (((2, 3),), lambda op, x: op(x, "F"))],
    "broadcast_arrays": [(((2, 1), (3,)), lambda op, a, b: op(a, b))],
    "atleast_1d": [(((), (2,)), lambda op, a, b: op(a, b))],
    "atleast_2d": [(((), (2,)), lambda op, a, b: op(a, b))],
    "atleast_3d": [(((2,), (2, 3)), lambda op, a, b: op(a, b))],
    "fliplr": [(((2, 3),), lambda op, x: op(x))],
    "flipud": [(((2, 3),), lambda op, x: op(x))],
    "rot90": [(((2, 3),), lambda op, x: op(x)), (((2, 3),), lambda op, x: op(x, 2))],
    "take": [
        (((3, 2),), lambda op, x: op(x, INDICES, axis=0)),
        (((2, 3),), lambda op, x: op(x, np.array([[-1, 0], [5, 5]]))),
    ],
    "take_backward": [
        (((3, 2),), lambda op, x: op(x, INDICES, shape=(4, 2), axis=0)),
        (((3,),), lambda op, x: op(x, INDICES, shape=(2, 2))),
    ],
    "embedding": [
        (((3, 2),), lambda op, x: op(x, INDICES)),
        (((3, 2),), lambda op, x: op(x, ALONG)),
    ],
    "embedding_backward": [
        (((3, 2),), lambda op, x: op(x, INDICES, rows=4, padding_idx=None, scaled=False)),
        (((2, 2, 2),), lambda op, x: op(x, ALONG, rows=3, padding_idx=-1, scaled=True)),
    ],
    "take_along_axis": [(((2, 3),), lambda op, x: op(x, ALONG, axis=1))],
    "gather_along": [(((2, 3),), lambda op, x: op(x, ALONG, axis=1))],
    "gather_along_backward": [(((2, 2),), lambda op, x: op(x, ALONG, shape=(2, 3), axis=1))],
    "tile": [(((2, 3),), lambda op, x: op(x, (2, 1, 2)))],
    "dropout": [
        (((3, 4),), lambda op, x: op(x, 1, p=0.4)),
        (((2, 3, 4),), lambda op, x: op(x, 1, p=0.4, group=4)),
        (((),), lambda op, x: op(x, 2, p=0.1)),
    ],
    "repeat": [
        (((2, 3),), lambda op, x: op(x, 2)),
        (((2, 3),), lambda op, x: op(x, [0, 2, 1], axis=1)),
    ],
    "pad": [
        (((2, 3),), lambda op, x, mode=mode: op(x, ((1, 2), (0, 1)), mode))
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ],
    "hstack": [(((2, 1), (2, 3)), lambda op, a, b: op((a, b)))],
    "vstack": [(((3,), (2, 3)), lambda op, a, b: op((a, b)))],
    "dstack": [(((2, 3), (2, 3)), lambda op, a, b: op((a, b)))],
    "column_stack": [(((2,), (2, 3)), lambda op, a, b: op((a, b)))],
    "split": [(((4, 2),), lambda op, x: op(x, 2)), (((4,),), lambda op, x: op(x, [1, 3]))],
    "array_split": [(((5,),), lambda op, x: op(x, 3))],
    "hsplit": [(((2, 4),), lambda op, x: op(x, 2))],
    "vsplit": [(((4, 2),), lambda op, x: op(x, 2))],
    "dsplit": [(((1, 2, 4),), lambda op, x: op(x, 2))],
    "meshgrid": [(((2,), (3,)), lambda op, a, b: op(a, b))],
    "cumulative_sum": [
        (((2, 3),), lambda op, x: op(x, axis=1, include_initial=True)),
        (((3,),), lambda op, x: op(x)),
    ],
    "cumulative_prod": [
        (((2, 3),), lambda op, x: op(x, axis=1, include_initial=True)),
        (((3,),), lambda op, x: op(x)),
    ],
    "diff": [
        (((2, 4),), lambda op, x: op(x, 2)),
        (((2, 3), (2, 1)), lambda op, x, last: op(x, axis=1, prepend=0.0, append=last)),
    ],
    "trace": [(((3, 3),), lambda op, x: op(x)), (((2, 3, 2),), lambda op, x: op(x, 1, 0, 2))],
    "diag": [(((3,),), lambda op, x: op(x, 1)), (((2, 3),), lambda op, x: op(x))],
    "einsum": [
        (((2, 3), (3, 2)), lambda op, a, b: op("ij,jk->ik", a, b)),
        (((3, 3),), lambda op, a: op("ii->i", a)),
        (((2, 3), (2, 3)), lambda op, a, b: op("ij,ij", a, b)),
        (((2, 3), (3,), (2,)), lambda op, a, b, c: op("ij,j,i->j", a, b, c)),
        (((2, 2, 3), (3, 2)), lambda op, a, b: op("...ij,jk->...ik", a, b)),
        (((2, 1), (2, 3)), lambda op, a, b: op("ij,ij->ji", a, b)),
    ],
    "dot": [
        (((3,), (3,)), lambda op, a, b: op(a, b)),
        (((2, 3), (3,)), lambda op, a, b: op(a, b)),
        (((), (2,)), lambda op, a, b: op(a, b)),
        (((2, 3), (2, 3, 2)), lambda op, a, b: op(a, b)),
    ],
    "inner": [(((2, 3), (2, 3)), lambda op, a, b: op(a, b))],
    "outer": [(((2,), (3,)), lambda op, a, b: op(a, b))],
    "vecdot": [
        (((2, 3), (3,)), lambda op, a, b: op(a, b)),
        (((3,), (3,)), lambda op, a, b: op(a, b)),
        (((3, 2), (3, 1)), lambda op, a, b: op(a, b, axis=0)),
    ],
    "vdot": [(((2, 3), (3, 2)), lambda op, a, b: op(a, b))],
    "tensordot": [
        (((2, 3), (2, 3)), lambda op, a, b: op(a, b)),
        (((2, 3), (2, 3)), lambda op, a, b: op(a, b, ((0,), (0,)))),
        (((2,), (3,)), lambda op, a, b: op(a, b, 0)),
    ],
    "kron": [(((2, 1), (3,)), lambda op, a, b: op(a, b))],
    "put": [
        (((2, 3), (3,)), lambda op, x, v: op(x, INDICES, v)),
        (((2, 3), (2,)), lambda op, x, v: op(x, INDICES, v, accumulate=True)),
    ],
    "fill": [(((2, 3), ()), lambda op, x, v: op(x, v))],
    "slice_scatter": [(((2, 3), (2, 2)), lambda op, x, v: op(x, v, axis=1, step=2))],
    "select_scatter": [(((2, 3), (2,)), lambda op, x, v: op(x, v, axis=1, index=-1))],
    "diagonal_scatter": [(((2, 3), (2,)), lambda op, x, v: op(x, v, offset=1))],
    "masked_fill": [(((2, 3), ()), lambda op, x, v: op(x, MASK, v))],
    "masked_scatter": [(((2, 3), (4,)), lambda op, x, v: op(x, MASK, v))],
    "region": [
        (((2, 3),), lambda op, x: op(x, where=place(x))),
        (((2, 3),), lambda op, x: op(x, where=place(x, spread=True))),
    ],
    "region_backward": [
        (((2, 2),), lambda op, x: op(x, where=place(x))),
        (((2, 3),), lambda op, x: op(x, where=place(x, spread=True))),
    ],
    "copy_slices": [(((2, 3), (2, 2)), lambda op, x, v: op(x, v, where=place(x)))],
    "index_add": [
        (((3, 2), (3, 2)), lambda op, x, v: op(x, INDICES, v, axis=0)),
        (((2, 3), (2, 3)), lambda op, x, v: op(x, INDICES, v, axis=1, alpha=-2)),
    ],
    "index_copy": [(((3, 2), (3, 2)), lambda op, x, v: op(x, INDICES, v, axis=0))],
    "index_fill": [(((3, 2), ()), lambda op, x, v: op(x, INDICES, v, axis=0))],
    "scatter": [
        (((2, 3), (2, 2)), lambda op, x, v, how=how: op(x, ALONG, v, axis=1, reduce=how))
        for how in (None, "add", "multiply")
    ],
    "scatter_add": [(((2, 3), (2, 2)), lambda op, x, v: op(x, ALONG, v, axis=1))],
    "normalize_groups": [
        (((2, 4, 3), (4,), (4,)), lambda op, *x: op(*x, extents=(2, 2, 2, 3))),
        (((3, 4), (4,)), lambda op, x, w: op(x, w, extents=(3, 2, 2, 1), centered=False)),
        (((3, 4), (4,)), lambda op, x, b: op(x, None, b, extents=(3, 2, 2, 1))),
    ],
    "layer_norm": [(((3, 2, 2), (2, 2), (2, 2)), lambda op, x, w, b: op(x, (2, 2), w, b))],
    "rms_norm": [(((3, 4), (4,)), lambda op, x, w: op(x, 4, w, 0.1))],
    "group_norm": [(((2, 4, 3), (4,), (4,)), lambda op, x, w, b: op(x, 2, w, b))],
    "batch_normalize": [
        (((3, 2, 2), (2,), (2,)), lambda op, *x: op(*x, eps=0.1)),
        (((4, 2),), lambda op, x: op(x, eps=0.1)),
    ],
    # few elements: second derivatives go through time in formulas
    "rnn_sequence": [
        (((2, 1, 2), (1, 2), (2, 2)), lambda op, *x: op(*x)),
        (((1, 1, 2), (1, 2), (2, 2), (2,)), lambda op, *x: op(*x, nonlinearity="relu")),
    ],
    "gru_sequence": [(((2, 1, 3), (1, 1), (3, 1), (3,)), lambda op, *x: op(*x, reverse=True))],
    "lstm_sequence": [
        (((2, 1, 4), (1, 1), (4, 1), (4,), (1, 1)), lambda op, *x: op(*x, reverse=True)),
    ],
    "celu": [(((2, 3), ()), lambda op, x, alpha: op(x - 1.2, alpha))] * 3,
    "gaussian_error": [(((2, 3),) * 3, lambda op, x, t, var: op(x, t, var, 0.1))],
    "cross_entropy": [
        (
            ((2, 3),),
            lambda op, x: op(
                x, np.array([2, 0]), ignore_index=-1, reduction="mean", label_smoothing=0.0
            ),
        ),
        (
            ((3,),),
            lambda op, x: op(
                x, np.array(1), CLASS_WEIGHT, ignore_index=-1, reduction="sum", label_smoothing=0.2
            ),
        ),
        *[
            (
                ((2, 3, 2),),
                lambda op, x, how=how: op(
                    x, CLASSES, CLASS_WEIGHT, ignore_index=-1, reduction=how, label_smoothing=0.2
                ),
            )
            for how in ("none", "mean")
        ],
    ],
    "nll_loss": [
        (((2, 3),), lambda op, x: op(x, np.array([2, 0]), ignore_index=-1, reduction="sum")),
        *[
            (
                ((2, 3, 2),),
                lambda op, x, how=how: op(x, CLASSES, CLASS_WEIGHT, ignore_index=-1, reduction=how),
            )
            for how in ("none", "mean")
        ],
    ],
    "multiply_at": [(((2, 3), (3,)), lambda op, x, v: op(x, INDICES, v))],
}

# Calls without any element, of what is neither elementwise nor along axes.
EMPTY: Calls = {
    "cross_entropy": [
        (
            ((0, 3),),
            lambda op, x: op(
                x, np.zeros(0, int), ignore_index=-1, reduction="sum", label_smoothing=0.1
            ),
        ),
        (
            ((2, 3, 0),),
            lambda op, x: op(
                x, np.zeros((2, 0), int), ignore_index=-1, reduction="none", label_smoothing=0.0
            ),
        ),
    ],
    "nll_loss": [
        (((0, 3),), lambda op, x: op(x, np.zeros(0, int), ignore_index=-1, reduction="sum")),
    ],
    "dropout": [(((0, 3),), lambda op, x: op(x, 1, p=0.5))],
    "matmul": [
        (((0, 3), (3, 2)), lambda op, a, b: op(a, b)),
        (((2, 0), (0, 3)), lambda op, a, b: op(a, b)),
        (((0,), (0,)), lambda op, a, b: op(a, b)),
        (((0, 2, 3), (3,)), lambda op, a, b: op(a, b)),
    ],
    "einsum": [(((2, 0), (0, 3)), lambda op, a, b: op("ij,jk->ik", a, b))],
    "tensordot": [(((0, 3), (3, 2)), lambda op, a, b: op(a, b, 1))],
    "vecdot": [(((2, 0), (2, 0)), lambda op, a, b: op(a, b))],
    "kron": [(((0,), (2,)), lambda op, a, b: op(a, b))],
    "cumsum": [(((0, 2),), lambda op, x: op(x, axis=0)), (((0,),), lambda op, x: op(x))],
    "cumprod": [(((0, 2),), lambda op, x: op(x, axis=0)), (((0,),), lambda op, x: op(x))],
    "linear_recurrence": [(((0, 2), (0, 2)), lambda op, a, b: op(a, b, axis=0))],
    "diff": [(((0, 2),), lambda op, x: op(x))],
    "take": [(((3, 2),), lambda op, x: op(x, np.zeros(0, int), axis=0))],
    "gather_along": [(((3, 2),), lambda op, x: op(x, np.zeros((0, 2), int), axis=0))],
    "embedding": [
        (((3, 2),), lambda op, x: op(x, np.zeros((0, 2), int))),
        (((3, 0),), lambda op, x: op(x, INDICES)),
    ],
    "getitem": [(((3, 2),), lambda op, x: op(x, slice(0, 0)))],
    "concat": [(((0, 2), (3, 2)), lambda op, a, b: op((a, b), axis=0))],
    "stack": [(((0,), (0,)), lambda op, a, b: op((a, b)))],
    "pad": [(((0, 2),), lambda op, x: op(x, 1))],
    "tile": [(((2,),), lambda op, x: op(x, 0))],
    "repeat": [(((2,),), lambda op, x: op(x, 0))],
    "reshape": [(((0, 2),), lambda op, x: op(x, (2, 0)))],
    "broadcast_to": [(((1, 2),), lambda op, x: op(x, (0, 2)))],
    "tril": [(((0, 2),), lambda op, x: op(x))],
    "layer_norm": [(((0, 2), (2,), (2,)), lambda op, x, w, b: op(x, 2, w, b))],
    "rms_norm": [(((0, 2), (2,)), lambda op, x, w: op(x, 2, w))],
    "group_norm": [(((2, 4, 0), (4,), (4,)), lambda op, x, w, b: op(x, 2, w, b))],
    "normalize_by": [
        (((0, 2), (2,), (2,), (2,)), lambda op, x, m, v, w: op(x, m, np.exp(v), w)),
    ],
    "diagonal": [(((0, 2),), lambda op, x: op(x))],
    "norm": [(((0,),), lambda op, x: op(x)), (((0,),), lambda op, x: op(x, 3))],
}

# NumPy has no complex loop for these, and so refuses complex operands; so do we.
REAL_ONLY = {
    "floor_divide", "remainder", "fmod", "copysign", "heaviside", "floor", "ceil", "trunc", "cbrt",
    "hypot",
    "logaddexp", "logaddexp2", "arctan2", "erf", "erfc", "erfinv", "gamma", "gammaln", "digamma",
    "zeta", "polygamma", "from_parts", "max_pool",
    "normalize_groups", "layer_norm", "rms_norm", "group_norm", "batch_normalize", "normalize_by",
    "rnn_sequence", "gru_sequence", "lstm_sequence", "cross_entropy", "nll_loss", *NEURAL,
} - {"absolute_error"}  # fmt: skip
# Reached from ``nan_to_num`` only, which gives it the real and the imaginary part by itself.
NEVER_COMPLEX = {"replace_nonfinite"}
# The result has the dtype of the first operand, so complex values cannot be written to a real one.
WRITES = {
    "fill", "index_put", "slice_scatter", "select_scatter", "diagonal_scatter", "copy_slices",
}  # fmt: skip


@dataclass
class Case:
    """A call with operands, some of which may be without a gradient."""

    function: Callable[..., Any]
    operands: list[np.ndarray]
    differentiable: list[bool]

    def tensors(self, arrange: Callable[[np.ndarray], np.ndarray] = np.copy) -> list[ng.Tensor]:
        return [
            ng.asarray(arrange(a)).requires_grad_(d)
            for a, d in zip(self.operands, self.differentiable, strict=True)
        ]


# Elementwise operations differ by their formulas, and share the loops around them: these go through
# every layout, the others through some.
EVERY_LAYOUT = {"multiply", "where"}
_NAMES = [op.name for op in TABLE]


def layouts_of(op: Op, dtype: Any) -> list[Sample]:
    """Samples of an elementwise operation; every layout is met by some of the operations.

    Of two real operands both are broadcast in the first sample, the second comes in turn. Complex
    numbers, whose loops are those of real ones, are tried on operands of one shape.
    """
    found = list(samples(op, dtype))
    if np.dtype(dtype).kind == "c":
        return found if op.name in EVERY_LAYOUT else found[:1]
    if len(op.inputs) == 2:
        found.insert(0, found.pop(2))
    if op.name in EVERY_LAYOUT or len(op.inputs) == 1:
        return found
    turn = _NAMES.index(op.name)
    if len(op.inputs) == 2:
        return [found[0], found[1 + turn % (len(found) - 1)]]
    return [found[turn % len(found)]]


def cases(op: Op, dtype: Any = np.float64) -> Iterator[Case]:
    """Calls of an operation that its gradients are checked on."""
    if op.name in CALLS:
        for shapes, function in CALLS[op.name]:
            operands = [draw(op, s, dtype, k) for k, s in enumerate(shapes)]
            yield Case(lambda *x, f=function: f(op, *x), operands, [True] * len(operands))
        return
    of_family = isinstance(op, Elementwise)
    for sample in layouts_of(op, dtype) if of_family else samples(op, dtype):
        operands = prepare(op, sample.args)
        smooth = [
            op.inputs == ("inputs",) or (op.inputs[k] in op.formulas and a.dtype.kind in "fc")
            for k, a in enumerate(operands)
        ]
        yield Case(lambda *x, p=sample.params: op(*x, **p), operands, smooth)


def prepare(op: Op, operands: Any) -> list[np.ndarray]:
    operands = list(operands)
    if op.name == "where":
        operands[0] = operands[0].real > 0.3
    return operands


def accepts_complex(op: Op) -> bool:
    return op.name not in REAL_ONLY | NEVER_COMPLEX
