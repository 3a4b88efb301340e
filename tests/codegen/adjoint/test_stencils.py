"""Random stencils in time: all modes against exact derivatives of the plain function."""

import pytest

import numgrad as ng
from tests.codegen.adjoint.judge import exact, judge
from tests.codegen.adjoint.programs import covering, features
from tests.codegen.adjoint.stencils import StencilWriter

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
    function = stencil.function()
    written = ["ukw".index(name) for name in stencil.writes]
    for attempt in range(3):
        arguments = stencil.draw(attempt)
        truth = exact(function, arguments, written, seed)
        if truth is not None:
            kernel = ng.kernel(function, writes=stencil.writes, save=save)
            tolerance = 2e-3 if stencil.dtype == "f4" else 1e-9
            judge(kernel, truth[0], truth[1], arguments, tolerance=tolerance)
            return


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
