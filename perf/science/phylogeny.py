"""Likelihood of aligned sequences on a tree: Felsenstein's pruning, general reversible rates."""

import numpy

SIZES = {"tiny": [3, 4], "small": [8, 100], "middle": [20, 1000], "large": [50, 5000]}
ARGNUMS = (0, 1, 2)


def arguments(taxa, sites):
    """Logarithms of exchange rates, of frequencies, of branch lengths; bases; children of nodes."""
    draw = numpy.random.default_rng(0)
    free, children = list(range(taxa)), []
    while len(free) > 1:  # two nodes without a parent get one
        pair = [free.pop(draw.integers(len(free))) for _ in range(2)]
        free.append(taxa + len(children))
        children.append(pair)
    bases = numpy.eye(4)[draw.integers(0, 4, (taxa, sites))]
    lengths = numpy.log(0.1) + 0.3 * draw.normal(size=2 * taxa - 2)
    return draw.normal(size=6), 0.2 * draw.normal(size=4), lengths, bases, numpy.array(children)


def program(library):
    np = library.np
    rows, columns = numpy.triu_indices(4, 1)
    pair = numpy.zeros((4, 4), int)
    pair[rows, columns] = pair[columns, rows] = numpy.arange(6)
    others = 1.0 - numpy.eye(4)

    def likelihood(rates, frequencies, lengths, bases, children):
        taxa = bases.shape[0]
        share = np.exp(frequencies) / np.sum(np.exp(frequencies))
        exchange = np.exp(rates)[pair] * others
        leaving = exchange @ share
        # symmetric by the roots of the frequencies: Q = R^-1 S R
        root = np.sqrt(share)
        symmetric = exchange * root[:, None] * root - np.diag(leaving)
        values, vectors = np.linalg.eigh(symmetric / np.sum(share * leaving))
        decay = np.exp(np.exp(lengths)[:, None] * values)
        moves = np.einsum("ik,bk,jk->bij", vectors / root[:, None], decay, vectors * root[:, None])

        def join(nodes, which):
            parent, (a, b) = which
            below = (nodes[a] @ moves[a].T) * (nodes[b] @ moves[b].T)
            return library.with_row(nodes, parent, below), None

        nodes = np.concatenate([bases, np.zeros((taxa - 1, *bases.shape[1:]))])
        parents = numpy.arange(taxa, 2 * taxa - 1)
        nodes, _ = library.scan(join, nodes, (np.asarray(parents), children))
        return np.sum(np.log(nodes[-1] @ share))

    return likelihood
