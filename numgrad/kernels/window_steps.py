"""Steps of convolutions, of one block of samples at a time, and of poolings, of one image.

What the steps are, and the order of ``sizes``, are in ``conv``. All arrays are flat.
"""

import numpy as np

from numgrad.codegen.device import device, outlined
from numgrad.codegen.intrinsics import select
from numgrad.kernels.products.blas import multiply


@outlined
def interleave(x, start, distance, samples, length, out):
    """``out[p, s] = x[start + s * distance + p]``: samples side by side, four at a time."""
    one, step = np.uint64(1), np.uint64(samples)  # unsigned: no test for negative places
    whole = samples - samples % 4
    for s in range(0, whole, 4):
        left = start + s * distance
        a = x[left : left + length]
        b = x[left + distance : left + distance + length]
        c = x[left + 2 * distance : left + 2 * distance + length]
        d = x[left + 3 * distance : left + 3 * distance + length]
        k = np.uint64(s)
        for p in range(length):
            out[k] = a[p]
            out[k + one] = b[p]
            out[k + one + one] = c[p]
            out[k + one + one + one] = d[p]
            k += step
    for s in range(whole, samples):
        left = start + s * distance
        a = x[left : left + length]
        k = np.uint64(s)
        for p in range(length):
            out[k] = a[p]
            k += step


@outlined
def separate(x, start, distance, samples, length, extra, out):
    """``out[start + s * distance + p] = x[p, s] + extra``: each sample in its place."""
    one, step = np.uint64(1), np.uint64(samples)
    whole = samples - samples % 4
    for s in range(0, whole, 4):
        left = start + s * distance
        a = out[left : left + length]
        b = out[left + distance : left + distance + length]
        c = out[left + 2 * distance : left + 2 * distance + length]
        d = out[left + 3 * distance : left + 3 * distance + length]
        k = np.uint64(s)
        for p in range(length):
            a[p] = x[k] + extra
            b[p] = x[k + one] + extra
            c[p] = x[k + one + one] + extra
            d[p] = x[k + one + one + one] + extra
            k += step
    for s in range(whole, samples):
        left = start + s * distance
        a = out[left : left + length]
        k = np.uint64(s)
        for p in range(length):
            a[p] = x[k] + extra
            k += step


@outlined
def unfold(x, columns, samples, top, rows, left, positions, sizes):
    """Columns of places in some rows of the output: what the kernel covers, zero in padding."""
    height, width, kernel_rows, kernel_columns = sizes[2], sizes[3], sizes[5], sizes[6]
    stride_rows, stride_columns = sizes[7], sizes[8]
    before_rows, before_columns = sizes[9], sizes[10]
    step_rows, step_columns = sizes[11], sizes[12]
    line, whole = positions * samples, samples - samples % 4
    for j in range(kernel_columns):
        shift = left * stride_columns + j * step_columns - before_columns
        lo, hi, first = inside(shift, stride_columns, positions, width)
        for i in range(kernel_rows):
            upper = top * stride_rows + i * step_rows - before_rows
            for c in range(sizes[1] // sizes[13]):
                at = ((c * kernel_rows + i) * kernel_columns + j) * rows * line
                for row in range(upper, upper + rows * stride_rows, stride_rows):
                    line_of = columns[at : at + line]
                    at += line
                    if row < 0 or row >= height:
                        for k in range(line):
                            line_of[k] = 0
                        continue
                    for k in range(lo * samples):
                        line_of[k] = 0
                    for k in range(hi * samples, line):
                        line_of[k] = 0
                    start = ((c * height + row) * width + first) * samples
                    if stride_columns == 1:
                        run, seen = x[start:], line_of[lo * samples :]
                        for k in range((hi - lo) * samples):
                            seen[k] = run[k]
                    elif samples == 1:
                        run, seen = x[start:], line_of[lo:]
                        for q in range(hi - lo):
                            seen[q] = run[q * stride_columns]
                    else:
                        for q in range(lo, hi):
                            run, seen = x[start:], line_of[q * samples :]
                            for k in range(0, whole, 4):  # too few for a loop in lanes to pay
                                r0, r1, r2, r3 = run[k], run[k + 1], run[k + 2], run[k + 3]
                                seen[k], seen[k + 1], seen[k + 2], seen[k + 3] = r0, r1, r2, r3
                            for k in range(whole, samples):
                                seen[k] = run[k]
                            start += stride_columns * samples


@outlined
def fold(x, columns, samples, top, rows, left, positions, sizes):
    """Add columns back to where ``unfold`` takes them from."""
    height, width, kernel_rows, kernel_columns = sizes[2], sizes[3], sizes[5], sizes[6]
    stride_rows, stride_columns = sizes[7], sizes[8]
    before_rows, before_columns = sizes[9], sizes[10]
    step_rows, step_columns = sizes[11], sizes[12]
    line, whole = positions * samples, samples - samples % 4
    for j in range(kernel_columns):
        shift = left * stride_columns + j * step_columns - before_columns
        lo, hi, first = inside(shift, stride_columns, positions, width)
        for i in range(kernel_rows):
            upper = top * stride_rows + i * step_rows - before_rows
            for c in range(sizes[1] // sizes[13]):
                at = ((c * kernel_rows + i) * kernel_columns + j) * rows * line
                for row in range(upper, upper + rows * stride_rows, stride_rows):
                    line_of = columns[at + lo * samples : at + hi * samples]
                    at += line
                    if row < 0 or row >= height:
                        continue
                    start = ((c * height + row) * width + first) * samples
                    if stride_columns == 1:
                        run = x[start:]
                        for k in range(line_of.size):
                            run[k] += line_of[k]
                    elif samples == 1:
                        run = x[start:]
                        for q in range(hi - lo):
                            run[q * stride_columns] += line_of[q]
                    else:
                        for q in range(hi - lo):
                            run, seen = x[start:], line_of[q * samples :]
                            for k in range(0, whole, 4):
                                s0, s1, s2, s3 = seen[k], seen[k + 1], seen[k + 2], seen[k + 3]
                                r0, r1, r2, r3 = run[k], run[k + 1], run[k + 2], run[k + 3]
                                run[k], run[k + 1] = r0 + s0, r1 + s1
                                run[k + 2], run[k + 3] = r2 + s2, r3 + s3
                            for k in range(whole, samples):
                                run[k] += seen[k]
                            start += stride_columns * samples


@device
def inside(shift, stride, positions, width):
    """The places ``lo <= q < hi`` with ``q * stride + shift`` inside the image; that for ``lo``."""
    lo = min(positions, max(0, -(shift // stride)))
    hi = min(positions, max(lo, (width - 1 - shift) // stride + 1))
    return lo, hi, lo * stride + shift


@device
def task_sizes(sizes, task):
    """The start of the arrays, and sizes, of a task: a block of samples of one group."""
    samples, channels, image, outputs = sizes[0], sizes[1], sizes[2] * sizes[3], sizes[4]
    groups, area, block = sizes[13], sizes[14] * sizes[15], sizes[16]
    group, first = task % groups, task // groups * block
    count = min(block, samples - first)
    group_channels, group_outputs = channels // groups, outputs // groups
    x_start = (first * channels + group * group_channels) * image
    y_start = (first * outputs + group * group_outputs) * area
    return group, count, group_channels, group_outputs, image, area, x_start, y_start


@device
def is_pointwise(sizes):
    """Whether the columns of a block are its inputs as they are."""
    return (
        sizes[5] * sizes[6] * sizes[7] * sizes[8] == 1
        and sizes[9] == sizes[10] == 0
        and sizes[14] == sizes[2]
        and sizes[15] == sizes[3]
        and sizes[17] >= sizes[14]
        and sizes[19] >= sizes[15]
    )


@outlined
def convolve(x, w, bias, out, sizes, task):
    """The output of one task."""
    group, count, channels, outputs, image, area, x_start, y_start = task_sizes(sizes, task)
    covered = channels * sizes[5] * sizes[6]
    rows_in_all, places_in_row, strip, segment = sizes[14], sizes[15], sizes[17], sizes[19]
    weights = w[group * outputs * covered : (group + 1) * outputs * covered]
    weights = weights.reshape(outputs, covered)
    length = channels * image
    largest = strip * segment * count
    alone = count == 1 and strip == rows_in_all and segment == places_in_row
    pointwise = is_pointwise(sizes)
    beside = np.empty(length * count if count > 1 else 0, x.dtype)
    if count > 1:
        interleave(x, x_start, sizes[1] * image, count, length, beside)
    inputs = beside if count > 1 else x[x_start : x_start + length]
    columns = np.empty(0 if pointwise else covered * largest, x.dtype)
    sums = np.empty(0 if alone else outputs * largest, x.dtype)
    y = out[y_start : y_start + outputs * area] if alone else sums
    for top in range(0, rows_in_all, strip):
        rows = min(strip, rows_in_all - top)
        for left in range(0, places_in_row, segment):
            breadth = min(segment, places_in_row - left)
            positions = rows * breadth
            across = positions * count
            if not pointwise:
                unfold(inputs, columns, count, top, rows, left, breadth, sizes)
            seen = inputs if pointwise else columns
            seen = seen[: covered * across].reshape(covered, across)
            multiply(weights, seen, y[: outputs * across].reshape(outputs, across))
            for o in range(outputs):
                extra = bias[group * outputs + o]
                line_of = y[o * across : (o + 1) * across]
                if alone:
                    for k in range(across):
                        line_of[k] += extra
                else:
                    start = y_start + o * area + top * places_in_row + left
                    separate(line_of, start, sizes[4] * area, count, positions, extra, out)


@outlined
def pull(mask, g, x, w, gx, gw, sizes, task):
    """Gradients of one task: for its inputs if 1 is in the mask, added for its weights if 2 is."""
    group, count, channels, outputs, image, area, x_start, y_start = task_sizes(sizes, task)
    covered = channels * sizes[5] * sizes[6]
    rows_in_all, places_in_row, strip, segment = sizes[14], sizes[15], sizes[17], sizes[19]
    first, last = group * outputs * covered, (group + 1) * outputs * covered
    length = channels * image
    largest = strip * segment * count
    alone = count == 1 and strip == rows_in_all and segment == places_in_row
    pointwise = is_pointwise(sizes)
    columns = np.empty(covered * largest if mask & 1 or not pointwise else 0, g.dtype)
    product = np.empty((outputs, covered) if mask & 2 else (0, 0), g.dtype)
    beside = np.empty(length * count if mask & 2 and count > 1 else 0, g.dtype)
    if mask & 2 and count > 1:
        interleave(x, x_start, sizes[1] * image, count, length, beside)
    inputs = beside if count > 1 else x[x_start : x_start + length]
    sums = np.empty(length * count if mask & 1 and count > 1 else 0, g.dtype)
    added = sums if count > 1 else gx[x_start : x_start + length]
    if mask & 1:
        for k in range(added.size):
            added[k] = 0
    together = np.empty(0 if alone else outputs * largest, g.dtype)
    y = g[y_start : y_start + outputs * area] if alone else together
    for top in range(0, rows_in_all, strip):
        rows = min(strip, rows_in_all - top)
        for left in range(0, places_in_row, segment):
            breadth = min(segment, places_in_row - left)
            positions = rows * breadth
            across = positions * count
            if not alone:
                for o in range(outputs):
                    start = y_start + o * area + top * places_in_row + left
                    line_of = together[o * across : (o + 1) * across]
                    interleave(g, start, sizes[4] * area, count, positions, line_of)
            pulled = y[: outputs * across].reshape(outputs, across)
            if mask & 2:
                if not pointwise:
                    unfold(inputs, columns, count, top, rows, left, breadth, sizes)
                seen = inputs if pointwise else columns
                multiply(pulled, seen[: covered * across].reshape(covered, across).T, product)
                total, flat = gw[first:last], product.reshape(outputs * covered)
                for k in range(flat.size):
                    total[k] += flat[k]
            if mask & 1:
                weights = w[first:last].reshape(outputs, covered)
                back = columns[: covered * across]
                multiply(weights.T, pulled, back.reshape(covered, across))
                fold(added, back, count, top, rows, left, breadth, sizes)
    if mask & 1 and count > 1:
        separate(added, x_start, sizes[1] * image, count, length, g.dtype.type(0), gx)


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
