"""Filters in sections, forward and backward filters, smoothing and detrending: against SciPy and
along all routes.
"""

import itertools

import numpy as np
import pytest
import scipy.signal
from comparing import DOMAIN, SHAPE, close, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 2))
SHORT = RNG.normal(size=6)
B, A = scipy.signal.butter(3, 0.3)
SOS = scipy.signal.butter(3, 0.2, output="sos")


def agree(name, *args, **settings):
    """Demand that the function of variables has SciPy's value."""
    variables = [
        vm.var(x) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x for x in args
    ]
    found = getattr(vm, name)(*variables, **settings)
    expected = getattr(scipy.signal, name)(*args, **settings)
    for r, e in zip(*(y if isinstance(y, tuple) else (y,) for y in (found, expected)), strict=True):
        close(vm.value(r), e, 1e-11, 1e-13)


def test_sections():
    zi = RNG.normal(size=(2, 2, 2))
    expect_ad(vm.sosfilt, SOS + 0.01, SHORT)
    expect_ad(lambda sos, x, zi: vm.sosfilt(sos, x, zi=zi), SOS + 0.01, SHORT, zi[0])
    expect_ad_matvar(vm.sosfilt, SOS[1:], SHORT[:3])


def test_steady_states():
    for b, a in ((B, np.ones(1)), (np.ones(1), A), (2.0 * B, 3.0 * A)):
        agree("lfilter_zi", b, a)
    expect_ad(
        lambda b, a, sos: (vm.lfilter_zi(b, a), vm.lfilter_zi(b[:2], a), vm.sosfilt_zi(sos)),
        B,
        A,
        SOS[:1],
    )


def test_forwards_and_backwards_along_all_routes():
    expect_ad(lambda b, a, x: vm.filtfilt(b, a, x, padlen=3), B[:2], A[:2], SHORT)
    expect_ad(lambda sos, x: vm.sosfiltfilt(sos, x, padlen=3), SOS[:1] + 0.01, SHORT)
    expect_ad(lambda x: vm.filtfilt(0.5, [1.0, -0.5], x, padtype="even", padlen=2), SHORT)
    expect_ad_matvar(lambda x: vm.sosfiltfilt(SOS[:1], x, padtype="constant", padlen=2), SHORT)


@pytest.mark.parametrize("mode", ["interp", "mirror", "constant", "nearest", "wrap"])
def test_local_polynomials(mode):
    for window, deriv in itertools.product((5, 6), (0, 1)):
        agree("savgol_filter", X, window, 2, deriv, 0.5, axis=0, mode=mode, cval=0.7)
    expect_ad(lambda x: vm.savgol_filter(x, 3, 1, mode=mode), SHORT)


def test_detrended():
    expect_ad(lambda x: (
        vm.detrend(x), vm.detrend(x, bp=2), vm.detrend(x, type="constant"), vm.detrend(x, bp=5),
    ), SHORT)  # fmt: skip
    expect_ad_matvar(vm.detrend, SHORT)


def test_analytic_signals():
    expect_ad(
        lambda x: (np.real(vm.hilbert(x)), np.imag(vm.hilbert(x, 5)), np.abs(vm.hilbert(x))), SHORT
    )


def test_resampled():
    for n in (6, 7):
        for num in (3, 4, 6, 7, 8, 9):
            expected = scipy.signal.resample(X[:n], num)
            close(vm.resample(vm.var(X[:n]), num).val, expected, 1e-7, 1e-13)
    expect_ad(lambda x: (vm.resample(x, 4), vm.resample(x, 9)), SHORT)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: vm.hilbert(x, 0), DOMAIN, "N is 0, but must be at least 1!"),
    (lambda x: vm.resample(x, 0), DOMAIN, "num is 0, but must be at least 1!"),
    (lambda x: vm.sosfilt(x, x), SHAPE,
     "sos has shape (6,), but must have shape (n, 6), with at least one section!"),
    (lambda x: vm.sosfilt(SOS, x[0]), SHAPE, "x is a scalar, but must have at least one axis!"),
    (lambda x: vm.sosfilt(SOS, x, zi=x), SHAPE,
     "zi has shape (6,), but must have 2 rows, one for each section!"),
    (lambda x: vm.lfilter_zi(x, x[:0]), SHAPE,
     "a has shape (0,), but must be a vector that is not empty!"),
    (lambda x: vm.filtfilt(B, A, x), SHAPE,
     "x has 6 elements along the axis, but must have more than padlen=12!"),
    (lambda x: vm.filtfilt(B, A, x, padtype="no"), DOMAIN,
     "padtype is 'no', but must be 'odd', 'even', 'constant' or None!"),
    (lambda x: vm.savgol_filter(x, 7, 2), SHAPE,
     "x has 6 elements along the axis, but must have at least 7!"),
    (lambda x: vm.savgol_filter(x, 3, 1, mode="no"), DOMAIN,
     "mode is 'no', but must be 'interp', 'mirror', 'constant', 'nearest' or 'wrap'!"),
    (lambda x: vm.detrend(x, type="no"), DOMAIN,
     "type is 'no', but must be 'linear' or 'constant'!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(SHORT))
