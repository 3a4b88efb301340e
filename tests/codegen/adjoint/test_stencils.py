"""Random stencils in time: all modes against exact derivatives of the plain function."""

import pytest

import numgrad as ng
from tests.codegen.adjoint.judge import judge
from tests.codegen.adjoint.programs import covering, features
from tests.codegen.adjoint.stencils import StencilWriter
from tests.codegen.adjoint.test_drawn_programs import truth_of

MANY = 600


def constructs(seed: int) -> set[str]:
    """What a stencil is made of, and its statements."""
    writer = StencilWriter(seed)
    stencil = writer.write()
    kinds = {writer.time, writer.dtype, f"{writer.axes} axes", f"reach {writer.reach}"}
    edges = {f"{edge} {axis}" for axis, edge in enumerate(writer.edges)}
    return {*kinds, *edges, f"long {stencil.shape[-1] > 100}", *features(stencil.text)}


def check(seed: int, save: str = "all") -> None:
    stencil = StencilWriter(seed).write()
    drawn = truth_of(stencil)
    if drawn is not None:
        function, arguments, truth, directions = drawn
        kernel = ng.kernel(function, writes=stencil.writes, save=save)
        tolerance = 2e-3 if stencil.single else 1e-9
        judge(kernel, truth, directions, arguments, tolerance=tolerance)


@pytest.mark.slow(cases=6)
@pytest.mark.parametrize("seed", covering(range(16), constructs))
def test_stencils_have_right_derivatives(seed):
    check(seed)


@pytest.mark.slow(cases=3)
@pytest.mark.parametrize("seed", covering(range(100, 108), constructs))
def test_stencils_with_checkpoints_have_right_derivatives(seed):
    check(seed, save="less")


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("first", range(1000, 1000 + MANY, 10))
def test_many_stencils_have_right_derivatives(first):
    for seed in range(first, first + 10):
        try:
            check(seed, save="less" if seed % 3 == 0 else "all")
        except Exception as error:
            error.add_note(f"seed {seed}\n{StencilWriter(seed).write().text}")
            raise
