"""Gallery: pictures of the notebooks, each with the code that drew it.

A cell of a notebook with the tag ``gallery`` appears on the page of the directive ``gallery``, as
it was executed there.
"""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

TAG = "tag_gallery"
"""Class that MyST-NB gives to cells with the tag."""


class GalleryNode(nodes.General, nodes.Element):
    """Place where the pictures go, once all notebooks have been read."""


class Gallery(SphinxDirective):
    """Directive without content or options: all pictures."""

    def run(self) -> list[nodes.Node]:
        """A place for the pictures."""
        return [GalleryNode()]


def pictures(env: BuildEnvironment) -> Iterator[tuple[str, nodes.container]]:
    """Cells with the tag, with the names of their notebooks."""
    for name in sorted(env.found_docs):
        for cell in env.get_doctree(name).findall(nodes.container):
            if TAG in cell["classes"]:
                yield name, cell


class FillGallery(SphinxPostTransform):
    """Put the pictures of all notebooks into the place."""

    default_priority = 3  # before MyST-NB chooses, at 4, in which form an output is shown

    def run(self, **kwargs: Any) -> None:
        """Copy the cells, each below the title of its notebook."""
        for place in list(self.document.findall(GalleryNode)):
            sections: list[nodes.Node] = []
            for notebook, cell in pictures(self.env):
                title = nodes.Text(self.env.titles[notebook].astext())
                link = make_refnode(self.app.builder, self.env.docname, notebook, "", title)
                sections.append(nodes.paragraph("", "", link, classes=["gallery-title"]))
                sections.append(cell.deepcopy())
            place.replace_self(sections)


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_node(GalleryNode)
    app.add_directive("gallery", Gallery)
    app.add_post_transform(FillGallery)
