"""``ng.save`` and ``ng.load``."""

import io
import json
import os
import stat
import struct
import subprocess
import sys
from collections import OrderedDict, namedtuple
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import numgrad as ng
from numgrad import nn
from numgrad.io import safetensors
from numgrad.io.files import write_atomically
from numgrad.io.structure import pack


def saved(value):
    buffer = io.BytesIO()
    ng.save(value, buffer)
    return buffer.getvalue()


def loaded(content):
    return ng.load(io.BytesIO(content))


def round_trip(value):
    return loaded(saved(value))


def same(a, b):
    """Whether two values are equal bit by bit, with their types."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(
            same(pair, other) for pair, other in zip(a.items(), b.items(), strict=True)
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, ng.Tensor):
        return a.requires_grad == b.requires_grad and same(a._array, b._array)
    if isinstance(a, np.ndarray | np.generic):
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, complex):
        return same((a.real, a.imag), (b.real, b.imag))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return a == b


ELEMENTS = ("?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8", "c16")
ARRAYS = st.sampled_from(ELEMENTS).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
)
KEYS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=2).map(tuple),
    max_leaves=3,
)
SCALARS = KEYS | st.complex_numbers() | st.text(st.characters(), max_size=3)
TENSORS = hnp.arrays(np.float64, 2).flatmap(
    lambda a: st.booleans().map(lambda flag: ng.tensor(a, requires_grad=flag))
)
VALUES = st.recursive(
    SCALARS | ARRAYS | ARRAYS.map(lambda a: a.reshape(-1)[0] if a.size else None) | TENSORS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=2).map(OrderedDict)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_comes_back_with_its_types(value):
    assert same(round_trip(value), value)


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 0.1),
        struct.unpack("d", b"\x01\0\0\0\0\0\xf8\xff")[0],  # a NaN with sign and payload
        *(2**53, -(2**53), 2**53 - 1, 10**5000, -1),
        *("\ud800", "\0", "é\U0001f600", ""),
        complex(float("nan"), -0.0),
        *(b"", bytes(range(256))),
        *(
            np.float16(0.1),
            np.bool_(True),
            np.uint64(2**64 - 1),
            np.complex128(1j),
            np.float64(-0.0),
        ),
        OrderedDict([("b", 1), ("a", 2)]),
        {1: "a", "1": "b", (1, ("x", None)): "c", 1.5: "d", None: "e", b"k": "f"},
        {"__metadata__": np.zeros(1), "__x": np.ones(1), "x": np.ones(2), "\ud800": np.ones(1)},
        {"a": {"b": np.zeros(1)}, "a.b": np.ones(2), "a.b#2": np.ones(3)},
        np.zeros((0, 3), np.complex128),
        np.array(1 + 2j),
        {10**5000: np.ones(1), (10**5000,): [np.ones(2)]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_easily_lost(value):
    assert same(round_trip(value), value)


def test_arrays_of_any_layout():
    base = np.arange(24.0).reshape(4, 6)
    for array in (base.T, base[::2, ::-1], np.asfortranarray(base), np.broadcast_to(1.0, (2, 2))):
        assert same(round_trip(array), np.ascontiguousarray(array))
    swapped = np.arange(3, dtype=">f8")
    assert same(round_trip(swapped), np.arange(3.0))
    back = round_trip(base)
    back += 1.0  # is the caller's, to write to
    assert back.flags.aligned


def test_nesting_of_any_depth():
    value = 1.0
    for _ in range(5000):
        value = [{"x": value}]
    depth, back = 0, round_trip(value)
    while back != 1.0:
        depth, back = depth + 1, back[0]["x"]
    assert depth == 5000


def test_tensors_keep_what_they_are():
    class_of = {
        ng.Tensor: ng.tensor([1.0, 2.0]),
        nn.Buffer: nn.Buffer(ng.zeros(1)),
        nn.Parameter: nn.Parameter([3.0]),
    }
    for kind, tensor in class_of.items():
        for flag in (False, True):
            back = round_trip(tensor.requires_grad_(flag))
            assert type(back) is kind
            assert back.requires_grad == flag
            assert back.is_leaf
            assert back.grad is None
    result = round_trip(ng.ones(2, requires_grad=True) * 2.0)
    assert result.is_leaf
    assert result.requires_grad
    (result * 3.0).sum().backward()
    assert result.grad.tolist() == [3.0, 3.0]


def test_shared_objects_are_stored_once_and_shared_again():
    w, row, a = ng.ones(1000, requires_grad=True), [1.0], np.zeros(1000)
    content = saved(
        {"tied": (w, w), "detached": w.detach(), "rows": [row, row], "arrays": [a, a[:]]}
    )
    assert len(content) < 3 * 8000
    back = loaded(content)
    assert back["tied"][0] is back["tied"][1]
    assert back["rows"][0] is back["rows"][1]
    assert back["arrays"][0] is back["arrays"][1]
    detached = back["detached"]
    assert not detached.requires_grad
    assert np.shares_memory(detached.numpy(), back["tied"][0].detach().numpy())
    y = np.sin(back["tied"][0] * 1.0)
    detached += 1.0
    assert back["tied"][0]._version == 1
    del y


def test_shared_memory_of_parameters_is_checked_by_one_version():
    p = nn.Parameter([1.0, 2.0])
    q, d = round_trip((p, p.detach()))
    y = (q * q).sum()
    d.fill_(5.0)
    assert q.tolist() == [5.0, 5.0]
    with pytest.raises(ng.NumgradRuntimeError, match="version"):
        y.backward()


def test_memory_that_only_overlaps_is_stored_apart():
    x = ng.zeros(4)
    back = round_trip((x, x[:2], x[::2]))
    assert same(back, (ng.zeros(4), ng.zeros(2), ng.zeros(2)))
    assert not np.shares_memory(back[0].numpy(), back[1].numpy())


Point = namedtuple("Point", "x y")


class Module:
    def state_dict(self):
        return {}


class Flag(int):
    pass


def circle():
    value = {"a": []}
    value["a"].append(value)
    return value


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({"a": [1, {2: {3, 4}}]}, TypeError, r"obj\['a'\]\[1\]\[2\] is a builtins.set"),
        ((Point(1, 2),), TypeError, r"obj\[0\] is a .*Point; .*_asdict"),
        (Module(), TypeError, r"obj is a .*Module; save its state_dict\(\)"),
        ([lambda: 0], TypeError, r"obj\[0\] is a builtins.function"),
        ([Flag(1)], TypeError, r"obj\[0\] is a .*Flag"),
        (np.ma.array([1.0]), TypeError, "obj is a .*MaskedArray; a subclass"),
        ({"x": np.array(["a"])}, TypeError, r"obj\['x'\] has dtype <U1"),
        ([np.array([None])], TypeError, r"obj\[0\] has dtype object"),
        (np.datetime64("2020-01-01"), TypeError, "obj has dtype datetime64"),
        (np.longdouble(1), TypeError, "obj has dtype"),
        ({"d": {frozenset(): 1}}, TypeError, r"at obj\['d'\] has a key of type frozenset"),
        ({(1, (Flag(1),)): 1}, TypeError, "at obj has a key of type Flag"),
        ({ng.zeros(1): 1}, TypeError, "has a key of type Tensor"),
        (circle(), ValueError, r"the container at obj\['a'\]\[0\] contains itself"),
        (type("D", (OrderedDict,), {})(), TypeError, "obj is a .*D;"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_place(tmp_path, value, error, message):
    path = tmp_path / "old"
    path.write_text("old")
    with pytest.raises(error, match=f"^save: .*{message}") as caught:
        ng.save(value, path)
    assert isinstance(caught.value, ng.NumgradError)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["old"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 3)
        self.tied = self.second
        self.register_buffer("count", ng.tensor(7))

    def forward(self, x):
        return self.second(np.tanh(self.first(x)))


def steps(net, optimizer, count):
    x = ng.tensor(np.linspace(-1.0, 1.0, 12).reshape(4, 3))
    for _ in range(count):
        optimizer.zero_grad()
        ((net(x) - 0.5) ** 2).sum().backward()
        optimizer.step()
    return net.state_dict()


def test_training_goes_on_from_a_file_as_if_never_interrupted(tmp_path):
    net = Net()
    optimizer = ng.optim.Adam(net.parameters(), lr=0.1)
    state = steps(net, optimizer, 3)
    ng.save({"net": state, "optimizer": optimizer.state_dict()}, tmp_path / "a")
    kept = ng.load(tmp_path / "a")
    assert same(kept["net"], state)
    assert kept["net"]._metadata == state._metadata
    assert same(kept["optimizer"], optimizer.state_dict())
    assert np.shares_memory(*(kept["net"][f"{n}.weight"].numpy() for n in ("second", "tied")))

    other = Net()
    other.load_state_dict(kept["net"])
    again = ng.optim.Adam(other.parameters(), lr=0.5)
    again.load_state_dict(kept["optimizer"])
    assert same(steps(other, again, 3), steps(net, optimizer, 3))


def test_a_buffer_keeps_whether_it_persists():
    for persistent in (False, True):
        assert round_trip(nn.Buffer(ng.ones(2), persistent=persistent)).persistent is persistent


def test_attributes_of_an_ordered_dict_are_not_dropped_silently():
    value = OrderedDict(a=1)
    value.note = "x"
    with pytest.raises(TypeError, match=r"obj\[0\] has attributes \(note\)"):
        saved([value])


def test_a_header_longer_than_readers_accept(monkeypatch):
    monkeypatch.setattr(safetensors, "LONGEST_HEADER", 1000)
    with pytest.raises(ng.NumgradValueError, match="put numbers into arrays"):
        saved(list(range(1000)))


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize("kind", [str, Path, lambda path: os.fsencode(path)])
def test_paths(tmp_path, kind):
    path = kind(tmp_path / "a.safetensors")
    ng.save([1], path)
    assert ng.load(path) == [1]
    ng.save([2], path)
    assert ng.load(path) == [2]
    assert os.listdir(tmp_path) == ["a.safetensors"]


@pytest.mark.skipif(os.name != "posix", reason="Windows limits whole paths")
@pytest.mark.parametrize("name", ["f" * 240, "\u00fc" * 127])
def test_a_name_as_long_as_the_system_takes(tmp_path, name):
    ng.save({"x": np.arange(3.0)}, tmp_path / name)
    np.testing.assert_array_equal(ng.load(tmp_path / name)["x"], np.arange(3.0))
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_binary_files_that_may_not_seek(tmp_path):
    with open(tmp_path / "a", "w+b") as file:
        file.write(b"before")
        ng.save({"x": np.arange(3)}, file)
        file.seek(6)
        assert same(ng.load(file), {"x": np.arange(3)})
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        ng.save({"x": np.arange(3)}, file)
    with os.fdopen(reading, "rb") as file:
        assert same(ng.load(file), {"x": np.arange(3)})


def test_neither_path_nor_file():
    with pytest.raises(ng.NumgradTypeError, match="save: the file is a path or a binary file"):
        ng.save([1], 3)
    with pytest.raises(ng.NumgradTypeError, match=r"load: the file is .* got list"):
        ng.load([1])
    with pytest.raises(FileNotFoundError):
        ng.load("no such file")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    ng.save("old", path)

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ng.save("new", path)
    monkeypatch.undo()
    assert ng.load(path) == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_new_file_is_synced_before_it_takes_the_place_of_the_old(tmp_path, monkeypatch):
    done, sync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("sync"), sync(fd))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("replace"), replace(a, b))[1])
    write_atomically(tmp_path / "a", [b"1", b"2"])
    assert done[:2] == ["sync", "replace"]
    assert (tmp_path / "a").read_bytes() == b"12"


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_links_and_devices(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"")
    path.chmod(0o640)
    link.symlink_to(path)
    ng.save(1, link)
    assert link.is_symlink()
    assert ng.load(path) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    ng.save(1, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(OSError, match="directory"):
        ng.save(1, tmp_path)


# ------------------------------------------------------------------------------- damage

GOOD = saved({"weight": np.arange(6.0).reshape(2, 3), "step": np.int64(7), "lr": 0.125})


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "cut.safetensors"
    for length in range(len(GOOD)):
        path.write_bytes(GOOD[:length])
        with pytest.raises(ng.NumgradValueError, match=r"^load: cannot read .*cut\.safetensors: "):
            ng.load(path)
    with pytest.raises(ng.NumgradValueError, match="goes on after"):
        loaded(GOOD + b"\0")


def test_a_changed_byte_anywhere_is_noticed():
    padding = GOOD.index(b"}}", 8) + 2
    end = 8 + int.from_bytes(GOOD[:8], "little")
    for place in range(len(GOOD)):
        for change in (1, 0x80):
            changed = bytearray(GOOD)
            changed[place] ^= change
            if not padding <= place < end:
                with pytest.raises(ng.NumgradValueError):
                    loaded(bytes(changed))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes"),
        (b"PK\x03\x04" + bytes(100), "cut off|another format"),
        (b"\x80\x04\x95 pickle", "another format"),
        ((2**63).to_bytes(8, "little") + b"{}", "another format"),
        ((10**7).to_bytes(8, "little") + b"{}", "header of 10000000 bytes is cut off after 2"),
        ((2).to_bytes(8, "little") + b"[]", "not laid out"),
        ((2).to_bytes(8, "little") + b"\xff\xff", "no JSON"),
        ((20000).to_bytes(8, "little") + b"[" * 20000, "no JSON"),
    ],
)
def test_foreign_files(content, message):
    with pytest.raises(ng.NumgradValueError, match=message):
        loaded(content)


def file_with(entries, data=b"", metadata=None):
    """A file with a right digest whatever it says."""
    metadata = {"numgrad": '{"format":1,"root":1}'} if metadata is None else metadata
    digest = safetensors._hash(entries, metadata)
    digest.update(data)
    header = {"__metadata__": {**metadata, "digest": digest.hexdigest()}, **entries}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="U8", shape=(2,), offsets=(0, 2)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    "entries",
    [
        {"a": entry("F99")},
        {"a": entry("F64")},
        {"a": entry(shape=(-1, -2))},
        {"a": entry(shape=(2.0,))},
        {"a": entry(shape=(True, 2))},
        {"a": entry(shape=(1,) * 65 + (2,))},
        {"a": entry(shape=(2**40, 2**40), offsets=(0, 2**80))},
        {"a": entry(offsets=(1, 3))},
        {"a": entry(offsets=(0, 2, 2))},
        {"a": entry(), "b": entry()},
        {"a": entry(shape=(1,), offsets=(0, 1))},
        {"a": [1, 2]},
        {"a": {"dtype": ["U8"], "shape": [2], "data_offsets": [0, 2]}},
    ],
)
def test_every_number_of_a_header_is_checked(entries):
    with pytest.raises(ng.NumgradValueError, match="cannot read"):
        loaded(file_with(entries, b"12"))
    assert loaded(file_with({"a": entry()}, b"12", pack(None).metadata)) is None


@pytest.mark.parametrize(
    "structure",
    [
        *("", "1", "[]", "{}", '{"format":1}'),
        '{"format":2,"root":1,"containers":[],"tensors":[]}',
        *(
            json.dumps({"format": 1, "root": root, "containers": containers, "tensors": tensors})
            for root, containers, tensors in [
                ({"at": 0}, [], []),
                ({"at": 0}, [["list", [{"at": 0}]]], []),
                ({"at": 0}, [["set", []]], []),
                ({"at": 0}, [["dict", [[{"at": 0}]]]], []),
                ({"at": 1}, [["list", []], ["dict", [[{"at": 0}, 1]]]], []),
                ({"tensor": 0}, [], [["Tensor", "b", False]]),
                ({"tensor": 0}, [], [["Tensor", "a", True]]),
                ({"tensor": 0}, [], [["Module", "a", False]]),
                ({"array": "b"}, [], []),
                ({"scalar": ["a"]}, [], []),
                ({"float": "zz"}, [], []),
                ({"float": "00"}, [], []),
                ({"int": 5}, [], []),
                ({"eval": "1"}, [], []),
                ({"at": 0, "int": "1"}, [], []),
            ]
        ),
        '{"format":1,"root":1,"containers":[],"tensors":[],"complex128":["a"]}',
    ],
)
def test_a_hostile_structure_is_an_error(structure):
    content = file_with({"a": entry()}, b"12", {"numgrad": structure})
    with pytest.raises(ng.NumgradValueError, match=r"structure|format 2"):
        loaded(content)


def test_a_file_that_shrinks_while_it_is_read():
    class Shrinking(io.BytesIO):
        def read(self, size=-1):
            return super().read(size) if self.tell() < 200 else b""

    with pytest.raises(ng.NumgradValueError, match="became shorter"):
        ng.load(Shrinking(GOOD))


# ------------------------------------------------------------- other readers of the format


def test_the_layout_of_a_file():
    length = int.from_bytes(GOOD[:8], "little")
    header = json.loads(GOOD[8 : 8 + length])
    assert length % 8 == 0
    assert header["weight"] == {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]}
    assert header["step"] == {"dtype": "I64", "shape": [], "data_offsets": [48, 56]}
    assert GOOD[8 + length :] == np.arange(6.0).tobytes() + np.int64(7).tobytes()
    assert all(isinstance(text, str) for text in header["__metadata__"].values())


def test_the_safetensors_package_reads_the_arrays(tmp_path):
    reader = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    arrays = {
        f"{dtype}.{'x'.join(map(str, shape))}": np.ones(shape).astype(dtype)
        for dtype in ELEMENTS[:-1]
        for shape in ((), (3,), (2, 0), (2, 3))
    }
    ng.save({**arrays, "state": {"0": {"exp_avg": ng.ones(2)}}, "z": np.array([1 + 2j])}, path)
    found = reader.load_file(path)
    assert same(found.pop("state.0.exp_avg"), np.ones(2))
    assert same(found.pop("z"), np.array([[1.0, 2.0]]))
    assert set(found) == set(arrays)
    assert all(same(found[name], array) for name, array in arrays.items())


FOREIGN = {
    "scalar": np.float64(1.5), "empty": np.zeros((0, 3), np.int64), "w": np.ones((2, 3)),
    **{dtype: np.ones((2, 2)).astype(dtype) for dtype in ELEMENTS[:-1]},
}  # fmt: skip


def test_files_of_the_safetensors_package_become_dictionaries_of_tensors(tmp_path):
    package = pytest.importorskip("safetensors.numpy")
    arrays = {name: np.asarray(value) for name, value in FOREIGN.items()}
    package.save_file(arrays, tmp_path / "a", metadata={"format": "np", "digest": "0" * 64})
    found = ng.load(tmp_path / "a")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        wide = np.float32 if array.dtype == np.float16 else array.dtype
        assert type(found[name]) is ng.Tensor
        assert not found[name].requires_grad
        assert same(found[name].numpy(), array.astype(wide))
    # and back
    tensors = {k: v for k, v in found.items() if v.dtype != np.complex128}
    ng.save(tensors, tmp_path / "b")
    for name, array in package.load_file(tmp_path / "b").items():
        assert same(array, tensors[name].numpy())


def test_files_of_torch_become_dictionaries_of_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    package = pytest.importorskip("safetensors.torch")
    every = torch.arange(256, dtype=torch.uint8)
    state = torch.nn.Linear(3, 2).state_dict()
    tensors = {
        **state,
        "bfloat16": torch.tensor([1.0, -0.1, 1e30, np.inf, np.nan], dtype=torch.bfloat16),
        "half": torch.tensor([0.1, 65504.0], dtype=torch.float16),
        "e4m3": every.view(torch.float8_e4m3fn),
        "e5m2": every.clone().view(torch.float8_e5m2),
    }  # fmt: skip
    package.save_file(tensors, tmp_path / "a")
    found = ng.load(tmp_path / "a")
    for name, tensor in tensors.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name].numpy(), tensor.float().numpy())
    model = nn.Linear(3, 2)
    model.load_state_dict({name: found[name] for name in state})
    np.testing.assert_allclose(model.weight.detach().numpy(), state["weight"].numpy())


def foreign(entries, data=b""):
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_arguments_of_torch_are_accepted_where_they_mean_nothing(tmp_path):
    ng.save({"x": 1}, tmp_path / "a")
    assert ng.load(tmp_path / "a", map_location="cpu", weights_only=True) == {"x": 1}
    with pytest.raises(ng.NumgradValueError, match="on the CPU"):
        ng.load(tmp_path / "a", "cuda:0")


def test_files_of_others_with_what_is_not_read_are_refused():
    assert loaded(foreign({})) == {}
    with pytest.raises(ng.NumgradValueError, match=r"'x' has dtype F4, which is not read"):
        loaded(foreign({"x": entry("F4")}, b"12"))
    with pytest.raises(ng.NumgradValueError, match="no possible shape"):
        loaded(foreign({"x": entry(shape=(2**62, 2**62, 0), offsets=(0, 0))}))
    nested = entry() | {"more": 1}
    for _ in range(300):
        nested["more"] = [nested["more"]]
    assert loaded(foreign({"x": nested}, b"12"))["x"].tolist() == [49, 50]


def test_bools_are_0_or_1_whatever_byte_they_were():
    for content in (
        foreign({"x": entry("BOOL")}, b"\0\7"),
        saved({"x": np.array([0, 7], np.uint8).view(bool)}),
    ):
        array = np.asarray(loaded(content)["x"])
        assert array.view(np.uint8).tolist() == [0, 1]


def shared_tuples(depth):
    key = ()
    for _ in range(depth):
        key = (key, key)
    return key


def test_keys_that_take_exponential_time_are_refused():
    containers = [["tuple", []]] + [["tuple", [{"at": k}, {"at": k}]] for k in range(60)]
    for last in (["dict", [[{"at": 60}, 1]]], ["OrderedDict", [[{"at": 60}, 1]]]):
        structure = {
            "format": 1,
            "root": {"at": 61},
            "containers": [*containers, last],
            "tensors": [],
        }
        content = file_with({"a": entry()}, b"12", {"numgrad": json.dumps(structure)})
        with pytest.raises(ng.NumgradValueError, match="keys that are tuples of tuples"):
            loaded(content)
    assert round_trip({shared_tuples(10): 1}) == {shared_tuples(10): 1}
    with pytest.raises(ng.NumgradValueError, match="keys that are tuples of tuples"):
        ng.save({"a": {shared_tuples(22): 1}}, io.BytesIO())
    value = shared_tuples(100)  # as a value it takes no time
    assert type(round_trip([value])[0]) is tuple


def test_bytes_that_are_referred_to_often_are_there_once():
    value = bytes(10**6)
    structure = {"format": 1, "containers": [["list", [{"bytes": "a"}] * 10**4]], "tensors": []}
    structure |= {"root": {"at": 0}}
    text = {"numgrad": json.dumps(structure)}
    found = loaded(file_with({"a": entry(shape=(10**6,), offsets=(0, 10**6))}, value, text))
    assert found[0] == value
    assert found[-1] is found[0]


def resigned(content, header):
    """A file with another header and a digest that fits it."""
    length = int.from_bytes(content[:8], "little")
    try:
        entries = json.loads(header)
        metadata = entries.pop("__metadata__")
        metadata.pop("digest", None)
        return file_with(entries, content[8 + length :], metadata)
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError, safetensors.Damage):
        return len(header).to_bytes(8, "little") + header + content[8 + length :]


@pytest.mark.parametrize("many", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_headers_changed_at_random_are_read_or_refused(many):
    rng = np.random.default_rng(0)
    good = saved({"w": ng.ones((2, 3)), (1, ("x",)): [np.arange(3), b"ab", 2**70, 1j, 0.5]})
    length = int.from_bytes(good[:8], "little")
    pieces = [
        b"0",
        b"9" * 20,
        b"-",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b"true",
        b"1e9",
        b"at",
        b"\\",
        b",",
    ]
    for _ in range(many):
        header = bytearray(good[8 : 8 + length])
        for _ in range(rng.integers(1, 4)):
            place = rng.integers(len(header))
            header[place : place + rng.integers(3)] = pieces[rng.integers(len(pieces))]
        for content in (
            len(header).to_bytes(8, "little") + bytes(header) + good[8 + length :],
            resigned(good, bytes(header)),
        ):
            with suppress(ng.NumgradError):
                loaded(content)


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path):
    script = (
        "import os, signal, sys, numgrad.io.files as f\n"
        "def chunks():\n"
        "    yield b'1'\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "f.write_atomically(sys.argv[1], chunks())\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "old")], check=False)
    assert len(os.listdir(tmp_path)) == 1

    def chunks():  # another writer in the same folder meanwhile
        yield b"1"
        assert len(os.listdir(tmp_path)) == 1
        write_atomically(tmp_path / "b", [b"2"])
        assert len(os.listdir(tmp_path)) == 2

    write_atomically(tmp_path / "a", chunks())
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_folder_that_is_missing_is_named_as_the_caller_did(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere") as raised:
        ng.save({"a": 1}, tmp_path / "nowhere" / "file.ng")
    assert raised.value.filename.endswith("file.ng")
