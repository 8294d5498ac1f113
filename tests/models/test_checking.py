"""The check of a gradient names the parameters whose derivative differs."""

from __future__ import annotations

import numpy as np
from schools import SCHOOLS

import varmat as vm


def test_check_gradient_names_what_differs():
    @vm.operation()
    def wrong(x):
        return np.sum(x**2)

    @wrong.reverse
    def wrong_reverse(g, r, x):
        return 2 * x * g * np.array([1.0, 1.0, 1.1])

    check = vm.Model(lambda mu, x: wrong(x) + mu, mu=vm.real(), x=vm.real(3)).check_gradient([0.5, 1.0, 2.0, 3.0])
    assert not check
    assert [line.split()[0] for line in str(check).splitlines() if line.endswith("<- differs")] == ["x.3"]
    assert "1 of 4 derivatives differ" in str(check)
    check = SCHOOLS.check_gradient()
    assert check.passed
    assert np.max(check.errors) < 1e-9
    assert "the gradient agrees with finite differences" in str(check)
