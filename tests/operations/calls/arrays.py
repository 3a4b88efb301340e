"""Sample calls of operations: arrays."""

from typing import Any

import numpy as np

from numgrad.operations.arithmetic import imag, real, round
from numgrad.operations.arrangement import fliplr, flipud, rot90
from numgrad.operations.assembling import (
    append,
    block,
    delete,
    diag_embed,
    diagflat,
    insert,
    ix_,
    resize,
    rollaxis,
    trim_zeros,
)
from numgrad.operations.calculus import (
    cumulative_simpson,
    cumulative_trapezoid,
    ediff1d,
    gradient,
    interp,
    piecewise_linear,
    romb,
    simpson,
    trapezoid,
    unwrap,
)
from numgrad.operations.choice import clip, nan_to_num
from numgrad.operations.cumulative import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    linear_recurrence,
)
from numgrad.operations.diagonal import diag, diagonal, trace, tril
from numgrad.operations.einsum import einsum
from numgrad.operations.elementary import divmod, fabs, frexp, ldexp, modf, sinc
from numgrad.operations.error_gamma_logistic import polygamma
from numgrad.operations.extend import _COPIED, pad, repeat, tile
from numgrad.operations.index import getitem
from numgrad.operations.join import (
    array_split,
    column_stack,
    concat,
    dsplit,
    dstack,
    hsplit,
    hstack,
    meshgrid,
    split,
    stack,
    vsplit,
    vstack,
)
from numgrad.operations.matmul import dot, inner, kron, matmul, outer, tensordot, vdot, vecdot
from numgrad.operations.nan_reductions import (
    nancumprod,
    nancumsum,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from numgrad.operations.norm import matrix_norm, norm, renorm, vector_norm
from numgrad.operations.polynomial import (
    least_squares,
    poly,
    polyadd,
    polyder,
    polydiv,
    polyfit,
    polyint,
    polymul,
    polynomial_roots,
    polysub,
    polyval,
    roots,
    vander,
)
from numgrad.operations.quantiles import (
    median,
    nanmedian,
    nanpercentile,
    nanquantile,
    percentile,
    quantile,
)
from numgrad.operations.region import Region, copy_slices, region, region_backward
from numgrad.operations.running import cummax, cummin, running_extremes
from numgrad.operations.scatter import (
    index_add,
    index_copy,
    index_fill,
    multiply_at,
    scatter,
    scatter_add,
)
from numgrad.operations.scatter_reduce import extreme_at, scatter_reduce
from numgrad.operations.selecting import choose, compress, extract, select
from numgrad.operations.shape import (
    astype,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_to,
    flatten,
    reshape,
)
from numgrad.operations.sliding_windows import (
    convolve,
    convolve_whole,
    correlate,
    correlate_inside,
    sliding_window_view,
    unfold,
)
from numgrad.operations.sorting import partition, sort, sort_complex, topk
from numgrad.operations.sparse_matrices import (
    SparsePattern,
    example,
    sparse_matmul,
    sparse_outer,
    sparse_solve,
)
from numgrad.operations.statistics import average, corrcoef, cov, ptp
from numgrad.operations.take import (
    add_along,
    gather_along,
    gather_along_backward,
    take,
    take_along_axis,
    take_backward,
)
from numgrad.operations.trigonometric import deg2rad, rad2deg
from numgrad.operations.write import (
    diagonal_scatter,
    fill,
    masked_fill,
    masked_scatter,
    put,
    select_scatter,
    slice_scatter,
)

INDICES = np.array([2, 0, 0])
ALONG = np.array([[2, 0], [1, 1]])


def _ascending(x: Any) -> Any:
    return cumsum(np.abs(x) + 0.5, axis=0)


def _spread(x: Any) -> Any:
    return x * 0.1 + np.arange(float(x.shape[0]))


_SHARES = np.array([0.2, 0.7])


def _place(x: Any, *, spread: bool = False) -> Region:
    """Where a view with steps lies in an array like ``x`` of shape (2, 3), or a broadcast row."""
    whole = np.zeros((2, 3), x.dtype)
    return Region(whole, np.broadcast_to(whole[0], (2, 3)) if spread else whole[:, ::2].T)


_CONDITION = np.array([True, False, True])

_CHOICE = np.array([[1, 0, 1]])


def _example() -> SparsePattern:
    from scipy.sparse import csc_array

    return SparsePattern(csc_array(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])))


def _regular(data: Any) -> Any:
    """Elements of a matrix that is far from singular."""
    pattern = _example()
    return data + np.where(pattern.rows == pattern.columns, 6.0, 0.0)


def _solved(data: Any, b: Any, adjoint: bool = False) -> Any:
    return sparse_solve(_regular(data), b, pattern=_example(), adjoint=adjoint)


_MASK = np.array([[True, False, True], [False, True, False]])  # what these are tried with

CALLS = {
    # numgrad.operations.arithmetic
    round: [
        (((2, 3),), lambda x: round(x, 1)),
    ],
    # numgrad.operations.arrangement
    fliplr: [
        (((2, 3),), lambda x: fliplr(x)),
    ],
    flipud: [
        (((2, 3),), lambda x: flipud(x)),
    ],
    rot90: [
        (((2, 3),), lambda x: rot90(x)),
        (((2, 3),), lambda x: rot90(x, 2)),
    ],
    # numgrad.operations.assembling
    append: [
        (((2, 3), (2,)), lambda x, v: append(x, v)),
        (((2, 3), (2, 1)), lambda x, v: append(x, v, axis=1)),
        (((0,), (2,)), lambda x, v: append(x, v)),
    ],
    insert: [
        (((2, 3), (2,)), lambda x, v: insert(x, 1, v, axis=1)),
        (((3,), (2,)), lambda x, v: insert(x, [2, 0], v)),
        (((3,), ()), lambda x, v: insert(x, slice(0, 2), v)),
    ],
    delete: [
        (((2, 3),), lambda x: delete(x, [0, -1], axis=1)),
        (((4,),), lambda x: delete(x, slice(None, None, 2))),
    ],
    resize: [
        (((2, 3),), lambda x: resize(x, (2, 5))),
        (((2, 3),), lambda x: resize(x, 4)),
        (((0,),), lambda x: resize(x, 2)),
    ],
    trim_zeros: [
        (((2, 3),), lambda x: trim_zeros(concat(x * 0, x, axis=0))),
    ],
    block: [
        (((2, 2), (2,)), lambda a, b: block([[a, a * 2], [b, b]])),
        (((2,), ()), lambda a, b: block([a, b])),
    ],
    ix_: [
        (((2,), (3,)), lambda a, b: ix_(a, b)),
    ],
    diag_embed: [
        (((2, 3),), lambda x: diag_embed(x)),
        (((2, 3),), lambda x: diag_embed(x, -1, 0, 2)),
    ],
    diagflat: [
        (((2, 2),), lambda x: diagflat(x, 1)),
    ],
    rollaxis: [
        (((2, 3, 4),), lambda x: rollaxis(x, 2, 1)),
    ],
    # numgrad.operations.calculus
    gradient: [
        (((4,),), lambda f: gradient(f)),
        (((2, 4),), lambda f: gradient(f, 0.5, axis=1, edge_order=2)),
        (((2, 4), (4,)), lambda f, x: gradient(f, _ascending(x), axis=1, edge_order=2)),
        (((4,), (4,)), lambda f, x: gradient(f, _ascending(x))),
    ],
    ediff1d: [(((2, 3), (2,)), lambda x, e: ediff1d(x, e, 1.0))],
    unwrap: [(((2, 4),), lambda x: unwrap(x * 3, axis=1))],
    piecewise_linear: [
        (((4,), (3,)), lambda x, f: piecewise_linear(x, np.array([-1.0, 0.3, 1.1]), f)),
        (((2, 3), (3,), (3,)), lambda x, p, f: piecewise_linear(x, p * 0.2 + np.arange(3.0), f)),
    ],
    interp: [
        (((4,), (3,)), lambda x, f: interp(x, np.array([-1.0, 0.3, 1.1]), f)),
        (((3,), (3,), (3,)), lambda x, p, f: interp(x, p * 0.2 + np.arange(3.0), f, left=5.0)),
    ],
    # numgrad.operations.choice
    clip: [
        (((2, 3),), lambda x: clip(x, -0.5, 0.7)),
        (((2, 3), (3,)), lambda x, low: clip(x, low)),
        (((2, 3), ()), lambda x, high: clip(x, None, high)),
    ],
    nan_to_num: [
        (((2, 3),), lambda x: nan_to_num(x)),
    ],
    # numgrad.operations.arithmetic
    real: [
        (((2, 3),), lambda x: real(x)),
    ],
    imag: [
        (((2, 3),), lambda x: imag(x)),
    ],
    # numgrad.operations.cumulative
    cumsum: [
        (((0, 2),), lambda x: cumsum(x, axis=0)),
        (((0,),), lambda x: cumsum(x)),
    ],
    cumprod: [
        (((0, 2),), lambda x: cumprod(x, axis=0)),
        (((0,),), lambda x: cumprod(x)),
    ],
    cumulative_sum: [
        (((2, 3),), lambda x: cumulative_sum(x, axis=1, include_initial=True)),
        (((3,),), lambda x: cumulative_sum(x)),
    ],
    cumulative_prod: [
        (((2, 3),), lambda x: cumulative_prod(x, axis=1, include_initial=True)),
        (((3,),), lambda x: cumulative_prod(x)),
    ],
    linear_recurrence: [
        (((0, 2), (0, 2)), lambda a, b: linear_recurrence(a, b, axis=0)),
    ],
    diff: [
        (((2, 4),), lambda x: diff(x, 2)),
        (((2, 3), (2, 1)), lambda x, last: diff(x, axis=1, prepend=0.0, append=last)),
        (((0, 2),), lambda x: diff(x)),
    ],
    # numgrad.operations.diagonal
    tril: [
        (((0, 2),), lambda x: tril(x)),
    ],
    diagonal: [
        (((0, 2),), lambda x: diagonal(x)),
    ],
    trace: [
        (((3, 3),), lambda x: trace(x)),
        (((2, 3, 2),), lambda x: trace(x, 1, 0, 2)),
    ],
    diag: [
        (((3,),), lambda x: diag(x, 1)),
        (((2, 3),), lambda x: diag(x)),
    ],
    # numgrad.operations.einsum
    einsum: [
        (((2, 3), (3, 2)), lambda a, b: einsum("ij,jk->ik", a, b)),
        (((3, 3),), lambda a: einsum("ii->i", a)),
        (((2, 3), (2, 3)), lambda a, b: einsum("ij,ij", a, b)),
        (((2, 3), (3,), (2,)), lambda a, b, c: einsum("ij,j,i->j", a, b, c)),
        (((2, 2, 3), (3, 2)), lambda a, b: einsum("...ij,jk->...ik", a, b)),
        (((2, 1), (2, 3)), lambda a, b: einsum("ij,ij->ji", a, b)),
        (((2, 0), (0, 3)), lambda a, b: einsum("ij,jk->ik", a, b)),
    ],
    # numgrad.operations.elementary
    sinc: [(((2, 3),), lambda x: sinc(x))],
    ldexp: [(((2, 3),), lambda x: ldexp(x, np.array([-1, 0, 3])))],
    frexp: [(((2, 3),), lambda x: frexp(x)[0])],
    modf: [(((2, 3),), lambda x: modf(x)[0])],
    divmod: [(((2, 3), (3,)), lambda a, b: divmod(a, b + 3)[1])],
    fabs: [(((2, 3),), lambda x: fabs(x))],
    # numgrad.operations.error_gamma_logistic
    polygamma: [
        *[(((3,),), lambda x, n=n: polygamma(n, x + 3)) for n in (0, 1, 3)],
        (((3,),), lambda x: polygamma(np.array([[0], [1], [2]]), x + 3)),
    ],
    # numgrad.operations.extend
    tile: [
        (((2, 1),), lambda x: tile(x, 3)),
        (((2, 3),), lambda x: tile(x, (2, 1, 2))),
        (((2,),), lambda x: tile(x, 0)),
    ],
    repeat: [
        (((2, 3),), lambda x: repeat(x, 2)),
        (((2, 3),), lambda x: repeat(x, [0, 2, 1], axis=1)),
        (((2,),), lambda x: repeat(x, 0)),
    ],
    pad: [
        *[
            (((2, 3),), lambda x, mode=mode: pad(x, ((1, 2), (0, 1)), mode))
            for mode in ("constant", *_COPIED)
        ],
        (((2, 3),), lambda x: pad(x, ((1, 2), (0, 1)), "linear_ramp", end_values=1.5)),
        (((2, 3),), lambda x: pad(x, ((1, 2), (0, 1)), "mean", stat_length=2)),
        (((2, 3),), lambda x: pad(x, ((1, 2), (0, 4)), "reflect", reflect_type="odd")),
        (((2,), ()), lambda x, v: pad(x, 1, constant_values=v)),
        (((0, 2),), lambda x: pad(x, 1)),
    ],
    # numgrad.operations.index
    getitem: [
        (((3, 2),), lambda x: getitem(x, slice(0, 0))),
    ],
    # numgrad.operations.join
    concat: [
        (((0, 2), (3, 2)), lambda a, b: concat((a, b), axis=0)),
    ],
    stack: [
        (((0,), (0,)), lambda a, b: stack((a, b))),
    ],
    hstack: [
        (((2, 3),), lambda a: hstack([a])),
        (((2, 1), (2, 3)), lambda a, b: hstack((a, b))),
    ],
    vstack: [
        (((3,),), lambda a: vstack([a])),
        (((3,), (2, 3)), lambda a, b: vstack((a, b))),
    ],
    dstack: [
        (((2, 3),), lambda a: dstack([a])),
        (((2, 3), (2, 3)), lambda a, b: dstack((a, b))),
    ],
    column_stack: [
        (((3,),), lambda a: column_stack([a])),
        (((2,), (2, 3)), lambda a, b: column_stack((a, b))),
    ],
    meshgrid: [
        (((2,), (3,)), lambda a, b: meshgrid(a, b)),
    ],
    split: [
        (((4, 2),), lambda x: split(x, 2)),
        (((4,),), lambda x: split(x, [1, 3])),
    ],
    array_split: [
        (((5,),), lambda x: array_split(x, 3)),
    ],
    hsplit: [
        (((2, 4),), lambda x: hsplit(x, 2)),
    ],
    vsplit: [
        (((4, 2),), lambda x: vsplit(x, 2)),
    ],
    dsplit: [
        (((1, 2, 4),), lambda x: dsplit(x, 2)),
    ],
    # numgrad.operations.matmul
    matmul: [
        (((0, 3), (3, 2)), lambda a, b: matmul(a, b)),
        (((2, 0), (0, 3)), lambda a, b: matmul(a, b)),
        (((0,), (0,)), lambda a, b: matmul(a, b)),
        (((0, 2, 3), (3,)), lambda a, b: matmul(a, b)),
    ],
    dot: [
        (((3,), (3,)), lambda a, b: dot(a, b)),
        (((2, 3), (3,)), lambda a, b: dot(a, b)),
        (((), (2,)), lambda a, b: dot(a, b)),
        (((2, 3), (2, 3, 2)), lambda a, b: dot(a, b)),
    ],
    inner: [
        (((2, 3), (2, 3)), lambda a, b: inner(a, b)),
    ],
    outer: [
        (((2,), (3,)), lambda a, b: outer(a, b)),
    ],
    vecdot: [
        (((2, 3), (3,)), lambda a, b: vecdot(a, b)),
        (((3,), (3,)), lambda a, b: vecdot(a, b)),
        (((3, 2), (3, 1)), lambda a, b: vecdot(a, b, axis=0)),
        (((2, 0), (2, 0)), lambda a, b: vecdot(a, b)),
    ],
    vdot: [
        (((2, 3), (3, 2)), lambda a, b: vdot(a, b)),
    ],
    tensordot: [
        (((2, 3), (2, 3)), lambda a, b: tensordot(a, b)),
        (((2, 3), (2, 3)), lambda a, b: tensordot(a, b, ((0,), (0,)))),
        (((2,), (3,)), lambda a, b: tensordot(a, b, 0)),
        (((0, 3), (3, 2)), lambda a, b: tensordot(a, b, 1)),
    ],
    kron: [
        (((2, 1), (3,)), lambda a, b: kron(a, b)),
        (((0,), (2,)), lambda a, b: kron(a, b)),
    ],
    # numgrad.operations.nan_reductions
    nancumsum: [(((2, 3),), lambda x: nancumsum(x, axis=1))],
    nancumprod: [(((2, 3),), lambda x: nancumprod(x, axis=1))],
    # numgrad.operations.norm
    norm: [
        *[
            (((2, 3),), lambda x, k=k: norm(x, k, axis=1))
            for k in (1, 2, 3, 2.5, 0.5, -1, np.inf, -np.inf)
        ],
        (((2, 3),), lambda x: norm(x)),
        (((3,),), lambda x: norm(x, keepdims=True)),
        *[
            (((2, 3, 2),), lambda x, k=k: norm(x, k, axis=(2, 0)))
            for k in (1, -np.inf, "fro", "nuc")
        ],
        (((0,),), lambda x: norm(x)),
        (((0,),), lambda x: norm(x, 3)),
    ],
    vector_norm: [
        (((2, 3, 2),), lambda x: vector_norm(x, axis=(0, 2), ord=3)),
        (((2, 3),), lambda x: vector_norm(x, ord=1, keepdims=True)),
    ],
    matrix_norm: [
        (((2, 3, 2),), lambda x: matrix_norm(x, ord=-1)),
        (((2, 3),), lambda x: matrix_norm(x, ord=np.inf, keepdims=True)),
        (((2, 3, 2),), lambda x: matrix_norm(x, ord=2, keepdims=True)),
    ],
    renorm: [
        (((3, 2),), lambda x: renorm(x, p=2, axis=0, maxnorm=0.7)),
        (((2, 3, 2),), lambda x: renorm(x, p=3, axis=-1, maxnorm=1.0)),
    ],
    # numgrad.operations.polynomial
    polyval: [(((3,), (2,)), lambda p, x: polyval(p, x))],
    polyadd: [(((3,), (2,)), lambda a, b: polyadd(a, b))],
    polysub: [(((3,), (2,)), lambda a, b: polysub(a, b))],
    polymul: [(((3,), (2,)), lambda a, b: polymul(a, b))],
    polydiv: [(((4,), (2,)), lambda a, b: polydiv(a, b + 5)[0])],
    polyder: [(((4,),), lambda p: polyder(p, 2))],
    polyint: [(((3,), (2,)), lambda p, k: polyint(p, 2, k))],
    poly: [(((3,),), lambda x: poly(x))],
    vander: [(((3,),), lambda x: vander(x, 4))],
    least_squares: [
        (((4, 2), (4, 1)), lambda a, b: least_squares(a, b, rcond=1e-15)),
        (((2, 3), (2, 2)), lambda a, b: least_squares(a, b, rcond=1e-15)),
    ],
    polyfit: [
        (((5,), (5,)), lambda x, y: polyfit(_spread(x), y, 2)),
        (((4,), (4, 2), (4,)), lambda x, y, w: polyfit(_spread(x), y, 1, w=w + 4)),
    ],
    polynomial_roots: [
        (((4,),), lambda p: polynomial_roots(p + np.array([9.0, 0.0, 1.0, -40.0]))),
        (((2, 3),), lambda p: polynomial_roots(p + np.array([9.0, 1.0, -40.0]))),
    ],
    roots: [(((3,),), lambda p: roots(p + np.array([9.0, 1.0, -40.0])))],
    # numgrad.operations.quantiles
    median: [
        (((2, 5),), lambda x: median(x, axis=1)),
        (((2, 3, 2),), lambda x: median(x, axis=(0, 2), keepdims=True)),
        (((2, 3),), lambda x: median(x)),
    ],
    nanmedian: [(((2, 5),), lambda x: nanmedian(x, axis=1))],
    quantile: [
        (((2, 5), ()), lambda x, q: quantile(x, np.abs(q) / 3 + 0.1, axis=1)),
        (((2, 4),), lambda x: quantile(x, _SHARES, axis=0, method="hazen")),
        (((2, 3),), lambda x: quantile(x, 0.4, method="nearest", keepdims=True)),
    ],
    percentile: [(((2, 5),), lambda x: percentile(x, 30, axis=1))],
    nanquantile: [(((2, 5),), lambda x: nanquantile(x, _SHARES, axis=1))],
    nanpercentile: [(((5,),), lambda x: nanpercentile(x, 30.0, method="weibull"))],
    # numgrad.operations.region
    region: [
        (((2, 3),), lambda x: region(x, where=_place(x))),
        (((2, 3),), lambda x: region(x, where=_place(x, spread=True))),
    ],
    region_backward: [
        (((2, 2),), lambda x: region_backward(x, where=_place(x))),
        (((2, 3),), lambda x: region_backward(x, where=_place(x, spread=True))),
    ],
    copy_slices: [
        (((2, 3), (2, 2)), lambda x, v: copy_slices(x, v, where=_place(x))),
    ],
    # numgrad.operations.running
    running_extremes: [(((2, 3),), lambda x: running_extremes(x, axis=1, largest=True))],
    cummax: [
        (((2, 3),), lambda x: cummax(x, 1)),
        (((0, 2),), lambda x: cummax(x, axis=0)),
    ],
    cummin: [(((2, 3),), lambda x: cummin(x))],
    # numgrad.operations.scatter
    index_add: [
        (((3, 2), (3, 2)), lambda x, v: index_add(x, INDICES, v, axis=0)),
        (((2, 3), (2, 3)), lambda x, v: index_add(x, INDICES, v, axis=1, alpha=-2)),
    ],
    index_copy: [
        (((3, 2), (3, 2)), lambda x, v: index_copy(x, INDICES, v, axis=0)),
    ],
    index_fill: [
        (((3, 2), ()), lambda x, v: index_fill(x, INDICES, v, axis=0)),
    ],
    scatter: [
        (((2, 3), (2, 2)), lambda x, v, how=how: scatter(x, ALONG, v, axis=1, reduce=how))
        for how in (None, "add", "multiply")
    ],
    scatter_add: [
        (((2, 3), (2, 2)), lambda x, v: scatter_add(x, ALONG, v, axis=1)),
    ],
    multiply_at: [
        (((2, 3), (3,)), lambda x, v: multiply_at(x, INDICES, v)),
    ],
    # numgrad.operations.scatter_reduce
    extreme_at: [
        (
            ((2, 3), (3,)),
            lambda x, v, own=own: extreme_at(x, INDICES, v, largest=own, include_self=own),
        )
        for own in (True, False)
    ],
    scatter_reduce: [
        (
            ((2, 3), (2, 2)),
            lambda x, v, how=how, own=own: scatter_reduce(
                np.real(x) if how[0] == "a" else x,
                ALONG,
                np.real(v) if how[0] == "a" else v,
                axis=1,
                reduce=how,
                include_self=own,
            ),
        )
        for how, own in (("sum", False), ("prod", False), ("mean", True), ("amax", True))
    ],
    # numgrad.operations.selecting
    select: [
        (((2, 3), (3,)), lambda a, b: select([_CONDITION, ~_CONDITION], [a, b])),
        (((3,), ()), lambda a, b: select([_CONDITION], [a], b)),
    ],
    choose: [
        (((2, 3), (3,)), lambda a, b: choose(_CHOICE, [a, b])),
        (((3,), (3,)), lambda a, b: choose([5, -1, 0], [a, b], mode="wrap")),
    ],
    compress: [
        (((2, 3),), lambda x: compress(_CONDITION, x, axis=1)),
        (((2, 2),), lambda x: compress([True, False], x)),
    ],
    extract: [
        (((3,),), lambda x: extract(_CONDITION, x)),
    ],
    # numgrad.operations.shape
    reshape: [
        (((0, 2),), lambda x: reshape(x, (2, 0))),
    ],
    flatten: [
        (((2, 3),), lambda x: flatten(x)),
        (((2, 3),), lambda x: flatten(x, "F")),
    ],
    broadcast_to: [
        (((1, 2),), lambda x: broadcast_to(x, (0, 2))),
    ],
    broadcast_arrays: [
        (((2, 1), (3,)), lambda a, b: broadcast_arrays(a, b)),
    ],
    atleast_1d: [
        (((), (2,)), lambda a, b: atleast_1d(a, b)),
    ],
    atleast_2d: [
        (((), (2,)), lambda a, b: atleast_2d(a, b)),
    ],
    atleast_3d: [
        (((2,), (2, 3)), lambda a, b: atleast_3d(a, b)),
    ],
    astype: [
        (((2, 3),), lambda x: astype(np.real(x), dtype=np.float64)),
        (((2, 3),), lambda x: astype(x, dtype=np.complex128)),
    ],
    # numgrad.operations.sliding_windows
    sliding_window_view: [
        (((5,),), lambda x: sliding_window_view(x, 3)),
        (((3, 4),), lambda x: sliding_window_view(x, (2, 3))),
    ],
    unfold: [
        (((2, 5),), lambda x: unfold(x, 1, 3, 2)),
    ],
    convolve_whole: [(((4,), (2,)), lambda a, b: convolve_whole(a, b))],
    correlate_inside: [(((4,), (2,)), lambda a, b: correlate_inside(a, b))],
    convolve: [
        (((4,), (3,)), lambda a, v, mode=mode: convolve(a, v, mode))
        for mode in ("full", "same", "valid")
    ],
    correlate: [
        (((4,), (3,)), lambda a, v, mode=mode: correlate(a, v, mode))
        for mode in ("full", "same", "valid")
    ],
    # numgrad.operations.sorting
    sort: [
        (((2, 3),), lambda x: sort(x)),
        (((2, 3),), lambda x: sort(x, axis=None, descending=True)),
        (((0, 2),), lambda x: sort(x, axis=0)),
    ],
    sort_complex: [(((2, 3),), lambda x: sort_complex(x))],
    partition: [
        (((2, 4),), lambda x: partition(x, (1, 2), axis=1)),
        (((2, 3),), lambda x: partition(x, 2, axis=None)),
    ],
    topk: [
        (((2, 9),), lambda x: topk(x, 1)),
        (((3, 2),), lambda x: topk(x, 2, axis=0, largest=False)),
    ],
    # numgrad.operations.sparse_matrices
    sparse_matmul: [
        (((5,), (3,)), lambda data, x: sparse_matmul(data, x, pattern=example())),
        (((5,), (3, 2)), lambda data, x: sparse_matmul(data, x, pattern=example())),
        (((5,), (4, 2)), lambda data, x: sparse_matmul(data, x, pattern=example(), adjoint=True)),
    ],
    sparse_outer: [
        (((4,), (3,)), lambda a, b: sparse_outer(a, b, pattern=example())),
        (((4, 2), (3, 2)), lambda a, b: sparse_outer(a, b, pattern=example())),
    ],
    sparse_solve: [
        (((6,), (3,)), _solved),
        (((6,), (3, 2)), _solved),
        (((6,), (3, 2)), lambda data, b: _solved(data, b, True)),
    ],
    # numgrad.operations.statistics
    average: [
        (((2, 3),), lambda x: average(x, 1)),
        (((2, 3), (3,)), lambda x, w: average(x, 1, w + 3, keepdims=True)),
    ],
    cov: [
        (((2, 4),), lambda x: cov(x)),
        (((4, 2), (4, 1)), lambda x, y: cov(x, y, False, True)),
        (((2, 3), (3,)), lambda x, w: cov(x, aweights=np.abs(w) + 1)),
    ],
    corrcoef: [(((2, 4),), lambda x: corrcoef(x))],
    ptp: [(((2, 3),), lambda x: ptp(x, axis=1))],
    # numgrad.operations.take
    take: [
        (((3, 2),), lambda x: take(x, INDICES, axis=0)),
        (((2, 3),), lambda x: take(x, np.array([[-1, 0], [5, 5]]))),
        (((3, 2),), lambda x: take(x, np.zeros(0, int), axis=0)),
    ],
    take_backward: [
        (((3, 2),), lambda x: take_backward(x, INDICES, shape=(4, 2), axis=0)),
        (((3,),), lambda x: take_backward(x, INDICES, shape=(2, 2))),
    ],
    gather_along: [
        (((2, 3),), lambda x: gather_along(x, ALONG, axis=1)),
        (((3, 2),), lambda x: gather_along(x, np.zeros((0, 2), int), axis=0)),
    ],
    gather_along_backward: [
        (((2, 2),), lambda x: gather_along_backward(x, ALONG, shape=(2, 3), axis=1)),
    ],
    add_along: [
        (((2, 3), (2, 2)), lambda x, v: add_along(x, ALONG, v, axis=1, caller="add_along")),
    ],
    take_along_axis: [
        (((2, 3),), lambda x: take_along_axis(x, ALONG, axis=1)),
    ],
    # numgrad.operations.trigonometric
    deg2rad: [
        (((2, 3),), lambda x: deg2rad(x)),
    ],
    rad2deg: [
        (((2, 3),), lambda x: rad2deg(x)),
    ],
    # numgrad.operations.write
    put: [
        (((2, 3), (3,)), lambda x, v: put(x, INDICES, v)),
        (((2, 3), (2,)), lambda x, v: put(x, INDICES, v, accumulate=True)),
    ],
    fill: [
        (((2, 3), ()), lambda x, v: fill(x, v)),
    ],
    slice_scatter: [
        (((2, 3), (2, 2)), lambda x, v: slice_scatter(x, v, axis=1, step=2)),
    ],
    select_scatter: [
        (((2, 3), (2,)), lambda x, v: select_scatter(x, v, axis=1, index=-1)),
    ],
    diagonal_scatter: [
        (((2, 3), (2,)), lambda x, v: diagonal_scatter(x, v, offset=1)),
    ],
    masked_fill: [
        (((2, 3), ()), lambda x, v: masked_fill(x, _MASK, v)),
    ],
    masked_scatter: [
        (((2, 3), (4,)), lambda x, v: masked_scatter(x, _MASK, v)),
    ],
}
CALLS |= {
    op: [
        (((2, 4),), lambda y, op=op: op(y, dx=0.5)),
        (((3, 2), (3,)), lambda y, x, op=op: op(y, _ascending(x), axis=0)),
    ]
    for op in (trapezoid, cumulative_trapezoid, simpson)
}
CALLS |= {
    cumulative_simpson: [
        (((2, 4),), lambda y: cumulative_simpson(y, dx=0.5)),
        (((3, 2), (3,)), lambda y, x: cumulative_simpson(y, x=_ascending(x), axis=0)),
    ],
    romb: [(((2, 5),), lambda y: romb(y, dx=0.5)), (((3, 2),), lambda y: romb(y, axis=0))],
}
CALLS |= {
    op: [(((2, 3),), lambda x, op=op: op(x, axis=1))]
    for op in (nansum, nanprod, nanmax, nanmin, nanmean, nanvar, nanstd)
}
