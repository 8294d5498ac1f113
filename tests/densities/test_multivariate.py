"""What all multivariate densities have in common: Stan's values, dropped terms, all routes,
observations outside the support.
"""

import itertools
import math
import re
from functools import partial

import numpy as np
import pytest
import stan
from comparing import close, equal, refuses
from densities.multivariate import ARGUMENTS, DENSITIES, FREE

import varmat as vm
from varmat.core.operation import OPERATIONS
from varmat.densities import multi_normal
from varmat.testing import expect_ad, expect_ad_matvar

INF, NAN = math.inf, math.nan


# Entries of Stan that differ from our values by intention. At an infinite observation Stan's
# gradient is infinite or nan, and ours is zero. For the term 0 log(0), which we leave out, Stan's
# derivative is nan, and ours is zero. For matrix_normal_prec_lpdf Stan multiplies the log
# determinant of each precision by half the wrong dimension, that of its own matrix: the density of
# the same normal vector has the other one (`test_multivariate_exact` tests it).
DIFFERENT = (
    "multi_normal_cholesky_lpdf#6", "multinomial_lpmf#4", "matrix_normal_prec_lpdf#1",
    "matrix_normal_prec_lpdf#4",
)  # fmt: skip
# Stan's derivatives have 5 to 7 digits; `test_multivariate_exact` compares ours with 50.
IMPRECISE = {"ordered_probit_lpmf": 3e-5}
FILES = ("multivariate", "multivariate_more", "glm_counts_and_categories")


def entries(throws, left_out):
    found = [entry for file in FILES for entry in stan.entries(file, throws)]
    return [entry for entry in found if entry.values[0]["id"] not in left_out]


def folded(name, i, count, batch, c):
    """Return Stan's adjoint of argument i as ours lies: in the lower triangle of matrices that are
    symmetric or triangular.
    """
    if c is None or any(part in name for part in ("glm", "multinomial")):
        return c
    if "dlm" in name and i not in (4, 6):  # of the matrices only W and C0 are symmetric
        return c
    if name.startswith(("multi_normal", "multi_student")) and batch and i + 1 < count:
        return c  # the rows of a batch are vectors
    c = stan.number(c)
    if "cholesky" in name and np.ndim(c) == 2 and c.shape[0] == c.shape[1]:
        return np.tril(c).tolist()  # Stan leaves unused numbers above the diagonal
    return stan.lower(c).tolist() if np.ndim(c) else c


@pytest.mark.parametrize("entry", entries(False, DIFFERENT))
def test_stan(entry):
    name, args = entry["function"], entry["args"]
    batch = np.ndim(args[0][0]) > 1
    args = [[x, folded(name, i, len(args), batch, c)] for i, (x, c) in enumerate(args)]
    f = partial(getattr(vm, name), propto=entry.get("propto", False))
    stan.check(f, {**entry, "args": args}, IMPRECISE.get(name, 1e-13))


def is_about_shapes(message):
    return any(part in message for part in ("match in size", "same size", "has dimension"))


OBSERVATIONS = (
    "Number of categories", "categorical outcome", "element of outcome", "andom variable",
    "Correlation matrix", "Vector of dependent variables[", "Successes",
    "Number of trials variable[",
)  # fmt: skip


# With infinite degrees of freedom Stan accepts multi_student_t_lpdf as the normal density, but not
# the Cholesky form. Here both are the normal density.
@pytest.mark.parametrize("entry", entries(True, ["multi_student_t_cholesky_lpdf#4"]))
def test_what_stan_refuses(entry):
    """What Stan refuses is refused here too, except observations outside the support, and numbers
    that a density does not read.
    """
    f, args, message = getattr(vm, entry["function"]), stan.arguments(entry), entry["message"]
    of_shapes = is_about_shapes(message)
    if entry["id"] == "wishart_cholesky_lpdf#8":
        assert f(*args) == f(*args[:2], np.tril(args[2]))
    elif any(title in message for title in OBSERVATIONS) and "nan" not in message and not of_shapes:
        assert f(*args) == -INF
    else:
        # One of too many scales is negative, which is found first here.
        of_shapes = of_shapes and entry["id"] != "multi_gp_cholesky_lpdf#4"
        error = vm.ShapeError if of_shapes else vm.DomainError
        refuses(error, rf"^{entry['function']}: ", f, *args)


def split(name):
    """Return the arguments of a density, the places of those that may be variables, and other
    values for those.
    """
    args, others = ARGUMENTS[name]
    return args, [i for i, x in enumerate(others) if x is not None], others


@pytest.mark.parametrize("name", DENSITIES)
def test_propto_drops_what_does_not_depend_on_variables(name):
    f = DENSITIES[name]
    args, active, others = split(name)
    assert f(*args, propto=True) == 0.0
    for size in range(1, len(active) + 1):
        for variable in itertools.combinations(active, size):
            dropped = []
            for values in (args, others):
                point = [values[i] if i in variable else x for i, x in enumerate(args)]
                full = vm.value_and_grad(f, variable)(*point)
                some = vm.value_and_grad(f.proportional, variable)(*point)
                equal(full[1], some[1])
                dropped.append(full[0] - some[0])
            close(dropped[0], dropped[1], 0.0, 1e-12)


@pytest.mark.parametrize(("f", "args"), FREE.values(), ids=FREE)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


S = np.array([[2.0, 0.5], [0.5, 1.0]])
L = np.array([[1.0, 0.0], [0.6, 0.8]])
P = np.array([0.2, 0.5, 0.3])
Y = np.array([0.7, -1.2])
MU = np.array([0.3, 0.2])
ALPHA = np.array([1.2, 0.7, 3.1])
CUTS = np.array([-1.0, 0.2, 1.5])
INDEFINITE, ASYMMETRIC = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[2.0, 0.5], [0.1, 1.0]])
SIGN, FRACTION = L * [1.0, -1.0], [1.5, 1.0, 3.0]
# Density -> what is wrong with the observation, and the arguments.
OUTSIDE = {
    **{
        name: {what: (y, *((4.0,) if "student" in name else ()), MU, S) for what, y in (
            ("infinite", np.array([INF, 1.0])), ("one of two", np.array([[0.0, 1.0], [1.0, -INF]])),
        )}
        for name in multi_normal.__all__
    },
    "dirichlet_lpdf": {"sum": (P + 1e-6, ALPHA),
                       "negative": (np.array([[0.2, 0.5, 0.3], [-0.1, 0.6, 0.5]]), ALPHA)},
    "multinomial_lpmf": {"negative": (np.array([1, -1, 3]), P), "fraction": (FRACTION, P)},
    "categorical_lpmf": {"0": (0, P), "K + 1": (np.array([1, 4]), P), "fraction": ([1.5], P)},
    "categorical_logit_lpmf": {"K + 1": (4, ALPHA)},
    "ordered_logistic_lpmf": {"0": (0, 0.3, CUTS), "K + 1": (np.array([2, 5]), P[:2], CUTS)},
    "ordered_probit_lpmf": {"K + 1": (np.array([2, 5]), P[:2], CUTS)},
    "lkj_corr_cholesky_lpdf": {"norm": (np.array([[1.0, 0.0], [0.3, 0.9]]), 1.7),
                               "sign": (SIGN, 1.7), "upper": (L.T, 1.7)},
    "lkj_corr_lpdf": {"diagonal": (S, 1.7), "indefinite": (INDEFINITE, 1.7)},
    "wishart_lpdf": {"indefinite": (INDEFINITE, 4.0, S), "asymmetric": (ASYMMETRIC, 4.0, S)},
    "inv_wishart_lpdf": {"infinite": (np.array([[INF, 0.0], [0.0, 1.0]]), 4.0, S)},
    "wishart_cholesky_lpdf": {"sign": (SIGN, 4.0, L)},
    "inv_wishart_cholesky_lpdf": {"upper": (L.T, 4.0, L)},
    "lkj_cov_lpdf": {"indefinite": (INDEFINITE, 0.0, 1.0, 1.7)},
    "dirichlet_multinomial_lpmf": {"negative": (np.array([1, -1, 3]), ALPHA)},
    "multinomial_logit_lpmf": {"fraction": (FRACTION, ALPHA)},
    "matrix_normal_prec_lpdf": {"infinite": (np.array([[INF, 1.0]]), 0.0, S[:1, :1], S)},
    "multi_gp_lpdf": {"infinite": (np.array([[-INF, 1.0]]), S, P[:1])},
    "gaussian_dlm_obs_lpdf": {
        "infinite": (np.array([[INF, 1.0]]), S[:, :1], S, P[:1], S, MU, S)},
    "categorical_logit_glm_lpmf": {"0": (np.array([0, 1]), S, ALPHA, np.ones((2, 3)))},
    "ordered_logistic_glm_lpmf": {"K + 1": (np.array([2, 5]), S, MU, CUTS)},
}  # fmt: skip


def refuse_as_data(f, args, parameters):
    """An observation that no parameters make possible is refused where it is data and they are
    variables, in the same words in all modes, and nothing is recorded.
    """

    def with_parameters(make):
        return [make(np.asarray(x, float)) if i in parameters else x for i, x in enumerate(args)]

    with vm.nested() as tape:
        point = with_parameters(vm.var)
        with pytest.raises(vm.DataError, match=rf"^{f.name}: .*must be .*!$") as caught:
            f(*point)
        assert not caught.value.is_recoverable
        assert not tape
    text = re.escape(str(caught.value))
    duals = with_parameters(lambda x: vm.Dual(x, np.ones(np.shape(x))))
    for call in (lambda: f(*duals), lambda: vm.recorded(vm.value_and_grad(f, parameters))(*args)):
        refuses(vm.DataError, text, call)


@pytest.mark.parametrize(("name", "args"), [
    pytest.param(name, args, id=f"{name}, {what}")
    for name, rows in OUTSIDE.items() for what, args in rows.items()
])  # fmt: skip
def test_outside_the_support(name, args):
    f = DENSITIES[name]
    assert f(*args) == -INF
    active = tuple(i for i, x in enumerate(ARGUMENTS[name][1]) if x is not None)
    parameters = tuple(i for i in active if i)
    if parameters and f.data_domain is not None:
        refuse_as_data(f, args, parameters)
    if 0 not in active:
        return
    value, gradients = vm.value_and_grad(f, active)(*args)
    assert value == -INF
    for i, g in zip(active, gradients, strict=True):
        equal(g, np.zeros(np.shape(args[i])))


def titles(name):
    return [title for title, _ in DENSITIES[name].arguments.values()]


@pytest.mark.parametrize("name", DENSITIES)
def test_nan_is_refused_everywhere(name):
    """The message has the title of the argument, and nothing is recorded."""
    args, active, _ = split(name)
    for i, title in enumerate(titles(name)):
        bad = [
            np.where(np.ones(np.shape(x)) > 0, NAN, x) if k == i else x for k, x in enumerate(args)
        ]
        with vm.nested() as tape:
            point = [vm.var(x) if k in active else x for k, x in enumerate(bad)]
            with pytest.raises(
                vm.DomainError, match=rf"^{name}: {title}(\[[0, ]+\])? is nan, but must be "
            ) as caught:
                DENSITIES[name](*point)
            assert caught.value.is_recoverable
            assert not tape


@pytest.mark.parametrize("name", [name for name in DENSITIES if name.endswith("lpmf")])
def test_a_category_is_no_variable(name):
    f = DENSITIES[name]
    args, _, _ = split(name)
    n = np.asarray(args[0], float)
    with vm.nested():
        for call, called in ((f, name), (f.proportional, name.replace("_lpmf", "_lupmf"))):
            message = (
                rf"^{called}: {titles(name)[0]} is a variable, but has no derivative: it is "
                r"discrete!$"
            )
            refuses(TypeError, message, call, vm.var(n), *args[1:])
            with pytest.raises(TypeError, match=message):
                call(**dict(zip(f.arguments, (vm.Dual(n, n), *args[1:]), strict=True)))


@pytest.mark.parametrize("name", DENSITIES)
def test_names_and_documentation(name):
    f = DENSITIES[name]
    args, active, _ = split(name)
    assert f.operation is OPERATIONS[name]
    assert f.proportional.name == name.replace("_lp", "_lup")
    assert f(**dict(zip(f.arguments, args, strict=True))) == f(*args)
    assert type(f(*args)) is float
    assert f.__doc__.startswith("Compute the log ")
    sections = ("Parameters", "Returns", "Raises", "Notes", "References", "Examples")
    assert all(each in f.__doc__ for each in (*sections, *f.arguments))
    assert len(f.__doc__.splitlines()) <= 60
    with vm.nested():
        assert type(f(*(vm.var(x) if i in active else x for i, x in enumerate(args)))) is vm.Var


def test_a_probability_of_zero_where_the_prior_is_flat():
    theta, alpha = np.array([0.0, 0.4, 0.6]), np.array([1.0, 2.0, 3.0])
    expected = math.lgamma(6) - math.lgamma(2) - math.lgamma(3) + math.log(0.4) + 2 * math.log(0.6)
    close(vm.dirichlet_lpdf(theta, alpha), expected, 1e-14)
