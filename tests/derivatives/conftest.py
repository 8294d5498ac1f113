"""What recordings of all runners are tested with."""

from __future__ import annotations

from functools import partial

import pytest
import recordings
from recordings import EVERY_RUNNER

import varmat as vm


@pytest.fixture(params=EVERY_RUNNER)
def runner(request):
    return request.param


@pytest.fixture
def recorded(runner):
    """Return `varmat.recorded` with a runner."""
    return partial(vm.recorded, runner=runner)


@pytest.fixture
def agree(runner):
    return partial(recordings.agree, runners=(runner,))
