"""Configuration of the documentation's site: ``sphinx-build notebooks build/site``."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # where _site is

import numgrad

# Where the site will be, and which of _static/versions.json it is.
SITE = os.environ.get("NUMGRAD_SITE_ADDRESS", "/")
VERSION = os.environ.get("NUMGRAD_SITE_VERSION", "development")

project = "numgrad"
author = copyright = "the numgrad authors"
version = release = numgrad.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "_site.extension",
]
suppress_warnings = [
    "ref.footnote",  # a source may be named without a mark
    "ref.python",  # words such as shape, where types are described, are attributes of several
]
exclude_patterns = ["_site", "conf.py"]
templates_path: list[str] = []

# Notebooks are executed at each build; one that raises ends it.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_use_param = False  # which would repeat what several parameters share
napoleon_custom_sections = ["Gradient"]
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
# MathJax comes with a package, so that pages ask no other server; as an extension that package would
# keep Sphinx from reading pages in parallel.
mathjax_package: Any = find_spec("sphinx-mathjax-offline")
html_static_path = ["_static", str(Path(mathjax_package.origin).parent / "static")]
mathjax_path = "mathjax/tex-chtml.js"

html_context = {"default_mode": "auto"}
html_title = "numgrad"
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_sidebars: dict[str, list[str]] = {
    "generated/reference/**": [],  # a tree of a thousand names on each page
    **{page: [] for page in ("index", "install", "gallery", "benchmarks", "promises")},
}
html_theme_options = {
    "github_url": "https://github.com/numgrad/numgrad",
    "show_prev_next": False,
    "collapse_navigation": True,
    "navbar_align": "left",
    # A file of the site itself; nothing is asked of others while pages are made.
    "switcher": {"json_url": f"{SITE}_static/versions.json", "version_match": VERSION},
    "check_switcher": False,
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "secondary_sidebar_items": ["page-toc"],
}
