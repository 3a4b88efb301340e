"""Filters and interpolation of images of any number of axes."""
