"""The posterior of a Gaussian mixture with a Wishart prior, and its gradient."""

import numpy as np
from scipy.special import multigammaln
from timing import timed

import numgrad as ng

NAMES = "alpha", "mu", "q", "l"


def read(message):
    parameters = {name: np.array(message[name]) for name in NAMES}
    return parameters, np.array(message["x"]), message["gamma"], message["m"]


def log_posterior(parameters, x, gamma, m):
    alpha, mu, q, below = (parameters[name] for name in NAMES)
    (n, d), k = x.shape, len(alpha)

    # square roots of the inverse covariances: exp(q) on the diagonal, l below it, by columns
    columns, rows = np.triu_indices(d, 1)
    root = ng.zeros((k, d, d))
    root[:, np.arange(d), np.arange(d)] = np.exp(q)
    root[:, rows, columns] = below

    logs = np.sum(q, axis=1)
    scaled = np.einsum("kij,nkj->nki", root, x[:, None] - mu)
    terms = alpha + logs - 0.5 * np.sum(scaled**2, axis=2)
    likelihood = np.sum(ng.logsumexp(terms, axis=1)) - n * ng.logsumexp(alpha)

    freedom = d + m + 1
    prior = np.sum(m * logs) - 0.5 * gamma**2 * np.sum(root**2)
    constant = k * (freedom * d * np.log(gamma / np.sqrt(2)) - multigammaln(0.5 * freedom, d))
    return likelihood + prior + constant - 0.5 * n * d * np.log(2 * np.pi)


value = ng.jit(log_posterior, static_argnums=(2, 3), dynamic=False)
slopes = ng.jit(ng.grad(log_posterior), static_argnums=(2, 3), dynamic=False)


@timed(read, float)
def objective(message):
    return value(*message)


@timed(read, lambda slopes: {name: slopes[name].tolist() for name in NAMES})
def jacobian(message):
    return slopes(*message)
