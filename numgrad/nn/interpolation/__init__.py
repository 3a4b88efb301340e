"""Interpolation: images of another size, or seen through a grid."""
