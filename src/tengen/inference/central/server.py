"""Central inference: the rows of many actors in one batch, on one model at a time.

A batch is fired when the device is idle and ``min_rows`` rows wait, or the oldest
request has waited ``max_wait_s``. An actor that dies takes its rows with it, and nobody
waits for it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import cast

import numpy as np

from tengen.errors import RunError
from tengen.inference.backend import Backend, Runner
from tengen.inference.central.messages import Stream
from tengen.inference.central.session import Session
from tengen.inference.row_arrays import RowArrays
from tengen.tensors import Signature

__all__ = ["InferenceServer", "ServerStats"]

_WAKE = b"w"
# Sessions of actors that died are open until their end is seen.
_MOST_BATCHES = 8


@dataclass
class ServerStats:
    """What a server did; its thread adds, others may read."""

    num_batches: int = 0
    """Batches evaluated."""
    num_evaluations: int = 0
    """Rows evaluated."""
    inference_s: float = 0.0
    """Seconds inside the network."""
    copy_s: float = 0.0
    """Seconds of gathering rows of several actors and of handing out their answers."""
    wait_s: float = 0.0
    """Seconds in which no request waited."""
    num_lost: int = 0
    """Sessions that ended before the server did."""


@dataclass(frozen=True)
class _Model:
    backend: Backend
    version: int
    number: int


class InferenceServer:
    """Answers sessions. ``run`` is one thread's; the other methods are for any thread.

    Args:
        signature: Of the network, its state included.
        max_rows: The largest batch, at least the rows of any session.
        min_rows: Rows that a batch waits for, 1 to ``max_rows``.
        max_wait_s: The longest that a request waits for ``min_rows``, 0 or more.

    Attributes:
        max_rows: As it was given.
        stats: Counters.
    """

    def __init__(
        self,
        signature: Signature,
        *,
        max_rows: int,
        min_rows: int = 1,
        max_wait_s: float = 0.002,
    ) -> None:
        self.stats = ServerStats()
        self._signature = signature
        self.max_rows = max_rows
        self._min_rows = min_rows
        self._max_wait_s = max_wait_s
        self._lock = threading.Lock()
        self._new_sessions: list[Session] = []
        self._new_model: _Model | None = None
        self._is_stopping = False
        self._has_ended = False
        self._num_rows = 0
        self._wake, self._bell = socket.socketpair()
        self._wake.setblocking(False)
        self._bell.setblocking(False)
        # Of the serving thread alone.
        self._model: _Model | None = None
        self._batch: tuple[Backend, RowArrays, Runner] | None = None
        self._selector = selectors.DefaultSelector()
        self._pending: deque[Session] = deque()
        self._num_pending = 0

    def add(self, stream: Stream, num_rows: int) -> None:
        """Takes a session.

        Args:
            stream: To the actor; the server's from here on.
            num_rows: N of the actor, 1 to ``max_rows``.

        Raises:
            RunError: There is no memory for its rows, or the server has ended.
        """
        with self._lock:
            if self._num_rows + num_rows > _MOST_BATCHES * self.max_rows:
                raise RunError(
                    f"inference (full) serves at most {_MOST_BATCHES * self.max_rows} "
                    f"rows at once; end some actors"
                )
            if self._has_ended:
                raise RunError("inference (ended) must serve; start its role again")
            session = Session(stream, self._signature, num_rows)
            self._num_rows += num_rows
            self._new_sessions.append(session)
        self._ring()

    def set_model(self, backend: Backend, version: int, number: int) -> None:
        """Has later batches evaluated by a model.

        Args:
            backend: The model, opened with the outputs of the signature.
            version: Learner steps behind it.
            number: Its number.
        """
        with self._lock:
            self._new_model = _Model(backend, version, number)
        self._ring()

    @property
    def num_sessions(self) -> int:
        """Sessions that are open or wait to be."""
        with self._lock:
            num_new = len(self._new_sessions)
        return max(0, len(self._selector.get_map() or ()) - 1) + num_new

    def stop(self) -> None:
        """Ends ``run`` after the batch that is going on."""
        with self._lock:
            self._is_stopping = True
        self._ring()

    def run(self) -> None:
        """Answers requests until ``stop``, then ends every session. Blocks.

        Raises:
            Exception: What the backend raised; every session is told.
        """
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        try:
            while not self._is_stopping:
                self._wait()
                if self._model is not None and self._is_due():
                    self._fire(self._model)
        except Exception as error:
            for session in self._sessions():
                session.refuse(f"central inference failed, {error}")
            raise
        finally:
            self._close()

    def _is_due(self) -> bool:
        if not self._pending:
            return False
        if self._num_pending >= self._min_rows:
            return True
        return time.monotonic() - self._pending[0].asked_s >= self._max_wait_s

    def _wait(self) -> None:
        """Takes what sessions and other threads have sent."""
        timeout: float | None = None
        if self._pending and self._model is not None:
            waited_s = time.monotonic() - self._pending[0].asked_s
            is_enough = self._num_pending >= self._min_rows
            timeout = 0.0 if is_enough else max(0.0, self._max_wait_s - waited_s)
        start_s = time.monotonic()
        ready = self._selector.select(timeout)
        now_s = time.monotonic()
        if not self._pending:
            self.stats.wait_s += now_s - start_s
        for key, events in ready:
            if key.data is None:
                self._take_news()
            else:
                self._serve(cast(Session, key.data), events, now_s)

    def _take_news(self) -> None:
        while True:
            try:
                if len(self._wake.recv(4096)) < 4096:
                    break
            except BlockingIOError:
                break
        with self._lock:
            sessions, self._new_sessions = self._new_sessions, []
            model, self._new_model = self._new_model, None
        if model is not None:
            self._model = model
        for session in sessions:
            self._selector.register(session, selectors.EVENT_READ, session)

    def _serve(self, session: Session, events: int, now_s: float) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                session.send_rest()
                self._watch(session)
            if events & selectors.EVENT_READ and session.receive():
                if session in self._pending:
                    raise ConnectionResetError("a request came before the answer")
                session.asked_s = now_s
                self._pending.append(session)
                self._num_pending += session.num_rows
        except OSError:
            self._lose(session)

    def _fire(self, model: _Model) -> None:
        fired = [self._pending.popleft()]
        num_rows = fired[0].num_rows
        while self._pending:
            if num_rows + self._pending[0].num_rows > self.max_rows:
                break
            fired.append(self._pending.popleft())
            num_rows += fired[-1].num_rows
        self._num_pending -= num_rows
        for session in fired:
            session.prepare()
        if len(fired) == 1:
            runner = fired[0].runner(model.backend)
            self._evaluate(runner, num_rows)
        else:
            self._run_together(fired, num_rows, model.backend)
        for session in fired:
            try:
                session.answer(model.version, model.number)
                self._watch(session)
            except OSError:
                self._lose(session)

    def _run_together(
        self, fired: list[Session], num_rows: int, backend: Backend
    ) -> None:
        """Evaluates rows of several sessions as one batch."""
        start_s = time.perf_counter()
        if self._batch is None or self._batch[0] is not backend:
            arrays = (
                RowArrays(self._signature, self.max_rows)
                if self._batch is None
                else self._batch[1]
            )
            runner = backend.bind(arrays.inputs, arrays.outputs, arrays.state)
            self._batch = backend, arrays, runner
        _, batch, runner = self._batch
        first = 0
        for session in fired:
            rows = slice(first, first := first + session.num_rows)
            for name, array in session.arrays.inputs.items():
                np.copyto(batch.inputs[name][rows], array)
            for name, array in session.state.items():
                np.copyto(batch.state[name][rows], array)
        copied_s = time.perf_counter()
        self._evaluate(runner, num_rows)
        answered_s = time.perf_counter()
        first = 0
        for session in fired:
            rows = slice(first, first := first + session.num_rows)
            for name, array in session.arrays.outputs.items():
                np.copyto(array, batch.outputs[name][rows])
            for name, array in session.state.items():
                np.copyto(array, batch.state[name][rows])
        self.stats.copy_s += time.perf_counter() - answered_s + copied_s - start_s

    def _evaluate(self, runner: Runner, num_rows: int) -> None:
        start_s = time.perf_counter()
        runner.run(num_rows)
        self.stats.inference_s += time.perf_counter() - start_s
        self.stats.num_batches += 1
        self.stats.num_evaluations += num_rows

    def _watch(self, session: Session) -> None:
        """Waits for room where a part of a reply has none."""
        events = selectors.EVENT_READ
        if session.has_unsent:
            events |= selectors.EVENT_WRITE
        if self._selector.get_key(session).events != events:
            self._selector.modify(session, events, session)

    def _lose(self, session: Session) -> None:
        self.stats.num_lost += 1
        self._selector.unregister(session)
        if session in self._pending:
            self._pending.remove(session)
            self._num_pending -= session.num_rows
        session.close()
        with self._lock:
            self._num_rows -= session.num_rows

    def _sessions(self) -> list[Session]:
        return [
            key.data
            for key in self._selector.get_map().values()
            if key.data is not None
        ]

    def _close(self) -> None:
        for session in self._sessions():
            session.close()
        with self._lock:
            self._has_ended = True
            sessions, self._new_sessions = self._new_sessions, []
        for session in sessions:
            session.close()
        self._selector.close()
        self._wake.close()
        self._bell.close()

    def _ring(self) -> None:
        # Where it cannot be sent, bells enough lie there, or the server has ended.
        with contextlib.suppress(OSError):
            self._bell.send(_WAKE)
