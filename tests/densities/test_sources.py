"""Every density, every cumulative function and every function that draws cites the source of its
formulas.
"""

import inspect
import re

import varmat as vm
from varmat.densities.sources import SOURCES, source_of

ENDING = re.compile(r"(.+)_(lpdf|lpmf|cdf|lcdf|lccdf|rng)$")
PUBLIC = {
    name: match[1]
    for name in vm.__all__
    if (match := ENDING.match(name)) and getattr(vm, name).__module__.startswith("varmat.densities")
}
# The Wiener model cites a list of papers of its own.
TABULATED = [
    name for name, stem in PUBLIC.items() if stem != "wiener" and not name.endswith("_unnorm")
]
SECTION = re.compile(r"^References\n-{10}\n(.+?)(?=\n\n|\Z)", flags=re.MULTILINE | re.DOTALL)


def cited(name):
    """Return the section References of a docstring in one line."""
    section = SECTION.search(inspect.cleandoc(getattr(vm, name).__doc__))
    assert section, f"{name} has no section References"
    return " ".join(section[1].split())


def test_docstring_cites_a_source():
    form = r'(Stan Functions Reference, "[^"]+"|Stan Math Library, ``\w+``).*\.'
    assert not [name for name in PUBLIC if not re.fullmatch(form, cited(name))]


def test_docstring_cites_what_the_table_has():
    names = [*TABULATED, "hmm_marginal", "hmm_hidden_state_prob"]
    assert not [name for name in names if cited(name) != source_of(name)]


def test_sources_are_of_functions_that_exist():
    used = {*PUBLIC.values(), *filter(SOURCES.__contains__, vm.__all__)}
    assert not SOURCES.keys() - used
    assert used - SOURCES.keys() == {"wiener"}


def test_sources_are_whole():
    found = source_of("discrete_range_rng")
    assert found == 'Stan Functions Reference, "Discrete range distribution".'
    assert source_of("normal_sufficient_lpdf") == (
        "Stan Math Library, ``normal_sufficient``; N. L. Johnson, S. Kotz and N. Balakrishnan, "
        '"Continuous Univariate Distributions", volume 1, 2nd edition, Wiley 1994, chapter 13.'
    )
    for name in SOURCES:
        text = source_of(name)
        assert text.count('"') % 2 == 0
        assert not re.search(r"[{}]|;;|  ", text)
