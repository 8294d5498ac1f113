"""Small programs in plain NumPy are differentiated with ``import varmat.numpy as np`` alone."""

import numpy as np
import pytest
from comparing import close, refuses
from ecosystem.small_programs import PROGRAMS

import varmat as vm

REFUSED = {
    "normal_by_scipy": "cannot become a plain array",
    "learning_curve": "use NumPy's function instead of math's",
}
RUN = [name for name in PROGRAMS if name not in REFUSED]


@pytest.fixture(autouse=True)
def clean_tape():
    vm.recover_memory()


@pytest.mark.parametrize("name", RUN)
def test_program(name):
    f, x = PROGRAMS[name]
    value, gradient = vm.value_and_grad(f)(x)
    close(value, f(x), 1e-12)
    steps = np.diag(1e-6 * np.maximum(abs(x), 1e-3))
    differences = [(f(x + h) - f(x - h)) / (2 * h.sum()) for h in steps]
    close(gradient, differences, 1e-5, 1e-6)
    direction = np.arange(1.0, x.size + 1)
    close(vm.jvp(f, (x,), (direction,))[1], gradient @ direction, 1e-11)
    # The Hessian times a vector, by forward over reverse mode.
    product = vm.hessian_times_vector(f, x, direction)
    step = 1e-6 * max(1e-3, np.min(abs(x))) / x.size
    rough = (vm.gradient(f, x + step * direction) - vm.gradient(f, x - step * direction)) / (
        2 * step
    )
    close(product, rough, 1e-4, 1e-4 * np.max(abs(rough)))
    again, same = vm.recorded(f, runner="numpy")(x)
    close(again, value, 1e-12)
    close(same, gradient, 1e-11, 1e-12 * np.max(abs(gradient)))


@pytest.mark.parametrize("name", REFUSED)
def test_program_is_refused(name):
    f, x = PROGRAMS[name]
    refuses(TypeError, REFUSED[name], vm.gradient, f, x)


def test_how_many_there_are():
    assert len(PROGRAMS) == 15
    assert len(RUN) >= 12
