"""Rearrangement: elements of images moved between places and channels."""
