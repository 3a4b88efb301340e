"""Functions of the kernel library, and what formulas spell, natively: the bits that Numba gives."""

import itertools

import numpy as np
import pytest

from numgrad.codegen.dtypes import type_name
from numgrad.codegen.tasks import LANES, LEAST_ROWS, MAX_TASKS, MOST_ROWS, TASK
from tests.codegen.differential import (
    BOOL,
    COMPLEX,
    EXACT,
    FLOATS,
    INTEGERS,
    Case,
    arguments,
    differences,
    elementary,
    functions,
    given_to,
    native_form,
    numba_form,
    same,
    spelled,
    steps,
)


def check(case: Case) -> None:
    given = given_to(case)
    expected = np.empty(len(given[0]), case.output)
    numba_form(case.source(), case.signature, case.externals)(*given, expected)
    check_against(case, expected, given)


def check_against(case: Case, expected: np.ndarray, given: list[np.ndarray]) -> None:
    for plain in (False, True):
        function = native_form(case.source(plain), case.signature, case.externals)
        wrong = differences(case, function, expected, given)
        assert not wrong, f"{case.name}{' with a branch' if plain else ''}: {wrong}"


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("case", elementary(), ids=lambda case: case.name)
def test_a_function_of_floats_has_the_bits_of_numba(case):
    check(case)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("case", elementary(real=False), ids=lambda case: case.name)
def test_a_function_of_complex_numbers_has_the_bits_of_numba(case):
    check(case)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("case", steps(), ids=lambda case: case.name)
def test_a_step_of_a_reduction_has_the_bits_of_numba(case):
    check(case)


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("case", spelled(), ids=lambda case: case.name)
def test_what_the_emitter_spells_has_the_bits_of_numba(case):
    check(case)


@pytest.mark.slow(cases=8)
@pytest.mark.parametrize("case", functions(EXACT), ids=lambda case: case.name)
def test_what_the_emitter_spells_for_integers_has_the_bits_of_numpy(case):
    given = given_to(case)
    with np.errstate(all="ignore"):
        expected = getattr(np, case.name.split()[0])(*given)
    assert expected.dtype == case.output
    check_against(case, expected, given)


@pytest.mark.parametrize("step", ["sum", "either", "larger_complex", "maximum"])
def test_what_compiled_functions_put_together_has_the_bits_of_reductions(step):
    dtype = {"either": BOOL, "larger_complex": COMPLEX[0]}.get(step, FLOATS[0])
    imported = ", ".join(f"{kind}_{step}" for kind in ("finish", "join_rows", "join_few"))
    head = f"from numgrad.codegen.accumulation import {imported}\n\n"
    kind = type_name(dtype)
    finish = native_form(
        f"{head}def kernel(part, chunks, columns):\n    finish_{step}(part, chunks, columns, 1)\n",
        f"void({kind}[:,::1], int64, int64)",
    )
    few = native_form(
        f"{head}def kernel(part, chunks, columns):\n    join_few_{step}(part, chunks, columns)\n",
        f"void({kind}[:,::1], int64, int64)",
    )
    rows = native_form(
        f"{head}def kernel(part, chunks, columns, whole):\n"
        f"    join_rows_{step}(part, chunks, columns, whole)\n",
        f"void({kind}[:,::1], int64, int64, {kind}[::1])",
    )
    random = np.random.default_rng(0)
    for chunks, columns in itertools.product((2, 3, 9), (1, 3, 8, 33)):
        given = np.resize(arguments(dtype), (chunks + 1) * columns)
        expected = random.permutation(given).reshape(chunks + 1, columns)
        one, other = expected.copy(), expected.copy()
        whole = np.empty(columns, dtype)
        finish(expected, chunks, columns)
        few(one, chunks, columns)
        rows(other, chunks, columns, whole)
        assert same(expected[0], one[0]).all()
        assert same(expected[0], whole).all()


@pytest.mark.parametrize("unit", [1, LANES])
def test_tasks_cover_a_loop(unit):
    name = "cut" if unit == 1 else "cut_in_lanes"
    source = (
        f"from numgrad.codegen.tasks import least_step, {name}\n\n"
        "def kernel(total, inner, row, found):\n"
        f"    found[0], found[1] = {name}(total, least_step(inner, row))\n"
    )
    form = native_form(source, "void(int64, int64, int64, int64[::1])")
    for total, inner, row in itertools.product((0, 1, 4096, 10**7), (0, 1, 5, 10**6), (0, 3, 9999)):
        found = np.empty(2, np.int64)
        form(total, inner, row, found)
        step, tasks = found.tolist()
        least = -(-TASK // max(inner, 1))
        if row:  # a sum of so many elements in order is not longer, but pays for its row
            least = max(min(least, MOST_ROWS), -(-LEAST_ROWS * row // max(inner, 1)))
        assert step == -(-max(least, -(-total // MAX_TASKS)) // unit) * unit
        assert tasks == max(1, -(-total // step)) <= MAX_TASKS


FINISHING = [
    ("finish_sum", FLOATS),
    ("finish_add", [*INTEGERS[3:4], *COMPLEX]),
    ("finish_multiply", [*FLOATS, *COMPLEX]),
    ("finish_maximum", FLOATS),
    ("finish_minimum", FLOATS),
    ("finish_larger", INTEGERS[3:5]),
    ("finish_smaller", INTEGERS[3:5]),
    ("finish_larger_complex", COMPLEX),
    ("finish_smaller_complex", COMPLEX),
    ("finish_either", [BOOL]),
    ("finish_both", [BOOL]),
    ("spread", FLOATS),
]


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, dtypes in FINISHING for dtype in dtypes]
)
def test_partial_results_are_put_together_with_the_bits_of_numba(name, dtype):
    given = "part[0]" if name == "spread" else "part, chunks"
    source = (
        f"from numgrad.codegen.accumulation import {name} as {name}\n\n"
        f"def kernel(part, chunks, columns, fold):\n    {name}({given}, columns, fold)\n"
    )
    signature = f"void({type_name(dtype)}[:,::1], int64, int64, int64)"
    forms = native_form(source, signature), numba_form(source, signature)
    random = np.random.default_rng(0)
    for chunks, columns, fold in itertools.product((1, 2, 9), (1, 3, 8, 17, 33), (1, 2, 4)):
        shape = (2 * chunks, columns * fold)
        part = random.permutation(np.resize(arguments(dtype), shape).ravel()).reshape(shape)
        both = part.copy(), part.copy()
        for form, array in zip(forms, both, strict=True):
            form(array, chunks, columns, fold)
        assert same(*(array.ravel() for array in both)).all(), (chunks, columns, fold)
