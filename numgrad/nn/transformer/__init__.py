"""Transformers: layers of attention and feed-forward networks."""
