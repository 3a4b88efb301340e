"""NumPy's functions of whole arrays as loops, which are read and not run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def sum_1(a):
    total = 0
    for i in range(a.shape[0]):
        total = total + a[i]
    return total


def sum_2(a):
    total = 0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total = total + a[i, j]
    return total


def sum_3(a):
    total = 0
    for i in range(a.shape[0]):
        total = total + sum_2(a[i])
    return total


def sum_4(a):
    total = 0
    for i in range(a.shape[0]):
        total = total + sum_3(a[i])
    return total


def prod_1(a):
    total = 1
    for i in range(a.shape[0]):
        total = total * a[i]
    return total


def max_1(a):
    best = a[0]
    for i in range(1, a.shape[0]):
        best = max(best, a[i])
    return best


def max_2(a):
    best = a[0, 0]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            best = max(best, a[i, j])
    return best


def min_1(a):
    best = a[0]
    for i in range(1, a.shape[0]):
        best = min(best, a[i])
    return best


def min_2(a):
    best = a[0, 0]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            best = min(best, a[i, j])
    return best


def argmax_1(a):
    place = 0
    for i in range(1, a.shape[0]):
        if a[i] > a[place]:
            place = i
    return place


def argmin_1(a):
    place = 0
    for i in range(1, a.shape[0]):
        if a[i] < a[place]:
            place = i
    return place


def mean_1(a):
    return sum_1(a) / a.shape[0]


def mean_2(a):
    return sum_2(a) / (a.shape[0] * a.shape[1])


def mean_3(a):
    return sum_3(a) / (a.shape[0] * a.shape[1] * a.shape[2])


def norm_1(a):
    total = 0.0
    for i in range(a.shape[0]):
        total += abs(a[i]) ** 2
    return math.sqrt(total)


def norm_2(a):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += abs(a[i, j]) ** 2
    return math.sqrt(total)


def dot_1_1(a, b):
    total = 0
    for i in range(a.shape[0]):
        total = total + a[i] * b[i]
    return total


def dot_2_1(a, b, out):
    for i in range(a.shape[0]):
        out[i] = dot_1_1(a[i], b)


def dot_1_2(a, b, out):
    for j in range(b.shape[1]):
        out[j] = dot_1_1(a, b[:, j])


def dot_2_2(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = dot_1_1(a[i], b[:, j])


def vdot_1_1(a, b):
    total = 0
    for i in range(a.shape[0]):
        total = total + np.conj(a[i]) * b[i]
    return total


REDUCTIONS: dict[tuple[str, int], Any] = {
    ("sum", 1): sum_1, ("sum", 2): sum_2, ("sum", 3): sum_3, ("sum", 4): sum_4,
    ("prod", 1): prod_1, ("max", 1): max_1, ("max", 2): max_2, ("min", 1): min_1,
    ("min", 2): min_2, ("amax", 1): max_1, ("amax", 2): max_2, ("amin", 1): min_1,
    ("amin", 2): min_2, ("argmax", 1): argmax_1, ("argmin", 1): argmin_1, ("mean", 1): mean_1,
    ("mean", 2): mean_2, ("mean", 3): mean_3, ("norm", 1): norm_1, ("norm", 2): norm_2,
}  # fmt: skip
"""By NumPy's name and rank."""
PRODUCTS: dict[tuple[int, int], Any] = {
    (1, 1): dot_1_1, (2, 1): dot_2_1, (1, 2): dot_1_2, (2, 2): dot_2_2,
}  # fmt: skip
"""Of vectors and matrices, by ranks; what is an array is written to a third operand."""
