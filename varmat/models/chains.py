"""Chains, each sampled by itself: by threads of this process, or by processes of their own.

Threads sample recorded models, which run without Python. If Python evaluates the model at every
point, threads would wait for one another, because only one at a time runs Python. Then each chain
has a process. The processes are those of loky: they are new ones instead of copies of this
one with its threads, they take functions that are defined in a notebook, and their death is
noticed. With one core, or where processes cannot be had, these chains are sampled in this process,
one after the other. Chains on an executor of the user are in `varmat.models.shared_chains`.

The draws are the same everywhere: the seed of a chain is made of the seed of the sampling and the
number of the chain."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.interrupts import Attempt, Interrupts, from_signal
from varmat.models import progress
from varmat.models.callbacks import Callbacks
from varmat.models.native_sampling import prepared
from varmat.models.nuts import Chain, library
from varmat.models.results import LOST, lost_values, optional
from varmat.parallel.shares import here
from varmat.programs.run.threads import one_blas_thread, processors
from varmat.typing import Settings

if TYPE_CHECKING:
    from varmat.models.model import Model
    from varmat.models.native_sampling import NativeModel
    from varmat.models.results import Groups
    from varmat.models.starts import Starts

# The processes report on their chains, and are told to stop, by numbers in a file that all of them
# map: the board, with a row for each chain and one more. There is no lock, because it would stay
# locked if its process were killed.
_DRAWS, _DIVERGENCES, _STEP, _GRADIENTS, SECONDS = range(5)
STOP = -1
# Seconds between two reports on a chain.
BETWEEN = 0.1


@contextmanager
def shared_board(chains: int) -> Iterator[tuple[str, np.ndarray]]:
    """A new board, and the path of its file."""
    # On some systems a mapped file cannot be removed. Then the system removes it later.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = str(Path(folder, "board"))
        yield path, np.memmap(path, float, "w+", shape=(chains + 1, 5))


def chain_seed(seed: int, chain: int) -> int:
    """The seed of a chain; the first has that of the sampling."""
    return (
        int(np.random.SeedSequence([seed, chain]).generate_state(1, np.uint64)[0])
        if chain
        else seed
    )


class _Watched(Callbacks):
    """Callbacks that count the draws of their chain in a row of the board.

    Attributes
    ----------
    board : ndarray
        The row.
    is_busy : bool
        Whether the chain has one of the workers of an executor: what its model shares out is then
        computed where it is, for all workers may be waiting.
    """

    board: np.ndarray
    is_busy = False
    # The identity of nutpie's thread, which asks for a start before anything else.
    thread = 0

    def initial_point(self, seed: int, chain: int | None = None) -> np.ndarray:
        if self.is_busy and not here.is_busy:
            here.is_busy, self.thread = True, threading.get_ident()
        return super().initial_point(seed, chain)

    def make_expand(self, *_: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        expand = super().make_expand()

        def counted(q: np.ndarray) -> dict[str, np.ndarray]:
            values = expand(q)
            self.board[_DRAWS] += 1
            return values

        return counted


@dataclass(frozen=True)
class Job:
    """Everything that is needed to sample any of the chains, here or in another process."""

    model: Model
    seed: int
    starts: Starts
    settings: Settings
    is_watched: bool
    is_busy: bool = False

    def run(self, chain: int, board: np.ndarray, tick: Callable[[], bool]) -> tuple[Groups, bool]:
        """Sample one chain. Returns the result, and whether it is complete. `tick` is called now
        and then, and says whether to stop.
        """
        calls = _Watched(self.model, self.seed, self.starts, self.settings["tune"], chain)
        calls.board, calls.is_busy = board[chain], self.is_busy
        calls.board[:] = 0.0  # a worker that was lost may have written here
        calls.board[SECONDS] = 1e-9  # not 0: the chain has begun
        with calls.failing_first():
            native = prepared(calls)
        try:
            result, is_complete = self.sampled(native or calls, calls, chain, calls.board, tick)
        finally:
            here.release(calls.thread)
        result = result if native is None else native.completed(result)
        if calls.lost:
            result[LOST] = lost_values(calls.lost)
        return result, is_complete

    @one_blas_thread()
    def sampled(
        self,
        made_by: NativeModel | Callbacks,
        calls: Callbacks,
        chain: int,
        row: np.ndarray,
        tick: Callable[[], bool],
    ) -> tuple[Groups, bool]:
        """Sample one chain of nutpie's form of the model, until it is complete, `tick` says so, or
        Ctrl-C; raises the first failure of its functions.
        """
        failures = calls.failures
        result, look = None, (begun := time.monotonic())
        compiled = made_by.compiled(partial(calls.initial_point, chain=chain))
        sampler = Chain(compiled, chain_seed(self.seed, chain), self.settings)
        try:
            with Interrupts() as pressed:
                while result is None:
                    try:
                        result = sampler.wait(timeout=BETWEEN)
                    except TimeoutError as error:
                        if from_signal(error):
                            raise
                        row[SECONDS] = time.monotonic() - begun
                        if self.is_watched and time.monotonic() > look:
                            look = _look(sampler, row)
                    if (tick() or pressed.count) and result is None:
                        return sampler.abort(), False
        except KeyboardInterrupt:  # of a handler that the user has set
            return (sampler.abort() if result is None else result), result is not None
        # A panic of nutpie is no Exception.
        except BaseException:
            sampler.cancel()  # the traceback keeps it alive
            if not failures:
                raise
        if failures or result is None:
            raise failures[0]
        row[SECONDS] = time.monotonic() - begun
        if self.is_watched:
            _write(result, row)
            row[_DRAWS] = self.settings["draws"] + self.settings["tune"]
        return result, True


def _look(sampler: Chain, row: np.ndarray) -> float:
    """Write the statistics of a running chain to its row. Returns when to do so again, because each
    time costs a copy of the draws.
    """
    begun = time.monotonic()
    _write(sampler.inspect(), row)
    return 1.0 + time.monotonic() + 50.0 * (time.monotonic() - begun)


def _write(trace: Groups, row: np.ndarray) -> None:
    """Write the statistics of draws to a row of the board."""
    statistics = [
        trace[group] for group in ("warmup_sample_stats", "sample_stats") if group in trace
    ]
    # If Python is called at each draw, its own count of draws is ahead of this one.
    row[_DRAWS] = max(row[_DRAWS], sum(each["diverging"].size for each in statistics))
    row[_DIVERGENCES] = sum(int(each["diverging"].sum()) for each in statistics)
    for each in statistics:
        if each["diverging"].size:
            row[_STEP], row[_GRADIENTS] = each["step_size"][0, -1], each["n_steps"][0, -1]


# --- called in the other processes ---


def _begin() -> None:
    """Ignore interrupts: the terminal sends them to all processes, and the parent handles them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # All processes load nutpie now, at the same time. It is missed when it is used.
    with suppress(ImportError):
        library()


def _loads(job: bytes) -> str:
    """Why the model cannot be loaded in this process; empty if it can."""
    with Attempt() as loading:
        library()
        pickle.loads(job)
    return "" if loading.error is None else f"{type(loading.error).__name__}: {loading.error}"


def stopping(board: np.ndarray) -> Callable[[], bool]:
    """What a chain calls now and then: whether the board says stop."""
    return lambda: bool(board[STOP, 0])


def _run(job: bytes, path: str, chains: int, chain: int) -> tuple[Groups, bool] | None:
    board = np.memmap(path, float, "r+", shape=(chains + 1, 5))

    if board[STOP, 0]:
        return None
    try:
        return pickle.loads(job).run(chain, board, stopping(board))  # type: ignore[no-any-return]
    # Any that could not come back as it is, a panic of nutpie too.
    except BaseException as error:
        if _travels(error):
            raise
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _travels(error: BaseException) -> bool:
    """Whether an error can be pickled. It cannot if its class takes other arguments than it passes
    to `Exception`.
    """
    dumps = optional("cloudpickle", "Model.sample").dumps
    with Attempt():
        there = pickle.loads(dumps(error))
        return type(there) is type(error) and str(there) == str(error)
    return False


# --- called in this process ---


class Watching:
    """Waits for chains, and shows their progress.

    Parameters
    ----------
    model : Model
    seed : int
    starts : Starts
    settings : dict
        As in `Model.sample`.
    is_busy : bool
        Whether the chains have the workers of an executor.
    """

    def __init__(
        self, model: Model, seed: int, starts: Starts, settings: Settings, is_busy: bool = False
    ) -> None:
        own = dict(settings)
        self._chains, self._cores, is_watched = (
            own.pop("chains"),
            own.pop("cores"),
            own.pop("progress_bar"),
        )
        self._job = Job(model, seed, starts, own, is_watched, is_busy)
        self._display = progress.Display(is_watched)

    @one_blas_thread()
    def _collected(self, runs: list[Future[Any]], board: np.ndarray) -> dict[int, Groups]:
        """The results of chains by number; after an interrupt, of those that have one. Raises the
        first error.
        """
        left = {*runs}
        with Interrupts() as pressed:
            while left:
                try:
                    done, left = wait(left, BETWEEN, FIRST_EXCEPTION)
                    for each in done:
                        self._of(each)
                    self._show(board)
                except KeyboardInterrupt:  # of a handler that the user has set
                    pressed.add()
                if pressed.count > 1:
                    raise KeyboardInterrupt
                if pressed.count and not board[STOP, 0]:
                    board[STOP, 0] = 1.0
                    left = {each for each in left if not each.cancel()}
        self._show(board, True)
        results = {i: self._of(each) for i, each in enumerate(runs) if not each.cancelled()}
        return {i: result[0] for i, result in results.items() if result is not None}

    def _of(self, run: Future[Any]) -> Any:
        return run.result()

    def _show(self, board: np.ndarray, at_once: bool = False) -> None:
        self._display.show(lambda: self._lines(board), at_once)

    def _lines(self, board: np.ndarray) -> list[str]:
        total, rows = self._job.settings["draws"] + self._job.settings["tune"], []
        for draws, divergences, step, gradients, seconds in board[:STOP].tolist():
            left = progress.remaining(int(draws), total, seconds)
            figures = (
                int(draws),
                int(divergences),
                f"{step:.3g}",
                int(gradients),
                f"{seconds:.0f}s",
                left,
            )
            rows.append((int(draws), total, figures))
        return progress.table(
            "Progress",
            ("Draws", "Divergences", "Step size", "Grad evals", "Elapsed", "Remaining"),
            rows,
        )


class ThreadedChains(Watching):
    """The chains of a recorded model, in threads of this process; parameters as in `Watching`."""

    def sample(self, calls: Callbacks, native: NativeModel | None) -> dict[int, Groups]:
        """The draws of the chains by number; after an interrupt, those that were made.

        Parameters
        ----------
        calls : Callbacks
        native : NativeModel, optional
            Has the functions that all chains call, if they may call the same.
        """
        board = np.zeros((self._chains + 1, 5))

        def run(chain: int) -> tuple[Groups, bool] | None:
            if board[STOP, 0]:
                return None
            if native is None:
                return self._job.run(chain, board, stopping(board))
            return self._job.sampled(native, calls, chain, board[chain], stopping(board))

        with ThreadPoolExecutor(
            min(self._chains, self._cores or processors()), "varmat-chain"
        ) as pool:
            try:
                return self._collected(
                    [pool.submit(run, chain) for chain in range(self._chains)], board
                )
            finally:
                board[STOP, 0] = 1.0  # an error of one chain ends the others


class Chains(Watching):
    """The chains of a model that Python evaluates, in processes if that is possible; parameters as
    in `Watching`.

    Attributes
    ----------
    workers : int
        The number of processes; 0 if chains are sampled here.
    hindrance : str
        Why there are none although they were wanted.
    """

    def __init__(self, model: Model, seed: int, starts: Starts, settings: Settings) -> None:
        super().__init__(model, seed, starts, settings)
        self._executor: Any = None
        self.workers, self.hindrance = 0, ""
        if self._cores != 1 and self._chains > 1:
            self.hindrance = self._begin(self._cores)

    def _begin(self, cores: int | None) -> str:
        """Start processes. Returns why there are none; empty if there are."""
        try:
            loky, cloudpickle = (
                optional("loky", "Model.sample"),
                optional("cloudpickle", "Model.sample"),
            )
        except ImportError as error:
            return f'{error.name} is not installed: in a clone, pip install -e ".[sample]"'
        workers = min(self._chains, cores or loky.cpu_count())
        if workers == 1:
            return ""
        if multiprocessing.current_process().daemon:
            return "this process may not start others"
        with Attempt() as pickling:
            self._payload = cloudpickle.dumps(self._job)
        if pickling.error is not None:
            found = unpicklable(self._job.model, cloudpickle)
            return found or f"the model cannot be pickled: {pickling.error}"
        self._executor = loky.ProcessPoolExecutor(workers, initializer=_begin)
        try:
            if reason := self._of(self._executor.submit(_loads, self._payload)):
                return f"another process cannot have the model: {reason}"
            self.workers = workers
            return ""
        finally:
            if not self.workers:
                self.close()

    def close(self) -> None:
        """End the processes."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)

    def sample(self) -> dict[int, Groups]:
        """The draws of the chains by number; after an interrupt, those that were made."""
        return self._sample_there() if self.workers else self._sample_here()

    def _sample_here(self) -> dict[int, Groups]:
        board, found = np.zeros((self._chains + 1, 5)), {}

        def tick() -> bool:
            self._show(board)
            return False

        for chain in range(self._chains):
            found[chain], is_complete = self._job.run(chain, board, tick)
            if not is_complete:
                break
        self._show(board, True)
        return found

    def _sample_there(self) -> dict[int, Groups]:
        with shared_board(self._chains) as (path, board):
            runs = [
                self._executor.submit(_run, self._payload, path, self._chains, i)
                for i in range(self._chains)
            ]
            return self._collected(runs, board)

    def _of(self, run: Future[Any]) -> Any:
        try:
            return run.result()
        except optional("loky", "Model.sample").BrokenProcessPool as error:
            text = (
                "a process that sampled a chain was killed or crashed, perhaps because there was "
                "not enough memory"
            )
            raise RuntimeError(
                f"Model.sample: {text}; with cores=1, chains are sampled in this process"
            ) from error


def unpicklable(model: Model, cloudpickle: Any) -> str:
    """The part of a model that cannot be pickled: data by name, or something a function reads."""

    def error_of(thing: object) -> str:
        with Attempt() as pickling:
            cloudpickle.dumps(thing)
        return "" if pickling.error is None else str(pickling.error)

    functions = [each for each in (model._density, model._transformed, model._generated) if each]
    functions += [model._likelihood.function] if model._likelihood else []
    for name, value in model._density._given.items():
        if error := error_of(value):
            return f"the data {name} cannot be pickled: {error}"
    for each in functions:
        if isinstance(each.function, FunctionType):
            read = inspect.getclosurevars(each.function)
            for name, value in {**read.nonlocals, **read.globals}.items():
                if error := error_of(value):
                    return f"{name}, which {each.title} reads, cannot be pickled: {error}"
        if error := error_of(each.function):
            return f"{each.title} cannot be pickled: {error}"
    return ""
