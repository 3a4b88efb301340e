"""``ng.load`` of files of ``torch.save``."""

import io
import pickle
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import numgrad as ng
from numgrad import nn


class _Name:
    """A name of PyTorch's in a pickle, and a call of it."""

    def __init__(self, module, name, *args):
        self.module, self.name, self.args = module, name, args

    def __call__(self):
        raise NotImplementedError


class _Pickler(pickle._Pickler):
    """Writes what PyTorch writes, after the description of its format."""

    def persistent_id(self, obj):
        if not isinstance(obj, tuple) or len(obj) != 4 or obj[0] != "storage":
            return None
        _, kind, key, count = obj
        return "storage", _Name("torch", kind), key, "cpu", count

    def reducer_override(self, obj):
        if isinstance(obj, _Name) and obj.args:
            return _Name(obj.module, obj.name), obj.args
        return NotImplemented

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, _Name) and not obj.args:
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        else:
            super().save(obj, save_persistent_id)


def _file(value, order=sys.byteorder, **storages):
    body, file = io.BytesIO(), io.BytesIO()
    _Pickler(body, 2).dump(value)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model/data.pkl", body.getvalue())
        archive.writestr("model/byteorder", order)
        for key, array in storages.items():
            archive.writestr(f"model/data/{key}", array.tobytes())
    file.seek(0)
    return file


def _tensor(kind, key, count, size, stride, offset=0, *more):
    storage = "storage", kind, key, count
    rebuild = "torch._utils", "_rebuild_tensor_v2"
    return _Name(*rebuild, storage, offset, size, stride, False, OrderedDict(), *more)


def _legacy_file(value, order=True, **storages):
    """A file as PyTorch wrote before 1.6."""

    class Pickler(_Pickler):
        def persistent_id(self, obj):
            pid = super().persistent_id(obj)
            return pid if pid is None else (*pid, None)

    file = io.BytesIO()
    for each in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": order}, value, list(storages)):
        Pickler(file, 2).dump(each)
    for array in storages.values():
        file.write(array.size.to_bytes(8, sys.byteorder) + array.tobytes())
    file.seek(0)
    return file


def test_files_from_before_archives():
    memory, complex_ = np.arange(6, dtype=np.float32), np.array([1 + 2j, 3j])
    state = {
        "weight": _tensor("FloatStorage", "a", 6, (3, 2), (1, 3)),
        "row": _tensor("FloatStorage", "a", 6, (3,), (1,), 3),
        "conj": _tensor("ComplexDoubleStorage", "b", 2, (2,), (1,), 0, {"conj": True}),
        "brain": _tensor("BFloat16Storage", "c", 1, (1,), (1,)),
    }
    brain = (np.array([1.5], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    file = _legacy_file(state, a=memory, b=complex_, c=brain)
    read = ng.load(file)
    assert read["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert read["conj"].tolist() == [1 - 2j, -3j]
    assert read["brain"].tolist() == [1.5]
    read["row"].fill_(7)
    assert read["weight"].tolist() == [[0, 7], [1, 7], [2, 7]]
    for damaged in (file.getvalue()[:-1], file.getvalue()[:60]):
        with pytest.raises(ng.NumgradValueError, match="cannot read"):
            ng.load(io.BytesIO(damaged))
    with pytest.raises(ng.NumgradValueError, match=r"may run code"):
        ng.load(_legacy_file({"a": _Name("os", "system", "true")}))


def test_states_are_read():
    memory = np.arange(6, dtype=np.float32)
    weight = _tensor("FloatStorage", "a", 6, (3, 2), (1, 3))
    state = {
        "weight": _Name("torch._utils", "_rebuild_parameter", weight, True, OrderedDict()),
        "row": _tensor("FloatStorage", "a", 6, (3,), (1,), 3),
        "half": _tensor("HalfStorage", "b", 2, (2,), (1,)),
        "brain": _tensor("BFloat16Storage", "c", 2, (2,), (1,)),
        "dtype": _Name("torch", "float64"), "size": _Name("torch", "Size", (3, 2)), "epoch": 4,
    }  # fmt: skip
    brain = np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16
    file = _file(state, a=memory, b=np.array([0.5, 3], np.float16), c=brain.astype(np.uint16))
    read = ng.load(file)
    assert isinstance(read["weight"], nn.Parameter)
    assert read["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert read["row"].tolist() == [3, 4, 5]
    assert np.shares_memory(read["row"].numpy(), read["weight"].detach().numpy())
    assert [read[name].dtype for name in ("half", "brain")] == [np.float32] * 2
    assert (read["half"].tolist(), read["brain"].tolist()) == ([0.5, 3], [1.5, -2])
    assert (read["dtype"], read["size"], read["epoch"]) == (np.float64, (3, 2), 4)
    layer = nn.Linear(3, 2, bias=False, dtype=np.float32)
    layer.load_state_dict({"weight": read["weight"].detach().T})
    assert layer(ng.ones((1, 3), np.float32)).tolist() == [[3, 12]]


def test_conjugates_that_are_not_computed_yet():
    memory = np.array([1 + 2j, 3])
    a = _tensor("ComplexDoubleStorage", "a", 2, (2,), (1,), 0, {"conj": True})
    b = _tensor("DoubleStorage", "b", 1, (1,), (1,), 0, {"neg": True})
    read = ng.load(_file([a, b], a=memory, b=np.array([2.0])))
    assert [x.tolist() for x in read] == [[1 - 2j, 3], [-2]]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (_file(_Name("os", "system", "true")), "names os.system, which may run code"),
        (_file({}, "big" if sys.byteorder == "little" else "little"), "endian"),
        (_file(_tensor("FloatStorage", "a", 2, (3,), (1,)), a=np.zeros(2, "f4")), "beyond"),
        (_file(_tensor("FloatStorage", "a", 2, (2,), (-1,)), a=np.zeros(2, "f4")), "beyond"),
        (_file(_tensor("FloatStorage", "a", 9, (9,), (1,)), a=np.zeros(2, "f4")), "damaged"),
        (_file(_tensor("FloatStorage", "z", 2, (2,), (1,))), "damaged"),
        (io.BytesIO(_file({}).getvalue()[:-30]), "cut off"),
        (io.BytesIO(_file([1] * 9).getvalue().replace(b"data.pkl", b"none.pkl")), "no data.pkl"),
    ],
)  # fmt: skip
def test_files_that_are_refused(file, message):
    file.seek(0)
    with pytest.raises(ng.NumgradValueError, match=message):
        ng.load(file)


def test_files_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    torch.save({"b": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "b.pt")
    ours = nn.Sequential(
        nn.Linear(3, 4, dtype=np.float32), nn.Tanh(), nn.Linear(4, 2, dtype=np.float32)
    )
    ours.load_state_dict(ng.load(tmp_path / "model.pt"))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = model(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(ng.asarray(x)).detach().numpy(), expected, rtol=1e-5)
    assert ng.load(tmp_path / "b.pt")["b"].tolist() == [1, 1]


def _written():
    x = ng.arange(6.0).reshape(2, 3)
    return {
        "x": x, "row": x[1], "transposed": x.T, "weight": ng.nn.Parameter(np.ones(2, np.float32)),
        "many": [1, 2.5, "text", None, (True, OrderedDict(n=3))], "dtype": np.dtype("int64"),
        "others": (1 + 2j, b"ab", {1, 2}),
    }  # fmt: skip


def _compare(loaded, library):
    for name in ("many", "others"):
        assert loaded[name] == _written()[name]
    assert isinstance(loaded["weight"], library.nn.Parameter)
    assert loaded["transposed"].tolist() == [[0, 3], [1, 4], [2, 5]]
    loaded["x"][1, 2] = 9.0
    assert loaded["row"].tolist() == [3, 4, 9]


def test_files_that_pytorch_reads(tmp_path):
    path = tmp_path / "state.pt"
    ng.save(_written(), path, format="torch")
    loaded = ng.load(path)
    assert loaded["dtype"] == np.int64
    _compare(loaded, ng)
    for wrong in (np.ones(2), np.float64(1), ng.nn.Linear(1, 1), ng.ones(1).astype(np.uint16)):
        with pytest.raises(TypeError, match="save: "):
            ng.save({"a": wrong}, path, format="torch")
    with pytest.raises(ValueError, match="'safetensors' or 'torch'"):
        ng.save({}, path, format="pickle")
    assert ng.load(path)["row"].tolist() == [3, 4, 5]


def test_pytorch_reads_them(tmp_path):
    torch = pytest.importorskip("torch")
    ng.save(_written(), tmp_path / "state.pt", format="torch")
    loaded = torch.load(tmp_path / "state.pt", weights_only=True)
    assert loaded["dtype"] is torch.int64
    _compare(loaded, torch)
