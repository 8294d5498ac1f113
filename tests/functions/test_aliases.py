"""Aliases: what their errors say."""

import pickle
import re

import pytest

import varmat as vm
from varmat.functions.aliases import alias
from varmat.stan import containers

# Main names -> others.
ALIASES = {
    "betainc": "inc_beta", "betaincinv": "inv_inc_beta", "betaln": "lbeta",
    "cumsum": "cumulative_sum", "det": "determinant", "diag": "diag_matrix", "digamma": "psi",
    "divide": "elt_divide", "erfcinv": "inv_erfc", "expit": "inv_logit", "expm": "matrix_exp",
    "gamma": "tgamma", "gammainc": "gamma_p", "gammaincc": "gamma_q", "gammaln": "lgamma",
    "gp_exp_quad_cov": "cov_exp_quad", "hyp2f1": "hypergeometric_2F1", "inv": "inverse",
    "iv": "modified_bessel_first_kind", "jv": "bessel_first_kind",
    "kv": "modified_bessel_second_kind", "lchoose": "binomial_coefficient_log",
    "linspaced_vector": "linspaced_array linspaced_row_vector",
    "log_determinant_spd": "log_determinant_ldlt", "log_expit": "log_inv_logit",
    "logsumexp": "log_sum_exp", "lower_upper": "interval",
    "mdivide_left_spd": "mdivide_left_ldlt", "mdivide_right_spd": "mdivide_right_ldlt",
    "multiply": "elt_multiply", "ndtr": "Phi", "ndtri": "inv_Phi std_normal_qf",
    "ndtri_exp": "std_normal_log_qf", "negative": "minus",
    "one_hot_vector": "one_hot_array one_hot_row_vector",
    "ones_vector": "ones_array ones_row_vector", "pinv": "generalized_inverse",
    "poch": "rising_factorial", "positive": "plus", "reciprocal": "inv",
    "rep_vector": "rep_row_vector", "simplex_constrain": "stochastic_row_constrain",
    "simplex_free": "stochastic_row_free", "solve": "mdivide_left",
    "to_vector": "to_array_1d to_row_vector", "xlogy": "lmultiply multiply_log",
    "yv": "bessel_second_kind", "zeros_vector": "zeros_array zeros_row_vector",
}  # fmt: skip


def test_names_of_one_function_run_one_function():
    found = {}
    for name in sorted([*vm.__all__, *containers.__all__]):
        function = getattr(containers if name in containers.__all__ else vm, name)
        if hasattr(function, "alias_of"):
            found.setdefault(function.alias_of.__name__, []).append(name)
            assert (function.__name__, function.__doc__) == (name, function.alias_of.__doc__)
    assert {name: " ".join(others) for name, others in found.items()} == ALIASES


@pytest.mark.parametrize(("text", "expected"), [
    ("halved: x is 1; the signature is halved(x)", "half: x is 1; the signature is half(x)"),
    ("halves: x is 1", "halves: x is 1"),
])  # fmt: skip
def test_an_alias_renames_what_its_function_says_of_itself(text, expected):
    error = vm.DomainError(text)

    def halved(x):
        raise error

    half = alias("half", halved)
    with pytest.raises(vm.DomainError, match=f"^{re.escape(expected)}$") as raised:
        half(1)
    assert raised.value is error


def test_an_alias_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(vm.lgamma)) is vm.lgamma
