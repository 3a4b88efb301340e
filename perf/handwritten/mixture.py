"""ADBench's Gaussian mixture: log-likelihood with a Wishart prior, and its gradient.

``alphas`` (K,) are the weights' logarithms, ``means`` (K, d), ``icf`` (K, d + d (d - 1) / 2) the
inverse covariances' factors: logarithms of the diagonal, then what is below it, column by column.

A component's quadratic form is ``|L (x - mean)|**2``. Its derivative in L is L times the weighted
sum S of ``(x - mean) (x - mean).T``, so one pass over the samples sums S and the weighted
``x - mean``, and the products with L are taken once a component. Samples lie side by side in
vectors, in blocks that stay in cache for all components.
"""

from math import lgamma, log, pi

import numpy as np
from numba import njit, prange

from handwritten import INNER, SUMS
from numgrad.codegen.accumulation import no_inline
from numgrad.codegen.intrinsics import select
from numgrad.kernels.vmath.exponential import exp_f64
from numgrad.kernels.vmath.logarithm import log_f64

BLOCK = 128


@njit(**INNER, fastmath=SUMS)
def add_row(u, factors, x):
    """``u += factors @ x`` for one row of factors, up to eight at a time."""
    no_inline()
    left, j = factors.size, 0
    while left >= 8:
        f0, f1, f2, f3 = factors[j], factors[j + 1], factors[j + 2], factors[j + 3]
        f4, f5, f6, f7 = factors[j + 4], factors[j + 5], factors[j + 6], factors[j + 7]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        x4, x5, x6, x7 = x[j + 4], x[j + 5], x[j + 6], x[j + 7]
        for b in range(u.size):
            u[b] += ((f0 * x0[b] + f1 * x1[b]) + (f2 * x2[b] + f3 * x3[b])) + (
                (f4 * x4[b] + f5 * x5[b]) + (f6 * x6[b] + f7 * x7[b])
            )
        left, j = left - 8, j + 8
    if left >= 4:
        f0, f1, f2, f3 = factors[j], factors[j + 1], factors[j + 2], factors[j + 3]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for b in range(u.size):
            u[b] += (f0 * x0[b] + f1 * x1[b]) + (f2 * x2[b] + f3 * x3[b])
        left, j = left - 4, j + 4
    if left >= 2:
        f0, f1 = factors[j], factors[j + 1]
        x0, x1 = x[j], x[j + 1]
        for b in range(u.size):
            u[b] += f0 * x0[b] + f1 * x1[b]
        left, j = left - 2, j + 2
    if left >= 1:
        f0, x0 = factors[j], x[j]
        for b in range(u.size):
            u[b] += f0 * x0[b]


@njit(**INNER, fastmath=SUMS)
def centred(x, mean, out):
    """``out = x - mean``, one row a dimension."""
    no_inline()
    for i in range(mean.size):
        row, to, m = x[i], out[i], mean[i]
        for b in range(row.size):
            to[b] = row[b] - m


@njit(**INNER, fastmath=SUMS)
def log_density(xc, factor, constant, u, out):
    """``out = constant - |factor @ xc|**2 / 2`` for a block of samples."""
    no_inline()
    for b in range(out.size):
        out[b] = constant
    for i in range(factor.shape[0]):
        for b in range(u.size):
            u[b] = 0.0
        add_row(u, factor[i, : i + 1], xc)
        for b in range(u.size):
            out[b] -= 0.5 * u[b] * u[b]


@njit(**INNER)
def responsibilities(terms, top, totals):
    """Sum of the samples' log-likelihoods; ``terms`` become the components' shares."""
    no_inline()
    top[:] = terms[0]
    for k in range(1, terms.shape[0]):
        row = terms[k]
        for b in range(top.size):
            top[b] = select(row[b] > top[b], row[b], top[b])
    totals[:] = 0.0
    for k in range(terms.shape[0]):
        row = terms[k]
        for b in range(top.size):
            e = exp_f64(row[b] - top[b])
            row[b] = e
            totals[b] += e
    value = 0.0
    for b in range(top.size):
        top[b] += log_f64(totals[b])
        totals[b] = 1.0 / totals[b]
    for b in range(top.size):
        value += top[b]
    for k in range(terms.shape[0]):
        row = terms[k]
        for b in range(top.size):
            row[b] *= totals[b]
    return value


@njit(**INNER, fastmath=SUMS)
def add_moments(weight, xc, weighted, total, first, second):
    """Adds the block's ``sum(w)``, ``sum(w xc)`` and ``sum(w xc xc.T)``, its lower half."""
    no_inline()
    d = first.size
    for b in range(weight.size):
        total[0] += weight[b]
    for i in range(d):
        row, to = xc[i], weighted[i]
        s = 0.0
        for b in range(weight.size):
            to[b] = weight[b] * row[b]
            s += to[b]
        first[i] += s
    for i in range(0, d - d % 2, 2):
        w0, w1 = weighted[i], weighted[i + 1]
        j = 0
        while j + 4 <= i + 2:
            x0, x1, x2, x3 = xc[j], xc[j + 1], xc[j + 2], xc[j + 3]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
            for b in range(weight.size):
                a0 += w0[b] * x0[b]
                a1 += w0[b] * x1[b]
                a2 += w0[b] * x2[b]
                a3 += w0[b] * x3[b]
                b0 += w1[b] * x0[b]
                b1 += w1[b] * x1[b]
                b2 += w1[b] * x2[b]
                b3 += w1[b] * x3[b]
            second[i, j] += a0
            second[i, j + 1] += a1
            second[i, j + 2] += a2
            second[i, j + 3] += a3
            second[i + 1, j] += b0
            second[i + 1, j + 1] += b1
            second[i + 1, j + 2] += b2
            second[i + 1, j + 3] += b3
            j += 4
        while j <= i:
            x0, x1 = xc[j], xc[j + 1]
            a0 = a1 = b0 = b1 = 0.0
            for b in range(weight.size):
                a0 += w0[b] * x0[b]
                a1 += w0[b] * x1[b]
                b0 += w1[b] * x0[b]
                b1 += w1[b] * x1[b]
            second[i, j] += a0
            second[i, j + 1] += a1
            second[i + 1, j] += b0
            second[i + 1, j + 1] += b1
            j += 2
    if d % 2:
        w0 = weighted[d - 1]
        for j in range(d):
            x0, a0 = xc[j], 0.0
            for b in range(weight.size):
                a0 += w0[b] * x0[b]
            second[d - 1, j] += a0


@njit(**INNER)
def moments(x, means, factors, constants, total, first, second):
    """Sum of the samples' log-likelihoods; adds the moments they give to each component."""
    no_inline()
    K, d = means.shape
    room = np.empty((3, d * BLOCK))
    shares, u, top = np.empty(K * BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    value = 0.0
    for lo in range(0, x.shape[0], BLOCK):
        size = min(BLOCK, x.shape[0] - lo)
        # reshaped, not cut out of something wider: the rows' stride of 1 is then in their type
        block = room[0, : d * size].reshape(d, size)
        xc, wxc = room[1, : d * size].reshape(d, size), room[2, : d * size].reshape(d, size)
        terms = shares[: K * size].reshape(K, size)
        for i in range(d):
            row = block[i]
            for b in range(size):
                row[b] = x[lo + b, i]
        for k in range(K):
            centred(block, means[k], xc)
            log_density(xc, factors[k], constants[k], u[:size], terms[k])
        value += responsibilities(terms, top[:size], u[:size])
        for k in range(K):
            centred(block, means[k], xc)
            add_moments(terms[k], xc, wxc, total[k : k + 1], first[k], second[k])
    return value


@njit(**INNER)
def unpacked(alphas, icf, d):
    """The factors as matrices, and the components' constant terms."""
    no_inline()
    K = alphas.size
    factors, constants = np.zeros((K, d, d)), np.empty(K)
    for k in range(K):
        constants[k] = alphas[k]
        for i in range(d):
            factors[k, i, i] = exp_f64(icf[k, i])
            constants[k] += icf[k, i]
        at = d
        for j in range(d):
            for i in range(j + 1, d):
                factors[k, i, j] = icf[k, at]
                at += 1
    return factors, constants


@njit(**INNER, fastmath=SUMS)
def finished(alphas, icf, n, gamma, m, factors, value, total, first, second):
    """Value and gradients from the moments, constants and prior included."""
    no_inline()
    K, d = first.shape
    grad_alphas, grad_means, grad_icf = np.empty(K), np.empty((K, d)), np.empty(icf.shape)
    largest, mass = alphas.max(), 0.0
    for k in range(K):
        mass += exp_f64(alphas[k] - largest)
    value -= n * (largest + log_f64(mass)) + 0.5 * n * d * log(2 * pi)
    freedom = d + m + 1
    prior = freedom * d * (log(gamma) - 0.5 * log(2.0)) - 0.25 * d * (d - 1) * log(pi)
    for i in range(d):
        prior -= lgamma(0.5 * (freedom - i))
    value -= K * prior
    product = np.empty((d, d))
    v = np.empty(d)
    for k in range(K):
        factor, moment = factors[k], second[k]
        grad_alphas[k] = total[k] - n * exp_f64(alphas[k] - largest) / mass
        for i in range(d):
            for j in range(i):
                moment[j, i] = moment[i, j]
            s = 0.0
            for j in range(i + 1):
                s += factor[i, j] * first[k, j]
            v[i] = s
        for j in range(d):
            grad_means[k, j] = 0.0
        for i in range(d):
            row, to, out = factor[i], product[i], grad_means[k]
            for j in range(d):
                to[j] = -gamma * gamma * row[j]
                out[j] += row[j] * v[i]
            for q in range(i + 1):
                f, from_ = row[q], moment[q]
                for j in range(d):
                    to[j] += f * from_[j]
        for i in range(d):
            grad_icf[k, i] = total[k] - m - product[i, i] * factor[i, i]
            value += 0.5 * gamma * gamma * factor[i, i] * factor[i, i] - m * icf[k, i]
        at = d
        for j in range(d):
            for i in range(j + 1, d):
                grad_icf[k, at] = -product[i, j]
                value += 0.5 * gamma * gamma * factor[i, j] * factor[i, j]
                at += 1
    return value, (grad_alphas, grad_means, grad_icf)


@njit(**INNER)
def room(parts, K, d):
    """Zeros for the values and the moments of several parts."""
    return (
        np.zeros(parts),
        np.zeros((parts, K)),
        np.zeros((parts, K, d)),
        np.zeros((parts, K, d, d)),
    )


@njit(**INNER)
def joined(values, total, first, second):
    """The parts' sums."""
    for p in range(1, values.size):
        values[0] += values[p]
        total[0] += total[p]
        first[0] += first[p]
        second[0] += second[p]
    return values[0], total[0], first[0], second[0]


@njit(error_model="numpy")
def serial(alphas, means, icf, x, gamma=1.0, m=0):
    """Value and gradient in ``alphas, means, icf`` on one thread."""
    K, d = means.shape
    factors, constants = unpacked(alphas, icf, d)
    _, total, first, second = room(1, K, d)
    value = moments(x, means, factors, constants, total[0], first[0], second[0])
    return finished(
        alphas, icf, x.shape[0], gamma, m, factors, value, total[0], first[0], second[0]
    )


@njit(error_model="numpy", parallel=True)
def parallel(alphas, means, icf, x, gamma=1.0, m=0):
    """Value and gradient, the samples shared by two threads."""
    parts = 2
    K, d = means.shape
    factors, constants = unpacked(alphas, icf, d)
    values, total, first, second = room(parts, K, d)
    rows = -(-x.shape[0] // parts)
    for p in prange(parts):
        part = x[p * rows : min(p * rows + rows, x.shape[0])]
        values[p] = moments(part, means, factors, constants, total[p], first[p], second[p])
    value, sums, firsts, seconds = joined(values, total, first, second)
    return finished(alphas, icf, x.shape[0], gamma, m, factors, value, sums, firsts, seconds)
