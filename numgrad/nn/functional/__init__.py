"""The functions behind the modules, which take their parameters as arguments."""

from numgrad.nn.functional.embedding import embedding as embedding
from numgrad.nn.functional.embedding import one_hot as one_hot
from numgrad.nn.functional.linear import bilinear as bilinear
from numgrad.nn.functional.linear import linear as linear
