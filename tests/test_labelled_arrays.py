"""Series, DataFrames and DataArrays as operands: their numbers count, labels stay outside."""

import numpy as np
import pytest

import numgrad as ng

NUMBERS = np.array([1.0, 2.0, 3.0])


def series():
    pandas = pytest.importorskip("pandas")
    return pandas.Series(NUMBERS, index=[10, 11, 12])


def nullable():
    pandas = pytest.importorskip("pandas")
    return pandas.Series([1, 2, 3], dtype="Int64")


def column():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": NUMBERS, "b": NUMBERS})["a"]


def data_array():
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(NUMBERS, dims="t", coords={"t": [5, 6, 7]})


def polars_series():
    polars = pytest.importorskip("polars")
    return polars.Series("a", NUMBERS)


KINDS = [series, nullable, column, data_array, polars_series]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_taken_and_labels_are_not(kind):
    labelled = kind()
    t = ng.tensor(NUMBERS + 1, requires_grad=True)
    for out in (
        t * labelled,
        ng.multiply(labelled, t),
        np.dot(t, labelled),
        ng.where(NUMBERS > 1.5, t, labelled),
        ng.concat([t, labelled]),
    ):
        assert type(out) is ng.Tensor
        t.grad = None
        out.sum().backward()
        assert type(t.grad) is ng.Tensor
    found = ng.grad(lambda x: ng.sum(x**2))(labelled)
    np.testing.assert_array_equal(found, 2 * NUMBERS)
    found = ng.grad(lambda w, x: ng.sum(w * x))(np.ones(3), labelled)
    np.testing.assert_array_equal(found, NUMBERS)
    assert ng.jit(lambda x: ng.sum(x * 2.0))(labelled) == 12.0
    x = ng.zeros(3)
    x[:] = labelled
    np.testing.assert_array_equal(x.numpy(), NUMBERS)


def test_frames_are_matrices():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": NUMBERS, "b": -NUMBERS})
    w = ng.tensor([1.0, 2.0], requires_grad=True)
    (ng.matmul(frame, w) * frame["a"]).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [14.0, -14.0])
    with pytest.raises(TypeError, match="not numeric"):
        ng.exp(pandas.Series(["a", "b"]))


def test_what_xarray_labels_is_a_tensor_still():
    x = ng.tensor(NUMBERS, requires_grad=True)
    out = np.sum(np.sin(data_array() * x).data)  # the left operand is xarray's, and keeps labels
    ng.sum(data_array() + x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(3))
    assert out.requires_grad


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(NUMBERS, [0, 1, 0])
    t = ng.zeros(3)
    for call in (
        lambda: ng.exp(masked),
        lambda: t * masked,
        lambda: ng.tensor(masked),
        lambda: ng.grad(ng.sum)(masked),
        lambda: ng.jit(lambda x: ng.sum(x))(masked),
        lambda: t.__setitem__(slice(None), masked),
        lambda: ng.append(t, masked),
    ):
        with pytest.raises(TypeError, match=r"masked array .*\.filled"):
            call()
