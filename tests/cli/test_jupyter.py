"""HTML of what notebooks show, and the magics, in a session of IPython's that is none."""

import io
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

import numgrad as ng
from numgrad.progress import ProgressLine


class Session:
    """What ``load_ipython_extension`` gets, as far as the magics use it."""

    def __init__(self, **names):
        self.names, self.magics = names, {}

    def register_magic_function(self, function, kind, name):
        self.magics[name] = kind, function

    def ev(self, text):
        return eval(text, self.names)

    def run_cell(self, text):
        try:
            exec(compile(text, "<cell>", "exec"), self.names)
        except Exception:
            return SimpleNamespace(success=False)
        return SimpleNamespace(success=True)


def texts(html):
    """The texts of a piece of HTML, which is XML as well."""
    return [text.strip() for text in ElementTree.fromstring(html).itertext() if text.strip()]


@pytest.fixture
def session():
    session = Session(np=np, ng=ng)
    ng.load_ipython_extension(session)
    return session


def test_profile_of_a_cell(session, tmp_path):
    kind, magic = session.magics["ngprofile"]
    assert kind == "cell"
    path = tmp_path / "trace.json"
    shown = magic(f"--trace '{path}'", "x = ng.ones(3)\ny = np.exp(x)\nz = np.exp(y)\n")
    lines = [line for line in repr(shown).splitlines() if line.startswith("exp  ")]
    assert sorted(line.split()[-1] for line in lines) == ["<cell>:2", "<cell>:3"]
    assert " s in numgrad" in shown
    assert "exp" in texts(f"<div>{shown._repr_html_()}</div>")
    assert path.exists()
    shown = magic("--by-name", "z = np.exp(np.exp(x))")
    assert len([line for line in repr(shown).splitlines() if line.startswith("exp  ")]) == 1
    assert magic("", "1 / 0") is None
    with pytest.raises(ng.NumgradValueError, match=r"%%ngprofile: unrecognized arguments: --rows"):
        magic("--rows", "")


def test_report_of_a_compiled_function(session):
    kind, magic = session.magics["ngreport"]
    assert kind == "line"
    session.run_cell("fast = ng.jit(lambda x: np.sum(np.exp(x)))\nvalue = fast(np.ones(3))")
    report = magic("fast")
    assert report == session.ev("fast.report()")
    assert texts(report._repr_html_()) == [report.strip()]
    with pytest.raises(ng.NumgradTypeError, match=r"%ngreport: np is a module, which nothing comp"):
        magic("np")
    assert "fast" not in ng.__all__
    assert "function" in texts(ng.jit_stats()._repr_html_())


@pytest.mark.parametrize(
    ("shape", "first", "last"),
    [((3,), "tensor [3], float64", "1"), ((12, 2), "tensor [12, 2], float64", "1")],
)
def test_tables_of_tensors(shape, first, last):
    found = texts(ng.ones(shape)._repr_html_())
    assert found[0] == first
    assert found[-1] == last
    assert found.count("...") == (3 if shape[0] > 10 else 0)
    t = ng.ones(shape, dtype="float32").requires_grad_() * 1.5
    assert texts(t._repr_html_())[0].endswith("float32, grad_fn=<MultiplyBackward>")


@pytest.mark.parametrize("shape", [(), (0,), (2, 2, 2)])
def test_other_tensors_show_as_their_text(shape):
    t = ng.ones(shape)
    assert texts(t._repr_html_()) == [repr(t)]


def test_table_of_a_solution():
    result = ng.minimize(lambda p: (p["a"] - 1) ** 2, {"a": 0.0})
    found = texts(result._repr_html_())
    assert found[:3] == ["success", "True", "message"]
    assert str(result.x) in found


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("left_by", ["end", "break", "interrupt"])
def test_a_loop_ends_its_line(left_by):
    terminal = Terminal()
    bar = ng.data.progress([1.0, 2.0, 3.0], "training", stream=terminal)
    try:
        for item in bar:
            bar.note(loss=item)
            if item == 2.0 and left_by == "break":
                break
            if item == 2.0 and left_by == "interrupt":
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    text = terminal.getvalue()
    assert text.endswith("\n")
    assert text.count("\n") == 1
    last = text.split("\r")[-1]
    assert ("3/3" in last and "loss 3" in last) if left_by == "end" else "1/3" in last


def test_notebooks_clear_a_line_by_blanks(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("numgrad.progress.in_notebook", lambda: True)
    monkeypatch.setattr("sys.stdout", stream)
    line = ProgressLine()
    line.show("a long text", now=True)
    line.show("short", now=True)
    line.end()
    assert stream.getvalue() == "\ra long text\rshort      \r     \r"
