"""Tracing: how functions of arrays become steps of programs. It begins in `symbol`."""
