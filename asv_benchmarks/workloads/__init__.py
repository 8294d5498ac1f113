"""The workloads, with a module for each family. Importing this package fills `FAMILIES`."""
