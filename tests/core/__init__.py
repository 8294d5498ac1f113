"""A package, for another folder has a test_elementwise.py too."""
