"""Extension of Sphinx that writes numgrad's reference, its handbook and its gallery.

Pages that follow from the code are written to ``notebooks/generated`` before Sphinx reads its
sources; nothing in there is edited by hand.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from _site import chart, gallery, handbook, reference, torch_names


def write_pages(app: Sphinx) -> None:
    """Write the generated sources."""
    folder = Path(app.srcdir) / "generated"
    pages = {**reference.pages(), **handbook.pages(), **torch_names.pages()}
    pages["gradbench.txt"] = chart.gradbench_table(folder.parent / "gradbench.json")
    for old in folder.rglob("*.rst"):
        if str(old.relative_to(folder)) not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:  # Sphinx reads again what is newer
            path.write_text(text)
    chart.draw(folder.parent / "benchmarks.json", folder / "speed.png")
    chart.draw_growth(folder.parent / "growth.json", folder / "growth.png")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the writers; Sphinx calls this."""
    app.connect("builder-inited", write_pages)
    # before the docstring's sections are read
    app.connect("autodoc-process-docstring", reference.typeset, priority=100)
    gallery.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
