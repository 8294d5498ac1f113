"""What the steps of programs compute. What each kernel offers is said in `programs.ir.kernel`."""
