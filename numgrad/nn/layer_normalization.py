"""Normalization of the last axes, or of groups of channels, of each example.

Note [Statistics in formulas]
-----------------------------
The backward kernels take the statistics that the forward computed: formulas name them, so that the
tape keeps them. The formulas themselves compute the statistics again, from ``x``: a second
derivative must see that they depend on it.

Note [Extents of normalization]
-------------------------------
Arrays are seen as ``(outer, groups, channels, inner)``. Layer and RMS normalization treat every
element of a row as a channel of its own (``groups == inner == 1``), group normalization has several
channels of ``inner`` elements in a group; one *row* is ``channels * inner`` elements, with one mean
and one standard deviation. Weights belong to channels (all those of all groups).

Note [Kernels of normalization]
-------------------------------
The kernels are written by the generator from the formulas below (Note [Array formulas] in
``codegen.array_formulas``). Against kernels by hand, CPU time on one thread, float32 and float64,
from 16 x 16 to 1000 x 512: value and gradients of layer, RMS, group and instance normalization take
0.88 to 1.09, batch normalization 0.72 to 0.97; the value alone 0.93 to 1.20 where arrays are small,
as 2 us of a call are Python. Without a cache the first call takes 1.3 to 1.4 (75 to 100 ms), of
batch normalization in evaluation 2.0, as one kernel has more loops; from a cache it is 2.9 ms in
place of 2.0. Separate kernels for the gradient of ``x`` and for those of weights, and narrower
vectors in loops that clear, were tried for it and gained little. Sums are by blocks, so float32
loses ten times fewer digits over a million elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.codegen.array_formulas import ArrayFormula, array_formula
from numgrad.codegen.dtypes import check_dtype
from numgrad.core.batching import BatchOperand
from numgrad.core.declare import composite, primitive
from numgrad.core.formula import Meta
from numgrad.core.interpreter import bind
from numgrad.core.op import Op
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.module.members import empty_parameter
from numgrad.nn.module.module import Module
from numgrad.operations.shape import as_operand, reshape

Extents = tuple[int, int, int, int]
"""Note [Extents of normalization]."""


def computing_dtype(operation: str, *operands: np.ndarray | Meta | None) -> np.dtype:
    """The real floating dtype in which operands are computed with."""
    dtype = np.result_type(np.float32, *(a.dtype for a in operands if a is not None))
    check_dtype(operation, dtype)
    if dtype.kind == "c":
        raise NumgradTypeError(
            f"{operation}: complex operands have no order of magnitude to divide by; normalize "
            "their real and imaginary parts"
        )
    return dtype


def check_channels(operation: str, name: str, a: Any, width: int) -> None:
    """Raise unless a weight or bias, if there is one, has a number for each channel."""
    if a is not None and a.shape != (width,) and prod(a.shape) != width:
        raise NumgradValueError(
            f"{operation}: {name} of shape {a.shape} has {prod(a.shape)} elements, there are "
            f"{width} channels; give one for each"
        )


_ROW, _CHANNEL = (2, 3), (0, 3)
"""The axes of a row, and those over which a channel has the same weight."""


def row_statistics(x, eps, centered):
    """Mean and reciprocal standard deviation of each row."""
    mean = np.mean(x, axis=_ROW, keepdims=True) if centered else 0
    centered_x = x - mean if centered else x
    return mean, 1 / np.sqrt(np.mean(centered_x * centered_x, axis=_ROW, keepdims=True) + eps)


@array_formula("ogci", "x:ogci weight:gc bias:gc eps -> y:ogci mean:og rstd:og", units="gi", ns=1.5)
def standardized_rows(x, weight, bias, eps, *, centered):
    """Rows less their means and times their ``rstd``, then ``* weight + bias``."""
    mean, rstd = row_statistics(x, eps, centered)
    y = (x - mean if centered else x) * rstd
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y, mean if centered else None, rstd


@array_formula(
    "ogci", "g:ogci x:ogci weight:gc mean:og rstd:og -> x:ogci weight:gc bias:gc", units="gi", ns=2
)
def row_gradients(g, x, weight, mean, rstd, *, mask):
    """The gradients of ``standardized_rows`` in ``mask``; without a mean rows are not centered.

    With ``n = g weight`` and ``h = (x - mean) rstd`` that of a row is
    ``(n - mean(n) - h mean(n h)) rstd``; without centering, ``mean(n)`` is left out.
    """
    gx = g_weight = g_bias = h = None
    if mask & 3:
        h = (x if mean is None else x - mean) * rstd
    if mask & 1:
        n = g if weight is None else g * weight
        along = np.mean(n * h, axis=_ROW, keepdims=True)
        moved = n if mean is None else n - np.mean(n, axis=_ROW, keepdims=True)
        gx = rstd * (moved - h * along)
    if mask & 2:
        g_weight = np.sum(g * h, axis=_CHANNEL, keepdims=True)
    if mask & 4:
        g_bias = np.sum(g, axis=_CHANNEL, keepdims=True)
    return gx, g_weight, g_bias


@primitive(
    internal=True,
    method=False,
    auxiliaries=("mean", "rstd"),
    samples=[
        (((2, 4, 3), (4,), (4,)), {"extents": (2, 2, 2, 3)}),
        (((2, 4, 3), (4,)), {"extents": (2, 2, 2, 3), "centered": False}),
        (((3, 4), (4,), (4,)), {"extents": (3, 2, 2, 1)}),
        (((3, 4), (4,)), {"extents": (3, 2, 2, 1), "centered": False, "eps": 0.1}),
    ],
    real_only=True,
    smooth=True,
    lowering="numgrad.nn.lowerings",
)
def normalize_groups(x, weight=None, bias=None, *, extents, eps=1e-5, centered=True):
    """``(x - mean) / sqrt(var + eps)`` of each group of channels, then ``* weight + bias``.

    ``extents`` says how the elements of ``x`` are seen: Note [Extents of normalization]. If not
    ``centered``, ``x / sqrt(mean(x**2) + eps)``, without bias.
    """
    operation = "normalize_groups"
    if bias is not None and not centered:
        raise NumgradTypeError(f"{operation}: takes a bias only with centered=True; add it after")
    dtype = computing_dtype(operation, x, weight, bias)
    outer, groups, channels, _ = extents
    check_channels(operation, "weight", weight, groups * channels)
    check_channels(operation, "bias", bias, groups * channels)
    if not x.size:
        rows = np.zeros(outer * groups, dtype)
        return np.empty(x.shape, dtype), (rows, rows)
    rows = (outer * groups,)
    out, mean, rstd = standardized_rows(
        dtype, tuple(extents), (x.shape, rows, rows), x, weight, bias, eps, centered=centered
    )
    return out, (rstd if mean is None else mean, rstd)


@normalize_groups.shape
def _groups_result(x, weight, bias, *, extents, eps, centered):
    operation = "normalize_groups"
    if bias is not None and not centered:
        raise NumgradTypeError(f"{operation}: takes a bias only with centered=True; add it after")
    dtype = computing_dtype(operation, x, weight, bias)
    outer, groups, channels, _ = extents
    check_channels(operation, "weight", weight, groups * channels)
    check_channels(operation, "bias", bias, groups * channels)
    rows = Meta((outer * groups,), dtype)
    return Meta(x.shape, dtype), (rows, rows)


def _groups_vjp(g, x, weight, extents, eps, centered, mask):
    """The gradients in ``mask``, of arrays seen as ``extents``."""
    mean = rstd = None
    g = reshape(g, extents)
    if x is not None:
        x = reshape(x, extents)
        mean, rstd = row_statistics(x, eps, centered)
    if weight is not None:
        weight = reshape(weight, (1, *extents[1:3], 1))
    return row_gradients.function(g, x, weight, mean if centered else None, rstd, mask=mask)


def _groups_vjp_x(g, x, weight, meta_x, mean, rstd, extents, eps, centered):
    return reshape(_groups_vjp(g, x, weight, extents, eps, centered, 1)[0], meta_x.shape)


def _groups_vjp_weight(g, x, meta_weight, mean, rstd, extents, eps, centered):
    return reshape(_groups_vjp(g, x, None, extents, eps, centered, 2)[1], meta_weight.shape)


def _groups_vjp_bias(g, meta_bias, extents):
    return reshape(_groups_vjp(g, None, None, extents, 0, True, 4)[2], meta_bias.shape)


normalize_groups.vjp(x=_groups_vjp_x, weight=_groups_vjp_weight, bias=_groups_vjp_bias)


@normalize_groups.vjp_kernel
def _groups_backward(call, mask, g, x=None, weight=None, mean=None, rstd=None):
    params = call.params
    return gradients_by_kernel(
        row_gradients, call, mask, tuple(params["extents"]), g, x, weight,
        mean if params["centered"] else None, rstd,
    )  # fmt: skip


def gradients_by_kernel(
    formula: ArrayFormula, call: Any, mask: int, extents: tuple[int, ...], g: Any, *operands: Any
) -> list[Any]:
    """The gradients of a call's operands that a formula computes."""
    shapes = [meta.shape for meta in call.metas]
    if g.size:
        return formula(g.dtype, extents, shapes, g, *operands, mask=mask)
    return [np.zeros(s, g.dtype) if mask >> k & 1 else None for k, s in enumerate(shapes)]


def _trailing(operation: str, x: Any, normalized_shape: Any, parameters: dict) -> Extents:
    """How ``x`` is seen for a normalization over its last axes."""
    shape = (
        (int(normalized_shape),)
        if isinstance(normalized_shape, int | np.integer)
        else tuple(int(n) for n in normalized_shape)
    )
    lead = len(x.shape) - len(shape)
    if not shape or lead < 0 or tuple(x.shape[lead:]) != shape:
        raise NumgradValueError(
            f"{operation}: an operand of shape {tuple(x.shape)} does not end in normalized_shape "
            f"{shape}; give the lengths of its last axes"
        )
    for name, value in parameters.items():
        if value is not None and tuple(np.shape(value)) != shape:
            raise NumgradValueError(
                f"{operation}: {name} has shape {tuple(np.shape(value))}, expected "
                f"normalized_shape {shape}"
            )
    return (prod(x.shape[:lead]), 1, prod(shape), 1)


@composite(name="layer_norm", method=False, real_only=True, smooth=True)
def _layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalize over the last axes: ``(x - mean) / sqrt(var + eps) * weight + bias``.

    ``normalized_shape`` gives the lengths of these axes; ``weight`` and ``bias`` have that shape.

    Parameters
    ----------
    normalized_shape : int or tuple of ints
        Lengths of the last axes, over which it normalizes.
    weight
        Factors of shape ``normalized_shape``; 1 by default.
    bias
        Summands of shape ``normalized_shape``; 0 by default.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> np.round(F.layer_norm(ng.tensor([[1.0, 3.0], [10.0, 30.0]]), 2), 4)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    x = as_operand(x)
    extents = _trailing("layer_norm", x, normalized_shape, {"weight": weight, "bias": bias})
    return normalize_groups(x, weight, bias, extents=extents, eps=eps)


@composite(name="rms_norm", method=False, real_only=True, smooth=True)
def _rms_norm(x, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last axes: ``x / sqrt(mean(x**2) + eps) * weight``.

    ``eps=None`` is the machine epsilon of the operand's dtype.

    Parameters
    ----------
    normalized_shape : int or tuple of ints
        Lengths of the last axes, over which it divides.
    weight
        Factors of shape ``normalized_shape``; 1 by default.
    eps : float
        What is added to the mean square; by default the machine epsilon of the dtype.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> F.rms_norm(ng.tensor([3.0, 4.0, 0.0, 0.0]), 4)
    tensor([1.2, 1.6, 0. , 0. ])
    """
    x = as_operand(x)
    extents = _trailing("rms_norm", x, normalized_shape, {"weight": weight})
    if eps is None:
        eps = float(np.finfo(np.result_type(x.dtype, np.float32)).eps)
    return normalize_groups(x, weight, None, extents=extents, eps=eps, centered=False)


@composite(name="group_norm", method=False, real_only=True, smooth=True)
def _group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalize each of ``num_groups`` groups of channels (axis 1) of each example (axis 0).

    Parameters
    ----------
    num_groups : int
        Number of groups, which have as many channels each.
    weight
        Factor for each channel; 1 by default.
    bias
        Summand for each channel; 0 by default.

    Returns
    -------
    Tensor
        Of the shape of ``x``.

    Examples
    --------
    >>> np.round(F.group_norm(ng.tensor([[1.0, 3.0, 10.0, 30.0]]), 2), 4)
    tensor([[-1.,  1., -1.,  1.]])
    """
    x = as_operand(x)
    if len(x.shape) < 2:
        raise NumgradValueError(
            f"group_norm: an operand of shape {tuple(x.shape)} has no axis of channels; give it "
            "shape (examples, channels, ...)"
        )
    outer, width, *inner = x.shape
    if num_groups < 1 or width % num_groups:
        raise NumgradValueError(
            f"group_norm: {width} channels (axis 1 of shape {tuple(x.shape)}) cannot be split "
            f"into {num_groups} equal groups"
        )
    extents = (outer, num_groups, width // num_groups, prod(inner))
    return normalize_groups(x, weight, bias, extents=extents, eps=eps)


@normalize_groups.batch
def _normalize_groups(
    op: Op, operands: Sequence[BatchOperand], params: dict[str, Any], size: int
) -> Any:
    x, *parameters = operands
    if any(p.batched for p in parameters):
        return NotImplemented
    outer, *rest = params["extents"]
    arguments = (x.value, *(p.value for p in parameters))
    return bind(op, arguments, {**params, "extents": (size * outer, *rest)})


def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """``(input - mean) / sqrt(variance + eps) * weight + bias`` over the last axes.

    Parameters
    ----------
    input
        An array whose last axes have the lengths ``normalized_shape``.
    normalized_shape
        An integer or several.
    weight, bias
        Of that shape, or None.
    eps
        Added to the (biased) variance.

    Raises
    ------
    NumgradValueError
        If shapes do not fit.

    References
    ----------
    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", arXiv:1607.06450 (2016).

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.layer_norm(ng.tensor([[1.0, 3.0], [0.0, 8.0]]), (2,), eps=0.0)
    tensor([[-1.,  1.],
            [-1.,  1.]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Tensor:
    """``input / sqrt(mean(input**2) + eps) * weight`` over the last axes.

    Parameters
    ----------
    input
        An array whose last axes have the lengths ``normalized_shape``.
    normalized_shape
        An integer or several.
    weight
        Of that shape, or None.
    eps
        Added to the mean square; None is the machine epsilon of the input's dtype.

    Raises
    ------
    NumgradValueError
        If shapes do not fit.

    References
    ----------
    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.rms_norm(ng.tensor([1.0, 7.0]), (2,), eps=0.0)
    tensor([0.2, 1.4])
    """
    return _rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Each group of channels of each example, normalized, ``* weight + bias``.

    Parameters
    ----------
    input
        Of shape (examples, channels, ...).
    num_groups
        Into how many equal groups the channels are split.
    weight, bias
        Of shape (channels,), or None.
    eps
        Added to the (biased) variance.

    Raises
    ------
    NumgradValueError
        If the channels cannot be split so, or shapes do not fit.

    References
    ----------
    Y. Wu, K. He, "Group normalization", ECCV 2018.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.functional.group_norm(ng.tensor([[1.0, 3.0, 0.0, 8.0]]), 2, eps=0.0)
    tensor([[-1.,  1., -1.,  1.]])
    """
    return _group_norm(input, num_groups, weight, bias, eps)


class _Affine(Module):
    """Base of normalizations with a weight and a bias after them, where there are such."""

    weight: Any
    bias: Any

    def _make_parameters(
        self, shape: tuple[int, ...], weight: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, empty_parameter(shape, dtype, device) if wanted else None)

    def reset_parameters(self) -> None:
        """Set weights to one and biases to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


# --------------------------------------------------------------------------- of each example


def _lengths(layer: str, normalized_shape: Any) -> tuple[int, ...]:
    """``normalized_shape`` as a tuple."""
    try:
        shape = normalized_shape
        lengths = [n.__index__() for n in ((shape,) if hasattr(shape, "__index__") else shape)]
    except (AttributeError, TypeError):
        raise NumgradTypeError(
            f"{layer}: normalized_shape is an integer or several, got {normalized_shape!r}"
        ) from None
    if lengths and min(lengths) < 0:
        raise NumgradValueError(
            f"{layer}: normalized_shape is {normalized_shape!r}; lengths must be at least 0"
        )
    return tuple(lengths)


class LayerNorm(_Affine):
    """Normalize each example over its last axes.

    Parameters
    ----------
    normalized_shape
        Lengths of these axes, or of one.
    eps
        Added to variances.
    elementwise_affine
        Whether there is a ``weight``, of that shape, at first 1.
    bias
        Whether there is a ``bias`` too, at first 0.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.LayerNorm(4)
    >>> layer
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    >>> layer(ng.ones((3, 4))).shape
    (3, 4)
    """

    @checked
    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _lengths("LayerNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        affine = elementwise_affine
        self._make_parameters(self.normalized_shape, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Divide each example by its root mean square over its last axes.

    Parameters
    ----------
    normalized_shape
        Lengths of these axes, or of one.
    eps
        Added to the mean square; None is the machine epsilon of the input's dtype.
    elementwise_affine
        Whether there is a ``weight``, of that shape, at first 1.
    device
        None or ``"cpu"``.
    dtype
        Of the weight, by default float64.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.RMSNorm(2, eps=0.0)
    >>> layer
    RMSNorm((2,), eps=0.0, elementwise_affine=True)
    >>> layer(ng.tensor([1.0, 7.0])).detach()
    tensor([0.2, 1.4])
    """

    bias = None

    @checked
    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _lengths("RMSNorm", normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight",
            empty_parameter(self.normalized_shape, dtype, device) if elementwise_affine else None,
        )
        self.reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Normalize groups of channels of each example.

    Parameters
    ----------
    num_groups
        Into how many equal groups the channels are split.
    num_channels
        Number of channels, axis 1 of the input.
    eps
        Added to variances.
    affine
        Whether there is a ``weight``, of shape (num_channels,), at first 1.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.
    bias
        Whether ``affine`` means a ``bias`` too, at first 0.

    Raises
    ------
    NumgradValueError
        If the channels cannot be split so.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.GroupNorm(2, 4)
    >>> layer
    GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)
    >>> layer(ng.ones((3, 4, 5))).shape
    (3, 4, 5)
    """

    @checked
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise NumgradValueError(
                f"GroupNorm: num_channels={num_channels} cannot be split into "
                f"num_groups={num_groups} equal groups"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Any) -> Tensor:
        """Apply the layer."""
        return group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
