"""Processes that do pieces of work: one that is killed is replaced and its piece done again, none outlives its master.

Each has a pipe of its own, and only the master holds the other end: whoever dies, the other side sees it.
"""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from ..record import dataclass
from .ending import blocked, serve_only, undoing

T = TypeVar("T")
R = TypeVar("R")
TRIES = 2
"""How often a piece is begun whose process is killed."""
AHEAD = 2
"""Pieces for each process that may be begun while the first one is not done."""
END_SECONDS = 5.0


@dataclass(slots=True)
class _Piece(Generic[T, R]):
    """A piece of work, and how often it was begun without an end."""

    work: T
    tries: int = 0
    done: bool = False
    result: R | None = None


@dataclass(slots=True)
class _Worker:
    """A process and the master's end of its pipe, with the piece that it is at."""

    process: BaseProcess
    connection: Connection[Any, Any]
    piece: _Piece[Any, Any] | None = None


class Crew(Generic[T, R]):
    """Some processes that `prepare` themselves and then apply `work` to pieces; `lost` answers for a piece whose
    process was killed again and again. A context: at its end no process is left.
    """

    def __init__(self, size: int, work: Callable[[T], R], prepare: Callable[[], None], lost: Callable[[T], R]) -> None:
        self._size = size
        self._served = (work, prepare)
        self._lost = lost
        self._workers: list[_Worker] = []
        self._context = get_context()

        self._ending = undoing(self._kill)

    def __enter__(self) -> Crew[T, R]:
        self._ending.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.__exit__(None, None, None)
        for worker in self._workers:
            worker.process.terminate()
            worker.connection.close()
        for worker in self._workers:
            worker.process.join(END_SECONDS)
            worker.process.kill()

    def _kill(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join(END_SECONDS)

    def results(self, pieces: Iterator[T]) -> Iterator[R]:
        """Yield what comes of each piece, in their order; never more than a few are begun ahead."""
        waiting: collections.deque[_Piece[T, R]] = collections.deque()
        for work in pieces:
            waiting.append(_Piece(work))
            self._hand(waiting[-1], self._idle())
            self._collect(0)
            while waiting and (waiting[0].done or len(waiting) > AHEAD * self._size):
                yield self._first(waiting)
        while waiting:
            yield self._first(waiting)

    def _first(self, waiting: collections.deque[_Piece[T, R]]) -> R:
        while not waiting[0].done:
            self._collect(None)
        return waiting.popleft().result  # type: ignore[return-value]

    def _idle(self) -> _Worker:
        """A process that has nothing to do, a new one while there are fewer than there may be."""
        if len(self._workers) < self._size:
            self._workers.append(self._started())
            return self._workers[-1]
        while True:
            for worker in self._workers:
                if worker.piece is None:
                    return worker
            self._collect(None)

    def _started(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        forked = self._context.get_start_method() == "fork"
        strangers = [ours, *(worker.connection for worker in self._workers)] if forked else []
        with blocked():
            process = self._context.Process(target=_serve, args=(theirs, strangers, *self._served), daemon=True)
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _hand(self, piece: _Piece[T, R], worker: _Worker) -> None:
        worker.piece = piece
        piece.tries += 1
        try:
            worker.connection.send(piece.work)
        except OSError:
            self._replace(worker)

    def _collect(self, timeout: float | None) -> None:
        """Take what is done; wait for something unless `timeout` says how long."""
        busy = {worker.connection: worker for worker in self._workers if worker.piece is not None}
        for ready in wait(list(busy), timeout):
            worker = busy[ready]  # type: ignore[index]
            try:
                result = worker.connection.recv()
            except (EOFError, OSError):
                self._replace(worker)
                continue
            assert worker.piece is not None
            worker.piece.result, worker.piece.done, worker.piece = result, True, None

    def _replace(self, worker: _Worker) -> None:
        """Put another process in the place of one that is gone, and let it do what that one did not end."""
        piece = worker.piece
        assert piece is not None
        worker.connection.close()
        worker.process.join(END_SECONDS)
        self._workers.remove(worker)
        if piece.tries >= TRIES:
            piece.result, piece.done = self._lost(piece.work), True
            return
        self._workers.append(self._started())
        self._hand(piece, self._workers[-1])


def _serve(
    connection: Connection[Any, Any],
    strangers: Sequence[Connection[Any, Any]],
    work: Callable[[Any], Any],
    prepare: Callable[[], None],
) -> None:
    """Do pieces until the master's end of the pipe is closed; the master alone reads, writes and hears signals."""
    for each in strangers:
        each.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    serve_only()
    prepare()
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send(work(connection.recv()))
