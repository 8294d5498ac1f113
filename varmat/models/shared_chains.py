"""Chains on an executor of the user: threads, processes, or the workers of other machines.

Each chain is one task. The model is sent once to each worker that is another process. Workers on
this machine report what they do, and are told to stop, by a file that they map, as in
`varmat.models.chains`. Chains on other machines are shown when they have returned.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.interrupts import Interrupts
from varmat.models.chains import BETWEEN, SECONDS, STOP, Watching, shared_board, stopping
from varmat.parallel.shares import identity
from varmat.parallel.tasks import on_workers

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.chains import Job
    from varmat.models.results import Groups

# Seconds that a chain on another machine has to return after an interrupt.
PATIENCE = 5.0


class SharedJob:
    """Sent to the workers; samples the chain whose number is given, and reports on it if it can."""

    def __init__(self, job: Job, machine: str, path: str, chains: int) -> None:
        self._job, self._machine, self._path, self._chains = job, machine, path, chains

    def __call__(self, chain: int) -> tuple[Groups, bool] | None:
        board = self._board()

        if board[STOP, 0]:
            return None
        try:
            found: tuple[Groups, bool] = self._job.run(chain, board, stopping(board))
        except (Exception, KeyboardInterrupt, SystemExit):
            board[STOP, 0] = 1.0  # the other chains are of no use
            raise
        # A panic of nutpie cannot be pickled.
        except BaseException as error:
            board[STOP, 0] = 1.0
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        if not found[1]:
            board[STOP, 0] = 1.0
        return found

    def _board(self) -> np.ndarray:
        """The board of all chains; on another machine, one that is not read."""
        shape = self._chains + 1, 5
        if self._machine == identity()[0]:
            with suppress(OSError):  # a container may have the same host name
                return np.memmap(self._path, float, "r+", shape=shape)
        return np.zeros(shape)


class SharedChains(Watching):
    """The chains of a model on an executor; parameters as in `Watching`."""

    def sample(self, executor: Executor | str | None) -> dict[int, Groups]:
        """The draws of the chains by number; after an interrupt, those that were made."""
        with shared_board(self._chains) as (path, self._board):
            self._stopped: float | None = None
            job = SharedJob(self._job, identity()[0], path, self._chains)
            try:
                results = on_workers(
                    "Model.sample", job, range(self._chains), executor, "chain", self._result
                )
            finally:
                self._board[STOP, 0] = 1.0
            self._show(self._board, True)
        return {i: result[0] for i, result in enumerate(results) if result is not None}

    def _result(self, chain: int, future: Future[Any]) -> Any:
        """The result of a chain; None if it is abandoned after an interrupt."""
        with Interrupts() as pressed:
            while not future.done():
                try:
                    wait([future], BETWEEN)
                    self._show(self._board)
                except KeyboardInterrupt:  # of a handler that the user has set
                    pressed.add()
                if pressed.count > 1:
                    raise KeyboardInterrupt
                if pressed.count:
                    self._stopped = self._stopped or time.monotonic()
                    self._board[STOP, 0] = 1.0
                if self._stopped is not None:
                    future.cancel()
                    # A chain elsewhere does not see the board, so it does not know that it is to
                    # stop.
                    patience = self._stopped + PATIENCE
                    if not self._board[chain, SECONDS] and time.monotonic() > patience:
                        return None
        return None if future.cancelled() and self._stopped is not None else future.result()
