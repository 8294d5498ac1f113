"""Chains, each sampled by itself, by the workers of an executor.

Threads sample recorded models, which run without Python. If Python evaluates the model at every
point, threads would wait for one another, because only one at a time runs Python. Then each chain
has a process. The processes come from loky: they are new ones instead of copies of this
one with its threads, they take functions that are defined in a notebook, and their death is
noticed. With one core, or where processes cannot be had, these chains are sampled in this process,
in sequence. The user may also give an executor, whose workers may be on other machines.

The draws are the same everywhere: the seed of a chain is made of the seed of the sampling and the
number of the chain."""

from __future__ import annotations

import inspect
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from varmat.interrupts import Attempt, Interrupts, from_signal
from varmat.models.callbacks import Callbacks
from varmat.models.gradients import DensityModel
from varmat.models.native_sampling import NativeModel, prepared
from varmat.models.nuts import Chain, library
from varmat.models.progress import Display, remaining, table
from varmat.models.results import Groups, optional
from varmat.models.starts import Starts
from varmat.parallel.shares import here, identity
from varmat.parallel.tasks import on_workers
from varmat.programs.run.threads import one_blas_thread
from varmat.typing import Settings

# Chains report, and are told to stop, by numbers in an array, with a row for each chain and one
# more. Processes of this machine map it from a file. It has no lock, because that would stay locked
# if its process were killed. A chain on another machine is shown when it has returned.
DRAWS, _DIVERGENCES, _STEP, _GRADIENTS, SECONDS = range(5)
STOP = -1
# Seconds between two reports on a chain.
BETWEEN = 0.1
# Seconds that a chain on another machine has to return after an interrupt.
PATIENCE = 5.0


@contextmanager
def _status(chains: int, executor: Executor | str | None) -> Iterator[tuple[np.ndarray, str]]:
    """Make the array of reports; and the path of its file, if it has one."""
    shape = chains + 1, 5
    if executor in ("serial", "threads") or isinstance(executor, ThreadPoolExecutor):
        yield np.zeros(shape), ""
        return
    # On some systems a mapped file cannot be removed. Then the system removes it later.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = str(Path(folder, "status"))
        yield np.memmap(path, float, "w+", shape=shape), path


def chain_seed(seed: int, chain: int) -> int:
    """Return the seed of a chain; the first has the seed of the sampling."""
    if not chain:
        return seed
    return int(np.random.SeedSequence([seed, chain]).generate_state(1, np.uint64)[0])


class Monitor:
    """Shows what the chains report, and tells them to stop after Ctrl-C.

    Parameters
    ----------
    job : Job
    status : ndarray
        The reports.

    Attributes
    ----------
    pressed : Interrupts
        For the time of the sampling.
    thread : int
        The identity of the thread that waits for the chains.
    """

    def __init__(self, job: Job, status: np.ndarray) -> None:
        self.status, self.pressed, self.thread = status, Interrupts(), threading.get_ident()
        self._is_shared, self._display = job.is_shared, Display(job.settings["progress_bar"])
        self._total = job.total
        self._stopped = 0.0  # when Ctrl-C was pressed

    def tick(self) -> bool:
        """Show the progress. Returns whether chains are to stop; raises after a second Ctrl-C."""
        self.show()
        if count := self.pressed.count:
            self._stopped = self._stopped or time.monotonic()
            self.status[STOP] = 1.0
            if count > 1:
                raise KeyboardInterrupt
        return bool(self.status[STOP, 0])

    def result(self, chain: int, future: Future[Any]) -> Any:
        """Wait for the result of a chain; None if it is given up after an interrupt."""
        while not future.done():
            try:
                wait([future], BETWEEN)
                self.tick()
            except KeyboardInterrupt:
                if self.pressed.count > 1:
                    raise
                self.pressed.add()  # a handler that the user has set
            if self._stopped:
                future.cancel()
                # A chain elsewhere does not see the reports, so it does not know that it is to
                # stop.
                patience = self._stopped + PATIENCE
                if not self.status[chain, SECONDS] and time.monotonic() > patience:
                    return None
        if future.cancelled() and self._stopped:
            return None
        if self._is_shared:
            return future.result()
        with _telling_of_deaths():
            return future.result()

    def show(self, at_once: bool = False) -> None:
        self._display.show(self._lines, at_once)

    def _lines(self) -> list[str]:
        rows = []
        for draws, divergences, step, gradients, seconds in self.status[:STOP].tolist():
            done, left = int(draws), remaining(int(draws), self._total, seconds)
            figures = done, int(divergences), f"{step:.3g}", int(gradients), f"{seconds:.0f}s", left
            rows.append((done, self._total, figures))
        columns = "Draws", "Divergences", "Step size", "Grad evals", "Elapsed", "Remaining"
        return table("Progress", columns, rows)


@dataclass
class Job:
    """Samples the chain whose number is given, here or in another process.

    Attributes
    ----------
    model : DensityModel
    seed : int
    starts : Starts
    settings : dict
        As in `Model.sample`.
    is_shared : bool
        Whether the chains have the workers of an executor of the user.
    native : NativeModel, optional
        The functions that all chains call, if they may call the same.
    monitor : Monitor, optional
        What waits for the chains, in its process.
    path, machine : str
        The file of reports, and the machine that has it.
    """

    model: DensityModel
    seed: int
    starts: Starts
    settings: Settings
    is_shared: bool = False
    native: NativeModel | None = None
    monitor: Monitor | None = None
    path: str = ""
    machine: str = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "monitor": None}

    @property
    def total(self) -> int:
        """The draws that a chain makes."""
        draws: int = self.settings["draws"] * self.settings["thin"]
        return draws + int(self.settings["tune"])

    def status(self) -> np.ndarray:
        """Return the array of reports; on another machine, one that is not read."""
        if self.monitor is not None:
            return self.monitor.status
        shape = self.settings["chains"] + 1, 5
        if self.machine == identity()[0]:
            with suppress(OSError):  # a container may have the same host name
                return np.memmap(self.path, float, "r+", shape=shape)
        return np.zeros(shape)

    def __call__(self, chain: int) -> Groups | None:
        """Sample one chain, until it is complete or is to stop; None if it is to stop before it
        has begun.
        """
        status = self.status()
        if status[STOP, 0]:
            return None
        is_complete = False
        try:
            result, is_complete = self._sampled(chain, status)
            return result
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        # A panic of nutpie cannot be pickled.
        except BaseException as error:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        finally:
            if not is_complete:  # the other chains are of no use, or are to stop too
                status[STOP] = 1.0

    def _sampled(self, chain: int, status: np.ndarray) -> tuple[Groups, bool]:
        """Sample one chain. Returns the result, and whether it is complete."""
        row = status[chain]
        row[:] = 0.0  # a worker that was lost may have written here
        row[SECONDS] = 1e-9  # not 0: the chain has begun
        if self.native is not None:
            return self._run(self.native, chain, status)
        calls = Callbacks(self.model, self.seed, self.starts, self.settings["tune"], chain)
        calls.row = row
        with calls.failing_first():
            output = prepared(calls) or calls
        result, is_complete = self._run(output, chain, status)
        return output.completed(result), is_complete

    @one_blas_thread()
    def _run(
        self, output: NativeModel | Callbacks, chain: int, status: np.ndarray
    ) -> tuple[Groups, bool]:
        """Sample one chain of nutpie's form of the model; raise the first failure of its
        functions.
        """
        calls, is_watched, threads = output.calls, self.settings["progress_bar"], list[int]()
        row, result, look = status[chain], None, (begun := time.monotonic())

        def start(seed: int) -> np.ndarray:
            # Work that the model shares out is computed by nutpie's thread, which asks for a start
            # before anything else, if the chain has a worker: all workers may be waiting.
            if self.is_shared and not here.is_busy:
                here.is_busy = True
                threads.append(threading.get_ident())
            return calls.initial_point(seed, chain)

        sampler = Chain(output.compiled(start), chain_seed(self.seed, chain), self.settings)
        is_waiting = self.monitor and self.monitor.thread == threading.get_ident()
        tick = self.monitor.tick if self.monitor and is_waiting else lambda: bool(status[STOP, 0])
        try:
            with Interrupts() as pressed:
                while result is None:
                    try:
                        result = sampler.wait(timeout=BETWEEN)
                    except TimeoutError as error:
                        if from_signal(error):
                            raise
                        row[SECONDS] = time.monotonic() - begun
                        if is_watched and time.monotonic() > look:
                            look = _look(sampler, row)
                    if (tick() or pressed.count) and result is None:
                        return sampler.abort(), False
        except KeyboardInterrupt:  # a second Ctrl-C, or a handler that the user has set
            return (sampler.abort() if result is None else result), result is not None
        # A panic of nutpie is not an Exception.
        except BaseException:
            sampler.cancel()  # the traceback keeps it alive
            if not calls.failures:
                raise
        finally:
            for thread in threads:
                here.release(thread)
        if calls.failures or result is None:
            raise calls.failures[0]
        row[SECONDS] = time.monotonic() - begun
        if is_watched:
            _write(result, row)
            row[DRAWS] = self.total
        return result, True


def _look(sampler: Chain, row: np.ndarray) -> float:
    """Write the statistics of a running chain to its row. Returns when to do so again, because each
    time costs a copy of the draws.
    """
    begun = time.monotonic()
    _write(sampler.inspect(), row)
    return 1.0 + time.monotonic() + 50.0 * (time.monotonic() - begun)


def _write(trace: Groups, row: np.ndarray) -> None:
    """Write the statistics of draws to the row of a chain."""
    statistics = [trace[x] for x in ("warmup_sample_stats", "sample_stats") if x in trace]
    # If Python is called at each draw, its own count of draws is ahead of this one.
    row[DRAWS] = max(row[DRAWS], sum(x["diverging"].size for x in statistics))
    row[_DIVERGENCES] = sum(int(x["diverging"].sum()) for x in statistics)
    for statistic in statistics:
        if statistic["diverging"].size:
            row[_STEP], row[_GRADIENTS] = statistic["step_size"][0, -1], statistic["n_steps"][0, -1]


def run_chains(job: Job, executor: Executor | str | None) -> dict[int, Groups]:
    """Sample all chains by the workers of an executor. Returns their draws by number; after an
    interrupt, those that were made.
    """
    chains = range(job.settings["chains"])
    with _status(len(chains), executor) as (status, path):
        monitor = Monitor(job, status)
        job = replace(job, monitor=monitor, path=path, machine=identity()[0])
        # An error of native functions, which chains share, may be that of another chain.
        noun = "chain" if job.is_shared else ""
        try:
            with monitor.pressed:
                output = on_workers("Model.sample", job, chains, executor, noun, monitor.result)
        finally:
            status[STOP] = 1.0
        monitor.show(True)
    return {i: result for i, result in enumerate(output) if result is not None}


# --- processes ---


@contextmanager
def _telling_of_deaths() -> Iterator[None]:
    """Say what it means if the pool of the library lost a process."""
    try:
        yield
    except BrokenExecutor as error:
        text = (
            "a process that sampled a chain was killed or crashed, perhaps because there was not "
            "enough memory"
        )
        raise RuntimeError(
            f"Model.sample: {text}; with cores=1, chains are sampled in this process"
        ) from error


def processes(job: Job, stack: ExitStack) -> tuple[Executor | str, str]:
    """Start a process for each chain, as many as there are cores, to the end of a with statement.

    Returns them, or the name of this thread and why there are none; if none were wanted, that is
    empty.
    """
    cores, chains = job.settings["cores"], job.settings["chains"]
    if cores == 1 or chains == 1:
        return "serial", ""
    from multiprocessing import current_process  # slow to import, as loky

    try:
        loky, cloudpickle = (optional(x, "Model.sample") for x in ("loky", "cloudpickle"))
    except ImportError as error:
        return "serial", f'{error.name} is not installed: in a clone, pip install -e ".[sample]"'
    workers = min(chains, cores or loky.cpu_count())
    if workers == 1:
        return "serial", ""
    if current_process().daemon:
        return "serial", "this process may not start others"
    with Attempt() as pickling:
        payload = cloudpickle.dumps(job)
    if pickling.error is not None:
        reason = f"the model cannot be pickled: {pickling.error}"
        return "serial", unpicklable(job.model, cloudpickle) or reason
    pool = loky.ProcessPoolExecutor(workers, initializer=_begin)
    stack.callback(pool.shutdown, wait=True, kill_workers=True)
    with _telling_of_deaths():
        reason = pool.submit(_loads, payload).result()
    if reason:
        stack.close()
        return "serial", f"another process cannot have the model: {reason}"
    return pool, ""


def _begin() -> None:
    """Ignore interrupts: the terminal sends them to all processes, and the parent handles them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # All processes load nutpie now, at the same time. It is missed when it is used.
    with suppress(ImportError):
        library()


def _loads(job: bytes) -> str:
    """Return why the model cannot be loaded in this process; empty if it can."""
    with Attempt() as loading:
        library()
        pickle.loads(job)
    return "" if loading.error is None else f"{type(loading.error).__name__}: {loading.error}"


def unpicklable(model: DensityModel, cloudpickle: Any) -> str:
    """Name the part of a model that cannot be pickled: data, or something a function reads."""

    def error_of(thing: object) -> str:
        with Attempt() as pickling:
            cloudpickle.dumps(thing)
        return "" if pickling.error is None else str(pickling.error)

    for name, value in model.layout.given.items():
        if error := error_of(value):
            return f"the data {name} cannot be pickled: {error}"
    for function in model.functions():
        if isinstance(function.function, FunctionType):
            read = inspect.getclosurevars(function.function)
            for name, value in {**read.nonlocals, **read.globals}.items():
                if error := error_of(value):
                    return f"{name}, which {function.title} reads, cannot be pickled: {error}"
        if error := error_of(function.function):
            return f"{function.title} cannot be pickled: {error}"
    return ""
