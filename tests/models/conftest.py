"""Short chains give warnings, which have tests of their own."""

import pytest


@pytest.fixture(autouse=True)
def no_report(request, monkeypatch):
    """Sampling says nothing about its draws, except in modules with ``REPORTS = True``."""
    if not getattr(request.module, "REPORTS", False):
        monkeypatch.setattr("varmat.models.model.report", lambda *_: None)
