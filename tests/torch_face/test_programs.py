"""Programs written for PyTorch give its numbers with ``numgrad.torch`` in its place."""

import importlib.util
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import numgrad.torch as ng_torch
from tests.torch_face.scripts import SCRIPTS

FOLDER = Path(__file__).parents[2] / "perf" / "torch_programs"


def _module(name):
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location(
            f"torch_programs_{name}", FOLDER / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(FOLDER))


def _functions(module):
    return {
        name: f
        for name, f in vars(module).items()
        if isinstance(f, FunctionType) and f.__module__ == module.__name__ and name[0] != "_"
    }


IDIOMS = _functions(_module("idioms"))
PROGRAMS = _module("__main__").programs()


def test_there_are_36_idioms():
    assert len(IDIOMS) == 36


def _flat(value):
    if hasattr(value, "detach"):
        return [np.asarray(value.detach().numpy())]
    if isinstance(value, dict):
        return [part for key, each in value.items() for part in [key, *_flat(each)]]
    if isinstance(value, list | tuple):
        return [part for each in value for part in _flat(each)]
    return [value]


@pytest.mark.parametrize("name", IDIOMS)
@pytest.mark.filterwarnings("ignore")  # which PyTorch gives too
def test_idiom(name):
    torch = pytest.importorskip("torch")
    own, other = (_flat(IDIOMS[name](library)) for library in (ng_torch, torch))
    assert len(own) == len(other)
    for a, b in zip(own, other, strict=True):
        if isinstance(b, np.ndarray | float):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        else:
            assert a == b


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_program(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    torch.set_num_threads(1)  # processes that are forked have no other threads
    own, other = (PROGRAMS[name](library)(10) for library in (ng_torch, torch))
    np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
@pytest.mark.filterwarnings("ignore")
def test_script(script):
    torch = pytest.importorskip("torch")
    own, other = (_flat(script(library)) for library in (ng_torch, torch))
    assert len(own) == len(other)
    for a, b in zip(own, other, strict=True):
        if isinstance(b, np.ndarray | float):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
        else:
            assert str(a).replace("torch.", "") == str(b).replace("torch.", "")
