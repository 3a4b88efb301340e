"""Transforms of transforms of transforms, drawn at random, against nested dual numbers."""

import itertools
import random

import pytest

from tests.transforms.compositions import FUNCTIONS, TRANSFORMS, check

EAGER = [name for name in TRANSFORMS if name != "jit"]
PAIRS = list(itertools.product(EAGER, EAGER))


def drawn(seed, count, required=None):
    """Triples of transforms, the innermost first, each of a function."""
    draw = random.Random(seed)
    for _ in range(count):
        names = draw.choices(EAGER, k=3 if required is None else draw.choice((1, 2)))
        if required is not None:
            names.insert(draw.randrange(len(names) + 1), required)
        yield tuple(names), draw.choice(list(FUNCTIONS))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_transform(function):
    for name in EAGER:
        check((name,), function)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_pairs(part):
    for k, names in enumerate(PAIRS[part::10]):
        check(names, list(FUNCTIONS)[k % len(FUNCTIONS)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_three_of_them(seed):
    for names, function in drawn(seed, 12):
        check(names, function)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_compiled_at_some_level(seed):
    for names, function in drawn(seed, 2, "jit"):
        check(names, function)
