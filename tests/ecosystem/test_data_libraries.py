"""Data and results of pandas, xarray and ArviZ, and arrays rearranged by einops."""

import subprocess
import sys

import numpy
import pytest
from comparing import close, equal, refuses

import varmat as vm
import varmat.numpy as np

rng = np.random.default_rng(5)
X = rng.normal(size=(12, 2))
Y = X @ np.array([1.0, -0.5]) + 0.3 * rng.normal(size=12)
GROUPS = np.repeat(["a", "b", "c"], 4)
BETA = np.array([0.2, 0.1, 0.3, 0.4])


@pytest.fixture(autouse=True)
def clean_tape():
    vm.recover_memory()


def installed(name):
    reason = f'{name} is not installed: pip install "varmat[ecosystem]"'
    return pytest.importorskip(name, reason=reason)


def test_pandas():
    pandas = installed("pandas")
    frame = pandas.DataFrame({"y": Y, "x": X[:, 0], "group": GROUPS})

    def f(beta):
        effects = np.zeros(len(frame))
        for i, (_, rows) in enumerate(frame.groupby("group")):
            effects[rows.index] = beta[1 + i]
        return np.sum((np.asarray(frame["y"]) - np.asarray(frame["x"]) * beta[0] - effects) ** 2)

    k = np.repeat(np.arange(3), 4)
    expected = vm.gradient(lambda b: np.sum((Y - X[:, 0] * b[0] - b[1:][k]) ** 2), BETA)
    close(pandas.Series(vm.gradient(f, BETA), index=["x", "a", "b", "c"]), expected, 1e-13)
    with vm.nested():
        waiting = np.zeros((2, 2))
        assert pandas.DataFrame(waiting, columns=["a", "b"]).shape == (2, 2)
        waiting[0, 0] = vm.var(1.0)
        refuses(TypeError, "its derivative would be lost", lambda: pandas.DataFrame(waiting))


LABELLED = {
    "product": lambda x, a: (x * a + 1.0) ** 2, "reflected": lambda x, a: a.isel(b=0) / x - 2.0 * x,
    "broadcast": lambda x, a: x * x.rename(a="c"), "functions": lambda x, a: np.exp(-x) + np.log(x),
    "sum": lambda x, a: (x * a).sum("a"), "mean": lambda x, a: (x * a).mean(), "std": lambda x,
    a: (x * a).std("a"), "max": lambda x, a: (x * a).max("b"), "prod": lambda x,
    a: (x * a).prod("a"), "cumsum": lambda x, a: x.cumsum("a"), "dot": lambda x, a: x.dot(a),
    "matmul": lambda x, a: a @ x, "select": lambda x, a: (x * a).sel(a=["u", "w"]).isel(b=1),
    "transpose": lambda x, a: (x * a).transpose("a", "b") * 2.0, "stack": lambda x,
    a: (x * a).stack(z=("b", "a")) ** 2, "shift": lambda x, a: x - x.roll(a=1), "where": lambda x,
    a: (x * a).where(a > 1.5, 0.0), "concat": lambda x,
    a: type(x)(np.concatenate([x.data, x.data]), dims="a"), "assign": lambda x,
    a: a.assign_coords(b=[5, 6]) * x,
}  # fmt: skip


@pytest.mark.parametrize("use", [*LABELLED, "xr.dot", "xr.where", "xr.concat", "align"])
def test_labelled_arrays(use):
    """A `DataArray` of variables, against differences of one of plain numbers."""
    xr = installed("xarray")
    names = {"a": ["u", "v", "w"]}
    a = xr.DataArray(numpy.arange(6.0).reshape(2, 3) + 0.5, dims=("b", "a"), coords=names)
    functions = LABELLED | {
        "xr.dot": lambda x, a: xr.dot(x, a, dim="a"),
        "xr.where": lambda x, a: xr.where(a > 1.5, x, 2.0 * x),
        "xr.concat": lambda x, a: xr.concat([x, x * 2.0], dim="b"),
        "align": lambda x, a: x.isel(a=[0, 1]) * a,
    }
    point = numpy.array([0.7, 1.3, 2.1])

    def f(x):
        data = functions[use](xr.DataArray(x, dims="a", coords=names), a).data
        return np.sum(data * np.reshape(np.cos(np.arange(float(np.size(data)))), np.shape(data)))

    value, gradient = vm.value_and_grad(f)(point)
    close(value, f(point), 1e-13)
    differences = [(f(point + h) - f(point - h)) / 2e-5 for h in 1e-5 * numpy.eye(3)]
    close(gradient, differences, 1e-7, 1e-7)
    close(vm.jvp(f, (point,), (point,))[1], gradient @ point, 1e-12)


REARRANGED = """
import numpy as np
import pytest

x = np.arange(1.0, 7.0).reshape(2, 3)
uses = {
    "rearrange": lambda x: einops.rearrange(x, "a b -> (b a)"),
    "split": lambda x: einops.rearrange(x, "a (b c) -> c b a", c=3),
    "list": lambda x: einops.rearrange([x[0], x[1] * 2], "a b -> b a"),
    "repeat": lambda x: einops.repeat(x, "a b -> (a c) b", c=3),
    "einsum": lambda x: einops.einsum(x, np.ones((3, 2)), "a b, b c -> a c"),
    "einsum of data first": lambda x: einops.einsum(np.ones((3, 2)), x, "b c, a b -> a c"),
    "pack": lambda x: einops.pack([x, x[0]], "* b")[0],
    "unpack": lambda x: einops.unpack(x, [[1], [2]], "a *")[1],
    "callable": lambda x: einops.reduce(x, "a b -> b", lambda x, axis: np.sum(x, axis=axis)),
    "zeros": lambda x: einops.rearrange(vm.numpy.zeros((2, 3)), "a b -> b a") + x.T,
    "complex": lambda x: np.real(einops.rearrange(x * 1j, "a b -> b a") * 1j),
}
for name in ("sum", "mean", "max", "min", "prod"):
    uses[name] = lambda x, name=name: einops.reduce(x, "a (b c) -> a c", name, c=3)
for name, use in uses.items():
    def f(x):
        result = use(x)
        return np.sum(result**2 * np.cos(np.arange(result.size)).reshape(result.shape))
    value, gradient = vm.value_and_grad(f)(x)
    assert value == pytest.approx(f(x)), name
    direction = np.sin(x)
    slope = (f(x + 1e-5 * direction) - f(x - 1e-5 * direction)) / 2e-5
    assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-7), name
    assert vm.jvp(f, (x,), (direction,))[1] == pytest.approx(slope, rel=1e-7), name
    if name != "complex":
        np.testing.assert_allclose(vm.recorded(f)(x)[1], gradient, rtol=1e-12, err_msg=name)
assert einops.parse_shape(vm.var(x), "a b") == {"a": 2, "b": 3}
with pytest.raises(einops.EinopsError):
    einops.rearrange(vm.var(x), "a b c -> c")
"""


@pytest.mark.parametrize("order", ["import einops, varmat as vm", "import varmat as vm, einops"])
def test_einops(order):
    """Each order of the imports runs in a process of its own."""
    installed("einops")
    code = f"{order}\nimport sys\n{REARRANGED}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize(
    "use", [lambda df, x: df @ x, lambda df, x: df.dot(x), lambda df, x: df["a"] @ x[:2]]
)
def test_products_of_data_frames(use):
    """pandas makes plain arrays in its products, and has no hook for other types."""
    pandas = installed("pandas")
    df = pandas.DataFrame(numpy.arange(6.0).reshape(2, 3), columns=["a", "b", "c"])
    with pytest.raises(TypeError, match=r"write df.to_numpy\(\) @ x"):
        vm.gradient(lambda x: np.sum(use(df, x)), numpy.ones(3))
    for same in (lambda x: df.to_numpy() @ x, lambda x: np.dot(df, x), lambda x: x @ df.T):
        gradient = vm.gradient(lambda x, g=same: np.sum(g(x)), numpy.ones(3))
        equal(gradient, [3.0, 5.0, 7.0])
