"""What the steps of programs compute. `programs.ir.kernel` says what each kernel offers."""
