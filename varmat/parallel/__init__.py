"""Sums and vectors of many jobs, computed by workers: threads, processes, other machines."""
