"""Sums and vectors of many jobs, computed by the workers of an executor: threads, processes, other
machines.
"""
