"""Dynamic programmes, hidden states, trees."""

import math

import numpy as np
from numba import prange

from .cases import case


def _softmin(a, b, c, gamma):
    m = min(a, b, c)
    s = math.exp(-(a - m) / gamma) + math.exp(-(b - m) / gamma) + math.exp(-(c - m) / gamma)
    return m - gamma * math.log(s)


@case(lambda rng, n: (rng.normal(size=n), rng.normal(size=n + 3), 0.5), size=6, large=1000)
def soft_dtw(x, y, gamma):
    """Dynamic time warping with a soft minimum."""
    n, m = x.shape[0], y.shape[0]
    table = np.empty((n + 1, m + 1))
    for i in range(n + 1):
        for j in range(m + 1):
            table[i, j] = 1e10
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (x[i - 1] - y[j - 1]) ** 2
            table[i, j] = cost + _softmin(
                table[i - 1, j], table[i, j - 1], table[i - 1, j - 1], gamma
            )
    return table[n, m]


@case(lambda rng, n: (rng.normal(size=(n, n + 2)), 0.4), size=7, large=1500)
def smith_waterman(score, gap):
    """Local alignment by the hard maximum, two rows that are swapped."""
    n, m = score.shape
    above = np.zeros(m + 1)
    row = np.zeros(m + 1)
    best = 0.0
    for i in range(n):
        for j in range(m):
            h = max(0.0, above[j] + score[i, j], above[j + 1] - gap, row[j] - gap)
            row[j + 1] = h
            if h > best:
                best = h
        above, row = row, above
    return best


@case(lambda rng, n: (rng.normal(size=(n, n + 1)), 0.7, 0.8), size=6, large=800)
def needleman_wunsch(score, gap, temperature):
    """Global alignment with a soft maximum; every alignment's weight is in it."""
    n, m = score.shape
    f = np.zeros((n + 1, m + 1))
    for i in range(1, n + 1):
        f[i, 0] = -gap * i
    for j in range(1, m + 1):
        f[0, j] = -gap * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a = f[i - 1, j - 1] + score[i - 1, j - 1]
            b = f[i - 1, j] - gap
            c = f[i, j - 1] - gap
            top = max(a, max(b, c))
            total = math.exp((a - top) / temperature) + math.exp((b - top) / temperature)
            total += math.exp((c - top) / temperature)
            f[i, j] = top + temperature * math.log(total)
    return f[n, m]


@case(
    lambda rng, n: (
        rng.random((3, 3)) + 0.2,
        rng.random((3, 4)) + 0.2,
        rng.random(3) + 0.2,
        rng.integers(0, 4, n),
    ),
    size=8,
    large=100_000,
)
def hidden_markov(transition, emission, start, seen):
    """The forward algorithm with scaled rows: log-likelihood of what was seen."""
    states = start.shape[0]
    alpha = np.empty(states)
    new = np.empty(states)
    for s in range(states):
        alpha[s] = start[s] * emission[s, seen[0]]
    likelihood = 0.0
    for t in range(1, len(seen)):
        total = 0.0
        for s in range(states):
            total += alpha[s]
        for s in range(states):
            alpha[s] /= total
        likelihood += math.log(total)
        for s in range(states):
            new[s] = 0.0
            for r in range(states):
                new[s] += alpha[r] * transition[r, s]
            new[s] *= emission[s, seen[t]]
        alpha, new = new, alpha
    total = 0.0
    for s in range(states):
        total += alpha[s]
    return likelihood + math.log(total)


@case(lambda rng, n: (rng.normal(size=(n, 4)), rng.normal(size=(4, 4))), size=6, large=50_000)
def soft_viterbi(unary, pairwise):
    """Log-sum-exp over the paths of a chain, in place on one row, and the best path's score."""
    n, states = unary.shape
    score = unary[0].copy()
    best = unary[0].copy()
    for t in range(1, n):
        before = score.copy()
        hard = best.copy()
        for s in range(states):
            top = before[0] + pairwise[0, s]
            choice = 0
            for r in range(1, states):
                if before[r] + pairwise[r, s] > top:
                    top = before[r] + pairwise[r, s]
            for r in range(1, states):
                if hard[r] + pairwise[r, s] > hard[choice] + pairwise[choice, s]:
                    choice = r
            total = 0.0
            for r in range(states):
                total += math.exp(before[r] + pairwise[r, s] - top)
            score[s] = unary[t, s] + top + math.log(total)
            best[s] = unary[t, s] + hard[choice] + pairwise[choice, s]
    total = 0.0
    top = -np.inf
    for s in range(states):
        total += math.exp(score[s])
        top = max(top, best[s])
    return math.log(total), top


def _tree(rng, n):
    leaves = 5 if n < 100 else 32
    alive, left, right = list(range(leaves)), [], []
    while len(alive) > 1:
        for side in (left, right):
            side.append(alive.pop(rng.integers(len(alive))))
        alive.append(leaves + len(left) - 1)
    length = 0.05 + 0.2 * rng.random(2 * leaves - 1)
    return (
        np.array(left),
        np.array(right),
        length,
        rng.integers(0, 4, (n, leaves)),
        2.3,
        rng.random(n),
    )


@case(_tree, size=3, large=4000)
def pruning(left, right, length, tips, kappa, weight):
    """Felsenstein's pruning: likelihood of a tree under Kimura's model."""
    sites, leaves = tips.shape
    inner = left.shape[0]
    total = 0.0
    prob = np.empty((leaves + inner, 4, 4))
    for e in range(leaves + inner):
        t = length[e]
        beta = 1.0 / (kappa + 2.0)
        a = math.exp(-4.0 * beta * t)
        b = math.exp(-2.0 * beta * (kappa + 1.0) * t)
        for s in range(4):
            for r in range(4):
                if s == r:
                    prob[e, s, r] = 0.25 + 0.25 * a + 0.5 * b
                elif (s + r) % 2 == 0:
                    prob[e, s, r] = 0.25 + 0.25 * a - 0.5 * b
                else:
                    prob[e, s, r] = 0.25 - 0.25 * a
    for site in prange(sites):
        part = np.zeros((leaves + inner, 4))
        for k in range(leaves):
            part[k, tips[site, k]] = 1.0
        for k in range(inner):
            lo = left[k]
            hi = right[k]
            for s in range(4):
                one = 0.0
                two = 0.0
                for r in range(4):
                    one += prob[lo, s, r] * part[lo, r]
                    two += prob[hi, s, r] * part[hi, r]
                part[leaves + k, s] = one * two
        like = 0.0
        for s in range(4):
            like += 0.25 * part[leaves + inner - 1, s]
        total += weight[site] * math.log(like)
    return total


def _filter(rng, n):
    return (
        rng.normal(size=(n, 1)),
        np.array([[1.0, 0.1], [0.0, 0.95]]),
        np.array([1.0, 0.2]),
        0.05 + 0.1 * np.eye(2),
        0.4,
    )


@case(_filter, size=6, large=50_000)
def kalman(seen, f, h, q, r):
    """Log-likelihood of a linear state with noise: predict and correct, all as loops."""
    x = np.zeros(2)
    p = np.zeros((2, 2))
    p[0, 0] = 1.0
    p[1, 1] = 1.0
    likelihood = 0.0
    moved = np.empty(2)
    fp = np.empty((2, 2))
    gain = np.empty(2)
    for t in range(seen.shape[0]):
        for i in range(2):
            moved[i] = f[i, 0] * x[0] + f[i, 1] * x[1]
            for j in range(2):
                fp[i, j] = f[i, 0] * p[0, j] + f[i, 1] * p[1, j]
        for i in range(2):
            for j in range(2):
                p[i, j] = fp[i, 0] * f[j, 0] + fp[i, 1] * f[j, 1] + q[i, j]
        gap = seen[t, 0] - h[0] * moved[0] - h[1] * moved[1]
        spread = r
        for i in range(2):
            gain[i] = p[i, 0] * h[0] + p[i, 1] * h[1]
        for i in range(2):
            spread += h[i] * gain[i]
        for i in range(2):
            x[i] = moved[i] + gain[i] * gap / spread
        for i in range(2):
            for j in range(2):
                p[i, j] -= gain[i] * gain[j] / spread
        likelihood -= 0.5 * (math.log(2.0 * math.pi * spread) + gap * gap / spread)
    return likelihood
