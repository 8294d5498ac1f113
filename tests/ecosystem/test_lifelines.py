"""The fits of lifelines, which differentiates with autograd, with varmat in autograd's place."""

import warnings

import numpy as np
import pytest
from comparing import close

import varmat as vm

pytestmark = pytest.mark.filterwarnings("ignore")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    lifelines = pytest.importorskip(
        "lifelines", reason='lifelines is not installed: pip install "varmat[ecosystem]"'
    )
    from lifelines.datasets import load_rossi, load_waltons
    from lifelines.fitters import ParametricUnivariateFitter
    from lifelines.fitters.crc_spline_fitter import CRCSplineFitter
    from lifelines.fitters.mixture_cure_fitter import MixtureCureFitter

ROSSI = load_rossi().iloc[:120, :5]
WALTONS = load_waltons().iloc[:60]
TIMES, EVENTS = WALTONS["T"].to_numpy(float), WALTONS["E"].to_numpy()


class Own(ParametricUnivariateFitter):
    """A user's own model, from which lifelines derives the hazard."""

    _fitted_parameter_names = ("alpha_",)
    _bounds = ((1e-6, None),)

    def _cumulative_hazard(self, params, times):
        return params[0] * times**0.9


def fitted(kind, *settings):
    return lambda: kind(*settings).fit(TIMES, EVENTS)


def regression(kind, *settings, **named):
    return lambda: kind(*settings, **named).fit(ROSSI, "week", "arrest")


FITS = {
    "Weibull": fitted(lifelines.WeibullFitter),
    "Exponential": fitted(lifelines.ExponentialFitter),
    "LogNormal": fitted(lifelines.LogNormalFitter),
    "MixtureCure": lambda: MixtureCureFitter(lifelines.WeibullFitter()).fit(TIMES, EVENTS),
    "Weibull, left": lambda: lifelines.WeibullFitter().fit_left_censoring(TIMES, EVENTS),
    "LogNormal, interval": lambda: lifelines.LogNormalFitter().fit_interval_censoring(
        TIMES, TIMES + 5.0
    ),
    "WeibullAFT": regression(lifelines.WeibullAFTFitter),
}
# No time equals a breakpoint, because the hazard jumps there and autograd takes the mean of both
# sides. The hazard is a derivative in time, and the fit needs its second derivatives in the
# parameters, so directions are nested.
BY_HAZARD = {
    "LogLogistic": fitted(lifelines.LogLogisticFitter),
    "LogLogistic, interval": lambda: lifelines.LogLogisticFitter().fit_interval_censoring(TIMES,
        TIMES + 5.0),
    "Spline": fitted(lifelines.SplineFitter, [10, 40, 70]),
    "Own": fitted(Own),
    "CRCSpline": lambda: CRCSplineFitter(2).fit(ROSSI, "week", "arrest",
        regressors={"beta_": "age", "gamma0_": "1", "gamma1_": "1"}),
    "CoxPH, spline": regression(lifelines.CoxPHFitter, baseline_estimation_method="spline",
                                n_baseline_knots=2),
    "PiecewiseExponentialRegression": regression(lifelines.PiecewiseExponentialRegressionFitter,
        [20.5], penalizer=0.1),
}  # fmt: skip


# lifelines takes the penalty's derivatives by `elementwise_grad` of a sum over all.
COX = {"baseline_estimation_method": "breslow"}
PENALISED = {
    "CoxPH, elastic net": regression(lifelines.CoxPHFitter, penalizer=0.05, l1_ratio=0.5, **COX),
    "CoxPH, a penalty for each": regression(
        lifelines.CoxPHFitter, penalizer=np.array([0.1, 1.0, 0.01]), **COX
    ),
    "CoxPH, strata": lambda: lifelines.CoxPHFitter(penalizer=0.2).fit(ROSSI, "week", "arrest",
        strata=["fin"]),
    "CoxTimeVarying": lambda: lifelines.CoxTimeVaryingFitter(penalizer=0.1).fit(
        ROSSI.reset_index().assign(start=0.0), id_col="index", event_col="arrest",
        start_col="start", stop_col="week"),
    "WeibullAFT, elastic net": regression(lifelines.WeibullAFTFitter, penalizer=0.05, l1_ratio=0.3),
}  # fmt: skip
ALL = {**FITS, **BY_HAZARD, **PENALISED}


def expect_the_same_fit(fit):
    own = fit()
    with vm.numpy.patched(lifelines):
        ours = fit()
    parameters = [
        np.ravel(x.params_ if hasattr(x, "params_") else x._fitted_parameters_) for x in (own, ours)
    ]
    close(parameters[1], parameters[0], 1e-6, 1e-8)
    close(ours.log_likelihood_, own.log_likelihood_, 1e-9)
    # The two optimisers stop at slightly different points, so the second derivatives differ a
    # little too.
    hessians = [
        np.asarray(x._hessian_ if hasattr(x, "_hessian_") else x.variance_matrix_)
        for x in (own, ours)
    ]
    close(hessians[1], hessians[0], 1e-5, 1e-6 * np.max(abs(hessians[0])))


@pytest.mark.parametrize("fit", [pytest.param(fit, id=name) for name, fit in ALL.items()])
def test_fit(fit):
    expect_the_same_fit(fit)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammaincln", "gammainccln"])
def test_rules_of_the_incomplete_gamma_functions(name):
    """lifelines' generalised gamma model has functions with rules of their own."""
    import autograd
    import autograd.numpy as anp
    import autograd_gamma

    def f(p):
        return anp.sum(getattr(autograd_gamma, name)(p[0], p[1] * anp.array([0.5, 1.0, 2.0])))

    point = np.array([1.3, 0.8])
    slope, curve = autograd.grad(f)(point), autograd.hessian(f)(point)
    with vm.numpy.patched(lifelines):
        close(autograd.grad(f)(point), slope, 1e-12)
        close(autograd.hessian(f)(point), curve, 1e-9)
