"""Log-likelihoods of statsmodels: models of small data, each with a point."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import statsmodels.api as sm
from statsmodels.base.model import GenericLikelihoodModel
from statsmodels.discrete import truncated_model
from statsmodels.discrete.conditional_models import (
    ConditionalLogit,
    ConditionalMNLogit,
    ConditionalPoisson,
)
from statsmodels.discrete.count_model import (
    ZeroInflatedGeneralizedPoisson,
    ZeroInflatedNegativeBinomialP,
    ZeroInflatedPoisson,
)
from statsmodels.discrete.discrete_model import (
    GeneralizedPoisson,
    NegativeBinomial,
    NegativeBinomialP,
)
from statsmodels.distributions.copula import api as copulas
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.miscmodels.count import PoissonGMLE, PoissonOffsetGMLE, PoissonZiGMLE
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.miscmodels.tmodel import TLinearModel
from statsmodels.othermod.betareg import BetaModel
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.tsa.ar_model import AutoReg
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.regime_switching.markov_autoregression import MarkovAutoregression
from statsmodels.tsa.regime_switching.markov_regression import MarkovRegression

rng = np.random.default_rng(3)
N = 40
X = np.column_stack([np.ones(N), rng.normal(size=N), rng.uniform(-1, 1, N)])
BETA = np.array([0.3, -0.4, 0.25])
BINARY = (rng.uniform(size=N) < 1 / (1 + np.exp(-X @ BETA))).astype(float)
COUNTS = rng.poisson(np.exp(0.8 + X @ BETA)).astype(float)
POSITIVE_COUNTS = COUNTS + 1.0
INFLATED = COUNTS * (rng.uniform(size=N) < 0.7)
CHOICES = rng.integers(0, 3, N)
GROUPS = np.repeat(np.arange(N // 5), 5)
Y = X @ BETA + rng.normal(size=N)
POSITIVE = np.exp(0.2 * Y) + 0.5
RATES = 1 / (1 + np.exp(-Y))
SERIES = np.cumsum(rng.normal(size=N)) * 0.3 + 1.0
PAIRS = np.column_stack([SERIES, Y])
TIMES = np.round(rng.exponential(size=N) * 10) + 1.0
STATUS = (rng.uniform(size=N) < 0.8).astype(int)


class Case(NamedTuple):
    """A log-likelihood and where it is differentiated.

    Attributes
    ----------
    value : callable
        Of the parameters.
    point : ndarray
    score : callable, optional
        statsmodels' own analytic derivative.
    """

    value: Callable[..., Any]
    point: np.ndarray
    score: Callable[..., Any] | None = None


def of(model, point, score=True):
    return Case(model.loglike, np.asarray(point, float), model.score if score else None)


def more(*others):
    return np.append(BETA, others)


def glm(family, y, point, **settings):
    model = sm.GLM(y, X, family=family, **settings)
    value, score = (partial(f, scale=1.0) for f in (model.loglike, model.score))
    return Case(value, np.asarray(point, float), score)


def mixed():
    model = MixedLM(Y, X, groups=GROUPS)
    model.cov_pen = model.fe_pen = None  # the attributes that `fit` would set
    return Case(lambda p: model.loglike(p, profile_fe=False), np.append(BETA, 0.8))


class Normal(GenericLikelihoodModel):
    """A user's own model, as in statsmodels' examples."""

    def nloglikeobs(self, params):
        return (
            0.5 * ((self.endog - self.exog @ params[:-1]) * np.exp(-params[-1])) ** 2 + params[-1]
        )


def copula(family, *point):
    u = rng.uniform(0.1, 0.9, (8, 2))
    return Case(lambda p: np.sum(family.logpdf(u, p[0])), np.array(point))


links, families = sm.families.links, sm.families

# Models that cannot be differentiated, and why.
REFUSED = {
    "TruncatedLFNegativeBinomialP": "calls a distribution of scipy.stats",
    "TruncatedLFGeneralizedPoisson": "calls a distribution of scipy.stats",
    "GLM Binomial, probit": "calls a distribution of scipy.stats",
    "GLM Binomial, cauchy": "calls a distribution of scipy.stats",
    "OrderedModel, probit": "calls the method dot of a plain array, which asks for one",
    "OrderedModel, logit": "calls the method dot of a plain array, which asks for one",
    "MixedLM": "writes into what np.dot made of data",
    "ARIMA": "writes into matrices that the model made before, for a filter in Cython",
    "SARIMAX": "writes into matrices that the model made before, for a filter in Cython",
    "UnobservedComponents": "writes into matrices that the model made before, for a filter in "
    "Cython",
    "VARMAX": "writes into matrices that the model made before, for a filter in Cython",
    "DynamicFactor": "writes into matrices that the model made before, for a filter in Cython",
    "ETSModel": "hands the parameters to Cython",
    "MarkovRegression": "hands the parameters to Cython",
    "MarkovAutoregression": "hands the parameters to Cython",
}

CASES = {
    # discrete models
    "Logit": lambda: of(sm.Logit(BINARY, X), BETA),
    "Probit": lambda: of(sm.Probit(BINARY, X), BETA),
    "Poisson": lambda: of(sm.Poisson(COUNTS, X), BETA),
    "Poisson, offset and exposure": lambda: of(
        sm.Poisson(COUNTS, X, offset=0.1 * Y, exposure=POSITIVE), BETA),
    "NegativeBinomial, nb2": lambda: of(NegativeBinomial(COUNTS, X), more(0.7)),
    "NegativeBinomial, nb1": lambda: of(NegativeBinomial(COUNTS, X, loglike_method="nb1"),
        more(0.7)),
    "NegativeBinomial, geometric": lambda: of(
        NegativeBinomial(COUNTS, X, loglike_method="geometric"), BETA),
    "NegativeBinomialP, 1": lambda: of(NegativeBinomialP(COUNTS, X, p=1), more(0.7)),
    "NegativeBinomialP, 2": lambda: of(NegativeBinomialP(COUNTS, X, p=2), more(0.7)),
    "GeneralizedPoisson, 1": lambda: of(GeneralizedPoisson(COUNTS, X, p=1), more(0.2)),
    "GeneralizedPoisson, 2": lambda: of(GeneralizedPoisson(COUNTS, X, p=2), more(0.2)),
    "MNLogit": lambda: of(sm.MNLogit(CHOICES, X), [0.1, -0.2, 0.3, 0.2, 0.1, -0.1]),
    "ZeroInflatedPoisson": lambda: of(ZeroInflatedPoisson(INFLATED, X, exog_infl=X[:, :2]),
        [0.2, -0.3, *BETA]),
    # The score of this model is a finite difference.
    "ZeroInflatedPoisson, probit": lambda: of(
        ZeroInflatedPoisson(INFLATED, X, exog_infl=X[:, :2], inflation="probit"),
        [0.2, -0.3, *BETA], score=False),
    "ZeroInflatedNegativeBinomialP": lambda: of(ZeroInflatedNegativeBinomialP(INFLATED, X),
        [0.2, *BETA, 0.7]),
    "ZeroInflatedGeneralizedPoisson": lambda: of(ZeroInflatedGeneralizedPoisson(INFLATED, X),
        [0.2, *BETA, 0.2]),
    "TruncatedLFPoisson": lambda: of(truncated_model.TruncatedLFPoisson(POSITIVE_COUNTS, X), BETA),
    "TruncatedLFNegativeBinomialP": lambda: of(
        truncated_model.TruncatedLFNegativeBinomialP(POSITIVE_COUNTS, X), more(0.7)),
    "TruncatedLFGeneralizedPoisson": lambda: of(
        truncated_model.TruncatedLFGeneralizedPoisson(POSITIVE_COUNTS, X), more(0.2)),
    "HurdleCountModel": lambda: of(truncated_model.HurdleCountModel(INFLATED, X),
        [*BETA, 0.2, 0.1, -0.1], score=False),
    "ConditionalLogit": lambda: of(ConditionalLogit(BINARY, X[:, 1:], groups=GROUPS), BETA[1:]),
    "ConditionalPoisson": lambda: of(ConditionalPoisson(COUNTS, X[:, 1:], groups=GROUPS), BETA[1:]),
    "ConditionalMNLogit": lambda: of(ConditionalMNLogit(CHOICES, X[:, 1:], groups=GROUPS),
        [0.1, -0.2, 0.3, 0.2]),
    "OrderedModel, probit": lambda: of(OrderedModel(CHOICES, X[:, 1:], distr="probit"),
        [-0.3, 0.2, -0.4, 0.1], score=False),
    "OrderedModel, logit": lambda: of(OrderedModel(CHOICES, X[:, 1:], distr="logit"),
        [-0.3, 0.2, -0.4, 0.1], score=False),
    # generalised linear models
    "GLM Gaussian, identity": lambda: glm(families.Gaussian(), Y, BETA),
    "GLM Gaussian, log": lambda: glm(families.Gaussian(links.Log()), Y, BETA),
    "GLM Gaussian, inverse": lambda: glm(families.Gaussian(links.InversePower()), Y,
        [2.0, 0.2, 0.1]),
    "GLM Binomial, logit": lambda: glm(families.Binomial(), BINARY, BETA),
    "GLM Binomial, probit": lambda: glm(families.Binomial(links.Probit()), BINARY, BETA),
    "GLM Binomial, cloglog": lambda: glm(families.Binomial(links.CLogLog()), BINARY, BETA),
    "GLM Binomial, loglog": lambda: glm(families.Binomial(links.LogLog()), BINARY, BETA),
    "GLM Binomial, cauchy": lambda: glm(families.Binomial(links.Cauchy()), BINARY, BETA),
    "GLM Binomial, log": lambda: glm(families.Binomial(links.Log()), BINARY, [-2.0, 0.2, 0.1]),
    "GLM Poisson, log": lambda: glm(families.Poisson(), COUNTS, BETA),
    "GLM Poisson, identity": lambda: glm(families.Poisson(links.Identity()), COUNTS,
        [4.0, 0.2, 0.1]),
    "GLM Poisson, sqrt": lambda: glm(families.Poisson(links.Sqrt()), COUNTS, [2.0, 0.2, 0.1]),
    "GLM Gamma, inverse": lambda: glm(families.Gamma(links.InversePower()), POSITIVE,
        [2.0, 0.2, 0.1]),
    "GLM Gamma, log": lambda: glm(families.Gamma(links.Log()), POSITIVE, BETA),
    "GLM Gamma, identity": lambda: glm(families.Gamma(links.Identity()), POSITIVE, [2.0, 0.2, 0.1]),
    "GLM InverseGaussian, inverse squared": lambda: glm(families.InverseGaussian(), POSITIVE,
        [2.0, 0.2, 0.1]),
    "GLM InverseGaussian, log": lambda: glm(families.InverseGaussian(links.Log()), POSITIVE, BETA),
    "GLM NegativeBinomial, log": lambda: glm(families.NegativeBinomial(alpha=0.7), COUNTS, BETA),
    "GLM NegativeBinomial, nbinom": lambda: glm(
        families.NegativeBinomial(links.NegativeBinomial(alpha=0.7), alpha=0.7), COUNTS,
        [-1.0, 0.1, 0.1]),
    "GLM Tweedie, log": lambda: glm(families.Tweedie(links.Log(), var_power=1.5, eql=True),
        POSITIVE, BETA),
    # regressions
    "OLS": lambda: of(sm.OLS(Y, X), BETA),
    "OLS, scale": lambda: Case(lambda p: sm.OLS(Y, X).loglike(p, scale=1.3), BETA,
                               lambda p: sm.OLS(Y, X).score(p, scale=1.3)),
    "WLS": lambda: of(sm.WLS(Y, X, weights=POSITIVE), BETA, score=False),
    "GLS": lambda: of(sm.GLS(Y, X, sigma=POSITIVE), BETA, score=False),
    "GLSAR": lambda: of(sm.GLSAR(Y, X, rho=1), BETA, score=False),
    "MixedLM": mixed,
    "BetaModel": lambda: of(BetaModel(RATES, X), more(1.5)),
    "TLinearModel": lambda: of(TLinearModel(Y, X), more(5.0, 1.2), score=False),
    "PoissonGMLE": lambda: of(PoissonGMLE(COUNTS, X), BETA, score=False),
    "PoissonOffsetGMLE": lambda: of(PoissonOffsetGMLE(COUNTS, X, offset=0.1 * Y), BETA,
        score=False),
    "PoissonZiGMLE": lambda: of(PoissonZiGMLE(INFLATED, X, offset=0.1 * Y), more(0.2), score=False),
    "GenericLikelihoodModel": lambda: of(Normal(Y, X), more(0.2), score=False),
    # survival
    "PHReg, Breslow": lambda: of(PHReg(TIMES, X[:, 1:], status=STATUS), BETA[1:]),
    "PHReg, Efron": lambda: of(PHReg(TIMES, X[:, 1:], status=STATUS, ties="efron"), BETA[1:]),
    "PHReg, strata": lambda: of(PHReg(TIMES, X[:, 1:], status=STATUS, strata=GROUPS % 2), BETA[1:]),
    # time series
    "AutoReg": lambda: of(AutoReg(SERIES, 2), [0.1, 0.5, 0.2], score=False),
    "ARIMA": lambda: of(sm.tsa.ARIMA(SERIES, order=(1, 0, 1)), [1.0, 0.5, 0.2, 0.3], score=False),
    "SARIMAX": lambda: of(sm.tsa.SARIMAX(SERIES, order=(1, 1, 0)), [0.5, 0.3], score=False),
    "UnobservedComponents": lambda: of(sm.tsa.UnobservedComponents(SERIES, "llevel"), [0.3, 0.2],
        score=False),
    "VARMAX": lambda: of(sm.tsa.VARMAX(PAIRS, order=(1, 0)),
                         [0.1, 0.1, 0.5, 0.1, 0.1, 0.5, 1.0, 0.1, 1.0], score=False),
    "DynamicFactor": lambda: of(sm.tsa.DynamicFactor(PAIRS, 1, 1), [0.5, 0.4, 0.3, 0.2, 0.5],
                                score=False),
    "ETSModel": lambda: of(ETSModel(SERIES, trend="add", initialization_method="estimated"),
                           [0.5, 0.2, 1.0, 0.1], score=False),
    "MarkovRegression": lambda: of(MarkovRegression(SERIES, 2), [0.9, 0.2, 0.5, 1.5, 0.3],
        score=False),
    "MarkovAutoregression": lambda: of(MarkovAutoregression(SERIES, 2, order=1),
        [0.9, 0.2, 0.5, 1.5, 0.3, 0.4, 0.3], score=False),
    # copulas
    "ClaytonCopula": lambda: copula(copulas.ClaytonCopula(), 1.5),
    "FrankCopula": lambda: copula(copulas.FrankCopula(), 1.5),
    "GumbelCopula": lambda: copula(copulas.GumbelCopula(), 1.5),
}  # fmt: skip
