"""Reports print their figures."""

import re

from varmat.testing import Report


def test_report_prints_its_figures():
    report = Report({"a / b": 1e-14, "a / finite difference of b": 1e-7})
    assert report.worst == 1e-14
    assert re.search(r"a / b +1\.0e-14", str(report))
