"""Testing of differentiable functions: the harness that varmat's own tests use.

`expect_ad` compares all routes to the derivatives of a function, `expect_ad_matvar` repeats that with matvars, and
`expect_value` compares value and derivatives with a 50-digit reference.
"""

from varmat.testing.compare import Report, Tolerances
from varmat.testing.expect import expect_ad
from varmat.testing.expect_matvar import expect_ad_matvar
from varmat.testing.values import expect_value

__all__ = ["Report", "Tolerances", "expect_ad", "expect_ad_matvar", "expect_value"]
