"""What to write for the functions of SciPy that work on arrays: for the table in the documentation,
and for refusals.

SciPy turns its arguments into plain arrays, which variables refuse, so that most of its functions
cannot be called on variables."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

_NOTHING = "refused: varmat has nothing like it"
_NOT = "not a function of numbers"
_CHOICE = "refused: it chooses by looking at the values, and its results have no derivative"
_STATE = (
    "refused: the state that belongs to earlier values is a sum of them; write it for "
    "vm.lfilter(..., zi=...)"
)
_DATA = "made of data alone: call SciPy's function with plain numbers"
_ITSELF = "itself: it is called on variables under SciPy's name"
_COUNTS = "refused: it counts, which has no derivative; pass varmat.value(x)"
_DESIGN = (
    "refused: it designs a filter, whose coefficients are data; give them to vm.lfilter or "
    "vm.sosfilt"
)
_SYSTEM = (
    "refused: it makes a system of plain numbers; write its recurrence with vm.lfilter, or with "
    "vm.expm and products"
)
_SPECTRUM = "refused: write np.abs(np.fft.rfft(window * x)) ** 2, of pieces of x"
_RESPONSE = "refused: write np.polyval of the coefficients at np.exp(-1j * w)"
_PEAKS = "refused: places of peaks have no derivative; pass varmat.value(x)"
_RATIONAL = "refused: its results are roots of polynomials, and may be complex"
_SMOOTHING = "refused: it chooses knots by looking at the values; give them to vm.make_lsq_spline"
_SURFACE = (
    "refused: write vm.make_interp_spline along one axis after the other, or "
    "vm.RegularGridInterpolator"
)
_POLYNOMIAL = "refused: write np.polyfit and np.polyval"
_SCATTERED = "refused: it triangulates the places; for a grid write vm.RegularGridInterpolator"
_FACTORS = "np.linalg.qr of the whole matrix"
_WHOLE = "np.linalg.eigh of the whole matrix"
_PAIR = "vm.cdist(u[None], v[None], name)[0, 0]"
_STEPS = (
    "refused: its steps are plain numbers; write vm.ode_rk45, or vm.ode_bdf for stiff equations"
)

# Module -> what to write -> names. An answer that begins with "refused" says why there is none.
# "vm" stands for the function of the same name in varmat, "np.linalg" and "np.fft" for that in
# these modules.
TABLE: dict[str, dict[str, str]] = {
    "scipy.linalg": {
        "vm": """
            block_diag cho_solve cho_solve_banded cholesky_banded circulant companion
            convolution_matrix coshm cosm eigh eigvalsh expm fractional_matrix_power funm hankel
            khatri_rao logm lu matmul_toeplitz orthogonal_procrustes schur signm sinhm sinm
            solve_banded solve_continuous_are solve_continuous_lyapunov solve_discrete_are
            solve_discrete_lyapunov solve_sylvester solve_toeplitz solve_triangular solveh_banded
            sqrtm tanhm tanm toeplitz
        """,
        _ITSELF: "solve_circulant",
        "vm.solve_continuous_lyapunov": "solve_lyapunov",
        "vm.polar_decompose": "polar",
        "vm.jvp(vm.expm, (a,), (e,))": "expm_frechet",
        "np.linalg": "cholesky det eig eigvals inv lstsq norm pinv qr solve svd svdvals",
        "np.linalg.cholesky": "cho_factor ldl",
        "np.linalg.solve": "lu_factor lu_solve",
        "np.linalg.pinv(a, hermitian=True)": "pinvh",
        "np.linalg.qr(a[::-1].T), turned back": "rq",
        "np.diag": "diagsvd",
        "np.kron": "kron",
        _FACTORS: "qr_delete qr_insert qr_multiply qr_update",
        _WHOLE: "eig_banded eigh_tridiagonal eigvals_banded eigvalsh_tridiagonal",
        "np.arccos(np.linalg.svdvals(q1.T @ q2)), where angles are not small": "subspace_angles",
        "np.abs(np.subtract.outer(a, a))": "fiedler",
        "np.concatenate([f[None], np.diag(s) of one row less])": "leslie",
        "refused: a basis may be turned, and so has no derivative; write np.linalg.svd": """
            null_space orth
        """,
        _CHOICE: "matrix_balance",
        "refused: it draws random numbers": "clarkson_woodruff_transform",
        "refused: the factors are complex, or of pairs of matrices; write np.linalg.eig": """
            cdf2rdf cossin ordqz qz rsf2csf
        """,
        _NOTHING: "expm_cond fiedler_companion hessenberg",
        "a constant: evaluated on varmat.value(x)": "bandwidth ishermitian issymmetric",
        _DATA: "dft hadamard helmert hilbert invhilbert invpascal pascal",
        _NOT: "LinAlgError LinAlgWarning find_best_blas_type get_blas_funcs get_lapack_funcs",
    },
    "scipy.fft": {
        "vm": "dct dctn dst dstn idct idctn idst idstn",
        "np.fft": "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        _ITSELF: "fftshift ifftshift",
        "np.fft.irfftn(np.conjugate(x)), with the opposite norm": "hfft2 hfftn",
        "np.conjugate(np.fft.rfftn(x)), with the opposite norm": "ihfft2 ihfftn",
        _DATA: "fftfreq fhtoffset next_fast_len prev_fast_len rfftfreq",
        _NOTHING: "fht ifht",
        _NOT: """
            get_workers register_backend set_backend set_global_backend set_workers skip_backend
        """,
    },
    "scipy.signal": {
        "vm": """
            convolve convolve2d correlate correlate2d detrend fftconvolve filtfilt hilbert lfilter
            lfilter_zi oaconvolve resample savgol_filter sosfilt sosfilt_zi sosfiltfilt
        """,
        _ITSELF: "gausspulse kaiser_atten kaiser_beta sweep_poly",
        "np.cos of the phase": "chirp",
        "np.abs(np.mean(np.exp(2j * np.pi * events / period)))": "vectorstrength",
        "vm.lfilter(signal, divisor, impulse)": "deconvolve",
        "vm.convolve of x with zeros between, and a slice": "decimate resample_poly upfirdn",
        "np.abs(vm.hilbert(x))": "envelope",
        "vm.hilbert along one axis after the other, the phases by hand": "hilbert2",
        "np.median of np.lib.stride_tricks.sliding_window_view": "medfilt medfilt2d order_filter",
        "vm.convolve(x, w) for means, and products of them": "wiener",
        "vm.convolve2d with np.outer of the two": "sepfir2d",
        "refused: write vm.filtfilt, whose ends are others": "symiirorder1 symiirorder2",
        "vm.CubicSpline, or vm.make_interp_spline": """
            cspline1d cspline1d_eval cspline2d gauss_spline qspline1d qspline1d_eval qspline2d
            spline_filter
        """,
        _STATE: "lfiltic",
        "refused: a wave with jumps has no derivative there; write np.where": "sawtooth square",
        _RESPONSE: "freqs freqs_zpk freqz freqz_sos freqz_zpk group_delay sosfreqz",
        _SPECTRUM: """
            CZT ShortTimeFFT ZoomFFT check_COLA check_NOLA closest_STFT_dual_window coherence csd
            czt czt_points istft lombscargle periodogram spectrogram stft welch zoom_fft
        """,
        _PEAKS: "argrelextrema argrelmax argrelmin find_peaks find_peaks_cwt peak_prominences "
        "peak_widths",
        _RATIONAL: "invres invresz residue residuez unique_roots",
        _SYSTEM: """
            StateSpace TransferFunction ZerosPolesGain abcd_normalize bode cont2discrete dbode
            dfreqresp dimpulse dlsim dlti dstep freqresp impulse lsim lti place_poles sos2tf sos2zpk
            ss2tf ss2zpk step tf2sos tf2ss tf2zpk zpk2sos zpk2ss zpk2tf
        """,
        _DESIGN: """
            band_stop_obj bessel besselap bilinear bilinear_zpk buttap butter buttord cheb1ap
            cheb1ord cheb2ap cheb2ord cheby1 cheby2 ellip ellipap ellipord findfreqs firls firwin
            firwin2 firwin_2d gammatone iircomb iirdesign iirfilter iirnotch iirpeak kaiserord lp2bp
            lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp lp2lp_zpk minimum_phase normalize remez
        """,
        _DATA: "choose_conv_method correlation_lags get_window max_len_seq savgol_coeffs "
        "unit_impulse",
        _NOT: "BadCoefficients",
    },
    "scipy.interpolate": {
        "vm": """
            Akima1DInterpolator BSpline CubicHermiteSpline CubicSpline PPoly PchipInterpolator
            RegularGridInterpolator interpn make_interp_spline make_lsq_spline
        """,
        "vm.PchipInterpolator": "pchip_interpolate",
        "np.interp, or vm.make_interp_spline(x, y, k)": "interp1d",
        "vm.make_interp_spline": "InterpolatedUnivariateSpline",
        "vm.make_lsq_spline": "LSQUnivariateSpline",
        "vm.BSpline": "splev",
        "vm.BSpline(t, c, k).derivative(n)": "spalde splder",
        "refused: write vm.PPoly": "BPoly",
        "refused: write vm.PPoly, whose integrals are there": "splantider splint",
        _POLYNOMIAL: """
            BarycentricInterpolator KroghInterpolator approximate_taylor_polynomial
            barycentric_interpolate krogh_interpolate lagrange pade
        """,
        _SMOOTHING: "UnivariateSpline generate_knots make_smoothing_spline make_splprep "
        "make_splrep splprep splrep",
        _SURFACE: """
            BivariateSpline LSQBivariateSpline LSQSphereBivariateSpline NdBSpline NdPPoly
            RectBivariateSpline RectSphereBivariateSpline SmoothBivariateSpline
            SmoothSphereBivariateSpline bisplev bisplrep interp2d
        """,
        _SCATTERED: """
            CloughTocher2DInterpolator LinearNDInterpolator NearestNDInterpolator griddata
        """,
        "refused: write np.linalg.solve of a kernel of vm.cdist": "RBFInterpolator Rbf",
        "refused: it looks for zeros, or knots, of a spline of plain numbers": "insert sproot",
        _NOTHING: "AAA FloaterHormannInterpolator",
    },
    "scipy.spatial.distance": {
        "vm": "cdist pdist squareform",
        "np.linalg.norm(u - v)": "euclidean",
        "np.linalg.norm(u - v, p)": "minkowski",
        "np.sum((u - v) ** 2)": "sqeuclidean",
        "np.sum(np.abs(u - v))": "cityblock",
        "np.max(np.abs(u - v))": "chebyshev",
        _PAIR: "braycurtis canberra correlation cosine jensenshannon mahalanobis seuclidean",
        "np.max(np.min(vm.cdist(u, v), axis=1))": "directed_hausdorff",
        _COUNTS: (
            "dice hamming jaccard kulczynski1 rogerstanimoto russellrao sokalmichener sokalsneath "
            "yule"
        ),
        "a constant: evaluated on varmat.value(x)": "is_valid_dm is_valid_y num_obs_dm num_obs_y",
    },
    "scipy.integrate": {
        "vm": "cumulative_simpson cumulative_trapezoid romb simpson",
        "np.trapezoid": "trapezoid",
        "vm.integrate_1d": "quad quad_vec tanhsinh",
        "vm.hcubature": "cubature dblquad nquad qmc_quad tplquad",
        "sums with the weights of np.polynomial.legendre.leggauss": "fixed_quad",
        "np.sum of the terms": "nsum",
        "vm.ode_rk45, or vm.ode_bdf for stiff equations": "solve_ivp",
        "vm.ode_adams, or vm.ode_bdf for stiff equations": "odeint",
        _STEPS: """
            BDF DOP853 DenseOutput LSODA OdeSolution OdeSolver RK23 RK45 Radau complex_ode ode
        """,
        _NOTHING: "solve_bvp",
        _DATA: "lebedev_rule newton_cotes",
        _NOT: "IntegrationWarning ODEintWarning",
    },
}


def answer(module: str, name: str) -> str | None:
    """What to write for a function of SciPy, or why there is nothing; None for a function that is
    not in the table.
    """
    for text, names in TABLE[module].items():
        if name in names.split():
            return f"{text}.{name}" if text in ("vm", "np.linalg", "np.fft") else text
    return None


def advice(frame: Any) -> str | None:
    """The sentence for the function of SciPy that wants a variable as a plain array: the outermost
    one that is known.

    Parameters
    ----------
    frame : frame
        That in which NumPy was asked for the array.
    """
    found = None
    for _ in range(40):
        if frame is None:
            break
        module, name = _function_of(frame)
        public = next((each for each in TABLE if f"{module}.".startswith(f"{each}.")), None)
        text = answer(public, name) if public is not None else None
        if text is not None:
            found = _sentence(f"{public}.{name}", text)
        elif found is not None and not module.startswith(("scipy.", "numpy.")):
            break
        frame = frame.f_back
    return found


def _function_of(frame: Any) -> tuple[str, str]:
    """Module and name of the function that runs in a frame; for SciPy's wrappers, of the function
    that they wrap.
    """
    module = frame.f_globals.get("__name__", "")
    if module.startswith("scipy._"):
        for name in ("f", "func", "fun"):
            wrapped = frame.f_locals.get(name)
            if callable(wrapped):
                return getattr(wrapped, "__module__", "") or "", getattr(wrapped, "__name__", "")
    return module, frame.f_code.co_qualname.split(".")[0]


def _sentence(name: str, text: str) -> str:
    if text.startswith("refused: "):
        return (
            f"{name} has no derivative here: "
            f"{text.removeprefix('refused: ').replace('vm.', 'varmat.')}"
        )
    if text.startswith(("vm.", "np.", "sums ")):
        return f"{name} cannot be called on variables: use {text.replace('vm.', 'varmat.')}"
    return f"{name} cannot be called on variables: pass the plain numbers, varmat.value(x)"
