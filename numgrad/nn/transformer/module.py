"""Stacks of transformer layers: encoder, decoder, and both."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradValueError
from numgrad.nn import init
from numgrad.nn.activation.functional import relu
from numgrad.nn.container.modules import ModuleList
from numgrad.nn.module.module import Module
from numgrad.nn.module.options import checked
from numgrad.nn.normalization.module import LayerNorm
from numgrad.nn.transformer.layer import TransformerDecoderLayer, TransformerEncoderLayer
from numgrad.tensors.creation import asarray


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
