"""Kalman filters of filterpy and pykalman, unmodified, in their parameters."""

import pytest
from ecosystem.comparisons import expect_derivatives
from ecosystem.filters import CALLS

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", CALLS)
def test_filter(name):
    package = name.partition(":")[0]
    reason = f'{package} is not installed: pip install "varmat[ecosystem]"'
    function, point = pytest.importorskip(package, reason=reason) and CALLS[name]()
    expect_derivatives(function, point, pytest.importorskip(package))
