"""Functions of neural networks without state, with PyTorch's names and arguments."""

from numgrad.nn.functional.embedding import embedding as embedding
from numgrad.nn.functional.embedding import one_hot as one_hot
