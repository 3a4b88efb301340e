"""Likelihood of aligned sequences on a tree: Felsenstein's pruning, general reversible rates."""

import numpy

SIZES = {"tiny": [3, 4], "small": [8, 100], "middle": [20, 1000], "large": [50, 5000]}
ARGNUMS = (0, 1, 2)


def tree(taxa):
    """The two children of each node that is no taxon, the root last."""
    draw, free, children = numpy.random.default_rng(0), list(range(taxa)), []
    while len(free) > 1:  # two nodes without a parent get one
        pair = [free.pop(draw.integers(len(free))) for _ in range(2)]
        free.append(taxa + len(children))
        children.append(pair)
    return children


def arguments(taxa, sites):
    """Logarithms of exchange rates, of frequencies, of branch lengths; bases of taxa and sites."""
    draw = numpy.random.default_rng(0)
    bases = numpy.eye(4)[draw.integers(0, 4, (taxa, sites))]
    lengths = numpy.log(0.1) + 0.3 * draw.normal(size=2 * taxa - 2)
    return draw.normal(size=6), 0.2 * draw.normal(size=4), lengths, bases


def program(library):
    np = library.np
    rows, columns = numpy.triu_indices(4, 1)
    pair = numpy.zeros((4, 4), int)
    pair[rows, columns] = pair[columns, rows] = numpy.arange(6)
    others = 1.0 - numpy.eye(4)

    def likelihood(rates, frequencies, lengths, bases):
        share = np.exp(frequencies) / np.sum(np.exp(frequencies))
        exchange = np.exp(rates)[pair] * others
        leaving = exchange @ share
        # symmetric by the roots of the frequencies: Q = R^-1 S R
        root = np.sqrt(share)
        symmetric = exchange * root[:, None] * root - np.diag(leaving)
        values, vectors = np.linalg.eigh(symmetric / np.sum(share * leaving))
        decay = np.exp(np.exp(lengths)[:, None] * values)
        moves = np.einsum("ik,bk,jk->bij", vectors / root[:, None], decay, vectors * root[:, None])

        nodes = [*bases]
        for a, b in tree(len(bases)):
            nodes.append((nodes[a] @ moves[a].T) * (nodes[b] @ moves[b].T))
        return np.sum(np.log(nodes[-1] @ share))

    return likelihood
