"""The representation: values, steps, kernels, programs; what they mean, and where values lie."""
