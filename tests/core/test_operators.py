"""The operators of variables: each calls the operation that the table names."""

import numpy as np
from comparing import equal

import varmat as vm
from varmat.core import dispatch
from varmat.core.elementwise import ROWS
from varmat.core.operators import ANSWERS, InPlaceOperators, Operators, ReflectedOperators
from varmat.core.variables import VARIABLES

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power,
    "floordiv": np.floor_divide, "mod": np.remainder, "matmul": np.matmul,
}  # fmt: skip


def test_every_operator_has_an_answer():
    for name, answer in ANSWERS.items():
        assert answer is ROWS.get(name, answer), name
        assert callable(answer.call), name
    names = {name for name in vars(Operators) if name.startswith("__")}
    for name in BINARY:
        assert {f"__{name}__", f"__r{name}__"} <= names
        assert f"__i{name}__" in vars(InPlaceOperators)
        assert f"__r{name}__" in vars(ReflectedOperators)


def test_a_user_makes_an_operator():
    ufunc = np.frompyfunc(lambda x, y: x * 2.0**y, 2, 1)
    row = vm.elementwise("shifted_left", ufunc, "g * exp2(y)", "0.0 * g", operator="lshift")
    try:
        x = vm.var(np.array([1.0, 3.0]))
        y = x << 2.0
        equal(vm.value(y), [4.0, 12.0])
        equal(np.sum(y).grad(x), [4.0, 4.0])
        y <<= 1.0
        equal(vm.value(y), [8.0, 24.0])
        # Another row of the name, or of the name of an operator, answers for none.
        for name in ("shifted_left", "add"):
            vm.elementwise(name, np.frompyfunc(lambda x, y: x, 2, 1), "g", "0.0 * g")
        equal(vm.value(3.0 << x), [6.0, 24.0])
        equal(vm.value(3.0 + vm.var(np.ones(2))), [4.0, 4.0])
        equal(vm.value(np.ones(2) + vm.matvar(np.ones(2))), [2.0, 2.0])
    finally:
        for kind in (*VARIABLES, vm.Dual, InPlaceOperators, ReflectedOperators):
            for name in {"__lshift__", "__rlshift__", "__ilshift__"} & vars(kind).keys():
                delattr(kind, name)
        del ANSWERS[row], dispatch.SUPPORTED[ufunc]
