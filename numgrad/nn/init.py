"""First values of parameters: functions that fill a Tensor in place and return it.

They write without recording, so they may be applied to parameters. ``generator`` is one of
``ng.random`` or of NumPy; without one they draw from NumPy's global generator, which
``np.random.seed`` sets. Of complex Tensors real and imaginary parts are filled.
"""

from __future__ import annotations

import math
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.modes import no_grad
from numgrad.autograd.variable import Tensor
from numgrad.core.namespaces import absent as _absent
from numgrad.core.options import Option
from numgrad.errors import NumgradTypeError, NumgradValueError, warn
from numgrad.random.generator import generator_of

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_",
    "normal_", "ones_", "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_", "zeros_",
]  # fmt: skip


__getattr__ = _absent(
    __name__,
    __all__,
    {
        "constant": "constant_",
        "dirac": "dirac_",
        "eye": "eye_",
        "kaiming_normal": "kaiming_normal_",
        "kaiming_uniform": "kaiming_uniform_",
        "normal": "normal_",
        "orthogonal": "orthogonal_",
        "sparse": "sparse_",
        "uniform": "uniform_",
        "xavier_normal": "xavier_normal_",
        "xavier_uniform": "xavier_uniform_",
    },
)


def __dir__() -> list[str]:
    return __all__


_GAINS = {
    **dict.fromkeys(
        (
            "linear", "sigmoid", "conv1d", "conv2d", "conv3d",
            "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
        ),
        1.0,
    ),
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Factor for the standard deviation of weights that a nonlinearity asks for.

    Parameters
    ----------
    nonlinearity
        ``"linear"``, ``"conv1d"`` and so on, ``"sigmoid"``: 1; ``"tanh"``: 5/3; ``"relu"``:
        sqrt(2); ``"leaky_relu"``: sqrt(2 / (1 + slope**2)); ``"selu"``: 3/4.
    param
        The slope of ``leaky_relu``, by default 0.01.

    Raises
    ------
    NumgradValueError
        If the nonlinearity is none of these, or its slope no number.

    Examples
    --------
    >>> from numgrad.nn import init
    >>> init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise NumgradValueError(
            f"calculate_gain: knows no nonlinearity {nonlinearity!r}; choose among "
            f"{', '.join((*_GAINS, 'leaky_relu'))}"
        )
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, int | float):
        raise NumgradValueError(f"calculate_gain: the slope {slope!r} is no number")
    return math.sqrt(2.0 / (1.0 + slope**2))


# ----------------------------------------------------------------------------------- fixed values


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.init.constant_(ng.empty(2), 0.5)
    tensor([0.5, 0.5])
    """
    return _write("constant_", tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _write("ones_", tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _write("zeros_", tensor, 0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere.

    Raises
    ------
    NumgradValueError
        If the Tensor has not two axes.
    """
    if tensor.ndim != 2:
        raise NumgradValueError(f"eye_: the tensor has shape {tensor.shape}, and no two axes")
    rows, columns = tensor.shape
    return _write("eye_", tensor, np.eye(rows, columns))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it returns its input, as far as there are channels.

    Parameters
    ----------
    tensor
        Of shape ``(outputs, inputs / groups, *kernel)``, 1 to 3 axes of the kernel.
    groups
        Into how many groups the channels are divided; each returns its own.

    Raises
    ------
    NumgradValueError
        If the Tensor has not 3 to 5 axes, or its outputs cannot be divided into groups.
    """
    if tensor.ndim not in (3, 4, 5):
        raise NumgradValueError(
            f"dirac_: the tensor has shape {tensor.shape}; weights of convolutions have 3 to 5 axes"
        )
    if tensor.shape[0] % groups:
        raise NumgradValueError(
            f"dirac_: {tensor.shape[0]} outputs cannot be divided into {groups} equal groups"
        )
    values = np.zeros(tensor.shape)
    outputs = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for k in range(min(outputs, tensor.shape[1])):
        for group in range(groups):
            values[(group * outputs + k, k, *middle)] = 1
    return _write("dirac_", tensor, values)


# -------------------------------------------------------------------------------- random values


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with numbers spread evenly between ``a`` and ``b``.

    Raises
    ------
    NumgradTypeError, NumgradValueError
        If ``a`` or ``b`` is no finite number, or ``b`` is less than ``a``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.init.uniform_(ng.empty(2), -1, 1, generator=ng.random.default_rng(0))
    tensor([ 0.27392337, -0.46042657])
    """
    for name, bound in ("a", a), ("b", b):
        Option(name=name, annotation="float").check("uniform_", bound)
    if not 0 <= b - a < math.inf:
        raise NumgradValueError(
            f"uniform_: a is {a} and b is {b}; b must be at least a, and both be finite"
        )
    rng = generator_of("uniform_", generator)
    return _write("uniform_", tensor, _draw(tensor, lambda shape: rng.uniform(a, b, shape)))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers; ``std`` is the deviation of real and imaginary part together.

    Raises
    ------
    NumgradValueError
        If ``std`` is negative.
    """
    if std < 0:
        raise NumgradValueError(f"normal_: the standard deviation {std} is negative")
    rng = generator_of("normal_", generator)
    deviation = std / math.sqrt(2.0) if tensor.dtype.kind == "c" else std
    return _write("normal_", tensor, mean + _draw(tensor, lambda s: rng.normal(0.0, deviation, s)))


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill with normal numbers, those outside ``a`` to ``b`` drawn again.

    Raises
    ------
    NumgradValueError
        If ``std`` is not positive or the interval empty.
    """
    if std <= 0 or a >= b:
        raise NumgradValueError(
            f"trunc_normal_: needs std > 0 and a < b, got std={std}, a={a}, b={b}"
        )
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            f"trunc_normal_: the interval from {a} to {b} is more than two standard deviations "
            f"from the mean {mean}; the values will hardly follow the distribution; "
            "choose a and b around the mean"
        )
    rng = generator_of("trunc_normal_", generator)
    low, high = (a - mean) / std, (b - mean) / std
    values = mean + std * _draw(tensor, lambda shape: _truncated(rng, low, high, shape))
    return _write("trunc_normal_", tensor, values)


def _truncated(
    rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...]
) -> np.ndarray:
    """Normal numbers between ``low`` and ``high``, by rejection."""
    mass = (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0))) / 2
    nearest = min(max(0.0, low), high)
    if mass < 0.25:  # beyond these the density is less than 1e-16 of the largest
        reach = math.sqrt(nearest**2 + 74.0)
        low, high = max(low, -reach), min(high, reach)
    numbers = np.empty(prod(shape))
    missing = np.arange(numbers.size)
    while missing.size:
        if mass < 0.25:
            drawn = rng.uniform(low, high, missing.size)
            accepted = rng.random(missing.size) < np.exp((nearest**2 - drawn**2) / 2)
        else:
            drawn = rng.normal(size=missing.size)
            accepted = (drawn >= low) & (drawn <= high)
        numbers[missing[accepted]] = drawn[accepted]
        missing = missing[~accepted]
    return numbers.reshape(shape)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill evenly between ``-a`` and ``a``, ``a = gain sqrt(6 / (fan_in + fan_out))``.

    Raises
    ------
    NumgradValueError
        If the Tensor has fewer than two axes.

    References
    ----------
    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural
    networks, AISTATS 2010.
    """
    fan_in, fan_out = _fans("xavier_uniform_", tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers of deviation ``gain sqrt(2 / (fan_in + fan_out))``.

    Raises
    ------
    NumgradValueError
        If the Tensor has fewer than two axes.
    """
    fan_in, fan_out = _fans("xavier_normal_", tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill evenly between ``-b`` and ``b``, ``b = gain sqrt(3 / fan)``.

    Parameters
    ----------
    tensor
        A weight, outputs first, then inputs.
    a
        The slope of the ``leaky_relu`` that follows.
    mode
        ``"fan_in"`` or ``"fan_out"``: which of them is the fan.
    nonlinearity
        What follows: see ``calculate_gain``.
    generator
        What to draw from.

    Raises
    ------
    NumgradValueError
        If the Tensor has fewer than two axes, or the mode is another.

    References
    ----------
    K. He et al., Delving deep into rectifiers, ICCV 2015.
    """
    std = _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator) if tensor.size else tensor


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fill with normal numbers of deviation ``gain / sqrt(fan)``.

    Parameters and errors are those of ``kaiming_uniform_``.
    """
    std = _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator) if tensor.size else tensor


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a random (semi-)orthogonal matrix times ``gain``, all axes but the first as one.

    Raises
    ------
    NumgradValueError
        If the Tensor has fewer than two axes.

    References
    ----------
    A. Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks, 2013.
    """
    if tensor.ndim < 2:
        raise NumgradValueError(
            f"orthogonal_: the tensor has shape {tensor.shape}; it needs two axes or more"
        )
    if not tensor.size:
        return tensor
    rows = tensor.shape[0]
    shape = (rows, tensor.size // rows)
    rng = generator_of("orthogonal_", generator)
    drawn = _draw(Tensor(np.empty(shape, tensor.dtype)), lambda s: rng.normal(size=s))
    q, r = np.linalg.qr(drawn if shape[0] >= shape[1] else drawn.T)
    diagonal = np.diagonal(r)
    q = q * (diagonal / np.abs(diagonal))  # spread evenly over all such matrices
    return _write(
        "orthogonal_", tensor, gain * (q if shape[0] >= shape[1] else q.T).reshape(tensor.shape)
    )


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal numbers and each column with a share of zeros.

    Parameters
    ----------
    tensor
        A matrix.
    sparsity
        The share of zeros, rounded up to whole elements.
    std
        Standard deviation of the others.
    generator
        What to draw from.

    Raises
    ------
    NumgradValueError
        If the Tensor has not two axes, or the share is not between 0 and 1.
    """
    if tensor.ndim != 2:
        raise NumgradValueError(f"sparse_: the tensor has shape {tensor.shape}, and no two axes")
    if not 0 <= sparsity <= 1:
        raise NumgradValueError(f"sparse_: a share of zeros is between 0 and 1, got {sparsity}")
    rng = generator_of("sparse_", generator)
    rows, columns = tensor.shape
    values = _draw(tensor, lambda shape: rng.normal(0.0, std, shape))
    zeros = math.ceil(sparsity * rows)
    for column in range(columns):
        values[rng.permutation(rows)[:zeros], column] = 0
    return _write("sparse_", tensor, values)


# ------------------------------------------------------------------------------------------ parts


def _fans(operation: str, tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output depends on, and how many outputs on an input."""
    if tensor.ndim < 2:
        raise NumgradValueError(
            f"{operation}: the tensor has shape {tensor.shape}; a weight has two axes or more, "
            "outputs and inputs"
        )
    outputs, inputs, *kernel = tensor.shape
    return inputs * prod(kernel), outputs * prod(kernel)


def _kaiming_std(operation: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise NumgradValueError(f"{operation}: mode is 'fan_in' or 'fan_out', got {mode!r}")
    if 0 in tensor.shape:
        warn(f"{operation}: a tensor of shape {tensor.shape} has no elements to fill")
        return 0.0
    fan = _fans(operation, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _draw(tensor: Tensor, draw: Any) -> np.ndarray:
    """Random numbers for a Tensor, float64 or complex128: seeds mean the same in all dtypes."""
    if tensor.dtype.kind != "c":
        return draw(tensor.shape)
    parts = draw((*tensor.shape, 2))
    return parts[..., 0] + 1j * parts[..., 1]


def _write(operation: str, tensor: Tensor, values: Any) -> Tensor:
    """Fill a Tensor without recording."""
    if not isinstance(tensor, Tensor):
        raise NumgradTypeError(f"{operation}: fills a Tensor, got {type(tensor).__name__}")
    with no_grad():
        return tensor.copy_(values)


def reset_weight_and_bias(weight: Tensor, bias: Tensor | None) -> None:
    """The default of linear layers and convolutions: evenly between -k and k, k = 1/sqrt(fan_in).

    It is ``kaiming_uniform_`` with ``a=sqrt(5)``.
    """
    kaiming_uniform_(weight, a=math.sqrt(5.0))
    if bias is not None:
        fan_in = _fans("reset_weight_and_bias", weight)[0]
        bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
        uniform_(bias, -bound, bound)
