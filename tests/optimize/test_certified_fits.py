"""NIST's certified regression problems, by each of the ways to fit them, default settings."""

import numpy as np
import pytest

import numgrad as ng
from numgrad.cli import nist
from numgrad.cli.fit import digits_of_agreement


def check(problem, parameters, standard_errors):
    assert digits_of_agreement(parameters, problem.certified) >= 6
    assert digits_of_agreement(standard_errors, problem.deviations) >= 6


@pytest.mark.slow(cases=2)
@pytest.mark.parametrize("name", ["Thurber", "ENSO", *nist.names()])
@pytest.mark.parametrize("start", [0, 1])
def test_six_digits(name, start):
    problem = nist.load(name)
    found = ng.least_squares(problem.residual, problem.starts[start])
    check(problem, found.x, found.standard_errors)
    fit = ng.curve_fit(
        lambda x, *b: problem.model(b, x), problem.x, problem.y, problem.starts[start]
    )
    check(problem, fit.parameters, fit.standard_errors)
    assert fit.rss == pytest.approx(problem.rss, rel=1e-9)


@pytest.mark.slow(cases=1)
@pytest.mark.parametrize("name", ["DanWood", *nist.names()])
def test_six_digits_compiled(name):
    problem = nist.load(name)

    def model(x, *b):
        return problem.model(b, x)

    for start in problem.starts:
        fit = ng.curve_fit(model, problem.x, problem.y, start, jit=True)
        check(problem, fit.parameters, fit.standard_errors)


@pytest.mark.slow(cases=0)
def test_trust_exact_gets_four_digits_of_twelve_problems():
    for start in (0, 1):
        good = 0
        for problem in map(nist.load, nist.names()):
            found = ng.minimize(
                lambda b, problem=problem: np.sum(problem.residual(b) ** 2),
                problem.starts[start],
                method="trust-exact",
            )
            good += digits_of_agreement(found.x, problem.certified) >= 4
        assert good >= 12
