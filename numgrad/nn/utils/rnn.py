"""Sequences of different lengths: padded to one array, or packed without padding.

>>> import numgrad as ng
>>> sequences = [ng.tensor([1.0, 2.0, 3.0]), ng.tensor([4.0])]
>>> ng.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
tensor([[1., 2., 3.],
        [4., 0., 0.]])
>>> ng.nn.utils.rnn.pack_sequence(sequences).data
tensor([1., 4., 2., 3.])
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.nn.packed_sequence": "PackedSequence invert_permutation pack_padded_sequence "
        "pack_sequence pad_packed_sequence pad_sequence unpack_sequence unpad_sequence"
    },
)
