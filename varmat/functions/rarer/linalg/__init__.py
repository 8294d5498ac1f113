"""Banded and structured matrices, matrix equations, roots and decompositions."""
