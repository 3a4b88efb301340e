import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest

from numgrad.diagrams import Box, Diagram, Link, to_dot, to_svg
from tests.viz.dot_parser import parse

SVG = "{http://www.w3.org/2000/svg}"

AWKWARD = [
    'quotes " and \\" and \\\\',
    "back\\slash\\",
    "\\N \\G \\n \\l",
    "<b>&amp; & ]]> <!-- -->",
    "a -> b; } ] =",
    "Gradienten für 重み \U0001f600",
    "",
    " two  spaces ",
]


def one(*lines, table=False):
    return Diagram([Box(tuple(lines), "orange", table)])


@pytest.mark.parametrize("text", AWKWARD)
@pytest.mark.parametrize("table", [False, True])
def test_any_text_is_a_label(text, table):
    diagram = one("first", text, table=table)
    root = ET.fromstring(to_svg(diagram))
    assert [line.text or "" for line in root.iter(f"{SVG}text")] == ["first", text]
    nodes, _ = parse(to_dot(diagram))
    assert nodes["n0"]["label"] == f"first\n{text}" + "\n" * table


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "￾"])
def test_characters_that_no_document_may_have_are_replaced(character):
    diagram = one(f"a{character}b")
    (text,) = ET.fromstring(to_svg(diagram).encode()).iter(f"{SVG}text")
    assert text.text == "a\N{REPLACEMENT CHARACTER}b"
    assert "\0" not in to_dot(diagram)
    to_dot(diagram).encode()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("text", AWKWARD[:6])
def test_graphviz_shows_the_same_label(text):
    made = subprocess.run(
        ["dot", "-Tsvg"], input=to_dot(one(text)).encode(), capture_output=True, check=True
    )
    root = ET.fromstring(made.stdout)
    assert " ".join(t.text for t in root.iter(f"{SVG}text")).split() == text.split()


def diagram():
    boxes = [
        Box((name,), colour)
        for name, colour in zip("abc", ("lightblue", "lightgrey", "darkolivegreen1"), strict=True)
    ]
    return Diagram(
        boxes, [Link(0, 1), Link(1, 2), Link(0, 2, dotted=True), Link(0, 1, arrow=False)]
    )


def test_boxes_lines_and_heads():
    root = ET.fromstring(to_svg(diagram()))
    assert root.tag == f"{SVG}svg"
    groups = root.findall(f"{SVG}g")
    assert [g.find(f"{SVG}title").text for g in groups] == ["a", "b", "c"]
    assert [g.find(f"{SVG}rect").get("fill") for g in groups] == [
        *("lightblue", "lightgrey", "#caff70"),
    ]
    paths = {path.get("class"): path for path in root.findall(f"{SVG}path")}
    assert paths["heads"].get("d").count("z") == 3
    assert paths["dotted"].get("stroke-dasharray")
    assert paths["lines"].get("d").count("M") == 3


def test_everything_is_inside_the_picture():
    root = ET.fromstring(to_svg(diagram()))
    left, top, width, height = map(float, root.get("viewBox").split())
    assert (float(root.get("width")), float(root.get("height"))) == (width, height)
    for rect in root.findall(f"{SVG}g/{SVG}rect"):
        x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert left < x
        assert x + w < left + width
        assert top < y
        assert y + h < top + height


def test_boxes_are_as_wide_as_their_text():
    def width(text):
        rect = ET.fromstring(to_svg(one(text))).find(f"{SVG}g/{SVG}rect")
        return float(rect.get("width"))

    assert width("a" * 40) > 40 * 6 > width("a" * 30)
    assert width("重み") == width("abcd")


def test_an_empty_diagram():
    ET.fromstring(to_svg(Diagram()))
    assert parse(to_dot(Diagram())) == ({}, [])
