"""`expect_ad_matvar` catches what is wrong with matvars, and says so."""

import pytest
from comparing import refuses
from testing.operations import A, B, matvar_value_off, own_tables, square  # noqa: F401 - own_tables is a fixture

import varmat as vm
from varmat.testing import expect_ad_matvar


def matvar_gradient_off():
    return lambda x: x * x if not isinstance(x, vm.MatVar) else x * x + (x - x.val) * 1e-7


def varmat_from_matvar():
    return lambda x: vm.to_varmat(x) * 2.0


def varmat_from_matvar_and_scalar():
    return lambda x, y: (
        (vm.to_varmat(x) if isinstance(x, vm.MatVar) and isinstance(y, vm.Var) else x) * y
    )


def matvar_from_varmat():
    return lambda x, y: vm.to_matvar(vm.to_varmat(x) * vm.to_varmat(y))


def raises_for_matvar():
    return square(value=lambda x: x * x if x.dtype == float else [][0], native=True)


WRONG_MATVAR = [
    (matvar_value_off, (A,),
        r"value with matvar and plain NumPy disagree: f\(MatVar \(3,\)\): value 0\[\d\]"),
    (matvar_gradient_off, (A,), "gradient with matvar and varmat disagree.*respect to argument 0"),
    (varmat_from_matvar, (A, ),
        (r"the rule that with matvars only it is a MatVar disagree: f\(MatVar.*: result 0 is a "
        r"VarMat")),
    (varmat_from_matvar_and_scalar, (A, 2.0),
        r"only it is a MatVar disagree: f\(MatVar \(3,\), Var\): result 0 is a VarMat"),
    (matvar_from_varmat, (A, B),
        (r"with a varmat among the arguments it is a VarMat disagree: f\(VarMat \(3,\), MatVar "
        r"\(3,\)\)")),
    (raises_for_matvar, (A,), "matvar and plain NumPy disagree.*raises IndexError"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("maker", "args", "message"), WRONG_MATVAR, ids=[row[0].__name__ for row in WRONG_MATVAR]
)
def test_wrong_matvar_is_caught(maker, args, message):
    refuses(AssertionError, message, expect_ad_matvar, maker(), *args)
