"""What tests of the tape share: each starts and ends with an empty one, or leaves it as it was."""

import pytest

import varmat as vm
from varmat.core.tape import current_tape


@pytest.fixture(autouse=True)
def fresh_tape():
    vm.recover_memory()
    yield
    vm.recover_memory()
    assert len(current_tape()) == 0


def state():
    """Return everything that a functional must leave as it found it."""
    tape = current_tape()
    stacks = tuple(map(len, (tape, tape.leaves, tape.kept, tape.assignments)))
    return tape, tape.top, stacks, len(tape.arena._used), tape.arena._offset
