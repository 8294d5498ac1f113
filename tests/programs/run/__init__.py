"""This is a package for the same reason as the folder above."""
