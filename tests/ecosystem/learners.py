"""Calls of scikit-learn whose derivatives somebody may need: name -> the function of an array, and
where it is differentiated.

These are 11 metrics of predictions, 12 kernels and distances in their first argument, the marginal
likelihood of a Gaussian process in its parameters, 5 transforms, and 8 functions of fitted models
that predict, score or decide, in their inputs.
"""

from functools import partial

import numpy as np
from sklearn import (
    decomposition,
    gaussian_process,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    naive_bayes,
    neural_network,
    preprocessing,
    svm,
)
from sklearn.gaussian_process import kernels
from sklearn.metrics import pairwise

rng = np.random.default_rng(37)
X, Z = rng.normal(size=(30, 3)), rng.normal(size=(4, 3))
Y = X @ [1.0, -0.5, 0.3] + 0.1 * rng.normal(size=30)
LABELS = (Y > 0).astype(int)
TRUTH, GUESS = rng.uniform(0.5, 2.0, 8), rng.uniform(0.5, 2.0, 8)
BINARY, CHANCES = np.array([0, 1, 1, 0, 1, 0, 0, 1]), rng.uniform(0.1, 0.9, 8)


def process(theta):
    kernel = kernels.ConstantKernel() * kernels.RBF() + kernels.WhiteKernel()
    model = gaussian_process.GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
    return model.log_marginal_likelihood(theta, clone_kernel=True)


def fitted(estimator, method, *data):
    return getattr(estimator.fit(X, *data), method), Z


CALLS = {
    # metrics of predictions: these end with Python's float, but for raw values
    **{name: lambda name=name: (lambda p: getattr(metrics, name)(TRUTH, p,
        multioutput="raw_values"), GUESS) for name in (*("mean_squared_error",
        "mean_absolute_error", "mean_squared_log_error"), *("mean_pinball_loss", "r2_score",
        "explained_variance_score"))},
    "mean_gamma_deviance": lambda: (partial(metrics.mean_gamma_deviance, TRUTH), GUESS),
    "mean_tweedie_deviance": lambda: (partial(metrics.mean_tweedie_deviance, TRUTH, power=1.5),
        GUESS),
    "log_loss": lambda: (partial(metrics.log_loss, BINARY), CHANCES),
    "brier_score_loss": lambda: (partial(metrics.brier_score_loss, BINARY), CHANCES),
    "hinge_loss": lambda: (partial(metrics.hinge_loss, BINARY), GUESS - 1.0),
    # kernels and distances in the first argument
    **{name: lambda name=name: (lambda z: getattr(pairwise, name)(z, X[:5]),
        Z) for name in (*("rbf_kernel", "laplacian_kernel", "polynomial_kernel", "sigmoid_kernel"),
        *("linear_kernel", "cosine_similarity", "euclidean_distances", "manhattan_distances"))},
    **{f"{kernel.__name__} in the inputs": lambda kernel=kernel: (lambda z: kernel()(z, X[:5]),
        Z) for kernel in (kernels.RBF, kernels.Matern, kernels.RationalQuadratic,
        kernels.DotProduct)},
    "log_marginal_likelihood": lambda: (process, np.array([0.3, -0.2, -1.0])),
    # fitted estimators in the inputs
    "StandardScaler.transform": lambda: fitted(preprocessing.StandardScaler(), "transform"),
    "PowerTransformer.transform": lambda: fitted(preprocessing.PowerTransformer(), "transform"),
    "PolynomialFeatures.transform": lambda: fitted(preprocessing.PolynomialFeatures(), "transform"),
    "PCA.transform": lambda: fitted(decomposition.PCA(2), "transform"),
    "Nystroem.transform": lambda: fitted(kernel_approximation.Nystroem(n_components=5,
        random_state=1), "transform"),
    "LinearRegression.predict": lambda: fitted(linear_model.LinearRegression(), "predict", Y),
    "LogisticRegression.predict_proba": lambda: fitted(linear_model.LogisticRegression(),
        "predict_proba", LABELS),
    "PoissonRegressor.predict": lambda: fitted(linear_model.PoissonRegressor(), "predict",
        np.exp(Y)),
    "MLPRegressor.predict": lambda: fitted(neural_network.MLPRegressor(hidden_layer_sizes=(5,),
        activation="tanh", max_iter=20, random_state=1), "predict", Y),
    "GaussianProcessRegressor.predict": lambda: fitted(gaussian_process.GaussianProcessRegressor(),
        "predict", Y),
    "GaussianMixture.score_samples": lambda: fitted(mixture.GaussianMixture(2, random_state=1),
        "score_samples"),
    "GaussianNB.predict_log_proba": lambda: fitted(naive_bayes.GaussianNB(), "predict_log_proba",
        LABELS),
    "SVC.decision_function": lambda: fitted(svm.SVC(), "decision_function", LABELS),
}  # fmt: skip
# Where each is refused, by what the message says.
REFUSED = {
    **dict.fromkeys(
        ("mean_gamma_deviance", "mean_tweedie_deviance", "brier_score_loss", "hinge_loss"),
        r"float inside sklearn/metrics/\w+\.py:\d+: it takes plain numbers alone",
    ),
    "log_loss": "is not a supported array type",
    "GaussianNB.predict_log_proba": "is not a supported array type",
    "PowerTransformer.transform": r"scipy\.stats\.yeojohnson inside sklearn",
    "SVC.decision_function": "bytes-like object",
}
