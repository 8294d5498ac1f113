"""Functions that move, join, choose, count and sum the elements of arrays."""
