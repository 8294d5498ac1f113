"""The parameters read off their vector together, and the sum that ends a log density."""

import math

import numpy as np
import pytest
from comparing import close, close_slopes, equal, refuses

import varmat as vm
from varmat.testing import expect_ad


def entries_of(function, q):
    with vm.nested() as tape:
        function(vm.var(q), False, True)
        return [rule.name for rule, *_ in tape]


def test_simple_parameters_are_one_entry_and_terms_one_sum():
    def log_density(a, b, c, d, e, f):
        terms = vm.std_normal_lpdf(a), -b, np.log(c) * 2.0, np.sum(np.log(d - 1.0))
        return [*terms, f - 3.0, 0.5 * e, 2.5]

    parameters = {
        "a": vm.real(), "b": vm.positive(), "c": vm.lower(0.5), "d": vm.lower(1.0, 2, 2),
        "e": vm.upper(2.0), "f": vm.real(3),
    }  # fmt: skip
    model = vm.Model(log_density, parameters)
    q = np.linspace(-1.3, 1.7, 11)
    names = entries_of(model._target, q)
    assert names.count("parameters") == 1
    assert names.count("sum_of_terms") == 1
    assert not {"exp", "getitem"} & {*names}
    # The gradient does not need the sum.
    assert entries_of(model._terms, q) == names[:-1]
    expect_ad(lambda x: model._target(x, False, True), q)
    expect_ad(lambda x: model._target(x, False, False), q)
    small = vm.Model(lambda b: -b, b=vm.positive())
    assert entries_of(small._terms, q[:1]) == ["parameters", "negative"]
    assert entries_of(small._target, q[:1]) == ["parameters", "negative", "sum_of_terms"]
    assert entries_of(vm.Model(lambda b: -b, b=vm.real(2))._target, q[:2]) == ["negative"]
    # Variables take the fused way; plain arrays go through each transform.
    close(model.log_density_gradient(q)[0], model.log_density(q), 1e-14)


# Parameters that one operation makes; `used` is any function of them.
MAPPED = {
    "interval": vm.lower_upper(-1.0, 2.5),       "intervals": vm.lower_upper(0.0, 1.0, 2, 3),
    "ordered": vm.ordered(4),                    "rows of ordered": vm.ordered(3, 2),
    "positive_ordered": vm.positive_ordered(3),  "simplex": vm.simplex(4),
    "simplexes": vm.simplex(3, 2),               "unit_vector": vm.unit_vector(3),
}  # fmt: skip
OTHERS = {
    "positive": vm.positive(2, 2), "lower": vm.lower(-1.5), "upper": vm.upper(0.0, 3),
    "no lower bound": vm.lower(-np.inf, 2),
    "no upper bound": vm.upper(np.inf),
    "half an interval": vm.lower_upper(-np.inf, 2.0),
    "bounds of their own": vm.lower([0.0, 1.0], 2),
    "nothing": vm.positive(0), "simplex of one": vm.simplex(1),
    "offset_multiplier": vm.offset_multiplier(1.0, 2.0),
    "cholesky_corr": vm.cholesky_corr(3),
}  # fmt: skip


def used(x):
    return np.sum(np.sin(np.arange(1.0, 1.0 + np.size(x)).reshape(np.shape(x)) * x))


def model_around(transform):
    """A model in which a parameter stands between others, and a point."""
    model = vm.Model(
        lambda a, x, b: (used(x) * b, vm.normal_lpdf(a, 0, 2)),
        a=vm.real(2),
        x=transform,
        b=vm.positive(),
    )
    return model, np.random.default_rng(7).normal(size=model.param_unc_num())


@pytest.mark.parametrize("name", MAPPED)
def test_parameters_made_by_an_operation_are_part_of_the_one_entry(name):
    model, q = model_around(MAPPED[name])
    names = entries_of(model._terms, q)
    assert names[0] == "parameters"
    assert not {MAPPED[name].constraint[0].name, "getitem"} & {*names}


@pytest.mark.parametrize("jacobian", [True, False])
@pytest.mark.parametrize("name", MAPPED | OTHERS)
def test_parameters_are_what_their_transforms_make(name, jacobian):
    transform = (MAPPED | OTHERS)[name]
    model, q = model_around(transform)
    if jacobian:
        expect_ad(lambda u: model._target(u, False, True), q)

    def apart(u):
        x, term = transform.constrain_with_log_jacobian(
            u[2:-1] if transform.unconstrained_shape else u[2]
        )
        density = used(x) * np.exp(u[-1]) + vm.normal_lpdf(u[:2], 0, 2)
        return density + term + u[-1] if jacobian else density

    recorded = vm.Model(model._density.function, model.layout.parameters, recorded=True)
    for each in (model, recorded):
        each.log_density_gradient(q + 0.1, jacobian=jacobian)
        found = each.log_density_gradient(q, jacobian=jacobian)
        close_slopes(found, vm.value_and_grad(apart)(q), 1e-12, 1e-13)
    close(model.log_density_hessian(q, jacobian=jacobian)[2], vm.hessian(apart, q), 1e-10, 1e-11)


@pytest.mark.parametrize("recorded", [False, True])
def test_parameters_that_nobody_uses_have_their_jacobian(recorded):
    def model(**parameters):
        return vm.Model(lambda a: -a * a, a=vm.real(), **parameters, recorded=recorded)

    def jacobians(u):
        of_x = vm.simplex_constrain(u[1:3], jacobian=True)[1]
        return of_x + vm.lub_constrain(u[3], 0.0, 1.0, jacobian=True)[1] - u[0] ** 2

    q = np.array([0.5, 0.3, -0.2, 0.7])
    both = model(x=vm.simplex(3), y=vm.lower_upper(0, 1))
    close(both.log_density_gradient(q), vm.value_and_grad(jacobians)(q), 1e-14)
    equal(both.log_density_gradient(q, jacobian=False)[1], [-1.0, 0.0, 0.0, 0.0])
    equal(model(b=vm.real()).log_density_gradient(q[:2])[1], [-1.0, 0.0])
    # Far out they are infinite, which has no effect either.
    infinite, q = model(x=vm.positive(), y=vm.upper(1.0, 2)), np.array([0.5, 800.0, 800.0, 0.0])
    with np.errstate(over="ignore"):
        for jacobian in (True, False):
            gradient = infinite.log_density_gradient(q, jacobian=jacobian)[1]
            equal(gradient, [-1.0, *[float(jacobian)] * 3])
        gradient = model(x=vm.ordered(2)).log_density_gradient(q[[0, 3, 1]], jacobian=False)[1]
    equal(gradient, [-1.0, 0.0, 0.0])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(("parameter", "grows"), [
    (vm.ordered(3), (1, 2)), (vm.positive_ordered(3), (0, 1, 2)),
    (vm.positive_ordered(3, 1), (0, 1, 2)), (vm.cov_matrix(2), (0, 2)),
    (vm.cholesky_cov(2), (0, 2)),
])  # fmt: skip
def test_parameters_that_nobody_uses_may_overflow(parameter, grows, recorded):
    model = vm.Model(lambda a: -a * a, a=vm.real(), x=parameter, recorded=recorded)
    near = model.log_density_gradient(np.array([0.5, 0.0, 0.0, 0.0]))[1]
    for k in grows:
        q = np.array([0.5, 0.0, 0.0, 0.0])
        q[1 + k] = 800.0
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = model.log_density_gradient(q)
        assert np.isfinite(value)
        equal(gradient, near)  # the log-Jacobian is linear


TERMS = {
    "numbers": lambda x: (1.5, x[0] * x[1], 2),
    "arrays": lambda x: [x, np.ones(3), np.exp(x[:2]), x.reshape(3, 1)],
    "one twice": lambda x: (y := np.sum(x * x), y, x[1], x[1]),
    "the parameter": lambda x: (x, x),
    "nothing": lambda x: (),
    "constants": lambda x: (np.arange(3.0), -1),
    "an empty array": lambda x: (x[:0], np.sum(x)),
    "one": lambda x: (x,),
}


@pytest.mark.parametrize("parameter", [vm.real(3), vm.positive(3)], ids=["free", "bounded"])
@pytest.mark.parametrize("name", TERMS)
def test_terms_are_summed_without_an_entry(name, parameter):
    model = vm.Model(TERMS[name], x=parameter)
    q = np.array([0.3, -1.2, 0.8])
    value, gradient = model.log_density_gradient(q)
    with vm.nested():
        u = vm.var(q)
        y = model._target(u, True, True)
        if isinstance(y, vm.Var):
            y.grad()
        expected = float(vm.value(y)), np.array(u.adj)
    assert type(value) is float
    close(value, expected[0], 1e-15)
    close(gradient, expected[1], 1e-15)
    assert gradient.base is None
    assert gradient.flags.writeable


def test_terms_from_outside_are_refused():
    outside = vm.var(2.0)
    for terms, error, message in (
        (lambda x: (x, outside), vm.TapeError, "from outside"),
        (lambda x: [outside], vm.TapeError, "from outside"),
        (lambda x: (x * outside, x), vm.TapeError, "from outside"),
        (lambda x: (x, "a"), TypeError, "must be real numbers"),
    ):
        model = vm.Model(terms, x=vm.real())
        refuses(error, message, model.log_density_gradient, np.zeros(1))
    vm.recover_memory()


def test_simple_parameters_far_out():
    model = vm.Model(lambda s, t: s + t, s=vm.positive(), t=vm.upper(1.0))
    assert model.log_density(np.array([800.0, 0.0])) == math.inf
    value, gradient = model.log_density_gradient(np.array([800.0, 0.0]), jacobian=False)
    assert value == math.inf
    equal(gradient, [math.inf, -1.0])
    assert np.isnan(model.log_density_gradient(np.array([np.nan, 0.0]))[0])
