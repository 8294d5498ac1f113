"""This is a package because another folder has a test_elementwise.py too."""
