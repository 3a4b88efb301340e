"""RNN, GRU and LSTM: layers over sequences, and cells, which are layers of one time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numgrad.autograd.variable import Tensor
from numgrad.errors import NumgradTypeError, NumgradValueError, warn
from numgrad.nn import init
from numgrad.nn.applied import checked
from numgrad.nn.dropout import dropout
from numgrad.nn.linear import linear
from numgrad.nn.module.members import empty_parameter
from numgrad.nn.module.module import Module
from numgrad.nn.packed_sequence import PackedSequence, blocks_of
from numgrad.nn.recurrent_sequences import gru_sequence, lstm_sequence, rnn_sequence
from numgrad.operations.join import concat, stack
from numgrad.operations.shape import reshape
from numgrad.operations.take import take
from numgrad.tensors.creation import asarray, tensor


def check_nonlinearity(layer: str, nonlinearity: str) -> None:
    """Raise unless it is one that an RNN has."""
    if nonlinearity not in ("tanh", "relu"):
        raise NumgradValueError(
            f"{layer}: there is no nonlinearity {nonlinearity!r}; choose 'tanh' or 'relu'"
        )


def starting_state(layer: str, state: Any, expected: tuple[int, ...], dtype: np.dtype) -> Tensor:
    """A state to start with: zeros for None."""
    if state is None:
        return Tensor(np.zeros(expected, dtype))
    state = asarray(state)
    if state.shape != expected:
        raise NumgradValueError(
            f"{layer}: a state of shape {state.shape} for this input; expected {expected}"
        )
    return state


class _Recurrent(Module):
    """Base of recurrent layers."""

    gates: int
    states = 1

    @checked
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        proj_size: int,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if proj_size >= hidden_size:
            raise NumgradValueError(
                f"{name}: proj_size must be smaller than hidden_size={hidden_size}, got {proj_size}"
            )
        if dropout > 0 and num_layers == 1:
            warn(
                f"{name}: dropout={dropout} is applied between layers, and there is one only; "
                "leave it out, or raise num_layers"
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        width = self.gates * hidden_size
        for layer, suffix in self._places():
            inputs = input_size if layer == 0 else self._out_size * self._directions
            shapes = {"weight_ih": (width, inputs), "weight_hh": (width, self._out_size)}
            if bias:
                shapes |= {"bias_ih": (width,), "bias_hh": (width,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for kind, shape in shapes.items():
                made = empty_parameter(shape, dtype, device)
                self.register_parameter(f"{kind}_{suffix}", made)
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _out_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _places(self) -> list[tuple[int, str]]:
        """Number and suffix of names for each layer and direction, in the order of states."""
        ends = ("", "_reverse") if self.bidirectional else ("",)
        return [(k, f"l{k}{end}") for k in range(self.num_layers) for end in ends]

    def _parameter(self, kind: str, suffix: str) -> Any:
        name = f"{kind}_{suffix}"
        parameter = self._parameters.get(name)
        if parameter is None and "parametrizations" in self.__dict__:
            parameter = getattr(self, name, None)  # Note [Parametrized modules]
        return parameter

    @property
    def all_weights(self) -> list[list[Any]]:
        """Parameters of each layer and direction."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        rows = [[self._parameter(kind, suffix) for kind in kinds] for _, suffix in self._places()]
        return [[p for p in row if p is not None] for row in rows]

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not lie side by side here."""

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the states of the last layer at all times, and the last ones of all layers.

        Parameters
        ----------
        input
            Of shape (time, batch, input_size), with ``batch_first`` (batch, time, input_size),
            without a batch (time, input_size), or a ``PackedSequence``, as which the states at
            all times come back then.
        hx
            First states of all layers and directions, (layers * directions, batch, hidden_size);
            by default zeros.

        Raises
        ------
        NumgradValueError
            If shapes do not fit.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        input = self._checked(input)
        batched = input.ndim == 3
        if not batched:
            input = input[:, None]
        elif self.batch_first:
            input = np.swapaxes(input, 0, 1)
        states = self._first_states(hx, input.shape[1], batched)
        y, finals = self._through_layers(input, states, self._through_time)
        if not batched:
            y, finals = y[:, 0], [state[:, 0] for state in finals]
        elif self.batch_first:
            y = np.swapaxes(y, 0, 1)
        return y, finals[0] if len(finals) == 1 else tuple(finals)

    def _through_layers(
        self, input: Tensor, states: list[Tensor], through: Callable[..., Any]
    ) -> tuple[Any, list[Any]]:
        """States of the last layer at all times, and the last ones of all layers."""
        last: list[list[Any]] = [[] for _ in states]
        ends: list[Any] = []
        for place, (layer, suffix) in enumerate(self._places()):
            if layer and not suffix.endswith("_reverse"):  # a new layer: on the results below
                input = concat(ends, axis=-1) if len(ends) > 1 else ends[0]
                if self.dropout:
                    input = dropout(input, self.dropout, self.training)
                ends = []
            a = linear(
                input, self._parameter("weight_ih", suffix), self._parameter("bias_ih", suffix)
            )
            y, *final = through(a, suffix, *(state[place] for state in states))
            ends.append(y)
            for states_of_layers, state in zip(last, final, strict=True):
                states_of_layers.append(state)
        y = concat(ends, axis=-1) if len(ends) > 1 else ends[0]
        return y, [stack(states_of_layers) for states_of_layers in last]

    def _through_time(self, a: Tensor, suffix: str, *states: Tensor) -> tuple[Tensor, ...]:
        """One layer in one direction: its states at all times, and the last ones."""
        reverse = suffix.endswith("_reverse")
        y, *final = self._run(a, suffix, reverse, *states)
        return y, y[0 if reverse else -1], *final

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, Any]:
        """``forward`` of a packed sequence."""
        data = asarray(packed.data)
        if data.ndim != 2 or data.shape[-1] != self.input_size:
            raise NumgradValueError(
                f"{type(self).__name__}: packed data of shape {data.shape}; expected (elements, "
                f"input_size={self.input_size})"
            )
        blocks = blocks_of(packed)
        states = self._first_states(hx, blocks[0][2], True)
        if packed.sorted_indices is not None:
            order = tensor(packed.sorted_indices)
            states = [take(state, order, axis=1) for state in states]
        y, finals = self._through_layers(data, states, partial(self._through_blocks, blocks))
        if packed.unsorted_indices is not None:
            places = tensor(packed.unsorted_indices)
            finals = [take(state, places, axis=1) for state in finals]
        return packed._replace(data=y), finals[0] if len(finals) == 1 else tuple(finals)

    def _through_blocks(
        self, blocks: list[tuple[int, int, int]], a: Tensor, suffix: str, *states: Tensor
    ) -> tuple[Tensor, ...]:
        """``_through_time`` of blocks of time in which as many sequences go on."""
        reverse = suffix.endswith("_reverse")
        outputs: list[Any] = []
        ended: list[tuple[Tensor, ...]] = []
        now = tuple(state[: blocks[-1][2]] for state in states) if reverse else states
        for start, times, size in reversed(blocks) if reverse else blocks:
            going = now[0].shape[0]
            if going < size:  # backwards in time, more begin
                now = tuple(concat(n, s[going:size]) for n, s in zip(now, states, strict=True))
            elif going > size:
                ended.append(tuple(state[size:] for state in now))
                now = tuple(state[:size] for state in now)
            block = reshape(a[start : start + times * size], (times, size, a.shape[-1]))
            y, *now = self._through_time(block, suffix, *now)
            outputs.append(reshape(y, (times * size, y.shape[-1])))
        if ended:  # the longest come first
            now = tuple(concat(rows) for rows in zip(now, *reversed(ended), strict=True))
        return concat(outputs[::-1] if reverse else outputs), *now

    def _run(self, a: Tensor, suffix: str, reverse: bool, *states: Tensor) -> tuple[Tensor, ...]:
        """States at all times, and the last cell state of an LSTM."""
        raise NotImplementedError

    def _checked(self, input: Any) -> Tensor:
        name = type(self).__name__
        input = asarray(input)
        batch_first = "(batch, time, input_size)" if self.batch_first else None
        expected = f"{batch_first or '(time, batch, input_size)'} or (time, input_size)"
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise NumgradValueError(
                f"{name}: an input of shape {input.shape}; expected {expected} with "
                f"input_size={self.input_size}"
            )
        if input.shape[1 if self.batch_first and input.ndim == 3 else 0] == 0:
            raise NumgradValueError(
                f"{name}: an input of shape {input.shape} has no time; expected {expected} with at "
                "least one"
            )
        return input

    def _first_states(self, hx: Any, batch: int, batched: bool) -> list[Tensor]:
        """First states, each (layers * directions, batch, size)."""
        name = type(self).__name__
        if self.states == 1:
            hx = (hx,)
        elif hx is None:
            hx = (None,) * self.states
        elif not isinstance(hx, tuple | list) or len(hx) != self.states:
            raise NumgradTypeError(f"{name}: first states are a pair (h, c), got {type(hx)}")
        lead = (self.num_layers * self._directions, *((batch,) if batched else ()))
        sizes = (self._out_size, self.hidden_size)
        dtype = self._parameter("weight_hh", "l0").dtype
        checked_states = [
            starting_state(name, state, (*lead, size), dtype)
            for state, size in zip(hx, sizes, strict=False)
        ]
        return checked_states if batched else [state[:, None] for state in checked_states]

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, default in defaults.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(_Recurrent):
    """Layers of ``h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)``.

    Parameters
    ----------
    input_size, hidden_size
        Features of inputs and of states.
    num_layers
        How many layers stand on one another.
    nonlinearity
        ``"tanh"`` or ``"relu"``.
    bias
        Whether there are biases.
    batch_first
        Whether inputs and results have shape (batch, time, features) rather than (time, batch,
        features).
    dropout
        Probability of zeros between layers, in training.
    bidirectional
        Whether each layer also runs backwards in time; results of both stand side by side.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        If an argument is outside of its range.

    Notes
    -----
    Parameters have PyTorch's names: ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``,
    ``bias_hh_l0``, then with ``_reverse`` for the way back, then those of ``l1``.

    Examples
    --------
    >>> import numgrad as ng
    >>> layer = ng.nn.RNN(3, 2, num_layers=2)
    >>> layer
    RNN(3, 2, num_layers=2)
    >>> y, last = layer(ng.ones((7, 5, 3)))
    >>> y.shape, last.shape
    ((7, 5, 2), (2, 5, 2))
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_nonlinearity("RNN", nonlinearity)
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
            device, dtype,
        )  # fmt: skip
        self.nonlinearity = nonlinearity

    def _run(self, a: Tensor, suffix: str, reverse: bool, *states: Tensor) -> tuple[Tensor, ...]:
        weight, bias = self._parameter("weight_hh", suffix), self._parameter("bias_hh", suffix)
        return (
            rnn_sequence(a, *states, weight, bias, nonlinearity=self.nonlinearity, reverse=reverse),
        )


class GRU(_Recurrent):
    """Layers of gated recurrent units; the formula is that of ``GRUCell``.

    Parameters are those of ``RNN`` but ``nonlinearity``.

    Examples
    --------
    >>> import numgrad as ng
    >>> y, last = ng.nn.GRU(3, 2, bidirectional=True)(ng.ones((7, 5, 3)))
    >>> y.shape, last.shape
    ((7, 5, 4), (2, 5, 2))
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
            device, dtype,
        )  # fmt: skip

    def _run(self, a: Tensor, suffix: str, reverse: bool, *states: Tensor) -> tuple[Tensor, ...]:
        weight, bias = self._parameter("weight_hh", suffix), self._parameter("bias_hh", suffix)
        return (gru_sequence(a, *states, weight, bias, reverse=reverse),)


class LSTM(_Recurrent):
    """Layers of long short-term memory; the formula is that of ``LSTMCell``.

    Parameters are those of ``RNN`` but ``nonlinearity``, and ``proj_size``: with it, states are
    ``h' = (sigmoid(o) * tanh(c')) @ weight_hr.T`` of so many features. First and last states are
    pairs of state and cell state.

    References
    ----------
    S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9 (1997).

    Examples
    --------
    >>> import numgrad as ng
    >>> y, (h, c) = ng.nn.LSTM(3, 2, batch_first=True)(ng.ones((5, 7, 3)))
    >>> y.shape, h.shape, c.shape
    ((5, 7, 2), (1, 5, 2), (1, 5, 2))
    """

    gates = 4
    states = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip

    def _run(self, a: Tensor, suffix: str, reverse: bool, *states: Tensor) -> tuple[Tensor, ...]:
        weight, bias = self._parameter("weight_hh", suffix), self._parameter("bias_hh", suffix)
        h, c = states
        if not self.proj_size:
            return lstm_sequence(a, h, weight, bias, c, reverse=reverse)
        projection = self._parameter("weight_hr", suffix)
        outputs: dict[int, Tensor] = {}
        times = range(a.shape[0])
        for t in times[::-1] if reverse else times:
            y, c = lstm_sequence(a[t : t + 1], h, weight, bias, c)
            outputs[t] = h = linear(y[0], projection)
        return stack([outputs[t] for t in times]), c


class _Cell(Module):
    """Base of recurrent cells."""

    gates: int

    @checked
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        width = self.gates * hidden_size
        self.weight_ih = empty_parameter((width, input_size), dtype, device)
        self.weight_hh = empty_parameter((width, hidden_size), dtype, device)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(
                name, empty_parameter((width,), dtype, device) if bias else None
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values of the parameters."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _prepared(self, input: Any, *states: Any) -> tuple[Any, ...]:
        """Gates from the input, (1, batch, width), and states of a batch; None is zeros."""
        name = type(self).__name__
        input = asarray(input)
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise NumgradValueError(
                f"{name}: an input of shape {input.shape}; expected (batch, {self.input_size}) or "
                f"({self.input_size},)"
            )
        expected = (*input.shape[:-1], self.hidden_size)
        before = [starting_state(name, s, expected, self.weight_hh.dtype) for s in states]
        if input.ndim == 1:
            input, before = input[None], [s[None] for s in before]
        return linear(input, self.weight_ih, self.bias_ih)[None], *before

    @staticmethod
    def _as_given(input: Any, state: Tensor) -> Tensor:
        """A state without the axis of the batch if the input has none."""
        return state[0] if asarray(input).ndim == 1 else state

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else f"{text}, bias=False"


class RNNCell(_Cell):
    """``h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)``.

    Parameters
    ----------
    input_size, hidden_size
        Lengths of the last axes of ``x`` and ``h``.
    bias
        Whether there are ``bias_ih`` and ``bias_hh``.
    nonlinearity
        ``"tanh"`` or ``"relu"``.
    device
        None or ``"cpu"``.
    dtype
        Of the parameters, by default float64.

    Raises
    ------
    NumgradValueError
        For another nonlinearity, or if ``hidden_size`` is not positive.

    Examples
    --------
    >>> import numgrad as ng
    >>> cell = ng.nn.RNNCell(3, 2)
    >>> cell
    RNNCell(3, 2)
    >>> cell(ng.ones((5, 3)), ng.zeros((5, 2))).shape
    (5, 2)
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        """Return the next state, from zeros if there is no state."""
        a, h = self._prepared(input, hx)
        states = rnn_sequence(a, h, self.weight_hh, self.bias_hh, nonlinearity=self.nonlinearity)
        return self._as_given(input, states[0])

    def extra_repr(self) -> str:
        """The arguments of the constructor."""
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class GRUCell(_Cell):
    """Gated recurrent unit.

    With three gates each in ``a = x @ weight_ih.T + bias_ih`` and ``b = h @ weight_hh.T +
    bias_hh``: ``r = sigmoid(a0 + b0)``, ``z = sigmoid(a1 + b1)``, ``n = tanh(a2 + r * b2)``,
    ``h' = (1 - z) * n + z * h``. Parameters are those of ``RNNCell``.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.nn.GRUCell(3, 2)(ng.ones((5, 3))).shape
    (5, 2)
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Tensor:
        """Return the next state, from zeros if there is no state."""
        a, h = self._prepared(input, hx)
        states = gru_sequence(a, h, self.weight_hh, self.bias_hh)
        return self._as_given(input, states[0])


class LSTMCell(_Cell):
    """Long short-term memory.

    With four gates ``i, f, g, o`` in ``x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh``:
    ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and ``h' = sigmoid(o) * tanh(c')``. Parameters
    are those of ``RNNCell``.

    Examples
    --------
    >>> import numgrad as ng
    >>> h, c = ng.nn.LSTMCell(3, 2)(ng.ones((5, 3)))
    >>> h.shape, c.shape
    ((5, 2), (5, 2))
    """

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Tensor, Tensor]:
        """Return the next state and cell state; ``hx`` is a pair of those before, or zeros."""
        a, h, c = self._prepared(input, *((None, None) if hx is None else hx))
        states, last = lstm_sequence(a, h, self.weight_hh, self.bias_hh, c)
        return self._as_given(input, states[0]), self._as_given(input, last)
