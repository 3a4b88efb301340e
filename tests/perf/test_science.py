"""Programs of science have the gradients of differences, and hand-written ones the same."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numgrad as ng

FOLDER = Path(__file__).parents[2] / "perf/science"
PROGRAMS = ["gravity", "gru", "ising", "optics", "spline"]  # the first five compile little
PROGRAMS += sorted(
    {path.stem for path in FOLDER.glob("[a-z]*.py")} - {*PROGRAMS, "libraries", "byhand"}
)


@pytest.fixture
def science(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports a module of the folder, and forgets it afterwards: others may have such a name."""
    before, threads = set(sys.modules), ng.get_num_threads()
    monkeypatch.syspath_prepend(str(FOLDER))
    yield import_module
    ng.set_num_threads(threads)
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def check(name: str, science: Callable[[str], Any], convert: Callable) -> None:
    """Compare value and gradient with plain values and central differences of fourth order."""
    stated, library = science(name), science("libraries").for_numgrad()
    args, f = stated.arguments(*stated.SIZES["tiny"]), stated.program(library)
    with ng.no_grad():
        base = f(*args)
    value, gradients = convert(ng.value_and_grad(f, stated.ARGNUMS))(*args)
    np.testing.assert_allclose(value, base, rtol=1e-12)
    draw, total, scale = np.random.default_rng(1), 0.0, 0.0
    moves = {}
    for k, gradient in zip(stated.ARGNUMS, gradients, strict=True):
        moves[k] = ng.tree.map(lambda a: draw.normal(size=np.shape(a)), args[k])
        for g, v in zip(ng.tree.leaves(gradient), ng.tree.leaves(moves[k]), strict=True):
            total, scale = total + np.sum(g * v), scale + np.sum(np.abs(g * v))

    def along(h: float) -> Any:
        moved = list(args)
        for k, v in moves.items():
            moved[k] = ng.tree.map(lambda a, d: a + h * d, args[k], v)
        return f(*moved)

    h = 1e-4
    expected = (8 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12 * h)
    assert abs(total - expected) <= 1e-7 * scale


@pytest.mark.slow(cases=5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_differences(name: str, science: Callable[[str], Any]) -> None:
    check(name, science, lambda f: f)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs(name: str, science: Callable[[str], Any]) -> None:
    check(name, science, ng.jit)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", ["diffusion", "gravity", "ising"])
def test_programs_by_hand(
    name: str, science: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stated, byhand = science(name), science("byhand")
    for function, compiled in list(vars(byhand).items()):  # in Python: nothing is compiled
        if hasattr(compiled, "py_func"):
            monkeypatch.setattr(byhand, function, compiled.py_func)
    args = stated.arguments(*stated.SIZES["tiny"])
    value, gradients = getattr(byhand, name)(*args)
    f = stated.program(science("libraries").for_numgrad())
    wanted, expected = ng.value_and_grad(f, stated.ARGNUMS)(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for a, b in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
