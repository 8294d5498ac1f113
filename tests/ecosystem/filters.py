"""Filters of filterpy and pykalman as functions of their parameters: name -> function and point."""

import varmat.numpy as np

rng = np.random.default_rng(11)
SEEN = np.cumsum(rng.normal(size=15)) + 0.3 * rng.normal(size=15)
POINT = np.array([0.7, 0.4, 0.9])
STEP = np.array([[1.0, 0.5], [0.0, 1.0]])


def common():
    from filterpy.common import Q_discrete_white_noise, van_loan_discretization

    def f(p):
        noise = Q_discrete_white_noise(2, dt=p[0], var=p[1])
        drift = np.array([[0.0, 1.0], [-1.0, -0.3]]) * p[2]
        return noise, van_loan_discretization(drift, np.array([[0.0], [0.5]]), dt=0.3)

    return f, POINT


def linear():
    import filterpy.common
    from filterpy.kalman import KalmanFilter

    def f(p):
        kf = KalmanFilter(dim_x=2, dim_z=1)
        kf.x, kf.F, kf.H = np.array([0.0, 1.0]), STEP, np.array([[1.0, 0.0]])
        kf.P, kf.R = kf.P * p[2], kf.R * p[1]
        kf.Q = filterpy.common.Q_discrete_white_noise(2, dt=0.5, var=p[0])
        total = 0.0
        for z in SEEN:
            kf.predict()
            kf.update(z)
            total = total + 0.5 * (np.log(kf.S[0, 0]) + kf.y[0] ** 2 / kf.S[0, 0])
        return total, kf.x, kf.P

    return f, POINT


def extended():
    from filterpy.kalman import ExtendedKalmanFilter

    def f(p):
        kf = ExtendedKalmanFilter(dim_x=2, dim_z=1)
        kf.x, kf.F = np.array([1.0, 1.0]), STEP
        kf.P, kf.R, kf.Q = kf.P * p[2], kf.R * p[1], kf.Q * p[0]
        for z in SEEN:
            kf.predict()
            kf.update(
                np.array([z]),
                lambda x: np.array([[2.0 * x[0] * 0.1, 1.0]]),
                lambda x: np.array([0.1 * x[0] ** 2 + x[1]]),
            )
        return kf.x, kf.P

    return f, POINT


def unscented():
    from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

    def f(p):
        points = MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=0.0)
        kf = UnscentedKalmanFilter(
            2, 1, 0.5, lambda x: x[:1] + 0.1 * x[:1] ** 2, lambda x, dt: STEP @ x, points
        )
        kf.P, kf.R, kf.Q = kf.P * p[2], kf.R * p[1], kf.Q * p[0]
        for z in SEEN:
            kf.predict()
            kf.update(np.array([z]))
        return kf.x, kf.P

    return f, POINT


def of_pykalman(name):
    def make():
        from pykalman import KalmanFilter

        def f(p):
            kf = KalmanFilter(
                transition_matrices=STEP,
                observation_matrices=np.array([[1.0, 0.0]]),
                transition_covariance=p[0] * np.eye(2),
                observation_covariance=p[1] * np.eye(1),
                initial_state_mean=np.zeros(2),
                initial_state_covariance=p[2] * np.eye(2),
            )
            return getattr(kf, name)(SEEN)

        return f, POINT

    return make


CALLS = {
    "filterpy: discretisation": common, "filterpy: KalmanFilter": linear,
    "filterpy: ExtendedKalmanFilter": extended, "filterpy: UnscentedKalmanFilter": unscented,
    "pykalman: loglikelihood": of_pykalman("loglikelihood"),
    "pykalman: filter": of_pykalman("filter"),
    "pykalman: smooth": of_pykalman("smooth"),
}  # fmt: skip
