"""``torch.save`` and ``torch.load``: files go between the face and PyTorch."""

import copy
import io
import pickle
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import numgrad.torch as ng_torch
from numgrad.torch import nn


def _file(library, value):
    file = io.BytesIO()
    library.save(value, file)
    file.seek(0)
    return file


def _state(library):
    x = library.arange(6.0).view(2, 3)
    return {
        "x": x, "transposed": x.t(), "row": x[1], "zero": library.tensor(3, dtype=library.int32),
        "complex": library.tensor([1 + 2j]), "mask": x > 2, "size": x.shape, "dtype": x.dtype,
        "nested": [1, 2.5, "text", None, (True, OrderedDict(a=x))],
        "parameter": library.nn.Parameter(library.ones(2)), "empty": library.zeros(0, 3),
        "device": library.device("cpu"), "bytes": b"ab",
        "conjugate": library.tensor([1 + 2j]).conj(),
        "negative": library.tensor([1 + 2j]).conj().imag,
    }  # fmt: skip


def _check(loaded, other):
    assert list(loaded) == list(other)
    for name in ("x", "transposed", "row", "zero", "complex", "mask", "parameter", "empty"):
        a, b = loaded[name], other[name]
        assert np.array_equal(a.detach().numpy(), b.detach().numpy())
        assert (str(a.dtype), a.stride(), a.requires_grad) == (
            str(b.dtype), b.stride(), b.requires_grad,
        )  # fmt: skip
    assert loaded["nested"][:4] == [1, 2.5, "text", None]
    assert tuple(loaded["size"]) == (2, 3)
    assert str(loaded["dtype"]) == "torch.float32"
    assert str(loaded["device"]) == "cpu"
    assert loaded["bytes"] == b"ab"
    assert loaded["conjugate"].tolist() == [1 - 2j]
    assert loaded["negative"].tolist() == [-2]
    loaded["x"][0, 1] = 7.0  # which the transposed one shows, as the one in the list
    assert loaded["transposed"][1, 0] == 7.0
    assert loaded["nested"][4][1]["a"][0, 1] == 7.0


def test_own_files():
    _check(ng_torch.load(_file(ng_torch, _state(ng_torch))), _state(ng_torch))


@pytest.mark.parametrize("to_torch", [True, False])
def test_files_between_libraries(to_torch):
    torch = pytest.importorskip("torch")
    source, target = (ng_torch, torch) if to_torch else (torch, ng_torch)
    loaded = target.load(_file(source, _state(source)), weights_only=True)
    assert isinstance(loaded["parameter"], target.nn.Parameter)
    _check(loaded, _state(target))


def test_files_from_before_archives():
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(_state(torch), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    _check(ng_torch.load(file), _state(ng_torch))


def test_files_that_one_trusts():
    value = {
        "list": defaultdict(list, a=[ng_torch.ones(2)]), "set": frozenset({1}), "range": range(3),
        "slice": slice(1, 2), "class": int, "error": KeyError, "counter": Counter("aab"),
    }  # fmt: skip
    loaded = ng_torch.load(_file(ng_torch, value), weights_only=False)
    assert loaded.pop("list")["a"][0].tolist() == [1, 1]
    assert loaded == {name: each for name, each in value.items() if name != "list"}
    assert ng_torch.load(_file(ng_torch, Counter("aab"))) == Counter("aab")


def _check_arrays_and_numbers(reader):
    value = {"array": np.arange(3.0), "number": np.float64(2.5), "integer": np.int32(7),
             "dtype": np.dtype("f4"), "x": ng_torch.ones(2)}  # fmt: skip
    loaded = reader.load(_file(ng_torch, value), weights_only=False)
    assert loaded["array"].dtype == np.float64
    assert loaded["array"].tolist() == [0.0, 1.0, 2.0]
    assert type(loaded["number"]) is np.float64
    assert (loaded["number"], loaded["integer"]) == (2.5, 7)
    assert loaded["dtype"] == np.float32
    assert loaded["x"].tolist() == [1.0, 1.0]


def test_arrays_and_numbers_of_numpy():
    _check_arrays_and_numbers(ng_torch)


def test_arrays_and_numbers_that_pytorch_reads():
    torch = pytest.importorskip("torch")
    _check_arrays_and_numbers(torch)


def test_states_of_generators():
    state = ng_torch.get_rng_state()
    first = ng_torch.rand(3).tolist()
    ng_torch.set_rng_state(ng_torch.load(_file(ng_torch, state)))
    assert ng_torch.rand(3).tolist() == first
    with pytest.raises(RuntimeError, match=r"set_rng_state: needs .* of shape .5056,.*manual_seed"):
        ng_torch.set_rng_state(ng_torch.zeros(5056, dtype=ng_torch.uint8))  # PyTorch's


class _Code:
    def __reduce__(self):
        return print, ("this ran",)


def test_no_code_runs(capsys):
    file = _file(ng_torch, {"a": _Code()})
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        ng_torch.load(file)
    assert capsys.readouterr().out == ""


def test_what_is_no_such_file(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(b"no archive")
    with pytest.raises(RuntimeError, match="no zip archive"):
        ng_torch.load(path)


def test_a_failed_save_leaves_the_file(tmp_path):
    path = tmp_path / "a.pt"
    ng_torch.save({"a": 1}, path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        ng_torch.save({"a": lambda: None}, path)
    with pytest.raises(TypeError, match="no Tensors of uint16"):
        ng_torch.save(ng_torch.ones(2, dtype=ng_torch.uint16), path)
    assert ng_torch.load(path) == {"a": 1}


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_modules(twin):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    other = twin(model)
    x = ng_torch.randn(4, 3)
    assert ng_torch.equal(model.eval()(x), other.eval()(x))
    other[0].weight.data.zero_()
    assert model[0].weight.abs().sum() > 0
    assert isinstance(other[0].weight, nn.Parameter)
