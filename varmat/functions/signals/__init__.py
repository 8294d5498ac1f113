"""Convolutions, filters, recurrences and discrete transforms of series."""
