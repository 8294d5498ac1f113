"""Functions of scikit-learn, unmodified, against differences."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")
sklearn = pytest.importorskip(
    "sklearn", reason='scikit-learn is not installed: pip install "varmat[ecosystem]"'
)
from ecosystem.comparisons import expect_derivatives, suppress_refusal  # noqa: E402
from ecosystem.learners import CALLS, REFUSED  # noqa: E402


@pytest.mark.parametrize("name", [name for name in CALLS if name not in REFUSED])
def test_call(name):
    expect_derivatives(*CALLS[name](), sklearn)


@pytest.mark.parametrize("name", REFUSED)
def test_call_is_refused_or_right(name):
    """The only outcomes are a refusal and right numbers; a wrong number is never returned."""
    if name in ("hinge_loss", "log_loss") and not hasattr(np, "__array_namespace_info__"):
        pytest.skip("scikit-learn asks the module for what NumPy has from 2.1 on")
    with suppress_refusal(REFUSED[name]):
        expect_derivatives(*CALLS[name](), sklearn)


def test_how_many_there_are():
    assert len(CALLS) == 37
    assert len(CALLS.keys() - REFUSED.keys()) >= 27
