"""Names that moved out of `varmat` are found there for one more release, with a warning."""

import importlib
import pickle
import re
import subprocess
import sys

import pytest
from test_docs import missing_sections, run_doctest

import varmat as vm

MOVED = {
    "varmat.functions.special.bessel_functions": "log_iv_derivative log_kv_derivative",
    "varmat.functions.special.deviances": """
        binomial_deviance binomial_logit_deviance neg_binomial_2_deviance
        neg_binomial_2_log_deviance poisson_log_deviance
    """,
    "varmat.functions.special.hypergeometric_functions": "hyp2f1_da hyp2f1_db hyp2f1_dc",
    "varmat.functions.special.incomplete_functions": """
        beta_density_derivative betainc_derivative gamma_density_derivative gammainc_derivative
    """,
    "varmat.functions.special.log_incomplete": """
        log_betainc_derivative log_betaincc_derivative log_gammainc_derivative
        log_gammaincc_derivative
    """,
    "varmat.functions.special.log_normal_tails": """
        log_exp_mod_normal log_skew_normal log_von_mises_integral von_mises_moment
    """,
    "varmat.functions.special.stirling": """
        digamma_excess log_factorial_excess log_gamma_excess log_gamma_excess_derivative
    """,
    "varmat.functions.special.zeta_functions": "zeta_difference",
    "varmat.stan.functions": """
        e machine_precision negative_infinity not_a_number pi positive_infinity sqrt2
        identity_matrix linspaced_array linspaced_row_vector linspaced_vector one_hot_array
        one_hot_int_array one_hot_row_vector one_hot_vector ones_array ones_int_array
        ones_row_vector ones_vector rep_array rep_matrix rep_row_vector
        rep_vector uniform_simplex unitspaced_array zeros_array zeros_int_array
        zeros_row_vector zeros_vector
    """,
    "varmat.testing": """
        finite_diff_grad_hessian finite_diff_grad_hessian_auto finite_diff_gradient
        finite_diff_gradient_auto finite_diff_hessian finite_diff_hessian_auto
        finite_diff_hessian_times_vector_auto finite_diff_stepsize
    """,
}
NAMES = [(module, name) for module, names in MOVED.items() for name in names.split()]
SUBPACKAGES = {"distributions", "numpy", "scipy", "stan", "testing", "transforms", "typing"}


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_a_moved_name_warns_and_is_the_object_of_its_module(module, name):
    text = f"^varmat.{name} is deprecated: import {name} from {module}$"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        found = getattr(vm, name)
    assert [warning.filename for warning in caught] == [__file__]
    assert found is getattr(importlib.import_module(module), name)
    assert pickle.loads(pickle.dumps(found)) is found
    assert not missing_sections(found)
    run_doctest(found.__doc__, name)


def test_rows_are_unpickled_in_a_new_process():
    """It has imported nothing but varmat, so the rows have to come with that."""
    rows = [
        getattr(importlib.import_module(module), name)
        for module, name in NAMES
        if module not in ("varmat.stan.functions", "varmat.testing")
    ]
    code = "import pickle, sys; print(*pickle.load(sys.stdin.buffer), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=pickle.dumps(rows),
        capture_output=True,
        check=True,
        timeout=250,
    )
    assert found.stdout.decode().splitlines() == list(map(repr, rows))


def test_an_import_of_a_moved_name_warns_on_its_line():
    with pytest.warns(DeprecationWarning, match=r"^varmat.hyp2f1_da is deprecated") as caught:
        from varmat import hyp2f1_da  # noqa: F401
    assert {warning.filename for warning in caught} == {__file__}


def test_moved_names_are_not_listed():
    moved = {name for _, name in NAMES}
    assert len(moved) == 64
    assert not moved & {*vm.__all__}
    assert not moved & {*dir(vm)}


def test_dir_lists_public_names_only():
    listed = {name for name in dir(vm) if not name.startswith("__")}
    assert listed == {*vm.__all__} | SUBPACKAGES
    assert all(hasattr(vm, name) for name in listed)


def test_no_error_suggests_a_moved_name():
    for name in ("finite_diff_gradien", "log_gamma_exces", "zeta_differenc"):
        with pytest.raises(AttributeError) as raised:
            getattr(vm, name)
        assert not {moved for _, moved in NAMES} & {*re.findall(r"\w+", str(raised.value))}
