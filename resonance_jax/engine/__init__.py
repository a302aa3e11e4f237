"""A point on a grid of cells: trace, compile, run."""
