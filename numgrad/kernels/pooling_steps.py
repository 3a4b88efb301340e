"""Steps of pooling: one image at a time.

Imported by generated source only: importing this module imports Numba. Arrays are flat.
"""

from numgrad.kernels.jit import device, outlined


@device
def reach(start, step, size, n):
    """The ``lo <= i < hi`` among ``size`` places of a window with ``0 <= start + i * step < n``."""
    lo = 0 if start >= 0 else -(start // step)
    hi = (n - 1 - start) // step + 1
    return lo, min(size, hi)


@outlined
def largest(x, y, indices, sizes, image):
    """Largest element of each window, and its place in the image; the last NaN if there is one.

    ``sizes``: image, output, window, stride, padding and dilation, of rows and columns each.
    """
    height, width, rows, columns = sizes[0], sizes[1], sizes[2], sizes[3]
    x = x[image * height * width : (image + 1) * height * width]
    y = y[image * rows * columns : (image + 1) * rows * columns]
    indices = indices[image * rows * columns : (image + 1) * rows * columns]
    at = 0
    for r in range(rows):
        top = r * sizes[6] - sizes[8]
        first_row, last_row = reach(top, sizes[10], sizes[4], height)
        for c in range(columns):
            left = c * sizes[7] - sizes[9]
            first, last = reach(left, sizes[11], sizes[5], width)
            place = (top + first_row * sizes[10]) * width + left + first * sizes[11]
            best = x[place]
            for i in range(first_row, last_row):
                k = (top + i * sizes[10]) * width + left + first * sizes[11]
                for _ in range(first, last):
                    value = x[k]
                    if value > best or value != value:
                        best, place = value, k
                    k += sizes[11]
            y[at] = best
            indices[at] = place
            at += 1


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
    """Sum of each window over its divisor; windows are rows of (start, stop, divisor)."""
    x = x[image * area : (image + 1) * area]
    at = image * rows.shape[0] * columns.shape[0]
    for r in range(rows.shape[0]):
        for c in range(columns.shape[0]):
            total = x.dtype.type(0)
            for i in range(rows[r, 0], rows[r, 1]):
                for k in range(i * width + columns[c, 0], i * width + columns[c, 1]):
                    total += x[k]
            y[at] = total / (rows[r, 2] * columns[c, 2])
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
            value = g.dtype.type(g[at] / (rows[r, 2] * columns[c, 2]))
            for i in range(rows[r, 0], rows[r, 1]):
                for k in range(i * width + columns[c, 0], i * width + columns[c, 1]):
                    gx[k] += value
            at += 1
