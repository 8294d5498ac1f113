"""Gradients of Stan programs, which are built with the compiler and the headers from the package
httpstan.

The programs are in ``stan_programs/``. A built program is a server process for one set of data. It
returns the log density and the gradient with all constants, so that they can be compared, or the
time of a number of gradients without constants. Programs are built when they are first needed,
which takes up to a minute each, and kept in ``varmat-benchmarks`` in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np

PROGRAMS = Path(__file__).resolve().parent / "stan_programs"
SERVER = PROGRAMS / "gradient_server.cpp"
STANC_FLAGS = ("--O1",)
# The options with which Stan's own makefiles call the compiler.
COMPILER_FLAGS = ("-O2", "-std=c++17", "-w", "-D_REENTRANT", "-DBOOST_DISABLE_ASSERTS")
# The name of a program and its data.
Program = tuple[str, Mapping[str, Any]]


def missing() -> str | None:
    """Return why Stan is not available here, or None."""
    if importlib.util.find_spec("httpstan") is None:
        return "httpstan is not installed"
    return None if shutil.which("g++") else "there is no g++"


@cache
def home() -> Path:
    """Return the folder of httpstan. The package is not imported, because only its files are
    needed.
    """
    found = importlib.util.find_spec("httpstan")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("httpstan is not installed")
    return Path(found.origin).parent


def _output(*command: Any) -> str:
    return subprocess.run(
        [*map(str, command)], check=True, capture_output=True, text=True
    ).stdout.strip()


@cache
def version() -> str:
    """Return the versions of the compiler of Stan programs and of the package that ships it."""
    return (
        f"{_output(home() / 'stanc', '--version').split()[1].lstrip('v')} (httpstan "
        f"{importlib.metadata.version('httpstan')})"
    )


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "varmat-benchmarks"


@cache
def built(name: str) -> Path:
    """Return the executable of a program. Build it unless it is kept from before."""
    program = PROGRAMS / f"{name}.stan"
    compiler = _output("g++", "-dumpfullversion", "-dumpmachine")
    parts = (
        program.read_text(encoding="utf-8"),
        SERVER.read_text(encoding="utf-8"),
        version(),
        str(home()),
        compiler,
        *STANC_FLAGS,
        *COMPILER_FLAGS,
    )
    executable = (
        cache_folder() / f"{name}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}"
    )
    if not executable.exists():
        print(f"building {name}.stan: up to a minute, once", file=sys.stderr, flush=True)
        executable.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=executable.parent) as scratch:
            _build(program, Path(scratch) / name)
            # One step, so that nobody finds an incomplete file.
            (Path(scratch) / name).replace(executable)
    return executable


def _build(program: Path, executable: Path) -> None:
    header, source, lib = (
        executable.with_suffix(".hpp"),
        executable.with_suffix(".cpp"),
        home() / "lib",
    )
    libraries = [*sorted(lib.glob("libsundials_*.a")), lib / "libtbb.so", f"-Wl,-rpath,{lib}"]
    try:
        _output(home() / "stanc", *STANC_FLAGS, "--o", header, program)
        source.write_text(
            f"{header.read_text(encoding='utf-8')}\n{SERVER.read_text(encoding='utf-8')}",
            encoding="utf-8",
        )
        _output(
            "g++", *COMPILER_FLAGS, f"-I{home() / 'include'}", source, "-o", executable, *libraries
        )
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{program.name} was not built: {error.stderr.strip()}") from None


def _encoded(data: Mapping[str, Any]) -> bytes:
    """Encode data in the form that the server reads."""
    heads, elements = [str(len(data))], []
    for name, value in data.items():
        array = np.asarray(value)
        kind = "r" if array.dtype.kind == "f" else "i"
        heads.append(" ".join(map(str, (name, kind, array.ndim, *array.shape))))
        elements.append(array.astype(float if kind == "r" else np.int32).tobytes(order="F"))
    return "\n".join([*heads, ""]).encode() + b"".join(elements)


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close the input of the server, which ends it."""
    for stream in (process.stdin, process.stdout):
        # The server no longer reads what is left in the pipe.
        with contextlib.suppress(BrokenPipeError):
            if stream is not None:
                stream.close()
    process.wait()


class Server:
    """A Stan program with data, running."""

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        self._name = name
        # Its messages go to a file, because nobody reads a pipe while the server computes.
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the server
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [built(name)], stdin=pipe, stdout=pipe, stderr=self._messages
        )
        weakref.finalize(self, _close, self._process)
        self.unknowns = int(np.frombuffer(self._ask(_encoded(data), 1), np.int64)[0])

    def _ask(self, request: bytes, numbers: int) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        # If the server has ended, its message says more than the broken pipe.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(request)
            stdin.flush()
        answer = stdout.read(8 * numbers)
        if len(answer) != 8 * numbers:
            self._messages.seek(0)
            raise RuntimeError(
                f"{self._name}.stan: {self._messages.read().decode().strip() or 'no answer'}"
            )
        return answer

    def _point(self, q: np.ndarray) -> bytes:
        if q.size != self.unknowns:
            raise ValueError(f"{self._name}.stan has {self.unknowns} unknowns, not {q.size}")
        return q.tobytes()

    def density(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log density of the unconstrained unknowns, with all constants and
        log-Jacobians, and its gradient.
        """
        found = np.frombuffer(self._ask(b"density\n" + self._point(q), 1 + self.unknowns))
        return float(found[0]), found[1:].copy()

    def seconds(self, q: np.ndarray, count: int) -> float:
        """Return the seconds of a gradient without constants, as the mean of `count` gradients in a
        row.
        """
        return float(np.frombuffer(self._ask(b"time %d\n" % count + self._point(q), 1))[0]) / count


class Gradient:
    """The value and the gradients of a workload, in the form of the other libraries."""

    def __init__(self, program: Program, variables: int) -> None:
        self._server, self._variables = Server(*program), variables

    def _unknowns(self, args: tuple[Any, ...]) -> np.ndarray:
        return np.concatenate([np.ravel(x) for x in args[: self._variables]]).astype(float)

    def __call__(self, *args: Any) -> tuple[float, tuple[Any, ...]]:
        value, flat = self._server.density(self._unknowns(args))
        shapes = [np.shape(x) for x in args[: self._variables]]
        ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
        return value, tuple(
            g.reshape(shape) for g, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)
        )

    def at(self, *args: Any) -> Callable[[], Any]:
        """Return what `timing.seconds_of` measures. The loop runs in the server, so that pipes cost
        nothing.
        """
        return TimedInServer(self._server, self._unknowns(args))


class TimedInServer:
    """A gradient at a point, timed by the server."""

    def __init__(self, server: Server, q: np.ndarray) -> None:
        self._server, self._q = server, q

    def __call__(self) -> Any:
        return self._server.density(self._q)

    def seconds(self, count: int) -> float:
        return self._server.seconds(self._q, count)
