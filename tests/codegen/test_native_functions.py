"""Functions of the kernel library, and what formulas spell, natively: the bits that Numba gives."""

import importlib

import numpy as np
import pytest

from tests.codegen.differential import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    Case,
    by_native,
    by_numba,
    differences,
    elementary,
    grid,
    spelled_case,
)

REAL = elementary()
OF_COMPLEX = elementary(real=False)


def check(case: Case, given: list[np.ndarray] | None = None) -> None:
    given = grid(case.inputs) if given is None else given
    expected = np.empty(len(given[0]), case.output)
    by_numba(case)(*given, expected)
    for plain in (False, True):
        wrong = differences(case, by_native(case, plain), expected, given)
        assert not wrong, f"{case.name}{' with a branch' if plain else ''}: {wrong}"


@pytest.mark.slow(cases=4)
@pytest.mark.parametrize("case", REAL, ids=lambda case: case.name)
def test_a_function_of_floats_has_numba_s_bits(case):
    check(case)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("case", OF_COMPLEX, ids=lambda case: case.name)
def test_a_function_of_complex_numbers_has_numba_s_bits(case):
    check(case)
