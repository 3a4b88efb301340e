"""The model of every shipped problem, in plain NumPy notation.

``b`` is the vector of parameters, an ndarray or a Tensor; ``x`` holds the predictor, or one
row per predictor. The formulas follow the ``Model:`` text of the data files letter by letter.
"""

import numpy as np


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
