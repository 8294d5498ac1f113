"""Replacements for the functions of SciPy that work on arrays, for the table in the documentation,
and for refusals.

SciPy turns its arguments into plain arrays, which variables refuse, so that most of its functions
cannot be called on variables."""

from __future__ import annotations

from types import FrameType

_NOTHING = "refused: varmat has nothing like it"
_NOT = "not a function of numbers"
_CHOICE = "refused: it chooses by looking at the values, and its results have no derivative"
_STATE = (
    "refused: the state that belongs to earlier values is a sum of them; write it for "
    "vm.lfilter(..., zi=...)"
)
_DATA = "made of data alone: call SciPy's function with plain numbers"
_ITSELF = "itself: it is called on variables under SciPy's name"
_FORM = "varmat.scipy"
CONSTANT = "a constant: evaluated on varmat.value(x)"
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
_STEPS = (
    "refused: its steps are plain numbers; write vm.ode_rk45, or vm.ode_bdf for stiff equations"
)

_ARRAYS = "refused: SciPy makes arrays of its arguments; "
_WHOLE_NUMBERS = "refused: it counts, with whole numbers; "
_OBJECTS = (
    "refused: it makes an object of plain numbers, of a degree and parameters; write with "
    "scipy.special.eval_legendre and similar functions"
)

# Module -> what to write -> names. An answer that begins with "refused" says why there is none.
# "vm" stands for the function of the same name in varmat, "np.linalg" and "np.fft" for that in
# these modules, and "varmat.scipy" for one of `varmat.scipy` alone, in `varmat.scipy.forms`. What
# these four name, `varmat.scipy` has with SciPy's arguments.
TABLE: dict[str, dict[str, str]] = {
    "scipy.linalg": {
        "vm": """
            block_diag cho_solve cho_solve_banded cholesky_banded circulant companion
            convolution_matrix coshm cosm expm fractional_matrix_power hankel
            khatri_rao logm lu matmul_toeplitz orthogonal_procrustes schur signm sinhm sinm
            solve_banded solve_continuous_are solve_continuous_lyapunov solve_discrete_are
            solve_discrete_lyapunov solve_sylvester solve_toeplitz solve_triangular solveh_banded
            sqrtm tanhm tanm toeplitz
        """,
        _ITSELF: "solve_circulant",
        _FORM: """
            cho_factor cholesky diagsvd eig eigh eigh_tridiagonal eigvals eigvalsh
            eigvalsh_tridiagonal expm_frechet fiedler kron leslie lstsq lu_factor lu_solve pinv
            pinvh polar qr solve solve_lyapunov
        """,
        "np.linalg": "det inv norm svd svdvals",
        "np.linalg.cholesky": "ldl",
        "np.linalg.qr(a[::-1].T), turned back": "rq",
        _FACTORS: "qr_delete qr_insert qr_multiply qr_update",
        _WHOLE: "eig_banded eigvals_banded",
        "np.arccos(np.linalg.svdvals(q1.T @ q2)), where angles are not small": "subspace_angles",
        "refused: a basis may be turned, and so has no derivative; write np.linalg.svd": """
            null_space orth
        """,
        _CHOICE: "matrix_balance",
        "refused: write vm.funm, which takes the derivative of the function too": "funm",
        "refused: it draws random numbers": "clarkson_woodruff_transform",
        "refused: the factors are complex, or of pairs of matrices; write np.linalg.eig": """
            cdf2rdf cossin ordqz qz rsf2csf
        """,
        _NOTHING: "expm_cond fiedler_companion hessenberg",
        CONSTANT: "bandwidth ishermitian issymmetric",
        _DATA: "dft hadamard helmert hilbert invhilbert invpascal pascal",
        _NOT: "LinAlgError LinAlgWarning find_best_blas_type get_blas_funcs get_lapack_funcs",
    },
    # The functions among these that are not ufuncs.
    "scipy.special": {
        "vm": "log_softmax multigammaln polygamma softmax",
        _FORM: "logsumexp spherical_in spherical_jn spherical_kn spherical_yn",
        "derivatives in `z`; `v` as in the function that it is a derivative of": "ivp jvp kvp yvp",
        "derivatives in `x`; `n` and `k` are constant": "assoc_laguerre",
        "derivatives in `x`": "sinc softplus",
        "derivatives in `q`, and in `x` if there is no `q`, for x > 0; with `q` it is constant": (
            "zeta"
        ),
        "refused: its results are complex numbers; write vm.lambert_w0(x) or vm.lambert_wm1(x), "
        "the real branches": "lambertw",
        f"{_ARRAYS}write np.sin(n * x / 2) / (n * np.sin(x / 2))": "diric",
        f"{_ARRAYS}write scipy.special.eval_legendre(n, x)": "legendre_p legendre_p_all",
        f"{_ARRAYS}write scipy.special.lpmv": """
            assoc_legendre_p assoc_legendre_p_all clpmn lpmn lpn sph_legendre_p sph_legendre_p_all
        """,
        f"{_ARRAYS}varmat has nothing like it": "ellip_harm ellip_harm_2 ellip_normal lqmn lqn",
        f"{_WHOLE_NUMBERS}write vm.binom for real ones": "comb",
        f"{_WHOLE_NUMBERS}write scipy.special.poch(n - k + 1, k) for real ones": "perm",
        f"{_WHOLE_NUMBERS}write vm.gamma(x + 1) for real ones": "factorial factorial2 factorialk",
        f"{_WHOLE_NUMBERS}there is no derivative": "bernoulli euler stirling2",
        "refused: its results are complex numbers; write with jvp and yvp": "h1vp h2vp",
        "refused: its results are complex numbers; write with scipy.special.lpmv, np.cos and "
        "np.sin": "sph_harm sph_harm_y sph_harm_y_all",
        "refused: SciPy takes plain numbers alone, and makes a whole sequence": """
            lmbda mathieu_even_coef mathieu_odd_coef obl_cv_seq pbdn_seq pbdv_seq pbvv_seq
            pro_cv_seq riccati_jn riccati_yn
        """,
        "refused: its arguments are whole numbers, how many zeros of what order": """
            ai_zeros bei_zeros beip_zeros ber_zeros berp_zeros bi_zeros erf_zeros fresnel_zeros
            fresnelc_zeros fresnels_zeros jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros
            keip_zeros kelvin_zeros ker_zeros kerp_zeros y0_zeros y1_zeros y1p_zeros yn_zeros
            ynp_zeros
        """,
        _OBJECTS: """
            c_roots cg_roots chebyc chebys chebyt chebyu gegenbauer genlaguerre h_roots he_roots
            hermite hermitenorm j_roots jacobi js_roots l_roots la_roots laguerre legendre p_roots
            ps_roots roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_gegenbauer
            roots_genlaguerre roots_hermite roots_hermitenorm roots_jacobi roots_laguerre
            roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi roots_sh_legendre
            s_roots sh_chebyt sh_chebyu sh_jacobi sh_legendre t_roots ts_roots u_roots us_roots
        """,
        _NOT: "SpecialFunctionError SpecialFunctionWarning errstate geterr seterr",
    },
    "scipy.fft": {
        "vm": "dct dctn dst dstn idct idctn idst idstn",
        "np.fft": "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
        _ITSELF: "fftshift ifftshift",
        _FORM: "hfft2 hfftn ihfft2 ihfftn",
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
        "vm.solveh_banded of the penalised system": "whittaker_henderson",
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
        _FORM: "pchip_interpolate splev",
        "np.interp, or vm.make_interp_spline(x, y, k)": "interp1d",
        "vm.make_interp_spline": "InterpolatedUnivariateSpline",
        "vm.make_lsq_spline": "LSQUnivariateSpline",
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
        _FORM: """
            braycurtis canberra chebyshev cityblock correlation cosine euclidean jensenshannon
            mahalanobis minkowski seuclidean sqeuclidean
        """,
        "np.max(np.min(vm.cdist(u, v), axis=1))": "directed_hausdorff",
        _COUNTS: (
            "dice hamming jaccard kulczynski1 rogerstanimoto russellrao sokalmichener sokalsneath "
            "yule"
        ),
        CONSTANT: "is_valid_dm is_valid_y num_obs_dm num_obs_y",
    },
    "scipy.integrate": {
        "vm": "cumulative_simpson cumulative_trapezoid romb simpson",
        _FORM: "fixed_quad trapezoid",
        "vm.integrate_1d": "quad quad_vec tanhsinh",
        "vm.hcubature": "cubature dblquad nquad qmc_quad tplquad",
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
    """Say what to write for a function of SciPy, or why nothing can be; None for a function that is
    not in the table.
    """
    for text, names in TABLE.get(module, {}).items():
        if name in names.split():
            if text == _FORM:
                return f"varmat.{module}.{name}"
            return f"{text}.{name}" if text in ("vm", "np.linalg", "np.fft") else text
    return None


def is_differentiable(text: str, name: str) -> bool:
    """Return whether an entry is a function that `varmat.scipy` has under SciPy's name."""
    homes = ("vm.", "np.linalg.", "np.fft.", "varmat.scipy.")
    return text.startswith(homes) and text.endswith(f".{name}") and " " not in text


def has_form(module: str, name: str) -> bool:
    """Return whether `varmat.scipy` has a function that takes variables in place of SciPy's."""
    return is_differentiable(answer(module, name) or "", name)


def is_scipys_own(text: str | None) -> bool:
    """Return whether SciPy's own function is called, whatever the arguments are."""
    return text is not None and (text in (_ITSELF, _NOT) or text.startswith("derivatives "))


def known(frame: FrameType | None) -> tuple[str, str] | None:
    """Find module and name of the function of SciPy that needs a variable as a plain array: the
    outermost one that is in the table.

    Parameters
    ----------
    frame : frame
        That in which NumPy was asked for the array.
    """
    result = None
    for _ in range(40):
        if frame is None:
            break
        module, name = _function_of(frame)
        public = next((x for x in TABLE if f"{module}.".startswith(f"{x}.")), None)
        if public is not None and answer(public, name) is not None:
            result = public, name
        elif result is not None and not module.startswith(("scipy.", "numpy.")):
            break
        frame = frame.f_back
    return result


def _function_of(frame: FrameType) -> tuple[str, str]:
    """Return module and name of the function that runs in a frame; for SciPy's wrappers, of the
    function that they wrap.
    """
    module = frame.f_globals.get("__name__", "")
    if module.startswith("scipy._"):
        for name in ("f", "func", "fun"):
            wrapped = frame.f_locals.get(name)
            if callable(wrapped):
                return getattr(wrapped, "__module__", "") or "", getattr(wrapped, "__name__", "")
    return module, frame.f_code.co_qualname.split(".")[0]


def sentence(module: str, name: str, place: str = "") -> str:
    """Say why SciPy's function cannot be called on variables, at `place`, and what to write."""
    text, called = answer(module, name) or "", f"{module}.{name}{place}"
    if is_differentiable(text, name):
        return f"{called} cannot be called on variables: use varmat.{module}.{name}"
    if text.startswith("refused: "):
        return f"{called} has no derivative here: {_written(text[len('refused: ') :])}"
    if text.startswith(("vm.", "np.")):
        return f"{called} cannot be called on variables: use {_written(text)}"
    return f"{called} cannot be called on variables: pass the plain numbers, varmat.value(x)"


def _written(text: str) -> str:
    return text.replace("vm.", "varmat.")
