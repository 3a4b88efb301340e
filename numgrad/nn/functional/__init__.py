"""The functions behind the modules, which take their parameters as arguments."""

from numgrad.nn.functional.conv import conv1d as conv1d
from numgrad.nn.functional.conv import conv2d as conv2d
from numgrad.nn.functional.conv import conv_transpose1d as conv_transpose1d
from numgrad.nn.functional.conv import conv_transpose2d as conv_transpose2d
from numgrad.nn.functional.linear import bilinear as bilinear
from numgrad.nn.functional.linear import linear as linear
from numgrad.nn.functional.padding import pad as pad
from numgrad.nn.functional.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from numgrad.nn.functional.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from numgrad.nn.functional.pooling import avg_pool1d as avg_pool1d
from numgrad.nn.functional.pooling import avg_pool2d as avg_pool2d
from numgrad.nn.functional.pooling import max_pool1d as max_pool1d
from numgrad.nn.functional.pooling import max_pool2d as max_pool2d
