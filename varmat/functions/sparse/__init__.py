"""Sparse matrices with variables as their non-zeros."""
