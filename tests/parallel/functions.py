"""What other processes import and compute."""

import os

import numpy as np


def squares(w, x, y, scale=1.0):
    return scale * np.sum((x @ w["a"] - y + w["b"]) ** 2)


def mean(w, x, y):
    return np.mean((x @ w["a"] - y + w["b"]) ** 2)


def fails_at_seven(w, x):
    if np.any(x == 7.0):
        raise LookupError("seven")
    return np.sum(w * x)


def dies_at_seven(w, x):
    if np.any(x == 7.0):
        os._exit(3)
    return np.sum(w * x)


def statistics(row):
    return {"sum": row.sum(), "twice": row * 2}
