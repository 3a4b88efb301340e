"""Softmax over many classes, of which few are frequent."""
