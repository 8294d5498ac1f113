"""A package, as the folder above."""
