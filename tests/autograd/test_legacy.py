"""SEMANTICS.md, preface: names of PyTorch's past get an error that says what to use."""

import pytest

import numgrad as ng


def test_volatile():
    with pytest.raises(TypeError, match="inference_mode"):
        ng.tensor([1.0], volatile=True)
    with pytest.raises(TypeError, match="no parameter is called 'device'"):
        ng.tensor([1.0], device="cpu")


def test_variable():
    with pytest.raises(RuntimeError, match=r"ng\.tensor"):
        ng.autograd.Variable(ng.ones(2), volatile=True)


def test_creator():
    with pytest.raises(AttributeError, match="use grad_fn"):
        _ = ng.ones(2).creator
