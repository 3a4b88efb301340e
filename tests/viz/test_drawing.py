import stat
import webbrowser
import xml.etree.ElementTree as ET

import pytest

import numgrad as ng
from numgrad.viz import drawing as module


@pytest.fixture
def drawing(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return ng.viz.make_dot((ng.ones(2, requires_grad=True) * 2.0).sum())


def test_text(drawing):
    assert str(drawing) == drawing.source
    assert drawing.source.startswith("digraph {")
    assert repr(drawing) == "<Drawing of 5 boxes and 4 links>"


def test_jupyter_shows_the_picture(drawing):
    ET.fromstring(drawing.svg())
    assert drawing._repr_svg_() == drawing._repr_image_svg_xml() == drawing.svg()
    assert set(drawing._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}
    assert set(drawing._repr_mimebundle_(include={"image/svg+xml"})) == {"image/svg+xml"}
    assert set(drawing._repr_mimebundle_(exclude={"image/svg+xml"})) == {"text/plain"}


def test_render_writes_text_and_picture(drawing, tmp_path):
    assert drawing.format == "svg"
    path = drawing.render("net", directory=tmp_path / "new" / "pictures")
    assert path == str(tmp_path / "new" / "pictures" / "net.svg")
    folder = tmp_path / "new" / "pictures"
    assert sorted(file.name for file in folder.iterdir()) == ["net", "net.svg"]
    assert (folder / "net").read_text(encoding="utf-8") == drawing.source
    assert (folder / "net.svg").read_text(encoding="utf-8") == drawing.svg()


def test_defaults_are_attributes(drawing, tmp_path):
    drawing.directory, drawing.format = "out", "DOT"
    assert drawing.format == "dot"
    assert drawing.render(cleanup=True) == "out/graph.gv.dot"
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["graph.gv.dot"]
    assert (tmp_path / "out" / "graph.gv.dot").read_text() == drawing.source
    assert drawing.render("other", format="gv") == "out/other.gv"
    assert drawing.format == "dot"


def test_save_writes_the_text(drawing, tmp_path):
    assert drawing.save() == "graph.gv"
    assert drawing.save("a.dot", tmp_path / "b") == str(tmp_path / "b" / "a.dot")
    assert (tmp_path / "b" / "a.dot").read_text() == (tmp_path / "graph.gv").read_text()
    mode = stat.S_IMODE((tmp_path / "graph.gv").stat().st_mode)
    (tmp_path / "plain").touch()
    assert mode == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.parametrize("way", ["view", "render"])
def test_view_opens_the_picture(drawing, tmp_path, monkeypatch, way):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda uri: opened.append(uri) or True)
    path = drawing.view("net") if way == "view" else drawing.render("net", view=True)
    assert opened == [(tmp_path / "net.svg").as_uri()]
    assert path == "net.svg"


def test_without_a_viewer_the_error_says_where_the_picture_is(drawing, tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda uri: False)
    with pytest.raises(ng.NumgradRuntimeError, match=r"net\.svg; the file is written"):
        drawing.view("net")
    assert (tmp_path / "net.svg").exists()


def test_other_formats_need_graphviz(drawing, tmp_path, monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    with pytest.raises(ng.NumgradRuntimeError, match=r"'png' is made by .* install Graphviz"):
        drawing.render("net", format="png")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def program(monkeypatch, tmp_path_factory):
    """A program in place of dot, which repeats its arguments or fails on gif."""
    path = tmp_path_factory.mktemp("bin") / "dot"
    path.write_text(
        '#!/bin/sh\n[ "$1" = -Tgif ] && { echo "no gif here" >&2; exit 1; }\necho "$1"; cat\n'
    )
    path.chmod(0o755)
    monkeypatch.setattr(module.shutil, "which", lambda name: str(path))


@pytest.mark.skipif(
    not hasattr(stat, "S_ISVTX") or module.shutil.which("sh") is None, reason="no sh"
)
@pytest.mark.usefixtures("program")
def test_graphviz_gets_the_text(drawing, tmp_path):
    assert drawing.render("net", format="png") == "net.png"
    assert (tmp_path / "net.png").read_text() == "-Tpng\n" + drawing.source
    assert drawing.pipe("pdf").startswith(b"-Tpdf")
    with pytest.raises(ng.NumgradRuntimeError, match="failed to make 'gif': no gif here"):
        drawing.render("net", format="gif")
    assert not (tmp_path / "net.gif").exists()


@pytest.mark.parametrize("format", ["", "../x", "-o x", "p g", 3, None])
def test_a_format_is_a_word(drawing, format):
    with pytest.raises(ng.NumgradValueError, match="format: must be a word"):
        drawing.format = format
    assert drawing.format == "svg"
