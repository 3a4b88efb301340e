"""Pieces on Dask: its arrays stay where they are, tasks of lost workers are done again."""

import warnings

import numpy as np
import pytest

import numgrad as ng
from tests.parallel.functions import squares

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 4)), RNG.normal(size=20)
W = {"a": RNG.normal(size=4), "b": np.float64(0.5)}


@pytest.fixture(scope="module")
def client():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own sockets
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_arrays_and_blocks_give_the_same_bits(client):
    here = ng.parallel.value_and_grad(squares, chunks=[6, 6, 6, 2])(W, X, Y)
    there = ng.parallel.value_and_grad(squares, client, chunks=[6, 6, 6, 2])(W, X, Y)
    blocks = da.from_array(X, chunks=(6, 3)), da.from_array(Y, chunks=6)
    kept = client.persist(blocks)
    found = ng.parallel.value_and_grad(squares, client)(W, *kept)
    mixed = ng.parallel.value_and_grad(squares, client)(W, X, blocks[1])
    for other in (there, found, mixed):
        assert here[0].tobytes() == other[0].tobytes()
        assert here[1]["a"].tobytes() == other[1]["a"].tobytes()
    rows = ng.parallel.map(lambda row, factor: factor * row.sum(), blocks[0], client, factor=2.0)
    np.testing.assert_allclose(rows, 2 * X.sum(axis=1))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_errors_and_what_does_not_fit(client):
    blocks, other = da.from_array(X, chunks=(6, 4)), da.from_array(Y, chunks=5)
    parallel = ng.parallel.value_and_grad
    with pytest.raises(ng.NumgradValueError, match="rechunk"):
        parallel(squares, client)(W, blocks, other)
    with pytest.raises(ng.NumgradValueError, match="leave chunks= out"):
        parallel(squares, client, chunks=3)(W, blocks, Y)
    with pytest.raises(ng.NumgradTypeError, match="client of Dask"):
        parallel(squares)(W, blocks, Y)
    with pytest.raises(ng.NumgradValueError, match="unknown length"):
        parallel(squares, client)(W, blocks[blocks[:, 0] > 0], Y)

    def fails(w, x):
        raise LookupError("nothing")

    with pytest.raises(LookupError, match="nothing") as caught:
        parallel(fails, client, chunks=2)(1.0, X)
    assert "piece 0" in "".join(caught.value.__notes__)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("killed", [True])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_work_of_a_lost_worker_is_done_again(killed, tmp_path):
    first = tmp_path / "first"

    def dies_once(w, x):
        import os

        if x[0] == 6.0 and not first.exists():
            first.touch()
            os._exit(1)
        return np.sum(w * x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            x = np.arange(12.0)
            found = ng.parallel.value_and_grad(dies_once, client, chunks=4)(2.0, x)
            assert first.exists()
    assert tuple(map(float, found)) == (132.0, 66.0)
