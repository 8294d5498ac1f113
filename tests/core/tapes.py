"""What the tests of the tape, of callbacks and of matvars share: each starts with an empty tape and
leaves one.
"""

import pytest

import varmat as vm
from varmat.core.tape import current_tape


@pytest.fixture(autouse=True)
def fresh_tape():
    yield
    vm.recover_memory()
    assert len(current_tape()) == 0
