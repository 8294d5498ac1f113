"""Rows for the rarer ufuncs of `scipy.special`."""
