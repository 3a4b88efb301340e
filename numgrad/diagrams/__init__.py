"""Boxes of text and arrows between them: layout, SVG, DOT. What boxes show is not known here."""
