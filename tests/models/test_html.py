"""What notebooks show of models, results and programs."""

import types
from html.parser import HTMLParser

import numpy as np
import pytest
from comparing import close, refuses
from models.small_models import GAUSSIAN, Y

import varmat as vm
from varmat import html

ODD = '<b onclick="x">&'
EMPTY = {"br", "hr", "img"}


class WellFormed(HTMLParser):
    """Every tag is closed in its order; it keeps the cells."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.cells = [], set(), []

    def handle_starttag(self, tag, attributes):
        assert not attributes  # above all no colours, which may not contrast with the background
        self.tags.add(tag)
        if tag in ("td", "th", "p", "caption"):
            self.cells.append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells[-1] += data


def cells(thing):
    parser = WellFormed()
    parser.feed(thing._repr_html_())
    parser.close()
    assert not parser.open
    assert parser.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    return parser.cells


def odd(**settings):
    return vm.Model(
        lambda p: -0.5 * np.sum(p[ODD] ** 2) - p["s"],
        {ODD: vm.real(2), "s": vm.positive()},
        data={"y": Y, "n": 3},
        coords={"<i>": ["a", "b"]},
        dims={ODD: ["<i>"]},
        **settings,
    )


def test_model():
    found = cells(odd())
    assert found[0] == "Model of 3 unknowns"
    shown = {ODD, "(2,)", "<i>", repr(vm.positive()), "y", "ndarray", "(5,)", "n", "int"}
    assert shown <= {*found}


def test_optimum_and_approximation():
    model = odd()
    mode = model.optimize(seed=1, jacobian=True)
    found = cells(mode)
    assert found[0] == mode.state()
    assert found[1:4] == ["", "value", ODD]
    approximation = model.laplace(seed=1, draws=50)
    found = cells(approximation)
    row = found.index(f"{ODD}.2")
    assert found[row + 1] == f"{np.mean(approximation.draws[ODD][:, 1]):.4g}"
    assert found[1:7] == ["", "mean", "sd", "5%", "50%", "95%"]
    assert len(cells(model.laplace(seed=1, draws=0))) == 1


def test_predictive_draws():
    found = GAUSSIAN.sample_posterior_predictive(
        {"mu": np.zeros((1, 3)), "sigma": np.ones((1, 3))}, lambda mu: {ODD: mu * np.ones(4)}
    )
    assert cells(found)[-3:] == [ODD, "posterior_predictive", "(1, 3, 4)"]


def test_gradient_check():
    check = odd().check_gradient()
    found = cells(check)
    assert "the gradient agrees with finite differences" in found[0]
    assert found[7] == f"{ODD}.1"


def test_program():
    f = vm.recorded(lambda x: np.sum(np.exp(x)) * x[0])
    f(np.zeros(2))
    found = cells(f.program)
    assert found[0] == "program(a0[2])"
    assert found[-1].startswith("return ")
    assert any(cell.startswith("exp(") for cell in found)
    # A view is printed with angles.
    assert "<" in str(f.program)
    assert any("<" in cell for cell in found)


def test_long_tables_are_cut():
    page = html.table(["", "x"], ((str(i), float(i)) for i in range(html.ROWS + 5)))
    assert page.count("<tr>") == html.ROWS + 1
    assert page.endswith("<p>and 5 more</p>")
    assert html.text(np.arange(9.0)) == "array of shape (9,)"
    assert html.text(0.1234567890) == "0.123457"


def chains(shift=0.0):
    rng = np.random.default_rng(1)
    return {
        "mu": rng.normal(size=(4, 400)) + shift * np.arange(4)[:, None],
        "w": rng.normal(2.0, 3.0, size=(4, 400, 2)),
    }


@pytest.mark.filterwarnings("ignore")  # ArviZ warns about its future
def test_summary():
    pytest.importorskip("arviz")
    found = GAUSSIAN.summary(chains())
    assert found.names == ["mu", "w[0]", "w[1]"]
    flat = chains()["w"].reshape(-1, 2)
    close(found.table["mean"][1:], flat.mean(axis=0), 1e-7)
    close(found.table["sd"][1:], flat.std(axis=0, ddof=1), 1e-7)
    close(found.table["95%"][2], np.quantile(flat[:, 1], 0.95), 1e-7)
    assert np.all(found.table["r_hat"] < 1.01)
    assert np.all(found.table["ess_bulk"] > 1000.0)
    assert found.warnings == []
    assert cells(found)[0].startswith("4 chains of 400 draws, r_hat up to 1.00")
    assert "w[1]" in cells(found)
    expected = ["mean", "sd", "5%", "50%", "95%", "ess_bulk", "ess_tail", "r_hat"]
    assert repr(found).splitlines()[1].split() == expected


def test_summary_says_what_is_wrong():
    result = types.SimpleNamespace(sample_stats={"diverging": np.arange(8).reshape(2, 4) > 5})
    result.posterior = chains(3.0)
    found = GAUSSIAN.summary(result)
    assert found.divergences == 2
    assert list(found.problems) == ["divergences", "r_hat", "ess"]
    assert "r_hat is above 1.01: mu 2." in found.warnings[1]
    assert cells(found)[1:4] == found.warnings
    assert cells(found)[0].startswith("4 chains of 400 draws, 2 divergences, r_hat up to 2.")


def test_summary_of_some_names_and_rows():
    draws = {**chains(), "v": np.ones((4, 400, 5, 4)), "one": np.full((4, 400), 2.0)}
    found = GAUSSIAN.summary(draws)
    assert len(found.names) == 24
    assert repr(found).splitlines()[-2:][1] == "and 14 more: summary(..., rows=None) prints all"
    assert repr(found).splitlines()[-2].split()[:2] == ["v[1,", "2]"]
    assert repr(found).splitlines()[-2].split()[-3:] == ["-", "-", "-"]
    assert len(repr(GAUSSIAN.summary(draws, rows=None)).splitlines()) == 26
    assert GAUSSIAN.summary(draws, ["one", "mu"]).names == ["one", "mu"]
    assert GAUSSIAN.summary(draws, "mu").names == ["mu"]
    message = r"^Model.summary: result has no on: did you mean one[?]$"
    refuses(TypeError, message, GAUSSIAN.summary, draws, "on")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e300])
def test_summary_names_draws_that_are_not_finite_first(bad):
    """Draws of an improper posterior may run to infinity without a divergence."""
    draws = chains()
    draws["w"][1, 3:5, 1] = bad
    found = GAUSSIAN.summary(draws)
    assert found.failures == (0 if bad == 1e300 else 2)
    head = "4 chains of 400 draws" + (", 2 of them inf or nan" if found.failures else ", r_hat")
    assert cells(found)[0].startswith(head)
    assert found.warnings[0] == (
        "draws are inf or nan, or too large for a standard deviation: w[1]; the posterior may be "
        "improper, as without a prior"
    )


def test_summary_of_an_approximation_needs_no_chains():
    found = GAUSSIAN.summary(GAUSSIAN.laplace(seed=1, draws=20))
    expected = (["mu", "sigma"], 1, 20, None)
    assert (found.names, found.chains, found.draws, found.divergences) == expected
    assert list(found.table) == ["mean", "sd", "5%", "50%", "95%"]


def test_summary_of_something_else():
    message = r"^Model\.summary: result is a float, but must be what Model\.sample, Model\.laplace"
    refuses(TypeError, message, GAUSSIAN.summary, 3.0)
