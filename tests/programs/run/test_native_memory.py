"""Memory of native programs: none is touched beside its buffers, and none to be had is an error.

The sweep runs in a process of its own, because code that writes elsewhere ends it.
"""

import ctypes
import sys
import threading
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from comparing import refuses
from layouts import python

import varmat as vm
from varmat.programs.run import has_native

REASON = "llvmlite is not installed, or pages are protected in another way"
pytestmark = pytest.mark.skipif(not has_native() or sys.platform == "win32", reason=REASON)
HERE = Path(__file__).parent
SIZES = (0, 1, 7, 8, 9, 63, 64, 65, 1001)
FEW = (0, 1, 9, 65, 100_001)


def recurrence(x):
    total, state = 0.0, 0.3
    for each in x:
        state = 0.5 * state + np.tanh(each)
        total = total + state * state
    return total


def assigned(x):
    y = vm.numpy.zeros(len(x) + 2)
    y[1:-1] = x * x
    y[:2] += 1.0
    return np.sum(np.exp(-y) * np.arange(len(x) + 2.0))


def functions(n):
    """Functions of a vector, which reach every way in which native code touches memory."""
    rng = np.random.default_rng(n)
    data, counts = rng.normal(size=n), rng.integers(0, 5, n)
    matrix, index = rng.normal(size=(n, 3)), rng.integers(0, max(n, 1), 2 * n)
    wide = rng.normal(size=(n, 20))
    yield "elementwise", lambda x: np.sum(np.exp(np.sin(x)) * data + np.log1p(x * x))
    yield "special", lambda x: np.sum(vm.gammaln(1.0 + x * x) * data)
    yield "comparison", lambda x: np.sum(np.where(x > data, x**3, np.abs(x)))
    yield "accumulation", lambda x: np.sum(np.cumsum(x) * data)
    yield "views", lambda x: np.sum(x[::-1] * data) + np.sum(x[1::2] ** 2) + np.sum(x[:-1] * x[1:])
    yield "gathered", lambda x: np.sum(np.exp(x[index]))
    yield "joined", lambda x: np.sum(np.concatenate([x, x * x, data]) ** 3)
    yield "rows", lambda x: np.sum((x @ matrix) ** 2) + np.sum(np.exp(matrix @ (x @ matrix)))
    yield "columns", lambda x: np.sum(np.tanh(x @ wide))
    yield "outer", lambda x: np.sum(np.exp(x[:, None] * np.array([0.1, 0.2, 0.3])) * matrix)
    yield "density", lambda x: vm.normal_lpdf(data, x, 1.0 + np.sum(x * x))
    yield "counts", lambda x: vm.poisson_log_lpmf(counts, x)
    yield "assigned", assigned
    if n:
        yield "maximum", lambda x: np.max(x * data) + np.log(np.sum(np.exp(x)))
        yield "sorted", lambda x: np.sum(np.sort(x) * data)
    if n < 1000:
        yield "recurrence", recurrence
    if 0 < n < 20:
        square = np.eye(n) * (2.0 + n)
        yield "factor", lambda x: np.sum(np.linalg.cholesky(square + np.outer(x, x)))
        yield "solution", lambda x: np.sum(np.linalg.solve(square + np.outer(x, x), data))
        yield "eigenvalues", lambda x: np.sum(np.linalg.eigvalsh(square + np.outer(x, data)) ** 2)


def compare(name, f, n):
    points = np.random.default_rng([n, 1]).normal(size=(3, n)) * 0.5
    expected = [vm.value_and_grad(f)(x) for x in points]
    recorded = vm.recorded(f, runner="native")
    found = [recorded(x) for x in points]
    if n < 20:
        found += zip(*recorded.map(points, executor="threads"), strict=True)
    for i, (value, gradient) in enumerate(found):
        true, slope = expected[i % 3]
        message = f"{name} of {n}"
        np.testing.assert_allclose(value, true, rtol=1e-11, err_msg=message)
        scale = 1e-11 * np.max(np.abs(slope), initial=1.0)
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=scale, err_msg=message)


def sweep(at_end):
    from guarded import guarded

    with guarded(at_end) as guards:
        for n in SIZES if at_end else FEW:
            for name, f in functions(n):
                print(name, n, file=sys.stderr, flush=True)
                compare(name, f, n)
        assert guards.layouts, "nothing ran between guards"
        assert not guards.taken, "scratch memory was not freed"
    print("all right")


def run_process(text):
    return python(text, HERE.parents[1], HERE)


@pytest.mark.parametrize("at_end", [True, False])
def test_nothing_is_touched_beside_a_buffer(at_end):
    done = run_process(f"import test_native_memory as t; t.sweep({at_end})")
    assert done.stdout.strip() == "all right", done.stderr[-2000:]


@pytest.mark.parametrize(("at_end", "place"), [(True, 5), (False, -1)])
def test_the_guards_end_a_process_that_touches_them(at_end, place):
    text = f"""
import ctypes
from guarded import Guards
x = Guards({at_end}).empty(5)
print(x[0], x[-1], flush=True)
print(ctypes.c_double.from_address(x.ctypes.data + 8 * ({place})).value)
"""
    done = run_process(text)
    assert done.returncode < 0
    assert done.stdout.split() == ["nan", "nan"]


# --- no memory for intermediate results ---


NO_MEMORY = "^a recorded function finds no memory for its intermediate results$"


def long(x):
    """A function whose intermediate results do not fit on the stack."""
    return np.sum(np.exp(np.cumsum(x)))


def without_memory(make, after=0):
    """What is made where `malloc` gives nothing after so many calls of compiled code."""
    from guarded import KEPT, MALLOC, replaced

    own = ctypes.CDLL(None).malloc
    own.argtypes, own.restype, calls = [ctypes.c_size_t], ctypes.c_void_p, count()
    malloc = MALLOC(lambda size: own(size) if next(calls) < after else 0)
    KEPT.append(malloc)
    with replaced(malloc=malloc):
        return make()


X = np.full(20_000, -1e-3)


@pytest.fixture
def recorded():
    """A recorded function that never has memory."""
    made = vm.recorded(long, runner="native")
    refuses(MemoryError, None, without_memory, lambda: made(X))
    return made


def test_a_call_without_memory(recorded):
    refuses(MemoryError, NO_MEMORY, recorded, X)
    two = vm.recorded(lambda x, y: long(x) * y, (0, 1), runner="native")
    refuses(MemoryError, NO_MEMORY, without_memory, lambda: two(X, 2.0))


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_a_map_without_memory(recorded, executor):
    refuses(MemoryError, NO_MEMORY, recorded.map, np.stack([X] * 40), executor=executor)


def test_a_thread_without_memory(recorded):
    errors = []

    def run():
        try:
            recorded(X)
        except MemoryError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert len(errors) == 1


def test_a_sampler_without_memory():
    """It asks Python, as at all points where the program gives no density."""
    from varmat.programs.run.native import NativeRunner
    from varmat.programs.run.sampler import SamplerFunctions

    known = vm.recorded(long, runner="numpy")
    known(X)
    density = without_memory(lambda: NativeRunner(known.program))
    values = without_memory(lambda: NativeRunner(known.program))
    asked = []

    def elsewhere(name, status):
        return lambda *_: asked.append(name) or status

    functions = SamplerFunctions(
        density, values, elsewhere("density", 1), elsewhere("values", 0), False
    )
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    log_density = ctypes.CFUNCTYPE(ctypes.c_int32, word, *[pointer] * 4)(functions.log_density)
    expand = ctypes.CFUNCTYPE(ctypes.c_int32, word, word, *[pointer] * 3)(functions.expand)
    gradient, value = np.zeros(X.size), np.zeros(1)
    places = [each.ctypes.data for each in (X, gradient, value, functions.user)]
    assert log_density(X.size, *places) == 1
    assert expand(X.size, X.size, X.ctypes.data, gradient.ctypes.data, places[-1]) == 0
    assert asked == ["density", "values"]


@pytest.mark.parametrize("after", [0, 60])
def test_a_model_without_memory(after):
    """It fails at the start or among the draws, and Python does not go on in its own way."""
    pytest.importorskip("nutpie")
    model = vm.Model(lambda mu: 1e-6 * long(X + 1e-6 * mu) - mu**2, recorded=True, mu=vm.real())

    def sample():
        return model.sample(draws=30, tune=30, chains=1, seed=1)

    refuses(MemoryError, NO_MEMORY, without_memory, sample, after)
    refuses(MemoryError, NO_MEMORY, without_memory, model.optimize)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("call", ["f(x)", "f.map(x[None])"])
def test_a_process_with_a_limit_of_memory(call):
    text = f"""
import resource
from pathlib import Path
import numpy as np, varmat as vm
# Arrays of more than 32 MB are given back to the system when they are freed.
f, x = vm.recorded(lambda x: np.sum(np.exp(np.cumsum(x)))), np.full(5_000_000, -1e-3)
f(x)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
# Enough for the gradient, but not for what comes in between.
resource.setrlimit(resource.RLIMIT_AS, (used + x.nbytes + 8_000_000,) * 2)
try:
    {call}
except MemoryError:
    print("no memory")
"""
    done = run_process(text)
    assert (done.returncode, done.stdout.strip()) == (0, "no memory"), done.stderr
