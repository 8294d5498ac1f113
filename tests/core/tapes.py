"""What the tests of the tape, of callbacks and of matvars share: each test starts and ends with an
empty tape.
"""

import pytest

import varmat as vm
from varmat.core.tape import current_tape


@pytest.fixture(autouse=True)
def fresh_tape():
    vm.recover_memory()
    yield
    vm.recover_memory()
    assert len(current_tape()) == 0
