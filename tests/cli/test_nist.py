"""The shipped data files, their parser and the models."""

import re
from importlib import resources

import numpy as np
import pytest

import numgrad as ng
from numgrad.cli import nist
from numgrad.errors import NumgradError

TEXT = (resources.files("numgrad.cli.nist") / "Misra1a.dat").read_text(encoding="ascii")


def misra1a(b, x):
    return b[0] * (1 - np.exp(-b[1] * x))


def test_every_data_file_has_a_model_and_the_reverse():
    files = resources.files("numgrad.cli.nist").iterdir()
    assert sorted(f.name for f in files if f.name.endswith(".dat")) == sorted(
        f"{name}.dat" for name in nist.names()
    )


@pytest.mark.parametrize("name", nist.names())
def test_certified_parameters_give_the_certified_rss(name):
    problem = nist.load(name)
    residual = problem.residual(problem.certified)
    assert residual.shape == problem.y.shape
    assert residual @ residual == pytest.approx(problem.rss, rel=1e-10)


@pytest.mark.parametrize("name", nist.names())
def test_the_parts_of_a_problem_fit_together(name):
    problem = nist.load(name)
    assert problem.name == name
    assert all(start.shape == problem.certified.shape for start in problem.starts)
    assert problem.deviations.shape == problem.certified.shape
    assert (problem.deviations > 0).all()
    assert problem.x.shape[-1] == problem.y.size
    assert problem.x.dtype == problem.y.dtype == np.float64
    assert not np.array_equal(*problem.starts)


@pytest.mark.parametrize("name", nist.names())
def test_the_jacobian_of_every_model_agrees_with_complex_steps(name):
    problem = nist.load(name)
    b = problem.starts[1]
    steps = 1e-200j * np.eye(b.size)
    expected = np.stack([problem.model(b + s, problem.x).imag / 1e-200 for s in steps], axis=1)
    got = ng.jacobian(problem.residual)(b)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13 * abs(expected).max())


@pytest.mark.parametrize("name", nist.names())
def test_every_model_takes_tensors_and_gives_what_numpy_gives(name):
    problem = nist.load(name)
    b = problem.starts[1]
    got = problem.model(ng.tensor(b), problem.x)
    assert isinstance(got, ng.Tensor)
    np.testing.assert_allclose(got.numpy(), problem.model(b, problem.x), rtol=1e-12)


def test_two_predictors_and_a_logarithm_of_the_response():
    nelson = nist.load("Nelson")
    assert nelson.x.shape == (2, 128)
    assert set(nelson.x[1]) == {180.0, 225.0, 250.0, 275.0}
    assert nelson.y[0] == np.log(15.0)


def test_values_are_read_from_the_right_columns():
    problem = nist.parse(TEXT, misra1a)
    assert problem.formula == "y = b1*(1-exp[-b2*x])  +  e"
    np.testing.assert_array_equal(problem.starts[0], [500, 0.0001])
    np.testing.assert_array_equal(problem.starts[1], [250, 0.0005])
    np.testing.assert_array_equal(problem.certified, [2.3894212918e2, 5.5015643181e-4])
    np.testing.assert_array_equal(problem.deviations, [2.7070075241, 7.2668688436e-6])
    assert problem.rss == 1.2455138894e-1
    assert (problem.y[0], problem.x[0]) == (10.07, 77.6)
    assert (problem.y[-1], problem.x[-1]) == (81.78, 760.0)


@pytest.mark.parametrize(
    "variant",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.rstrip("\n"),
        TEXT + "\n\n\n",
        TEXT.replace("E0", "D0").replace("E+", "d+"),
        "\n\n" + TEXT.replace("Starting values", "Starting Values"),
    ],
    ids=["crlf", "no newline at the end", "blank lines", "Fortran exponents", "shifted lines"],
)
def test_layout_does_not_matter(variant):
    expected = nist.parse(TEXT, misra1a)
    got = nist.parse(variant, misra1a)
    np.testing.assert_array_equal(got.certified, expected.certified)
    np.testing.assert_array_equal(got.x, expected.x)
    np.testing.assert_array_equal(got.y, expected.y)


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (r"Dataset Name:", "Name:", "no dataset name"),
        (r"Model:", "Equation:", "no formula"),
        (r"  b2 =.*", "", "2 parameters stated, 1 rows"),
        (r"Residual Sum of Squares:.*", "", "no RSS"),
        (r"Data:   y .*", "", "no line 'Data: y x'"),
        (r"      10\.07E0.*\n", "", "14 observations stated, 13 found"),
        (r"      10\.07E0.*", "      10.07E0", "does not have 2 numbers"),
        (r"y = b1", "sqrt[y] = b1", "the model predicts"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(pattern, replacement, message):
    damaged = re.sub(pattern, replacement, TEXT, count=1)
    assert damaged != TEXT
    with pytest.raises(ValueError, match=message) as caught:
        nist.parse(damaged, misra1a)
    assert isinstance(caught.value, NumgradError)


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError, match="Misra9z"):
        nist.load("Misra9z")
