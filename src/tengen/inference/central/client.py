"""The client of central inference, with which an actor has its rows evaluated.

One thread drives several clients, so that some environments step while the server
evaluates the rows of other clients.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tengen.errors import RunError
from tengen.inference.backend import Batches, DriveStats
from tengen.inference.central.messages import (
    ANSWERS,
    ERROR,
    EVALUATE,
    OPEN,
    REPLY,
    REQUEST,
    Reply,
    Request,
    Stream,
    receive_shared,
    reply_parts,
    request_parts,
)
from tengen.inference.central.places import Places
from tengen.inference.row_arrays import RowArrays
from tengen.tensors import Signature

_SLICE_S = 0.25
_RETRY_S = 0.05
_MAX_TEXT_BYTES = 1 << 16


class Interrupted(Exception):
    """Raised by a call that was stopped while it waited for a reply."""


class InferenceClient:
    """A ``tengen.inference.Runner`` that sends its rows to an inference server.

    Used by one thread. If the server is lost or hangs, ``run`` uses another server, if
    there is one; otherwise it waits for the server. Every change of the server, even
    the return to the home server, zeroes the recurrent state of the rows.
    ``arrays.num_moves`` counts these changes.

    Args:
        places: The servers, with which it opens sessions for N rows.
        signature: The network's signature, including its state; must equal the server's
            signature.
        num_rows: Number N of rows.
        stop: When set, a waiting ``run`` raises ``Interrupted``.
        patience_s: Maximum time to wait for a reply or for a server, in seconds.

    Raises:
        RunError: No server replied in time.
        UsageError: The server refused the session.
        Interrupted: ``stop`` is set.

    Attributes:
        arrays: The rows, in shared memory if the server is on this host. The recurrent
            state is current only if ``arrays.wants_state`` was set at the request.
        model: The number of the model that evaluated the rows last; -1 initially.
        num_lost: How often a server was lost, or abandoned because it hung.
    """

    def __init__(
        self,
        places: Places,
        signature: Signature,
        num_rows: int,
        stop: threading.Event,
        patience_s: float = 60.0,
    ) -> None:
        self.model = -1
        self.num_lost = 0
        self._places = places
        self._signature = signature
        self._num_rows = num_rows
        self._stop = stop
        self._patience_s = patience_s
        self._number = 0
        self._connection: socket.socket | None = None
        self._is_shared = False
        self.arrays = self._open(time.monotonic() + patience_s, None)

    def run(self, num_rows: int) -> None:
        """Requests the outputs for all rows and waits for the reply. Blocks.

        Args:
            num_rows: Number N of rows; the server always evaluates all N rows.

        Raises:
            RunError: There was no reply in time, or the network failed.
            Interrupted: ``stop`` is set.
        """
        self.ask()
        self.wait()

    def ask(self) -> None:
        """Requests the outputs for all rows; do not change rows until ``wait`` returns.

        Blocks while the stream's buffer is full, or a lost home server is checked.

        Raises:
            RunError: As ``wait``.
            Interrupted: As ``wait``.
        """
        until = time.monotonic() + self._patience_s
        try:
            stream = self._places.return_home()
            if stream is not None:
                self.close()
                self._enter(stream, until, self.arrays)
            self._request(until)
        except OSError:
            self._lose()

    def wait(self) -> None:
        """Blocks until the outputs requested with ``ask`` have arrived.

        Raises:
            RunError: There was no reply in time, or the network failed.
            Interrupted: ``stop`` is set.
        """
        until = time.monotonic() + self._patience_s
        while True:
            try:
                if self._connection is None:
                    self._open(until, self.arrays)
                    self._request(until)
                self._answer(until)
                return
            except OSError:
                self._lose()

    def close(self) -> None:
        """Ends the session with the server. Idempotent."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lose(self) -> None:
        self.num_lost += 1
        self._places.lose()
        self.close()

    def _request(self, until: float) -> None:
        assert self._connection is not None
        self._places.hears()
        self._number += 1
        wants_state = self.arrays.wants_state
        head = REQUEST.pack(*Request(EVALUATE, wants_state, self._number))
        rest = [] if self._is_shared else list(request_parts(self.arrays))
        self._send([memoryview(head), *rest], until)

    def _answer(self, until: float) -> None:
        reply = self._receive_head(until)
        if reply.number != self._number:
            raise ConnectionResetError("the answer belongs to another request")
        self.arrays.version, self.model = reply.version, reply.model
        if not self._is_shared:
            for part in reply_parts(self.arrays, self.arrays.wants_state):
                self._receive(part, until)

    def _receive_head(self, until: float) -> Reply:
        head = bytearray(REPLY.size)
        self._receive(memoryview(head), until)
        reply = Reply(*REPLY.unpack(head))
        if reply.kind == ERROR:
            text = bytearray(min(reply.num_bytes, _MAX_TEXT_BYTES))
            self._receive(memoryview(text), until)
            told = text.decode(errors="replace")
            # This server's device may be the cause, so another server may succeed.
            if self._places.has_others:
                raise ConnectionResetError(told)
            raise RunError(told)
        if reply.kind != ANSWERS:
            raise ConnectionResetError("it is not an answer")
        return reply

    def _open(self, until: float, known: RowArrays | None) -> RowArrays:
        """Opens a session with a server, retrying until ``until``; returns the rows."""
        while True:
            self._check_stop()
            try:
                stream = self._places.connect()
            except (OSError, RunError) as error:
                reason = str(error)
            else:
                try:
                    return self._enter(stream, until, known)
                except OSError as error:
                    self._lose()
                    reason = str(error)
            if time.monotonic() >= until:
                raise RunError(
                    f"central inference (lost for {self._patience_s:g} s) does not "
                    f"answer, {reason}; see its log"
                )
            self._stop.wait(_RETRY_S)

    def _enter(
        self, stream: Stream, until: float, known: RowArrays | None
    ) -> RowArrays:
        """Begins a session on ``stream``, in which the recurrent state is zero."""
        self._connection, self._is_shared = stream
        self._connection.settimeout(_SLICE_S)
        self._places.hears()
        arrays = self._begin(until, known)
        if known is not None:
            known.num_moves += 1
            # Recording the change takes one step of the actor's block. So the next step
            # may fill the block, and the state after it must then be stored.
            known.wants_state = True
        return arrays

    def _begin(self, until: float, known: RowArrays | None) -> RowArrays:
        assert self._connection is not None
        if not self._is_shared:
            return known or RowArrays(self._signature, self._num_rows)
        head = REQUEST.pack(*Request(OPEN, 0, 0))
        self._send([memoryview(head)], until)
        num_bytes = RowArrays.num_bytes(self._signature, self._num_rows)
        while True:
            try:
                memory = receive_shared(self._connection, num_bytes)
                break
            except TimeoutError:
                self._check_wait(until)
        arrays = RowArrays(self._signature, self._num_rows, memoryview(memory))
        if known is not None:
            known.move_to(arrays)
            return known
        return arrays

    def _send(self, parts: list[memoryview], until: float) -> None:
        assert self._connection is not None
        parts = [part for part in parts if part]
        while parts:
            try:
                count = self._connection.sendmsg(parts[:64])
            except TimeoutError:
                self._check_wait(until)
                continue
            while parts and count >= len(parts[0]):
                count -= len(parts.pop(0))
            if count:
                parts[0] = parts[0][count:]

    def _receive(self, part: memoryview, until: float) -> None:
        assert self._connection is not None
        while part:
            try:
                count = self._connection.recv_into(part)
            except TimeoutError:
                self._check_wait(until)
                continue
            if count == 0:
                raise ConnectionResetError("central inference has ended")
            part = part[count:]

    def _check_wait(self, until: float) -> None:
        self._check_stop()
        if time.monotonic() >= until:
            raise RunError(
                f"central inference (silent for {self._patience_s:g} s) does not "
                "answer; see its log"
            )
        if self._places.is_silent():
            raise ConnectionResetError("central inference hangs")

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise Interrupted


class TurnPort(Batches, Protocol):
    """A port of an actor, which may step its environments in the background."""

    @property
    def is_stepping(self) -> bool:
        """Whether environments step in the background, so that ``next`` may block."""


class Asker(NamedTuple):
    """A port, and the inference client that evaluates its rows."""

    port: TurnPort
    """The port that provides the batches."""
    client: InferenceClient
    """The inference client; the port uses its arrays."""
    begin: Callable[[], None]
    """Begins a turn of the port."""


def drive_in_turns(
    askers: Sequence[Asker], is_over: Callable[[], bool], stats: DriveStats
) -> None:
    """Evaluates the batches of several ports. Blocks until all turns have ended.

    While one port waits for outputs, the other ports sample actions and step their
    environments. So with two ports, environments and network work concurrently; with
    one port, they wait for each other.

    If two ports step in the background, one steps while the other waits for outputs. A
    port that is stepping when the last turn ends continues to step until the next call.

    Source: Petrenko et al. 2020, "Sample Factory" (arXiv:2006.11751), section 3.2,
    double-buffered sampling.

    Args:
        askers: The ports and their clients, the same in each call, at least one. A
            port begins its next turn without waiting for other ports.
        is_over: Called when a port's turn has ended; returns True to end the port.
        stats: Counters to increment after every batch; ``inference_s`` is the time
            spent waiting for the server.

    Raises:
        Exception: Any exception of a port or a client.
    """
    clock = time.perf_counter
    start_s = clock()
    asked: deque[tuple[Asker, int]] = deque()
    # Ports that step in the background, in the order in which they began to step.
    stepping: deque[Asker] = deque()
    is_left = False

    def ask(asker: Asker) -> None:
        nonlocal is_left
        num_rows = asker.port.next()
        if not num_rows and not is_over():
            asker.begin()
            num_rows = asker.port.next()
        if num_rows:
            asker.client.ask()
            asked.append((asker, num_rows))
        else:
            is_left = True

    for asker in askers:
        asker.begin()
    for asker in askers:
        if asker.port.is_stepping:
            stepping.append(asker)
        else:
            ask(asker)
    while asked or (stepping and not is_left):
        if not asked or len(stepping) > 1:
            ask(stepping.popleft())
            continue
        asker, num_rows = asked.popleft()
        waits_s = clock()
        asker.client.wait()
        answered_s = clock()
        asker.port.done()
        stats.inference_s += answered_s - waits_s
        stats.port_s += waits_s - start_s
        stats.num_evaluations += num_rows
        stats.num_batches += 1
        start_s = answered_s
        if asker.port.is_stepping:
            stepping.append(asker)
        else:
            ask(asker)
    stats.port_s += clock() - start_s
