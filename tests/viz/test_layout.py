from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import given, strategies as st

from numgrad.diagrams import (
    GAP_ACROSS,
    GAP_DOWN,
    Layered,
    crossings,
    lay_out,
    layer,
    order,
    place,
    ranks,
)


@st.composite
def graphs(draw):
    """Sizes of boxes, and edges that lead to boxes of higher number."""
    count = draw(st.integers(1, 14))
    sizes = draw(
        st.lists(st.sampled_from([(20.0, 10.0), (90.0, 40.0)]), min_size=count, max_size=count)
    )
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=25)) if pairs else []
    return sizes, [(a, b, draw(st.integers(0, 1))) for a, b in chosen]


@given(graphs())
def test_edges_lead_downwards_and_boxes_keep_apart(graph):
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    boxes = [
        (x - w / 2, x + w / 2, y - h / 2, y + h / 2)
        for (x, y), (w, h) in zip(layout.middles, sizes, strict=True)
    ]
    for a, b, _ in edges:
        assert boxes[a][3] + GAP_DOWN <= boxes[b][2] + 1e-9
    for one, other in combinations(boxes, 2):
        beside = one[1] + GAP_ACROSS <= other[0] + 1e-6 or other[1] + GAP_ACROSS <= one[0] + 1e-6
        assert beside or one[3] < other[2] or other[3] < one[2]
    assert min(box[0] for box in boxes) >= -1e-9
    assert max(box[1] for box in boxes) <= layout.width + 1e-9
    assert max(box[3] for box in boxes) <= layout.height + 1e-9


@given(graphs())
def test_every_edge_can_be_followed_from_box_to_box(graph):
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    for number, (a, b, kind) in enumerate(edges):
        x, y = layout.middles[a]
        reached = {(x, y + sizes[a][1] / 2)}
        ends = set()
        for piece in sorted(layout.pieces, key=lambda piece: (piece.start[1], piece.end[1])):
            if edges[piece.edge][2] == kind and piece.start in reached:
                (ends if piece.arrives else reached).add(piece.end)
        x, y = layout.middles[b]
        across, top = sizes[b][0] / 2, y - sizes[b][1] / 2
        assert any(abs(end[0] - x) <= across and end[1] == top for end in ends), number


@given(graphs())
def test_crossings_are_counted_right_and_never_more_than_at_first(graph):
    sizes, edges = graph
    found = layer(len(sizes), edges)

    def count(layers):
        at = {v: k for row in layers for k, v in enumerate(row)}
        total = 0
        for row in layers:
            ends = [(at[v], at[w]) for v in row for w in found.down[v]]
            total += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(ends, 2))
        return total

    ordered = order(found)
    assert crossings(found, found.layers()) == count(found.layers())
    assert crossings(found, ordered) == count(ordered) <= count(found.layers())
    assert [sorted(row) for row in ordered] == found.layers()


def test_two_twisted_ladders_are_untwisted():
    edges = [(0, 3, 0), (1, 2, 0), (2, 5, 0), (3, 4, 0)]
    graph = layer(6, edges)
    assert crossings(graph, graph.layers()) == 2
    assert crossings(graph, order(graph)) == 0


def test_origins_are_sorted_by_what_they_lead_to():
    graph = layer(5, [(0, 3, 0), (1, 4, 0), (2, 3, 0)])
    assert crossings(graph, graph.layers()) == 1
    assert crossings(graph, order(graph)) == 0


def test_boxes_are_near_where_they_are_used():
    # a chain of five; a leaf with its accumulator is used at its end
    chain = [(k, k + 1, 0) for k in range(5)]
    assert ranks(8, [*chain, (6, 7, 0), (7, 5, 0)]) == [0, 1, 2, 3, 4, 5, 3, 4]
    # what two leaves lead to goes down with them
    assert ranks(9, [*chain, (6, 8, 0), (7, 8, 0), (8, 5, 0)]) == [0, 1, 2, 3, 4, 5, 3, 3, 4]


def test_a_chain_is_straight_whatever_hangs_on_it():
    chain = [(k, k + 1, 0) for k in range(20)]
    side = [(21 + k, k + 1, 1) for k in range(20)]
    layout = lay_out([(60.0, 20.0)] * 41, [*chain, *side])
    assert len({round(x, 6) for x, _ in layout.middles[1:21]}) == 1
    assert layout.width < 3 * 60 + 2 * GAP_ACROSS


def test_long_edges_with_one_end_share_a_trunk_which_is_straight():
    count = 30
    chain = [(k, k + 1, 0) for k in range(count)]
    for edges in ([(0, k, 0) for k in range(3, count)], [(k, count, 0) for k in range(count - 3)]):
        graph = layer(count + 1, [*chain, *edges])
        bends = range(count + 1, len(graph.rank))
        assert len(bends) <= count
        x = place(graph, order(graph), [50.0] * len(graph.rank), 10.0)
        assert len({round(x[v], 6) for v in bends}) == 1
        for upper, lower in pairwise(sorted(bends, key=graph.rank.__getitem__)):
            assert lower in graph.down[upper]


@pytest.mark.parametrize("rows", [([2, 0, 3], [1, 4, 5]), ([0, 2, 3], [4, 1, 5])])
def test_trunks_stay_straight_where_another_edge_crosses(rows):
    # 0 -> 1 are boxes; 2 -> 4 and 3 -> 5 bends, between boxes that do not matter here
    down = [[1], [], [4], [5], [], []]
    up = [[], [0], [], [], [2], [3]]
    upper, lower = rows
    graph = Layered(2, [0, 1, 0, 0, 1, 1], up, down, {}, [])
    x = place(graph, [upper, lower], [50.0, 90.0, 2.0, 2.0, 2.0, 2.0], 10.0)
    assert x[2] == pytest.approx(x[4])
    assert x[3] == pytest.approx(x[5])


def test_too_many_bends_leave_the_longest_edges_straight(monkeypatch):
    monkeypatch.setattr("numgrad.diagrams.BENDS", 12)
    count = 12
    chain = [(k, k + 1, 0) for k in range(count - 1)]
    nested = [(k, count - 1 - k, 0) for k in range(4)]
    edges = [*chain, *nested]
    graph = layer(count, edges)
    assert graph.left_out == [12, 11]
    assert len(graph.rank) - count == 4 + 6
    layout = lay_out([(50.0, 20.0)] * count, edges)
    arriving = [piece for piece in layout.pieces if piece.edge in graph.left_out]
    assert len(arriving) == 2
    assert all(piece.arrives for piece in arriving)


def test_parallel_edges_arrive_side_by_side():
    layout = lay_out([(60.0, 20.0)] * 2, [(0, 1, 0), (0, 1, 0)])
    ends = sorted(piece.end for piece in layout.pieces)
    assert ends[1][0] - ends[0][0] == pytest.approx(12.0)
    assert (ends[0][0] + ends[1][0]) / 2 == pytest.approx(layout.middles[1][0])


def test_nothing_to_lay_out():
    layout = lay_out([], [])
    assert (layout.middles, layout.pieces, layout.width, layout.height) == ([], [], 0.0, 0.0)


def test_a_circle_is_refused():
    with pytest.raises(ValueError, match="circle"):
        lay_out([(10.0, 10.0)] * 2, [(0, 1, 0), (1, 0, 0)])


def test_thousands_of_boxes():
    random = Random(0)
    count = 2000
    edges = [(random.randrange(max(0, k - 40), k), k, 0) for k in range(1, count) for _ in "ab"]
    assert len(lay_out([(60.0, 20.0)] * count, edges).middles) == count
