"""Calls with every parameter of NumPy's functions for sorting, searching, sets and statistics."""

from typing import Any

import numpy as np

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -0.5]])
F = np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -0.5]], np.float32)
I = np.array([[3, 1, 2], [6, 5, 4]])  # noqa: E741
B = np.cos(np.arange(24.0)).reshape(2, 3, 4)
V = np.array([1.0, -2.0, 0.5])
W = np.array([0.5, 1.5, 2.0])
C = np.array([1 + 2j, -0.5j, 3.0, 1 - 1j])
N = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, -1.0]])
M = np.array([[True, False, True], [False, True, True]])
K = np.array([2, 0, 0, 1])
T = np.array([2.0, 1.0, 2.0, 3.0, 1.0, 0.0])
P = np.array([0.0, 1.0, 2.5, 3.0])

Call = tuple[tuple[Any, ...], dict[str, Any]]


def call(*args: Any, **kwargs: Any) -> Call:
    return args, kwargs


AXES = [call(X), call(X, 0), call(X, axis=-1), call(X, axis=(0, 1)),
        call(X, axis=1, keepdims=True)]  # fmt: skip
NAN_AXES = [call(N), call(N, 0), call(N, axis=(0, 1)), call(N, axis=1, keepdims=True), call(I, 0)]
NAN_SUMS = [*NAN_AXES, call(N, dtype=np.float32), call(N, initial=2.5), call(N, 1, where=M),
            call(M)]  # fmt: skip
NAN_EXTREMA = [*NAN_AXES, call(N, initial=0.0), call(N, axis=0, where=M, initial=2.0)]
NAN_SPREADS = [*NAN_AXES, call(N, ddof=1), call(N, correction=1), call(N, dtype=np.float32),
               call(N, axis=1, where=M), call(N, mean=np.nanmean(N, keepdims=True)),
               call(C, 0)]  # fmt: skip
QUANTILES = [call(X, 0.3), call(X, [0.2, 0.9], 1), call(F, 0.3), call(I, 0.25, axis=(0, 1)),
             call(X, q=0.5, keepdims=True), call(X, 0.4, 1, method="hazen"),
             call(X, 0.4, axis=1, method="inverted_cdf", weights=np.abs(X)),
             call(X, [[0.1, 0.2], [0.3, 1.0]], method="nearest"), call(I, 1)]  # fmt: skip
NAN_QUANTILES = [call(N, 0.3), call(N, [0.2, 0.9], 1), call(N, q=0.5, axis=(0, 1), keepdims=True),
                 call(N, 0.4, 1, method="median_unbiased"),
                 call(N, 0.4, axis=1, method="inverted_cdf", weights=np.abs(X))]  # fmt: skip


def percent(calls: list[Call]) -> list[Call]:
    """The same shares in percent."""
    found = []
    for args, kwargs in calls:
        if "q" in kwargs:
            kwargs = {**kwargs, "q": kwargs["q"] * 100}
        else:
            args = (args[0], np.multiply(args[1], 100).tolist(), *args[2:])
        found.append((args, kwargs))
    return found


LIST = [call(X), call(X, 0), call(X, axis=None), call(I, kind="stable"), call(C), call(N, 1),
        call(T, stable=True), call(X, order=None)]  # fmt: skip
TWO = [call(T, P), call(K, K[:2]), call(X, V), call(P, P, assume_unique=True)]
GRID = [call(T), call(T, 3), call(T, bins=[0, 1, 3]), call(T, 4, (0.0, 2.0)), call(F, 3),
        call(T, range=(1, 3)), call(K)]  # fmt: skip
CONVOLVED = [call(V, P), call(P, V, "same"), call(V, P, mode="valid"), call(C, V, "full"),
             call(I[0], K), call(V, C, "same"), call(P, P, "same")]  # fmt: skip

CASES: dict[Any, list[Call]] = {
    np.sort: LIST,
    np.argsort: LIST,
    np.sort_complex: [call(C), call(a=X), call(F), call(I)],
    np.lexsort: [call((K, T[:4])), call((X[0], I[0]), 0), call(keys=X, axis=-1)],
    np.partition: [call(T, len(T) - 1), call(V, 0, order=None),
                   call(I[0], kth=0, axis=0, kind="introselect")],
    np.argpartition: [call(V, 1), call(V, 1, order=None),
                      call(V, kth=[0, 1, 2], axis=0, kind="introselect")],
    np.searchsorted: [call(P, X), call(P, 2.5, "right"), call(P[::-1], X, sorter=[3, 2, 1, 0]),
                      call(a=I[0] * 0 + [1, 2, 3], v=K, side="left")],
    np.digitize: [call(X, P), call(X, P[::-1], True), call(x=K, bins=[1, 2], right=False)],
    np.nonzero: [call(X > 0.6), call(a=N)],
    np.flatnonzero: [call(X > 0.6), call(a=K)],
    np.argwhere: [call(X > 0.6), call(a=K)],
    np.bincount: [call(K), call(K, P), call(K, weights=P, minlength=6), call(K, I.ravel()[:4])],
    np.median: [*AXES, call(I), call(N, 1), call(F, 0), call(C), call(M), call(B, axis=(0, 2))],
    np.nanmedian: [*NAN_AXES, call(F)],
    np.quantile: QUANTILES,
    np.percentile: percent(QUANTILES),
    np.nanquantile: NAN_QUANTILES,
    np.nanpercentile: percent(NAN_QUANTILES),
    np.nansum: NAN_SUMS,
    np.nanprod: NAN_SUMS,
    np.nanmax: NAN_EXTREMA,
    np.nanmin: NAN_EXTREMA,
    np.nanmean: [*NAN_AXES, call(N, dtype=np.float32), call(N, 1, where=M), call(C), call(M)],
    np.nanvar: NAN_SPREADS,
    np.nanstd: NAN_SPREADS,
    np.nanargmax: [call(N), call(N, 0), call(N, axis=1, keepdims=True), call(I, 1)],
    np.nanargmin: [call(N), call(N, 0), call(N, axis=1, keepdims=True), call(I, 1)],
    np.nancumsum: [call(N), call(N, 1), call(N, axis=0, dtype=np.float32), call(I)],
    np.nancumprod: [call(N), call(N, 1), call(N, axis=0, dtype=np.float32), call(I)],
    np.average: [call(X), call(X, 0), call(X, weights=np.abs(X)), call(X, 1, W),
                 call(I, axis=1, weights=W, keepdims=True), call(X, returned=True),
                 call(B, (0, 2), B[:, 0, :] + 2, True), call(M, 0), call(F, 1, W)],
    np.cov: [call(X), call(X, V[None]), call(X, rowvar=False), call(X, bias=True), call(X, ddof=0),
             call(X, fweights=[1, 2, 3]), call(X, aweights=W), call(F), call(V),
             call(C.reshape(2, 2)), call(X, None, True, False, 1, [1, 2, 3], W),
             call(X, dtype=np.float32), call(V, W)],
    np.corrcoef: [call(X), call(X, V[None]), call(B[0], rowvar=False), call(V, W),
                  call(X, dtype=np.float32), call(C.reshape(2, 2)), call(V)],
    np.ptp: [*AXES, call(I, 1), call(C)],
    np.unique: [call(T), call(T, True), call(T, True, True, True), call(K, return_counts=True),
                call(X, return_inverse=True), call(I[[0, 1, 0]], axis=0), call(C),
                call(np.array([np.nan, 1.0, np.nan]), equal_nan=False),
                call(I[[0, 1, 0]], True, True, True, 0), call(N)],
    np.isin: [call(X, V), call(T, P, invert=True), call(P, V, assume_unique=True),
              call(element=K, test_elements=[0, 1], kind="table")],
    np.intersect1d: [*TWO, call(T, P, return_indices=True)],
    np.union1d: [call(T, P), call(ar1=K, ar2=X)],
    np.setdiff1d: [*TWO, call(ar1=T, ar2=[1.0])],
    np.setxor1d: [*TWO, call(T[:0], T[:0])],
    np.histogram: [*GRID, call(T, 3, weights=T + 1), call(T, density=True),
                   call(T, 4, None, True, T + 1), call(T, "auto"),
                   call(T, [0.0, 1.0, 3.0], weights=np.arange(6))],
    np.histogram_bin_edges: [*GRID, call(T, 3, weights=T), call(T, "sturges")],
    np.histogramdd: [call(X), call(X, 2), call(sample=(T, T[::-1]), bins=(2, [0.0, 1.0, 3.0])),
                     call(X, 2, ((0, 4), (-2, 1), (-1, 3))), call(T, 3, density=True),
                     call(X, 2, weights=V[:2])],
    np.histogram2d: [call(T, T[::-1]), call(T, T * T, 3), call(T, T, [0.0, 1.0, 2.0, 3.0]),
                     call(x=T, y=T[::-1], bins=(2, 3), range=((0, 2), (1, 3)), density=True,
                          weights=T + 1)],
    np.gradient: [call(P), call(X), call(B, 0.5), call(B, 1.0, 2.0, axis=(0, 2)),
                  call(B, P, axis=2), call(B, P, axis=-1, edge_order=2),
                  call(B, axis=2, edge_order=2),
                  call(I, axis=1), call(F, axis=1)],
    np.trapezoid: [call(X), call(X, V), call(X, dx=0.5), call(B, B * 2 + 1, axis=1),
                   call(y=I, axis=0), call(P, x=P)],
    np.ediff1d: [call(X), call(V, 2.0), call(V, to_begin=[1.0, 2.0]), call(I, 9, [1, 2])],
    np.interp: [call(X, P, T[:4]), call(X, P, T[:4], -5.0, 5.0), call(2.0, P, C),
                call(x=N, xp=P, fp=T[:4], left=1, right=2), call(X, P[[2, 0, 1, 3]], P, period=3.5),
                call(X, P[:1], P[:1])],
    np.unwrap: [call(T * 4), call(X * 5, 4.0), call(B * 9, axis=0), call(I, period=4),
                call(X * 5, discont=None, axis=-1, period=3.0)],
    np.convolve: CONVOLVED,
    np.correlate: CONVOLVED,
    np.polyval: [call(P, X), call(p=K, x=2), call(V, C)],
    np.polyadd: [call(P, V), call(a1=V, a2=P), call(K, K)],
    np.polysub: [call(P, V), call(a1=V, a2=P), call(K, K)],
    np.polymul: [call(P[1:], V), call(a1=V, a2=P[1:])],
    np.polydiv: [call(P[1:], V[:2]), call(u=V, v=P[1:]), call(K, K[:1])],
    np.polyder: [call(P), call(p=P, m=2), call(K, 0)],
    np.polyint: [call(P), call(p=P, m=2), call(P, 2, k=3.0), call(P, 2, [1.0, 2.0])],
    np.poly: [call(V), call(seq_of_zeros=C), call(np.array([1j, -1j])), call(K)],
    np.roots: [call(np.array([1.0, 0.0, 4.0])), call(p=K)],
    np.polyfit: [call(P, V[[0, 1, 2, 0]], 1), call(P, X[0, [0, 1, 2, 1]], deg=2, w=P + 1),
                 call(P, B[0, 0], 1, rcond=1e-10, cov=True), call(P, B[0].T, 1),
                 call(P, B[0, 0], 1, None, False, P + 1, "unscaled"), call(P, B[1].T, 1, cov=True)],
    np.vander: [call(V), call(V, 2), call(x=K, N=3, increasing=True), call(V, 0)],
    np.sinc: [call(X), call(x=I), call(C), call(X * 1e-3), call(F)],
    np.isposinf: [call(N), call(x=np.array([np.inf, -np.inf]))],
    np.isneginf: [call(N), call(x=np.array([np.inf, -np.inf]))],
    np.real_if_close: [call(C), call(C.real + 1e-15j), call(a=C.real + 1e-3j, tol=0.1), call(X)],
}  # fmt: skip

REFUSED: dict[Any, dict[str, Call]] = {
    np.polyfit: {"full": call(P, P, 1, full=True)},
    np.median: {"overwrite_input": call(X.copy(), overwrite_input=True)},
    np.nanmedian: {"overwrite_input": call(X.copy(), overwrite_input=True)},
    np.quantile: {"overwrite_input": call(X.copy(), 0.5, overwrite_input=True)},
    np.percentile: {"overwrite_input": call(X.copy(), 0.5, overwrite_input=True)},
    np.nanquantile: {"overwrite_input": call(X.copy(), 0.5, overwrite_input=True)},
    np.nanpercentile: {"overwrite_input": call(X.copy(), 0.5, overwrite_input=True)},
}
"""Parameters that Tensors do not take."""

OTHERS = {np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values}
"""Their one parameter has no name, and the order of values is left open."""
