"""Transformers: layers of attention and feed-forward networks, and stacks of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradTypeError, NumgradValueError
from numgrad.nn import activation as F, init
from numgrad.nn.activation import relu
from numgrad.nn.applied import checked
from numgrad.nn.attention import MultiheadAttention
from numgrad.nn.container import ModuleList
from numgrad.nn.dropout import Dropout
from numgrad.nn.layer_normalization import LayerNorm
from numgrad.nn.linear import Linear
from numgrad.nn.module.module import Module
from numgrad.tensors.creation import asarray

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class _TransformerLayer(Module):
    """Base of both kinds of layers: self-attention, a feed-forward network, normalizations."""

    sublayers: int

    @checked
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if self.sublayers == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        for k in range(1, self.sublayers + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for k in range(1, self.sublayers + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.activation = _activation(type(self).__name__, activation)

    def _add(self, k: int, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """``x`` and what a sublayer makes of it, normalized before or after."""
        norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        if self.norm_first:
            return x + dropout(sublayer(norm(x)))
        return norm(x + dropout(sublayer(x)))

    def _attend(self, mask: Any, padding: Any, is_causal: bool) -> Callable[[Tensor], Tensor]:
        return lambda x: self.self_attn(
            x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask,
            is_causal=is_causal,
        )[0]  # fmt: skip

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _activation(layer: str, activation: Any) -> Callable[[Any], Any]:
    if isinstance(activation, str):
        if activation not in _ACTIVATIONS:
            raise NumgradValueError(
                f"{layer}: activation is {activation!r}; it must be 'relu', 'gelu' or a function"
            )
        return _ACTIVATIONS[activation]
    if not callable(activation):
        raise NumgradTypeError(
            f"{layer}: activation is {activation!r}; it must be 'relu', 'gelu' or a function"
        )
    return activation


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network, each added to what comes in and normalized.

    Parameters
    ----------
    d_model
        Features of inputs and results.
    nhead
        Number of heads of the attention.
    dim_feedforward
        Features inside the feed-forward network.
    dropout
        Probability of zeros, of weights of the attention too.
    activation
        ``"relu"``, ``"gelu"``, or a function or module: the nonlinearity of the network.
    layer_norm_eps
        Added to variances.
    batch_first
        Whether inputs have shape (batch, length, features) rather than (length, batch, features).
    norm_first
        Whether to normalize before attention and network rather than after the sums.
    bias
        Whether linear maps and normalizations have biases.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(ng.ones((5, 3, 8))).shape
    (5, 3, 8)
    """

    sublayers = 2

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        src
            Of shape (length, batch, d_model), with ``batch_first`` (batch, length, d_model), or
            without a batch.
        src_mask
            Of shape (length, length) or (batch * heads, length, length): bool, True for what a
            position must not attend to, or numbers to add.
        src_key_padding_mask
            Of shape (batch, length): bool, True for positions to leave out, or numbers to add.
        is_causal
            A hint that ``src_mask`` is causal; without it positions attend to earlier ones only.
        """
        x = self._add(1, asarray(src), self._attend(src_mask, src_key_padding_mask, is_causal))
        return self._add(2, x, self._feed_forward)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to a memory, and a feed-forward network.

    Parameters are those of ``TransformerEncoderLayer``.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
    >>> layer(ng.ones((5, 3, 8)), memory=ng.ones((7, 3, 8))).shape
    (5, 3, 8)
    """

    sublayers = 3

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        tgt
            Of shape (length, batch, d_model), with ``batch_first`` (batch, length, d_model), or
            without a batch.
        memory
            What an encoder gave, its length may be another.
        tgt_mask, memory_mask
            Of shapes (length, length) and (length, length of the memory), or with an axis of
            (batch * heads) before: bool, True for what a position must not attend to, or numbers
            to add.
        tgt_key_padding_mask, memory_key_padding_mask
            Of shape (batch, length): bool, True for positions to leave out, or numbers to add.
        tgt_is_causal, memory_is_causal
            Hints that masks are causal; without these positions attend to earlier ones only.
        """
        memory = asarray(memory)

        def attend_to_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(
                x, memory, memory, key_padding_mask=memory_key_padding_mask, need_weights=False,
                attn_mask=memory_mask, is_causal=memory_is_causal,
            )[0]  # fmt: skip

        x = self._add(1, asarray(tgt), self._attend(tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        return self._add(3, self._add(2, x, attend_to_memory), self._feed_forward)


class _Layers(Module):
    """Copies of one layer on one another, and maybe a normalization of what comes out."""

    def _make(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _normalized(self, x: Any) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Layers):
    """Copies of a ``TransformerEncoderLayer`` on one another.

    Parameters
    ----------
    encoder_layer
        The layer, which is copied: all start with the same parameters.
    num_layers
        Number of copies.
    norm
        A normalization of what comes out, or None.
    enable_nested_tensor, mask_check
        Accepted for PyTorch's sake, without effect.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> encoder = ng.nn.TransformerEncoder(layer, num_layers=2)
    >>> encoder(ng.ones((3, 5, 8)), is_causal=True).shape
    (3, 5, 8)
    """

    @checked
    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self._make(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Apply all layers; arguments as for ``TransformerEncoderLayer``."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return self._normalized(x)


class TransformerDecoder(_Layers):
    """Copies of a ``TransformerDecoderLayer`` on one another.

    Parameters
    ----------
    decoder_layer
        The layer, which is copied: all start with the same parameters.
    num_layers
        Number of copies.
    norm
        A normalization of what comes out, or None.

    Examples
    --------
    >>> import numgrad as ng
    >>> decoder = ng.nn.TransformerDecoder(ng.nn.TransformerDecoderLayer(8, 2, 16), num_layers=2)
    >>> decoder(ng.ones((5, 3, 8)), ng.ones((7, 3, 8))).shape
    (5, 3, 8)
    """

    @checked
    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self._make(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Apply all layers; arguments as for ``TransformerDecoderLayer``."""
        x = tgt
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                bool(tgt_is_causal), memory_is_causal,
            )  # fmt: skip
        return self._normalized(x)


class Transformer(Module):
    """An encoder of a source, and a decoder of a target that attends to what that gives.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, \
bias, device, dtype
        Those of the layers: see ``TransformerEncoderLayer``.
    num_encoder_layers, num_decoder_layers
        Numbers of layers.
    custom_encoder, custom_decoder
        Modules in the place of those that the other arguments describe.

    Attributes
    ----------
    encoder, decoder
        What it is made of; each has ``layers`` and ``norm``.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    Examples
    --------
    >>> import numgrad as ng
    >>> model = ng.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
    >>> src, tgt = ng.ones((3, 7, 8)), ng.ones((3, 5, 8))
    >>> mask = model.generate_square_subsequent_mask(5)
    >>> model(src, tgt, tgt_mask=mask).shape
    (3, 5, 8)
    """

    @checked
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, device, dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, norm()
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decode ``tgt`` with what the encoder makes of ``src``; masks as for the layers.

        Raises
        ------
        NumgradValueError
            If batches or numbers of features differ.
        """
        src, tgt = asarray(src), asarray(tgt)
        axis = 0 if self.batch_first else 1
        fits = src.ndim == tgt.ndim and src.ndim in (2, 3)
        fits = fits and src.shape[-1] == tgt.shape[-1] == self.d_model
        if not fits or (src.ndim == 3 and src.shape[axis] != tgt.shape[axis]):
            raise NumgradValueError(
                f"Transformer: src of shape {tuple(src.shape)} and tgt of shape {tuple(tgt.shape)} "
                f"need the same batch (axis {axis}) and d_model={self.d_model} features"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
            tgt_is_causal, memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """A mask to add for ``sz`` positions that see none behind them: 0 and ``-inf``.

        Examples
        --------
        >>> import numgrad as ng
        >>> ng.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[  0., -inf],
                [  0.,   0.]])
        """
        full = np.full((sz, sz), -np.inf, np.float64 if dtype is None else dtype)
        return Tensor(np.triu(full, 1))
