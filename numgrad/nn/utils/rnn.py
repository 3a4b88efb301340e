"""Sequences of different lengths: padded to one array, or packed without padding.

>>> import numgrad as ng
>>> sequences = [ng.tensor([1.0, 2.0, 3.0]), ng.tensor([4.0])]
>>> ng.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
tensor([[1., 2., 3.],
        [4., 0., 0.]])
>>> ng.nn.utils.rnn.pack_sequence(sequences).data
tensor([1., 4., 2., 3.])
"""

from numgrad.core.absent import absent as _absent
from numgrad.nn.recurrent.packed import PackedSequence as PackedSequence
from numgrad.nn.recurrent.packed import invert_permutation as invert_permutation
from numgrad.nn.recurrent.packed import pack_padded_sequence as pack_padded_sequence
from numgrad.nn.recurrent.packed import pack_sequence as pack_sequence
from numgrad.nn.recurrent.packed import pad_packed_sequence as pad_packed_sequence
from numgrad.nn.recurrent.packed import pad_sequence as pad_sequence
from numgrad.nn.recurrent.packed import unpack_sequence as unpack_sequence
from numgrad.nn.recurrent.packed import unpad_sequence as unpad_sequence

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


__getattr__ = _absent(__name__, __all__, {})


def __dir__() -> list[str]:
    return __all__
