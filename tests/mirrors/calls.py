"""Calls of every function that `varmat.scipy` has in place of SciPy's: arguments, and settings that
between them name every parameter.
"""

import numpy as np

rng = np.random.default_rng(131)


def normal(*shape):
    return rng.normal(size=shape)


A, B, C = (normal(4, 4) + 3.0 * np.eye(4) for _ in range(3))
POSITIVE, OTHER = (x @ x.T + np.eye(4) for x in (normal(4, 4), normal(4, 4)))
SPD = POSITIVE + np.triu(normal(4, 4), 1)  # the upper triangle is another matrix's
SPD[np.triu_indices(4, 1)] *= 0.2
TALL, V, W, LONG, IMAGE = normal(5, 3), normal(4), normal(4), normal(40), normal(5, 6)
ROTATED = A + np.array([[0, 9, 0, 0], [-9, 0, 0, 0], [0, 0, 0, 5], [0, 0, -4, 0]])
UNIT, SHARES, OTHERS = rng.uniform(0.1, 0.7, (3, 4))
SHARES, OTHERS = SHARES / SHARES.sum(), OTHERS / OTHERS.sum()
BANDED = np.array([[0.0, 0.3, 0.2, 0.1], [4.0, 5.0, 6.0, 5.0]])
ROOT = np.triu(normal(4, 4)) + 3.0 * np.eye(4)
PLACES, INSIDE = np.array([0.0, 0.7, 1.5, 2.2, 3.1, 4.0]), np.array([0.3, 1.0, 2.9])
VALUES, SURFACE = normal(6), normal(6, 6)
GRID = PLACES.tolist()
SOS = [[0.2, 0.3, 0.1, 1.0, -0.4, 0.1], [0.5, 0.1, 0.2, 1.0, 0.2, 0.05]]
DIGITAL = (np.array([0.2, 0.3]), np.array([1.0, -0.4, 0.1]), LONG)
POINTS, MORE = normal(4, 3), normal(2, 3)
NORMS = [{}, {"norm": "ortho"}, {"norm": "forward"}]
ONE = [*NORMS, {"n": 3}, {"axis": 0}]
MANY = [*NORMS, {"s": (3, 4), "axes": (0, 1)}]
REAL = [*NORMS, {"n": 7}, {"axis": 0}]
TRIGONOMETRIC = [
    *({"type": kind, **norm} for kind in (1, 2, 3, 4) for norm in NORMS),
    {"axis": 0, "n": 4},
    {"norm": "ortho", "orthogonalize": False},
]
TRIGONOMETRICS = [
    *({"type": kind} for kind in (1, 2, 3, 4)),
    {"norm": "ortho", "orthogonalize": False},
    {"s": (4, 4), "axes": (0, 1)},
]
CONVOLVED = [{"mode": mode} for mode in ("full", "same", "valid")]
EXTRAPOLATED = [{}, {"axis": 1}, {"extrapolate": False}, {"extrapolate": True}]
EDGES = [{}, {"boundary": "wrap"}, {"boundary": "fill", "fillvalue": 0.3}, {"mode": "same"}]
KNOTS = [0.0, 0.0, 0.0, 0.0, 1.6, 4.0, 4.0, 4.0, 4.0]
SPLINE = ([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 3.0], normal(5), 2)
PADDED = [{}, {"padtype": "even"}, {"padtype": None}, {"padlen": 5}, {"axis": 0}]

# SciPy's name -> positional arguments, and settings. Real arrays among the arguments, also in
# tuples, become variables.
CALLS = {
    "scipy.linalg": {"block_diag": ((A, B, V), [{}]), "cho_factor": ((SPD, ), [{},
        {"lower": True}]), "cho_solve": (((ROOT, False), V), [{}]),
        "cho_solve_banded": (((BANDED, False), V), [{}]), "cholesky": ((SPD, ), [{},
        {"lower": True}, {"lower": False}]), "cholesky_banded": ((BANDED, ), [{},
        {"lower": False}]), "circulant": ((V, ), [{}]), "companion": ((V + 3.0, ), [{}]),
        "convolution_matrix": ((V, 5), [{"mode": mode} for mode in ("full", "same", "valid")]),
        "coshm": ((A, ), [{}]), "cosm": ((A, ), [{}]), "det": ((A, ), [{}]), "diagsvd": ((V, 6, 4),
        [{}]), "eig": ((ROTATED, ), [{}]), "eigh": ((SPD, ), [{}, {"lower": False}, {"b": OTHER},
        {"b": OTHER, "type": 2}, {"eigvals_only": True}, {"subset_by_index": [1, 2]}]),
        "eigh_tridiagonal": ((V, W[:3]), [{}, {"eigvals_only": True}]), "eigvals": ((A, ), [{}]),
        "eigvalsh": ((SPD, ), [{}, {"lower": False}, {"b": OTHER, "type": 3},
        {"subset_by_index": [0, 1]}]), "eigvalsh_tridiagonal": ((V, W[:3]), [{}]),
        "expm": ((0.3 * A, ), [{}]), "expm_frechet": ((0.3 * A, B), [{}, {"method": "SPS"},
        {"compute_expm": False}]), "fiedler": ((V, ), [{}]), "fractional_matrix_power": ((POSITIVE,
        0.3), [{}]), "hankel": ((V, W), [{}]), "inv": ((A, ), [{}]), "khatri_rao": ((A, POINTS.T),
        [{}]), "kron": ((A, TALL), [{}]), "leslie": ((V, W[:3]), [{}]), "logm": ((POSITIVE, ),
        [{}]), "lstsq": ((TALL, normal(5, 2)), [{}, {"cond": 1e-9}]), "lu": ((A, ), [{},
        {"permute_l": True}, {"p_indices": True}]), "lu_factor": ((normal(4, 4), ), [{}]),
        "lu_solve": (((A, np.array([2, 3, 2, 3])), V), [{}, {"trans": 1}]),
        "matmul_toeplitz": (((V, W), V), [{}]), "norm": ((A, ), [{}, {"ord": 1},
        {"ord": 2, "axis": 1}, {"ord": "fro", "axis": (0, 1), "keepdims": True}]),
        "orthogonal_procrustes": ((A, B), [{}]), "pinv": ((TALL, ), [{}, {"rtol": 1e-9}]),
        "pinvh": ((SPD, ), [{}, {"lower": False, "rtol": 1e-9}]), "polar": ((A, ), [{},
        {"side": "left"}]), "qr": ((TALL, ), [{}, {"mode": "economic"}, {"mode": "r"},
        {"pivoting": True}, {"mode": "r", "pivoting": True},
        {"mode": "economic", "pivoting": True}]), "schur": ((POSITIVE + 0.1 * A, ), [{}]),
        "signm": ((A, ), [{}]), "sinhm": ((0.3 * A, ), [{}]), "sinm": ((0.3 * A, ), [{}]),
        "solve": ((SPD, V), [{}, {"transposed": True},
        *({"assume_a": "pos", "lower": low} for low in (False, True)),
        *({"assume_a": "sym", "lower": low} for low in (False, True)),
        *({"assume_a": f"{kind} triangular"} for kind in ("upper", "lower")),
        {"assume_a": "diagonal"}, {"assume_a": "tridiagonal"},
        {"assume_a": "gen", "transposed": True}]), "solve_banded": (((1, 1),
        np.vstack([BANDED, [0.2, 0.1, 0.3, 0.0]]), V), [{}]), "solve_continuous_are": ((A, B,
        POSITIVE, OTHER), [{}]), "solve_continuous_lyapunov": ((A, POSITIVE), [{}]),
        "solve_discrete_are": ((A, B, POSITIVE, OTHER), [{}]), "solve_discrete_lyapunov": ((0.1 * A,
        POSITIVE), [{}, {"method": "bilinear"}]), "solve_lyapunov": ((A, POSITIVE), [{}]),
        "solve_sylvester": ((A, B, C), [{}]), "solve_toeplitz": (((V + 6.0 * np.eye(4)[0], W), V),
        [{}]), "solve_triangular": ((A, V), [{}, {"lower": True}, {"trans": 1},
        {"trans": "T", "unit_diagonal": True}]), "solveh_banded": ((BANDED, V), [{},
        {"lower": False}]), "sqrtm": ((POSITIVE, ), [{}]), "svd": ((normal(5, 4), ), [{},
        {"full_matrices": False}, {"compute_uv": False}]), "svdvals": ((TALL, ), [{}]),
        "tanhm": ((0.3 * A, ), [{}]), "tanm": ((0.3 * A, ), [{}]), "toeplitz": ((V, W), [{}])},
    "scipy.special": {"log_softmax": ((A, ), [{}, {"axis": 1}]), "logsumexp": ((A, ), [{},
        {"axis": 0}, {"axis": (0, 1), "keepdims": True}, {"b": UNIT, "axis": 1},
        {"b": W, "return_sign": True, "axis": 0}]), "multigammaln": ((V + 5.0, 3), [{}]),
        "polygamma": ((2, UNIT), [{}]), "softmax": ((A, ), [{}, {"axis": 1}]),
        **{f"spherical_{name}": ((2, UNIT + 1.0), [{}]) for name in ("in", "jn", "kn", "yn")}},
    "scipy.fft": {**dict.fromkeys(("dct", "dst", "idct", "idst"), ((A,), TRIGONOMETRIC)),
        **dict.fromkeys(("dctn", "dstn", "idctn", "idstn"), ((A,), TRIGONOMETRICS)),
        **dict.fromkeys(("fft", "ifft", "rfft", "ihfft"), ((A,), ONE)), **dict.fromkeys(("irfft",
        "hfft"), ((A,), REAL)),
        **dict.fromkeys((*("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"),
        *("hfft2", "hfftn", "ihfft2", "ihfftn")), ((A,), MANY))},
    "scipy.signal": {**{name: ((V, LONG[:9]),
        [*CONVOLVED, {"method": "direct"}]) for name in ("convolve", "correlate")},
        **dict.fromkeys(("convolve2d", "correlate2d"), ((IMAGE, A[:3, :2]), EDGES)),
        **{name: ((IMAGE, TALL[:3]), [*CONVOLVED, {"axes": (0, 1)}]) for name in ("fftconvolve",
        "oaconvolve")}, "detrend": ((IMAGE, ), [{}, {"axis": 0}, {"type": "constant"},
        {"bp": [3]}]), "filtfilt": (DIGITAL, PADDED), "hilbert": ((IMAGE, ), [{}, {"N": 5},
        {"axis": 0}]), "lfilter": (DIGITAL, [{}, {"axis": 0}, {"zi": np.array([0.3, 0.2])}]),
        "lfilter_zi": (DIGITAL[:2], [{}]), "resample": ((IMAGE, 4), [{}, {"axis": 1}]),
        "savgol_filter": ((LONG, 5, 2), [{}, {"deriv": 1, "delta": 0.5},
        {"mode": "constant", "cval": 0.3}, {"mode": "nearest", "axis": 0}]), "sosfilt": ((SOS,
        LONG), [{}, {"axis": 0}, {"zi": np.full((2, 2), 0.1)}]), "sosfilt_zi": ((SOS, ), [{}]),
        "sosfiltfilt": ((SOS, LONG), PADDED)},
    # Of what is a class the objects are called.
    "scipy.interpolate": {"Akima1DInterpolator": ((PLACES, SURFACE), [{}, {"axis": 1},
        {"method": "makima"}, {"extrapolate": True}]), "BSpline": (SPLINE, [{}, {"axis": 0},
        {"extrapolate": False}]), "CubicHermiteSpline": ((PLACES, SURFACE, SURFACE[::-1]),
        EXTRAPOLATED), "CubicSpline": ((PLACES, SURFACE), [*EXTRAPOLATED, {"bc_type": "natural"},
        {"bc_type": "clamped"}]), "PPoly": ((normal(5, 5, 5), PLACES), EXTRAPOLATED),
        "PchipInterpolator": ((PLACES, SURFACE), EXTRAPOLATED),
        "RegularGridInterpolator": (((GRID,), VALUES), [{}, {"method": "nearest"},
        {"bounds_error": False, "fill_value": 0.0}]), "interpn": (((GRID,), VALUES,
        INSIDE[:, None]), [{}, {"method": "nearest"}, {"bounds_error": False, "fill_value": 0.0}]),
        "make_interp_spline": ((GRID, SURFACE), [{}, {"k": 1}, {"bc_type": "natural"}, {"axis": 1},
        {"t": [0.0] * 4 + [1.3, 2.5] + [4.0] * 4}]), "make_lsq_spline": ((GRID, SURFACE),
        [{"t": KNOTS}, {"t": KNOTS, "w": 1.0 + PLACES}, {"t": KNOTS, "axis": 0},
        {"t": KNOTS[1:-1], "k": 2}]), "pchip_interpolate": ((PLACES, SURFACE, INSIDE), [{},
        {"der": 1}, {"axis": 1}]), "splev": ((0.9 * INSIDE, SPLINE), [{}, {"der": 1}])},
    "scipy.spatial.distance": {"cdist": ((POINTS, MORE), [{}, {"metric": "cosine"},
        {"metric": "minkowski", "p": 3.0, "w": UNIT[:3]}, {"metric": "seuclidean", "V": UNIT[:3]},
        {"metric": "mahalanobis", "VI": POSITIVE[:3, :3]}]), "pdist": ((POINTS, ), [{},
        {"metric": "cityblock", "w": UNIT[:3]}, {"metric": "minkowski", "p": 3.0},
        {"metric": "seuclidean", "V": UNIT[:3]},
        {"metric": "mahalanobis", "VI": POSITIVE[:3, :3]}]), "squareform": ((normal(6), ), [{}]),
        **{name: ((V, W), [{}, {"w": UNIT}]) for name in ("euclidean", "sqeuclidean", "cityblock")},
        **{name: ((V, W), [{}]) for name in ("braycurtis", "canberra", "chebyshev", "correlation",
        "cosine")}, "jensenshannon": ((SHARES, OTHERS), [{}, {"base": 2.0}]), "mahalanobis": ((V, W,
        POSITIVE), [{}]), "minkowski": ((V, W), [{}, {"p": 3.0}, {"w": UNIT}]), "seuclidean": ((V,
        W, UNIT), [{}])},
    "scipy.integrate": {"cumulative_simpson": ((IMAGE,),
        [{}, {"x": PLACES}, {"dx": 0.3}, {"axis": 0}, {"initial": 0.0}]),
        "cumulative_trapezoid": ((IMAGE,),
        [{}, {"x": PLACES}, {"dx": 0.3}, {"axis": 0}, {"initial": 0}]),
        "fixed_quad": ((lambda x, *p: x ** (3.0 + sum(p)), 0.3, 1.2), [{"args": (1.0,)}, {"n": 3}]),
        "romb": ((normal(5, 5),), [{}, {"dx": 0.3}, {"axis": 0}]), "simpson": ((IMAGE,),
        [{}, {"x": PLACES}, {"dx": 0.3}, {"axis": 0}]), "trapezoid": ((IMAGE,),
        [{}, {"x": PLACES}, {"dx": 0.3}, {"axis": 0}])},
}  # fmt: skip
