"""Distribution functions with huge arguments. Stan Math 4.9.0 has few digits there, so finite sums
and integrals are the oracle.
"""

import mpmath as mp
import pytest
import stan
from comparing import close

import varmat as vm


def counts_up_to(n, size, p):
    """Sum the negative binomial masses up to n, where p is the probability of a counted event."""
    term = total = mp.exp(size * mp.log1p(-p))
    for k in range(1, n + 1):
        term *= (size + k - 1) * p / k
        total += term
    return total


def beyond(z, nu):
    """Return the logarithm of the probability that Student's t exceeds z."""
    scale = mp.gamma((nu + 1) / 2) / mp.gamma(nu / 2) / mp.sqrt(nu * mp.pi)
    return mp.log(
        mp.quad(
            lambda u: z * mp.exp(u) * (1 + (z * mp.exp(u)) ** 2 / nu) ** (-(nu + 1) / 2),
            [0, 2, 5, 10, 30],
        )
        * scale
    )


def exact(function, first, *others):
    if function.startswith("student_t"):
        nu, mu, sigma = others
        return beyond(abs(first - mu) / sigma, nu)
    one, other = others
    size, p = (
        (other, one / (one + other))
        if function.startswith("neg_binomial_2")
        else (one, 1 / (1 + other))
    )
    lower = counts_up_to(int(first), size, p)
    return {"cdf": lower, "lcdf": mp.log(lower), "lccdf": mp.log1p(-lower)}[
        function.rpartition("_")[2]
    ]


# Stan's relative errors above 1e-9. Number 0 is the value, and number i is the derivative in
# argument i.
STAN = {
    "student_t_lccdf#4": {0: 5e-7, 1: 1e-5, 3: 1e-5, 4: 1e-5},
    "student_t_lcdf#5": {0: 5e-7, 1: 1e-5, 3: 1e-5, 4: 1e-5},
    "neg_binomial_2_cdf#7": {0: 1e-8, 3: 1e17},
    "neg_binomial_2_lccdf#4": {3: 4e3},
    "neg_binomial_2_lcdf#4": {2: 1e-9, 3: 4e3},
    "neg_binomial_cdf#4": {2: 0.6},
    "neg_binomial_lccdf#7": {0: 2e-7, 2: 4.0, 3: 4e-5},
    "neg_binomial_lcdf#7": {0: 4e-7, 2: 4.0, 3: 4e-5},
}  # fmt: skip


@pytest.mark.parametrize("entry", stan.entries("huge_parameters"))
def test_sums_and_integrals_decide(entry):
    name, args = entry["id"], stan.arguments(entry)
    variables = tuple(i for i, (_, gradient) in enumerate(entry["args"]) if gradient is not None)
    value, gradient = vm.value_and_grad(getattr(vm, entry["function"]), variables)(*args)
    found = {0: (value, entry["output"])} | {
        i + 1: (g, entry["args"][i][1]) for i, g in zip(variables, gradient, strict=True)
    }
    with mp.workdps(30 if "student" in name else 70):
        given = [mp.mpf(x) for x in args]
        for place, (ours, theirs) in found.items():
            true = exact(entry["function"], *given)
            if place:
                step = (abs(given[place - 1]) or 1) * mp.mpf(10) ** -10
                up, down = (
                    exact(
                        entry["function"], *(x + s * (k == place) for k, x in enumerate(given, 1))
                    )
                    for s in (step, -step)
                )
                true = (up - down) / (2 * step)
            if (name, place) == ("neg_binomial_2_cdf#7", 3):
                # The mean equals the count, so terms of 1e-22 cancel by symmetry to a derivative of
                # about 1e-27.
                assert abs(ours - true) < 1e-29
            else:
                close(ours, float(true), 1e-12)
            off = abs(theirs / true - 1)
            assert off > STAN[name][place] if place in STAN[name] else off < 2e-9
