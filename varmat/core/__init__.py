"""The engine: arena, tape, variables, duals, operations, and the doors to NumPy."""
