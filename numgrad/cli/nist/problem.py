"""Problems in the ASCII format of the NIST statistical reference datasets, and their models.

A file opens with a header (name, description, model), lists the starting and certified values
one parameter a line (``b1 = start1 start2 certified sd``), and ends with the data, the response
``y`` first. Sections are found by their labels: the line numbers in a header are documentation.

In the formulas of models ``b`` is the vector of parameters, an ndarray or a Tensor; ``x`` holds the
predictor, or one row per predictor. They follow the ``Model:`` text of the files letter by letter.
"""

import dataclasses
import re
from collections.abc import Callable
from importlib import resources

import numpy as np

from numgrad.errors import NumgradValueError


def chwirut2(b, x):
    return np.exp(-b[0] * x) / (b[1] + b[2] * x)


def danwood(b, x):
    return b[0] * x ** b[1]


def enso(b, x):
    angle = 2 * np.pi * x
    annual = b[1] * np.cos(angle / 12) + b[2] * np.sin(angle / 12)
    el_nino = b[4] * np.cos(angle / b[3]) + b[5] * np.sin(angle / b[3])
    southern = b[7] * np.cos(angle / b[6]) + b[8] * np.sin(angle / b[6])
    return b[0] + annual + el_nino + southern


def gauss1(b, x):
    baseline = b[0] * np.exp(-b[1] * x)
    first = b[2] * np.exp(-((x - b[3]) ** 2) / b[4] ** 2)
    second = b[5] * np.exp(-((x - b[6]) ** 2) / b[7] ** 2)
    return baseline + first + second


def hahn1(b, x):
    above = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
    return above / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


def kirby2(b, x):
    return (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2)


def lanczos3(b, x):
    return b[0] * np.exp(-b[1] * x) + b[2] * np.exp(-b[3] * x) + b[4] * np.exp(-b[5] * x)


def mgh09(b, x):
    return b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3])


def misra1a(b, x):
    return b[0] * (1 - np.exp(-b[1] * x))


def misra1b(b, x):
    return b[0] * (1 - (1 + b[1] * x / 2) ** -2)


def nelson(b, x):
    weeks, temperature = x
    return b[0] - b[1] * weeks * np.exp(-b[2] * temperature)


def rat42(b, x):
    return b[0] / (1 + np.exp(b[1] - b[2] * x))


def roszman1(b, x):
    return b[0] - b[1] * x - np.arctan(b[2] / (x - b[3])) / np.pi


def thurber(b, x):
    above = b[0] + b[1] * x + b[2] * x**2 + b[3] * x**3
    return above / (1 + b[4] * x + b[5] * x**2 + b[6] * x**3)


MODELS = {
    "Chwirut2": chwirut2,
    "DanWood": danwood,
    "ENSO": enso,
    "Gauss1": gauss1,
    "Hahn1": hahn1,
    "Kirby2": kirby2,
    "Lanczos3": lanczos3,
    "MGH09": mgh09,
    "Misra1a": misra1a,
    "Misra1b": misra1b,
    "Nelson": nelson,
    "Rat42": rat42,
    "Roszman1": roszman1,
    "Thurber": thurber,
}


NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[EeDd][-+]?\d+)?"
PARAMETER = re.compile(rf"^\s*b(\d+)\s*=((?:\s+{NUMBER}){{4}})\s*$", re.MULTILINE)
MODEL = re.compile(r"^Model:(.*?)^\s*Starting values", re.MULTILINE | re.DOTALL | re.IGNORECASE)
FORMULA = re.compile(r"^\s*(\w+\s*=|\w+\[y\]\s*=).*", re.MULTILINE | re.DOTALL)
COLUMNS = re.compile(r"^Data:\s+(y(?:\s+x\d*)+)\s*$", re.MULTILINE)

RESPONSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"y": np.asarray, "log[y]": np.log}


@dataclasses.dataclass(frozen=True)
class Problem:
    """One regression problem: model, data, starting and certified values.

    Attributes
    ----------
    name : str
    formula : str
        The model as the file states it.
    model : callable
        ``model(b, x)``, the predicted response.
    x : ndarray
        The predictor, shape (n,); with several predictors (p, n), one row each.
    y : ndarray
        The response as the model predicts it (its logarithm, where the model says so), (n,).
    starts : tuple of ndarray
        Starting values 1 (far) and 2 (near).
    certified, deviations : ndarray
        Certified parameters and their standard deviations.
    rss : float
        Certified residual sum of squares.
    """

    name: str
    formula: str
    model: Callable
    x: np.ndarray
    y: np.ndarray
    starts: tuple[np.ndarray, np.ndarray]
    certified: np.ndarray
    deviations: np.ndarray
    rss: float

    def residual(self, b):
        """Predicted minus measured response, shape (n,), for parameters ``b``."""
        return self.model(b, self.x) - self.y


def names():
    """Names of the shipped problems, in alphabetical order.

    Examples
    --------
    >>> names()[:3]
    ['Chwirut2', 'DanWood', 'ENSO']
    """
    return sorted(MODELS, key=str.lower)


def load(name):
    """Load one shipped problem; ``KeyError`` for a name that is not in ``names()``.

    Examples
    --------
    >>> load("Misra1a").certified
    array([2.38942129e+02, 5.50156432e-04])
    """
    model = MODELS[name]
    file = resources.files("numgrad.cli.nist") / f"{name}.dat"
    return parse(file.read_text(encoding="ascii"), model)


def parse(text, model):
    """Parse the text of a data file; ``model`` is its model as a function.

    Raises
    ------
    NumgradValueError
        When a section is missing, or the counts that the file states do not agree with it.
    """
    name = _find(r"^Dataset Name:\s+(\S+)", text, "dataset name")
    described = MODEL.search(text)
    formula = FORMULA.search(described[1]) if described else None
    if formula is None:
        raise NumgradValueError(f"{name}: no formula between 'Model:' and 'Starting values'")
    rows = PARAMETER.findall(text)
    stated = int(_find(r"^\s*(\d+) Parameters", text, "number of parameters", name))
    if [int(i) for i, _ in rows] != list(range(1, stated + 1)):
        raise NumgradValueError(
            f"{name}: {stated} parameters stated, {len(rows)} rows of values found"
        )
    values = np.array([[_number(v) for v in row.split()] for _, row in rows])
    table = _data(text, name)
    y = RESPONSES[_response(formula[0], name)](table[0])
    return Problem(
        name=name,
        formula="\n".join(line.strip() for line in formula[0].strip().splitlines()),
        model=model,
        x=table[1] if len(table) == 2 else table[1:],
        y=y,
        starts=(values[:, 0].copy(), values[:, 1].copy()),
        certified=values[:, 2].copy(),
        deviations=values[:, 3].copy(),
        rss=_number(_find(rf"^Residual Sum of Squares:\s+({NUMBER})", text, "RSS", name)),
    )


def _find(pattern, text, what, name="file"):
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise NumgradValueError(f"{name}: no {what}")
    return match[1]


def _number(text):
    return float(text.upper().replace("D", "E"))  # Fortran's exponent letter


def _response(formula, name):
    """Left side of the model's last equation: what of ``y`` it predicts."""
    sides = [s for s in re.findall(r"^\s*([\w\[\]]+)\s*=", formula, re.MULTILINE) if s in RESPONSES]
    if len(sides) != 1:
        raise NumgradValueError(
            f"{name}: the model predicts {sides}, expected one of {list(RESPONSES)}"
        )
    return sides[0]


def _data(text, name):
    """Columns of the data, the response first, each a contiguous row: shape (1 + p, n)."""
    header = COLUMNS.search(text)
    if header is None:
        raise NumgradValueError(f"{name}: no line 'Data: y x'")
    width = len(header[1].split())
    rows = [line.split() for line in text[header.end() :].splitlines() if line.strip()]
    if any(len(row) != width for row in rows):
        raise NumgradValueError(f"{name}: a row of data does not have {width} numbers")
    stated = int(_find(r"^Number of Observations:\s+(\d+)", text, "number of observations", name))
    if len(rows) != stated:
        raise NumgradValueError(f"{name}: {stated} observations stated, {len(rows)} found")
    return np.array([[_number(v) for v in row] for row in rows]).T.copy()
