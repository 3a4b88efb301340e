"""The documentation site: formulas, pages, equivalents, and the built pages in a browser."""

import importlib
import inspect
import json
import os
import re
import shutil
import sys
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import numgrad
from tests.test_public_names import MODULES, NAMES

SOURCES = Path(__file__).parent.parent / "notebooks"
sys.path.insert(0, str(SOURCES))

from _site import handbook, reference  # noqa: E402
from _site.formulas import latex  # noqa: E402

sys.path.remove(str(SOURCES))


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        ("g * np.conj(y)", r"g \, \overline{y}"),
        ("g * (a - b)", r"g \, \left(a - b\right)"),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("-(a + b)", r"-\left(a + b\right)"),
        ("-g * x", r"\left(-g\right) \, x"),
        ("(-x) ** 2", r"\left(-x\right)^{2}"),
        ("(a * b) ** 2", r"\left(a \, b\right)^{2}"),
        ("a ** 2 ** k", "a^{2^{k}}"),
        ("g / (2 * np.conj(y))", r"\frac{g}{2 \, \overline{y}}"),
        ("1.5e-300 * x", r"1.5 \cdot 10^{-300} \, x"),
        ("1j * g", r"i \, g"),
        (
            "np.where(a < b, g, 0)",
            r"\begin{cases} g & \text{if } a < b \\ 0 & \text{else} \end{cases}",
        ),
        ("g * gamma(x_1)", r"g \, \Gamma\left(\mathrm{x\_1}\right)"),
    ],
)
def test_formulas_are_typeset(formula, written):
    assert latex(formula) == written


@pytest.mark.parametrize(
    "formula",
    [
        "flip(g, axis=axis)",
        "g[0]",
        "helper(g)",
        "np.sum(g, axis)",
        "x and y",
        "np.where(c, *ab)",
        "a <",
        "f()",
    ],
)
def test_formulas_that_are_no_mathematics_stay_code(formula):
    assert latex(formula) is None


reference_pages = cache(reference.pages)


def test_every_public_name_has_a_page():
    pages = reference_pages()
    assert set(reference.MODULES) >= {f"numgrad.{name}" for name in MODULES.split()} - {
        "numgrad.array_api.fft",  # the standard's extensions, which are numgrad.fft and linalg
        "numgrad.array_api.linalg",
        "numgrad.autograd.function",
        "numgrad.spatial",  # whose only name is the module distance
        "numgrad.tree",
    }
    names = [n for n in NAMES.split() if n not in {m.partition(".")[0] for m in MODULES.split()}]
    assert not [name for name in names if f"reference/numgrad.{name}.rst" not in pages]
    listed = set(re.findall(r"<(numgrad[\w.]+)>`", "".join(pages.values())))
    assert listed == {name[10:-4] for name in pages if not name.endswith(("-.rst", "index.rst"))}


def test_pages_of_other_names_lead_to_the_first():
    pages = reference_pages()
    assert "Another name for :doc:`numgrad.abs`" in pages["reference/numgrad.absolute.rst"]
    assert ".. autofunction:: numgrad.abs" in pages["reference/numgrad.abs.rst"]


def test_pages_say_how_they_were_tested():
    page = reference_pages()["reference/numgrad.exp.rst"]
    assert (
        "- Values: ``numpy.exp`` of operands from -2 to 2, also at 0, 710, -746, in float64,"
        in page
    )
    assert "- First and second derivatives: finite differences of float64 and, where it" in page
    arctan2 = reference_pages()["reference/numgrad.arctan2.rst"]
    assert "finite differences of float64 in " in arctan2  # which is of real numbers
    assert "derivatives" not in reference_pages()["reference/numgrad.argmax.rst"]
    for name in ("numgrad.grad", "numgrad.nn.Linear", "numgrad.stats.norm", "numgrad.minimize"):
        files = re.findall(r"`(tests/[\w/]+\.py) <", reference_pages()[f"reference/{name}.rst"])
        assert files
        last = name.rpartition(".")[2]
        assert all(f".{last}" in (SOURCES.parent / f).read_text(encoding="utf-8") for f in files)


def test_pages_say_the_form_under_jit():
    pages = reference_pages()
    assert ".. rubric:: Under ng.jit" in pages["reference/numgrad.nn.Linear.rst"]
    assert ".. rubric:: Under ng.jit" in pages["reference/numgrad.stats.norm.rst"]
    assert ".. rubric:: Under ng.jit" not in pages["reference/numgrad.exp.rst"]
    assert "Under ``ng.jit``" in inspect.getdoc(numgrad.exp)


def test_versions_to_switch_to():
    versions = json.loads((SOURCES / "_static" / "versions.json").read_text(encoding="utf-8"))
    assert [set(entry) for entry in versions] == [{"name", "version", "url"}] * len(versions)
    assert "development" in [entry["version"] for entry in versions]
    assert all(re.fullmatch(r"https://[\w./-]+/", entry["url"]) for entry in versions)


def test_gradients_in_docstrings_become_formulas():
    lines = [
        "f(x, *, k)", "Sentence.", "", "Gradient", "--------", "With ``g``:", "",
        "x : ``g * y``", "a, b_1 : ``g``", "c :", "    r = g[0]", "    return r", "k : none",
        "", "Notes", "-----", "x : stays",
    ]  # fmt: skip
    reference.typeset(None, "function", "f", None, None, lines)
    text = "\n".join(lines)
    assert text.startswith("Sentence.")
    assert ".. math::\n\n   \\mathrm{x} :\\quad g \\, y\n" in text
    assert "   \\mathrm{a}, \\mathrm{b\\_1} :\\quad g\n" in text
    assert "``c``::\n\n    r = g[0]\n    return r\n\n\nk : none\n" in text
    assert text.endswith("Notes\n-----\nx : stays")


def test_the_handbook_has_a_page_for_each_module_with_notes():
    pages = handbook.pages()
    assert len(pages) > 100
    index = pages.pop("handbook/index.rst")
    listed = re.findall(r"^   ([\w-]+)$", index, re.M)
    assert sorted(listed) == sorted(name[len("handbook/") : -len(".rst")] for name in pages)
    named = re.findall(r":doc:`([\w-]+)`", index)
    assert set(named) <= set(listed)
    assert r"|x|" not in pages["handbook/kernels-vmath-hyperbolic.rst"].replace(r"\|x\|", "")


@pytest.mark.filterwarnings("ignore")  # PyTorch warns of parameters that are not given
def test_equivalents_are_there_and_agree():
    pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    sys.path.insert(0, str(SOURCES))
    from _site import equivalents

    sys.path.remove(str(SOURCES))
    stored = json.loads(equivalents.STORE.read_text())
    assert len(stored) > 300
    names = sorted(stored)[::10]
    with jax.enable_x64(True):
        for name in names:
            own = getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])
            for other in stored[name]:
                home, _, last = other.rpartition(".")
                array = equivalents._tensor if home.startswith("torch") else jax.numpy.asarray
                function = getattr(importlib.import_module(home), last)
                assert equivalents.agrees(own, function, array), other


# --------------------------------------------------------------------------- the site in a browser

PAGES = (
    "index.html",
    "00_tour.html",
    "gallery.html",
    "generated/reference/numgrad.logsumexp.html",
    "generated/handbook/index.html",
)


class QuietHandler(SimpleHTTPRequestHandler):
    """Server of files that writes no line for each."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    """Address of the built site, whose folder NUMGRAD_SITE names."""
    folder = os.environ.get("NUMGRAD_SITE")
    if not folder:
        pytest.skip("NUMGRAD_SITE names no built site")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    """Chromium of the system."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium here")
    with playwright.sync_playwright() as driver:
        program = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield program
        program.close()


@pytest.mark.parametrize("page", PAGES)
def test_pages_open_without_errors_and_are_legible_on_a_phone(site, browser, page):
    errors = []
    view = browser.new_page(viewport={"width": 400, "height": 800})
    view.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    view.on("pageerror", lambda error: errors.append(str(error)))
    view.on("requestfailed", lambda request: errors.append(request.url))
    view.goto(f"{site}/{page}", wait_until="load")
    assert not errors
    assert view.evaluate("document.documentElement.scrollWidth") <= 400
    broken = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"
    assert view.evaluate(broken) == []
    assert (
        view.evaluate("parseFloat(getComputedStyle(document.querySelector('main p')).fontSize)")
        >= 14
    )
    view.close()


def test_search_finds_a_function(site, browser):
    view = browser.new_page()
    view.goto(f"{site}/search.html?q=logsumexp")
    view.wait_for_selector("#search-results li a")
    links = view.evaluate("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
    assert any("numgrad.logsumexp.html" in link for link in links)
    view.close()
