"""The workloads, a module a family. Importing this package fills `FAMILIES`."""
