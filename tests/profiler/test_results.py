"""What a profile shows: tables, pages, and files of trace events."""

import gzip
import json
import time
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

import numgrad as ng
from numgrad.profiler import exports, profile, record_function


@pytest.fixture(scope="module")
def trained():
    x = ng.tensor(np.ones((4, 3)), requires_grad=True)
    f = ng.jit(lambda x: np.tanh(x).sum())
    with profile(profile_memory=True) as p:
        for _ in range(2):
            with record_function("step <&> \x00"):
                (f(x) + (x * x).exp().sum()).backward()
    return p


def test_tables_are_sorted_and_cut(trained):
    for sort, key in {
        "self": lambda row: -row.self_ns, "total": lambda row: -row.total_ns,
        "mean": lambda row: -row.mean_ns, "calls": lambda row: -row.calls,
        "bytes": lambda row: -row.bytes, "peak": lambda row: -row.peak,
        "name": lambda row: row.name,
    }.items():  # fmt: skip
        rows = [row for row in trained.averages() if sort != "peak" or row.peak is not None]
        first = min(rows, key=key)
        values = [row.name for row in rows if key(row) == key(first)]
        assert trained.table(sort).splitlines()[1].startswith(tuple(v[:20] for v in values))
    lines = trained.table(rows=2).splitlines()
    assert len(lines) == 5
    assert lines[3].endswith("rows more")
    assert len(trained.table(rows=None).splitlines()) == len(trained.averages()) + 2
    assert str(trained) == trained.table()
    assert len(trained.averages(by_line=True)) >= len(trained.averages())
    whole = sum(row.self_ns for row in trained.averages())
    roots = sum(event.total_ns for event in trained.events() if event.parent is None)
    assert whole == roots  # nothing is counted twice


def test_tables_refuse_other_columns(trained):
    with pytest.raises(ng.NumgradValueError, match=r"'time'.*self"):
        trained.table("time")
    with pytest.raises(ng.NumgradValueError, match="rows=-1"):
        trained.table(rows=-1)
    with pytest.raises(ng.NumgradTypeError, match="rows"):
        trained.table(rows="all")


def test_empty_and_running_profiles():
    p = profile()
    assert p.events() == []
    assert "0.000 ms" in p.table()
    assert "<table>" in p._repr_html_()
    with p:
        assert "running" in repr(p)
        ng.exp(ng.ones(1))
        assert [event.name for event in p.events()] == ["exp"]
        ng.exp(ng.ones(1))
    assert len(p.events()) == 2
    assert "2 events" in repr(p)


def test_the_page_is_well_formed_and_widths_are_times(trained):
    root = ElementTree.fromstring(trained._repr_html_())
    svg = root.find("{http://www.w3.org/2000/svg}svg")
    assert svg is not None
    boxes = {
        (group[0].text or "").partition(":")[0]: float(group[1].attrib["width"]) for group in svg
    }
    total = sum(event.total_ns for event in trained.events() if event.parent is None)
    (row,) = (row for row in trained.averages() if row.kind == "range")
    assert boxes["range step <&> ?"] == pytest.approx(960 * row.total_ns / total, abs=0.02)
    assert len(root.findall(".//tbody/tr")) == min(40, len(trained.averages()))


def test_traces_of_ranks_make_one_file(trained, tmp_path, monkeypatch):
    group = pytest.importorskip("numgrad.distributed.group")
    paths = [tmp_path / name for name in ("a.json", "b.json.gz", "c.json")]
    hour = 3_600_000_000_000
    for rank, path in enumerate(paths):
        monkeypatch.setattr(group, "_default", SimpleNamespace(size=3, rank=rank))
        # a's machine and b's are one, whose clock was set a little; c began to count an hour later
        ahead = 7 * hour + (0, 1000, hour)[rank]
        monkeypatch.setattr(exports.time, "time_ns", lambda a=ahead: time.perf_counter_ns() + a)
        trained.export_chrome_trace(path)
    target = tmp_path / "all.json"
    ng.profiler.merge_traces(paths, target)
    events = json.loads(target.read_text())["traceEvents"]
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert named == {rank: f"numgrad, rank {rank}" for rank in range(3)}
    begins = [[e["ts"] for e in events if e["pid"] == rank and e["ph"] == "X"] for rank in range(3)]
    assert begins[0] == begins[1]
    np.testing.assert_allclose(np.subtract(begins[2], begins[0]), hour / 1e3, rtol=1e-6)
    ids = [e["id"] for e in events if e["ph"] == "s"]
    assert len(set(ids)) == len(ids) > 0
    paths[0].write_text("{}")
    with pytest.raises(ng.NumgradValueError, match=r"a\.json holds no trace"):
        ng.profiler.merge_traces(paths, target)
    with pytest.raises(ng.NumgradValueError, match="no file"):
        ng.profiler.merge_traces([], target)


@pytest.mark.parametrize("name", ["trace.json", "exports.json.gz"])
def test_traces_are_as_the_format_wants_them(trained, tmp_path, name):
    trained.export_chrome_trace(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    trace = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    events = trace["traceEvents"]
    needed = {"X": {"ts", "dur", "cat"}, "M": {"args"}, "C": {"ts", "args"}}
    needed |= {"s": {"ts", "id", "cat"}, "f": {"ts", "id", "cat"}}
    for event in events:
        assert {"ph", "name", "pid", "tid"} | needed[event["ph"]] <= set(event)
        assert type(event["pid"]) is type(event["tid"]) is int
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        assert event["ph"] != "C" or all(type(v) is int for v in event["args"].values())
        assert event["ph"] != "f" or event["bp"] == "e"
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {"numgrad", "MainThread"}
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == len(trained.events())
    spans = [(round(1e3 * e["ts"]), round(1e3 * (e["ts"] + e["dur"]))) for e in slices]
    for k, (begin, end) in enumerate(spans):  # of one thread they nest
        for first, last in spans[k + 1 :]:
            assert last <= begin or first >= end or (begin <= first and last <= end)
    flows = [e for e in events if e["ph"] in "sf"]
    assert len({e["id"] for e in flows}) * 2 == len(flows) > 0
    for begin, end in zip(flows[::2], flows[1::2], strict=True):
        assert (begin["ph"], end["ph"], begin["id"]) == ("s", "f", end["id"])
        assert begin["ts"] <= end["ts"]
        assert {begin["ts"], end["ts"]} <= {e["ts"] for e in slices}
