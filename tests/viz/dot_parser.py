"""A parser of the DOT that we write: one statement a line, attributes in brackets."""

import re

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s\[\]="]+)|([\[\]=]))')
_ESCAPE = re.compile(r"\\(.)")


def _tokens(line):
    position, found = 0, []
    while position < len(line.rstrip()):
        match = _TOKEN.match(line, position)
        assert match, f"no DOT: {line[position:]!r}"
        quoted, word, mark = match.groups()
        found.append(mark or word or ("quoted", quoted))
        position = match.end()
    return found


def unescape(text):
    """What Graphviz shows for a label."""
    shown = _ESCAPE.sub(lambda m: {"n": "\n", "l": "\n"}.get(m[1], m[1]), text)
    return shown.replace("&amp;", "&")


def _attributes(tokens):
    assert tokens[0] == "["
    assert tokens[-1] == "]"
    inside, found = tokens[1:-1], {}
    for name, equals, value in zip(inside[::3], inside[1::3], inside[2::3], strict=True):
        assert equals == "="
        found[name] = unescape(value[1]) if isinstance(value, tuple) else value
    return found


def parse(text):
    """Attributes of the nodes by name, and the edges as (tail, head, attributes)."""
    lines = text.splitlines()
    assert lines[0] == "digraph {"
    assert lines[-1] == "}"
    nodes, edges = {}, []
    for line in lines[1:-1]:
        tokens = _tokens(line)
        if tokens[1:2] == ["->"]:
            rest = _attributes(tokens[3:]) if tokens[3:] else {}
            edges.append((tokens[0], tokens[2], rest))
        else:
            assert tokens[0] not in nodes
            nodes[tokens[0]] = _attributes(tokens[1:])
    nodes.pop("node")  # defaults
    assert {end for tail, head, _ in edges for end in (tail, head)} <= set(nodes)
    return nodes, edges


class Graph:
    """A parsed drawing, to be asked for labels and colours."""

    def __init__(self, drawing):
        self.nodes, self.edges = parse(drawing.source)

    def labels(self, colour):
        return sorted(n["label"] for n in self.nodes.values() if n["fillcolor"] == colour)

    def links(self, **attributes):
        """Pairs of labels of the edges that have just these attributes."""
        label = {name: node["label"] for name, node in self.nodes.items()}
        return sorted((label[a], label[b]) for a, b, given in self.edges if given == attributes)
