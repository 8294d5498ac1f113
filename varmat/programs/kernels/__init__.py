"""The kernels of steps. `programs.ir.kernel` says what each of them offers."""
