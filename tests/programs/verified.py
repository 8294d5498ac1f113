"""What holds of every program."""

from __future__ import annotations

from varmat.programs.ir.program import Program, Value


def verify(program: Program) -> None:
    """Raise `ValueError` unless every value is made before it is read, once, and views lie within
    their memory.
    """
    known = {id(v) for v in program.arguments}
    for number, step in enumerate(program.steps):
        for value in step.operands:
            _verify_read(value, known, f"step {number}, {step.kernel.name},")
        for value in step.results:
            if id(value) in known or value.step is not step:
                raise ValueError(
                    f"step {number}, {step.kernel.name}, makes a value that another step makes"
                )
            known.add(id(value))
    for value in program.outputs:
        _verify_read(value, known, "the program returns what it does not make:")


def _verify_read(value: Value, known: set[int], where: str) -> None:
    base = value.base
    if not base.is_constant and id(base) not in known:
        raise ValueError(f"{where} reads a value of shape {value.shape} before it is made")
    if value.is_view and value.size and base.data is None:
        reach = [(n - 1) * stride for n, stride in zip(value.shape, value.strides, strict=True)]
        low, high = (
            value.offset + sum(min(r, 0) for r in reach),
            value.offset + sum(max(r, 0) for r in reach),
        )
        if low < 0 or high + value.dtype.itemsize > base.size * base.dtype.itemsize:
            raise ValueError(
                f"{where} reads outside of the memory of a value of shape {base.shape}"
            )
