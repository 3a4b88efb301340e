"""Random programs of loops: all modes against exact derivatives of the plain function."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import numgrad as ng
from tests.codegen.adjoint import hyperdual
from tests.codegen.adjoint.judge import exact, judge
from tests.codegen.adjoint.programs import Program, covering, features
from tests.codegen.adjoint.stencils import Stencil
from tests.codegen.adjoint.transforms import judge_transforms
from tests.codegen.adjoint.writer import Writer

MANY = 2000


def truth_of(program: Program | Stencil):
    """A program as function, arguments, exact derivatives along a direction; None near a tie."""
    function = program.function()
    written = [program.arguments.index(name) for name in program.writes]
    for attempt in range(3):
        arguments = program.draw(attempt)
        truth = exact(function, arguments, written, program.seed)
        if truth is not None:
            return function, arguments, *truth
    return None


def check(seed: int, small: bool, judge: Callable[..., None] = judge) -> bool:
    """Judge a program; whether it says something."""
    program = Writer(seed, small).write()
    drawn = truth_of(program)
    if drawn is None:
        return False
    function, arguments, truth, directions = drawn
    kernel = ng.kernel(function, writes=program.writes)
    judge(kernel, truth, directions, arguments, tolerance=2e-3 if program.single else 1e-9)
    return True


def constructs_of_small(seed: int) -> Counter[str]:
    """How often a small program uses each construct."""
    return features(Writer(seed, True).write().text)


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("seed", covering(range(24), constructs_of_small))
def test_small_programs_have_right_derivatives(seed):
    check(seed, small=True)


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("first", range(10_000, 10_000 + MANY, 20))
def test_programs_have_right_derivatives(first):
    for seed in range(first, first + 20):
        try:
            check(seed, small=False)
        except Exception as error:
            error.add_note(f"seed {seed}\n{Writer(seed).write().text}")
            raise


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("seed", range(20_000, 20_040))
def test_programs_in_compiled_functions_and_batches(seed):
    check(seed, small=seed % 2 == 0, judge=judge_transforms)


# the generator itself


def test_programs_are_the_same_for_the_same_seed():
    assert [Writer(s).write() for s in range(5)] == [Writer(s).write() for s in range(5)]
    assert len({Writer(s).write().text for s in range(100)}) == 100


EXPECTED = """
    prange while enumerate zip range range~from range~step If IfExp Break~in~range
    Break~in~while Continue~in~range Return~in~range Return~in~while swap~= chained~= Tuple~=
    Subscript~= Subscript~Add= Subscript~Sub= Subscript~Mult= Subscript~Div= Name~Add=
    Name~Sub= Name~Mult= Name~Div= element indirect~element slice And Or Not MatMult np.dot
    np.zeros np.empty np.ones np.full np.copy np.empty_like np.zeros_like .copy .T .shape
    .real .imag np.conj complex bend pair power nested nearest smooth max min abs int float
    len np.sign math.floor Mod Pow math.erf math.hypot math.atan2 loops~3 loops~4
"""


def test_programs_use_the_whole_language():
    """Of 400 programs each construct is in some."""
    seen: Counter[str] = Counter()
    for seed in range(400):
        seen.update(features(Writer(seed).write().text).keys())
    wanted = [word.replace("~", " ") for word in EXPECTED.split()]
    assert [word for word in wanted if seen[word] < 2] == []


def test_most_programs_say_something():
    """Few come near a tie, and outputs do depend on arguments."""
    usable = dependent = curved = 0
    for seed in range(60):
        drawn = truth_of(Writer(seed).write())
        if drawn is None:
            continue
        usable += 1
        _, _, truth, _ = drawn
        values = [np.max(np.abs(x)) for x in truth.gradients if x is not None]
        bends = [np.max(np.abs(x)) for x in truth.products if x is not None]
        assert np.isfinite(values).all()
        dependent += max(values) > 0.01
        curved += max(bends) > 0.01
    assert usable >= 40
    assert dependent >= 0.95 * usable
    assert curved >= 0.65 * usable


def _double(a):
    kinds = {"f": float, "c": complex}
    return a.astype(kinds.get(a.dtype.kind, a.dtype)) if isinstance(a, np.ndarray) else a


@pytest.mark.parametrize("seed", range(6))
def test_exact_derivatives_are_those_of_differences(seed):
    """Hyper-dual numbers against central differences of the plain function in double precision."""
    program = Writer(300 + seed).write()
    drawn = truth_of(program)
    if drawn is None:
        pytest.skip("near a tie")
    function, arguments, truth, directions = drawn
    arguments = [_double(a) for a in arguments]
    written = [program.arguments.index(name) for name in program.writes]

    def value(step):
        moved = [
            a + step * d if d is not None else np.array(a) if isinstance(a, np.ndarray) else a
            for a, d in zip(arguments, directions, strict=True)
        ]
        back = function(*moved)
        outputs = [] if back is None else list(back) if isinstance(back, tuple) else [back]
        outputs += [moved[k] for k in written]
        pairs = zip(truth.weights, outputs, strict=True)
        return sum(np.sum((np.conj(w) * out).real) for w, out in pairs)

    h = 1e-6
    wanted = (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h)
    seen = sum(
        np.sum((np.conj(g) * d).real)
        for g, d in zip(truth.gradients, directions, strict=True)
        if g is not None
    )
    assert seen == pytest.approx(wanted, rel=1e-6, abs=1e-7)
    shifted = [
        hyperdual.run(
            function,
            [
                a + s * h * d if d is not None else a
                for a, d in zip(arguments, directions, strict=True)
            ],
            written,
            truth.weights,
        ).gradients
        for s in (1, -1)
    ]
    for product, after, before in zip(truth.products, *shifted, strict=True):
        if product is not None:
            np.testing.assert_allclose(product, (after - before) / (2 * h), rtol=1e-5, atol=1e-6)
