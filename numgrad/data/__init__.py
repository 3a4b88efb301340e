"""Datasets, and loaders that give their rows in batches.

A ``DataLoader`` takes anything with a length and an index, such as ``TensorDataset``, or arrays of
equal length; ``random_split`` cuts a dataset into parts, ``ConcatDataset`` and ``StackDataset`` put
several together. Samplers such as ``WeightedRandomSampler`` say which samples come; ``progress``
shows how far a loop over a loader has got.

>>> import numpy as np
>>> import numgrad as ng
>>> loader = ng.data.DataLoader((np.arange(5.0), np.arange(5)), batch_size=2)
>>> [x.shape for x, y in loader]
[(2,), (2,), (1,)]
"""

from numgrad.core.namespaces import namespace as _namespace

_namespace(
    globals(),
    {
        "numgrad.data.dataset": "ChainDataset ConcatDataset Dataset IterableDataset StackDataset "
        "Subset TensorDataset random_split",
        "numgrad.data.loader": "DataLoader default_collate default_convert",
        "numgrad.data.sampler": "BatchSampler DistributedSampler RandomSampler Sampler "
        "SequentialSampler SubsetRandomSampler WeightedRandomSampler",
        "numgrad.data.workers": "WorkerInfo get_worker_info",
        "numgrad.progress": "progress",
    },
)
