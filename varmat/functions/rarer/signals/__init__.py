"""Filters, smoothing, convolutions in several dimensions, cosine transforms."""
