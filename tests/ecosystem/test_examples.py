"""Examples in docstrings of adapters, run where the libraries are that they need."""

import doctest
import importlib.util
import inspect
import subprocess
import sys

import pytest

import numgrad as ng

LIBRARIES = {
    "Classifier": "sklearn",
    "Regressor": "sklearn",
    "arviz_draws": "arviz",
    "ipopt_problem": "cyipopt",
    "jax_function": "jax",
    "lmfit_jacobian": "lmfit",
    "log_density": "emcee",
    "minuit": "iminuit",
    "nlopt_problem": "nlopt",
    "nutpie_model": "nutpie",
    "prior_transform": "dynesty",
    "pytensor_op": "pymc",
}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def test_every_adapter_has_its_library():
    assert sorted(LIBRARIES) == ng.ecosystem.__all__


def test_without_its_library_an_adapter_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "iminuit", None)
    cost, adapter = ng.objective(lambda x: x**2, 1.0), ng.ecosystem.minuit
    with pytest.raises(ng.NumgradRuntimeError, match=r"minuit: needs iminuit.*pip install"):
        adapter(cost, errordef=1)


def test_what_is_no_objective_is_refused():
    with pytest.raises(ng.NumgradTypeError, match=r"takes what ng\.objective.*function"):
        ng.ecosystem.log_density(lambda x: x)


def run_example(name):
    """Run the example of an adapter, with what is skipped elsewhere."""
    adapter = getattr(ng.ecosystem, name)
    parsed = doctest.DocTestParser().get_doctest(inspect.getdoc(adapter) or "", {}, name, None, 0)
    for example in parsed.examples:
        example.options.pop(doctest.SKIP, None)
    assert parsed.examples
    assert not doctest.DocTestRunner(optionflags=FLAGS).run(parsed).failed


@pytest.mark.slow(cases=0)
@pytest.mark.parametrize("name", [n for n in sorted(LIBRARIES) if n != "jax_function"])
@pytest.mark.filterwarnings("ignore")  # those of the libraries
def test_example(name):
    pytest.importorskip(LIBRARIES[name])
    run_example(name)


@pytest.mark.slow(cases=0)
@pytest.mark.filterwarnings("ignore")
def test_example_of_jax():
    pytest.importorskip("jax")
    run_example("jax_function")


def test_adapters_load_their_library_when_they_are_called():
    if importlib.util.find_spec("iminuit") is None:
        pytest.skip("needs iminuit")
    program = (
        "import sys, numpy as np, numgrad as ng; ng.ecosystem.minuit, ng.ecosystem.log_density;"
        "assert 'iminuit' not in sys.modules;"
        "ng.ecosystem.minuit(ng.objective(np.sum, np.ones(2)), errordef=1);"
        "assert 'iminuit' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
