"""A package, for other folders have files of the same names."""
