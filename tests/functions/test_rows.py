"""The documentation of the rows of elementwise functions."""

import rows_at_import

from varmat.core.elementwise import ROWS
from varmat.functions.rows import references_of


def test_references():
    found = references_of("DLMF 7.2.1, 7.10; SciPy; Stan Link functions; Owen (1956)", "erf")
    assert found.splitlines() == [
        "* NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov, 7.2.1, 7.10.",
        "* SciPy reference, `scipy.special.erf`.",
        '* Stan Functions Reference, "Link functions".',
        "* Owen (1956).",
    ]
    assert references_of("NumPy", "exp") == "* NumPy reference, `numpy.exp`."


def test_every_documented_row_names_its_source():
    documented = [name for name in rows_at_import.NAMES if "Examples" in (ROWS[name].__doc__ or "")]
    assert len(documented) > 190
    for name in documented:
        assert "References\n----------\n* " in ROWS[name].__doc__, name
