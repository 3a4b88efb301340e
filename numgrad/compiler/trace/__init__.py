"""A function run once on arrays without numbers becomes a graph."""
