"""The check of a gradient names the parameters whose derivative differs."""

import numpy as np
from comparing import close
from models.schools import SCHOOLS

import varmat as vm
from varmat.models.checking import GradientCheck


@vm.operation()
def wrong(x):
    return np.sum(x**2)


@wrong.reverse
def wrong_reverse(g, r, x):
    return 2 * x * g * np.array([1.0, 1.0, 1.1])


def test_check_gradient_names_what_differs():
    model = vm.Model(lambda mu, x: wrong(x) + mu, mu=vm.real(), x=vm.real(3))
    check = model.check_gradient([0.5, 1.0, 2.0, 3.0])
    assert not check
    found = [line.split()[0] for line in str(check).splitlines() if line.endswith("<- differs")]
    assert found == ["x.3"]
    assert "1 of 4 derivatives differ" in str(check)
    check = SCHOOLS.check_gradient()
    assert check.passed
    assert np.max(check.errors) < 1e-9
    assert "the gradient agrees with finite differences" in str(check)


def test_errors_of_large_derivatives_are_relative():
    q = np.zeros(2)
    exact, found = np.array([1000.0, 0.5]), np.array([1001.0, 0.25])
    check = GradientCheck(["a", "b"], q, 0.0, exact, found, 0.01)
    close(check.errors, [0.001, 0.25], 1e-12)
    assert not check
    found = [line.split()[0] for line in str(check).splitlines() if line.endswith("<- differs")]
    assert found == ["b"]


def test_what_lies_beside_the_border_could_not_be_checked():
    for log_density in (lambda a: vm.beta_lpdf(a, 2.0, 3.0), lambda a: vm.normal_lpdf(0.0, 0.0, a)):
        check = vm.Model(log_density, a=vm.real()).check_gradient([5e-4])
        assert not check
        assert "1 of 1 derivatives could not be checked" in str(check)
        assert str(check).endswith("<- the density ends near it")


def test_the_worst_of_many_derivatives_are_printed():
    q, exact = np.zeros(40), np.ones(40)
    found = exact + np.where(np.arange(40) % 10 == 7, np.arange(40.0), 1e-9 * np.arange(40))
    found[3] = np.nan
    check = GradientCheck([f"x.{i}" for i in range(40)], q, 0.0, exact, found, 1e-6)
    lines = str(check).splitlines()
    assert [line.split()[0] for line in lines[2:7]] == ["x.3", "x.37", "x.27", "x.17", "x.7"]
    assert len(lines) == 13
    assert lines[-1] == "and 30 more with errors that are not larger"
    assert check._repr_html_().count("<tr>") == 11


def test_the_check_of_a_slow_model_is_recorded():
    evaluations = []

    def log_density(x):
        evaluations.append(1)
        for _ in range(3000):
            x = x + 1e-7 * np.sin(x)
        return -0.5 * np.sum(x**2)

    model = vm.Model(log_density, x=vm.real(30))
    assert model.check_gradient()
    assert len(evaluations) < 12  # 6 for each element without a recording
