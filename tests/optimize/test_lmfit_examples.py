"""lmfit's examples: its values, errors, correlations, criteria and profile intervals."""

import json
from math import erf, sqrt

import numpy as np
import pytest

import numgrad as ng
from tests.optimize.lmfit_examples import EXAMPLES, STORED

EXPECTED = json.loads(STORED.read_text())
"""By lmfit, of the version that the file names."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_numbers_of_lmfit(name):
    example, expected = EXAMPLES[name], EXPECTED[name]
    fit = ng.curve_fit(example.model, example.x, example.y, example.p0, **example.options)
    assert set(fit.names) == set(expected["values"])
    errors = expected["errors"]
    for k, label in enumerate(fit.names):
        error = errors[label] or 0.0
        assert fit.parameters[label] == pytest.approx(
            expected["values"][label], rel=1e-5, abs=1e-4 * error
        )
        assert fit.standard_errors[label] == pytest.approx(error, rel=2e-3)
        assert np.sqrt(fit.covariance[k, k]) == fit.standard_errors[label]
    matrix = fit.correlations()
    for pair, value in expected["correlations"].items():
        first, second = map(fit.names.index, pair.split(", "))
        assert matrix[first, second] == pytest.approx(value, abs=2e-3)
    for found, key in (
        (fit.rss, "chi-square"), (fit.reduced_chi_square, "reduced"), (fit.aic, "AIC"),
        (fit.bic, "BIC"), (fit.y.size - fit.degrees_of_freedom, "free"),
    ):  # fmt: skip
        assert found == pytest.approx(expected[key], rel=1e-7)
    for label, ends in expected.get("intervals", {}).items():
        for sigmas, low, high in ((1, ends[1], ends[3]), (2, ends[0], ends[4])):
            interval = fit.profile(label, level=erf(sigmas / sqrt(2)))
            np.testing.assert_allclose(interval, [low, high], rtol=1e-3)
