"""Steps of poolings, of one image at a time; all arrays are flat."""

import numpy as np

from numgrad.codegen.device import outlined
from numgrad.codegen.intrinsics import select


@outlined
def largest(x, y, indices, rows, columns, steps, width, area, image):
    """Largest element of each window, and its place in the image; the last NaN if there is one.

    Windows are rows of (first place, number of elements, divisor), elements ``steps`` apart.
    """
    x = x[image * area : (image + 1) * area]
    count = rows.shape[0] * columns.shape[0]
    y, indices = y[image * count :], indices[image * count :]
    # unsigned places: negative ones would be looked for at each access
    down, across = np.uint64(steps[0] * width), np.uint64(steps[1])
    at = np.uint64(0)
    for r in range(rows.shape[0]):
        top, many_rows = np.uint64(rows[r, 0] * width), rows[r, 1]
        for c in range(columns.shape[0]):
            start = position = top + np.uint64(columns[c, 0])
            many_columns = columns[c, 1]
            best = x[position]
            for _ in range(many_rows):
                k = start
                for _ in range(many_columns):
                    value = x[k]
                    # no branches, which would be taken at random
                    better = (value > best) | (value != value)
                    best = select(better, value, best)
                    position = select(better, k, position)
                    k += across
                start += down
            y[at] = best
            indices[at] = np.int64(position)
            at += np.uint64(1)


@outlined
def put_back(g, indices, gx, area, count, image):
    """Add the gradient of each window to the element it was taken from."""
    g = g[image * count : (image + 1) * count]
    indices = indices[image * count : (image + 1) * count]
    gx = gx[image * area : (image + 1) * area]
    for k in range(area):
        gx[k] = 0
    for k in range(count):
        gx[indices[k]] += g[k]


@outlined
def average(x, y, rows, columns, width, area, image):
    """Sum of each window over its divisor; windows are rows of (first place, number, divisor)."""
    x = x[image * area : (image + 1) * area]
    at = image * rows.shape[0] * columns.shape[0]
    for r in range(rows.shape[0]):
        for c in range(columns.shape[0]):
            total = x.dtype.type(0)
            for i in range(rows[r, 0], rows[r, 0] + rows[r, 1]):
                start = i * width + columns[c, 0]
                for k in range(start, start + columns[c, 1]):
                    total += x[k]
            y[at] = np.divide(total, rows[r, 2] * columns[c, 2])
            at += 1


@outlined
def spread(g, gx, rows, columns, width, area, image):
    """Add the gradient of each window, over its divisor, to all its elements."""
    gx = gx[image * area : (image + 1) * area]
    for k in range(area):
        gx[k] = 0
    at = image * rows.shape[0] * columns.shape[0]
    for r in range(rows.shape[0]):
        for c in range(columns.shape[0]):
            value = g.dtype.type(np.divide(g[at], rows[r, 2] * columns[c, 2]))
            for i in range(rows[r, 0], rows[r, 0] + rows[r, 1]):
                start = i * width + columns[c, 0]
                for k in range(start, start + columns[c, 1]):
                    gx[k] += value
            at += 1
