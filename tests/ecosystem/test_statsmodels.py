"""The log-likelihoods of statsmodels, unmodified, against statsmodels' own scores."""

import warnings

import numpy as np
import pytest
from comparing import close

import varmat as vm

pytestmark = pytest.mark.filterwarnings("ignore")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    statsmodels = pytest.importorskip(
        "statsmodels", reason='statsmodels is not installed: pip install "varmat[ecosystem]"'
    )
    from ecosystem.comparisons import suppress_refusal
    from ecosystem.likelihoods import CASES, REFUSED
    from statsmodels.tools.numdiff import approx_fprime_cs


def differences(case):
    steps = np.diag(1e-6 * np.maximum(1.0, abs(case.point)))
    return np.array(
        [(case.value(case.point + h) - case.value(case.point - h)) / (2 * h.sum()) for h in steps]
    )


def own_derivative(case):
    """Return the score, or else the derivative by a complex step or by differences, with its
    relative tolerance.
    """
    if case.score is not None:
        return np.ravel(case.score(case.point)), 1e-12
    rough = differences(case)
    try:
        by_step = approx_fprime_cs(case.point, case.value)
    except (TypeError, ValueError):
        return rough, 1e-6
    # A complex step is wrong for functions that take absolute values or compare.
    is_right = np.allclose(by_step, rough, rtol=1e-5, atol=1e-6)
    return (by_step, 1e-12) if is_right else (rough, 1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_likelihood(name):
    case = CASES[name]()
    expected, tolerance = own_derivative(case)
    with vm.numpy.patched(statsmodels):
        value, gradient = vm.value_and_grad(case.value)(case.point)
    close(value, float(np.sum(case.value(case.point))), 1e-13)
    close(gradient, expected, tolerance, tolerance * max(1.0, np.max(abs(expected))))


@pytest.mark.parametrize("name", REFUSED)
def test_likelihood_is_refused_or_right(name):
    """The only outcomes are a refusal and a right number; a wrong number is never returned."""
    case = CASES[name]()
    gradient = None
    # The last four alternatives are Cython's messages for something that is not an array.
    words = (
        "derivative would be lost|not differentiable here|No matching signature|no "
        "attribute|memoryview|bytes-like object"
    )
    with suppress_refusal(words), vm.numpy.patched(statsmodels):
        gradient = vm.gradient(case.value, case.point)
    if gradient is not None:
        expected, tolerance = own_derivative(case)
        close(gradient, expected, tolerance, tolerance * max(1.0, np.max(abs(expected))))


def test_how_many_there_are():
    assert len(CASES) == 72
    assert len(CASES.keys() - REFUSED.keys()) >= 57
