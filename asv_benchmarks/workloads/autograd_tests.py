"""autograd's own tests on varmat: ``python autograd_tests.py path/to/tests [options of pytest]``.

They are in autograd's source distribution: ``pip download --no-deps --no-binary :all: autograd``.
Each test runs inside ``with vm.numpy.patched(module)``, with the module of the test.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import varmat as vm


class Patched:
    """A plugin of pytest that has the modules of the tests patched while they run."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Iterator[None]:
        import numpy_utils  # helpers of the tests

        with vm.numpy.patched(item.module, numpy_utils):
            return (yield)


if __name__ == "__main__":
    tests, *options = sys.argv[1:]
    settings = ["--rootdir", tests, "-c", "/dev/null", "-p", "no:cacheprovider", "--import-mode"]
    sys.path.insert(0, tests)
    sys.exit(pytest.main([tests, *settings, "prepend", *options], plugins=[Patched()]))
