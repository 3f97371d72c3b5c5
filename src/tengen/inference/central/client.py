"""The side of an actor: its rows are answered by central inference."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

from tengen.errors import RunError
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
    reply_parts,
    request_parts,
)
from tengen.inference.central.shared_rows import receive_shared
from tengen.inference.row_arrays import RowArrays
from tengen.tensors import Signature

__all__ = ["InferenceClient", "Interrupted"]

_SLICE_S = 0.25
_RETRY_S = 0.05
_MAX_TEXT_BYTES = 1 << 16


class Interrupted(Exception):
    """The call was stopped while it waited for an answer."""


class InferenceClient:
    """A ``tengen.inference.Runner`` whose network is in another process.

    For one thread. Where the server is lost, ``run`` waits for the next one and asks it
    again; the recurrent state of the rows is lost with the server, and begins as zeros.

    Args:
        connect: Opens a session for N rows, as ``connect_rows`` does; raises RunError
            where nobody answers, UsageError where the session is refused.
        signature: Of the network, its state included; the server has the same.
        num_rows: N.
        stop: Once it is set, a ``run`` that waits raises ``Interrupted``.
        patience_s: The longest wait for an answer, and for a server.

    Raises:
        RunError: No server answered in time.
        UsageError: It refused the session.
        Interrupted: ``stop`` is set.

    Attributes:
        arrays: The rows; where the server is on this host they lie in memory that it
            shares, so that nobody copies them. Their state is what it was when the
            rows last wanted it.
        model: The number of the model that answered last; -1 before.
        num_lost: Servers that were lost.
    """

    def __init__(
        self,
        connect: Callable[[], Stream],
        signature: Signature,
        num_rows: int,
        stop: threading.Event,
        patience_s: float = 60.0,
    ) -> None:
        self.model = -1
        self.num_lost = 0
        self._connect = connect
        self._signature = signature
        self._num_rows = num_rows
        self._stop = stop
        self._patience_s = patience_s
        self._number = 0
        self._connection: socket.socket | None = None
        self._is_shared = False
        self.arrays = self._open(time.monotonic() + patience_s, None)

    def run(self, num_rows: int) -> None:
        """Has the rows answered. Blocks.

        Args:
            num_rows: N.

        Raises:
            RunError: There was no answer in time, or the network failed.
            Interrupted: ``stop`` was set meanwhile.
        """
        self.ask()
        self.wait()

    def ask(self) -> None:
        """Asks for the answers to all rows, which must stay as they are till ``wait``.

        Blocks only where the stream has no room.

        Raises:
            RunError: As ``wait``.
            Interrupted: As ``wait``.
        """
        try:
            self._request(time.monotonic() + self._patience_s)
        except OSError:
            self._lose()

    def wait(self) -> None:
        """Waits for the answers that were asked for. Blocks.

        Raises:
            RunError: There was no answer in time, or the network failed.
            Interrupted: ``stop`` was set meanwhile.
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
        """Ends the session. A second call does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lose(self) -> None:
        self.num_lost += 1
        self.close()

    def _request(self, until: float) -> None:
        assert self._connection is not None
        self._number += 1
        wants_state = self.arrays.wants_state
        head = REQUEST.pack(*Request(EVALUATE, wants_state, self._number))
        rest = [] if self._is_shared else list(request_parts(self.arrays))
        self._send([memoryview(head), *rest], until)

    def _answer(self, until: float) -> None:
        reply = self._receive_head(until)
        if reply.number != self._number:
            raise ConnectionResetError("the answer is another request's")
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
            raise RunError(text.decode(errors="replace"))
        if reply.kind != ANSWERS:
            raise ConnectionResetError("it is no answer")
        return reply

    def _open(self, until: float, known: RowArrays | None) -> RowArrays:
        """Opens a session, and moves the rows to the memory of the new one."""
        while True:
            self._check_stop()
            try:
                self._connection, self._is_shared = self._connect()
                self._connection.settimeout(_SLICE_S)
                return self._begin(until, known)
            except OSError as error:
                self.close()
                reason = str(error)
            except RunError as error:
                reason = str(error)
            if time.monotonic() >= until:
                raise RunError(
                    f"central inference (lost for {self._patience_s:g} s) must "
                    f"answer, {reason}; look for its log"
                )
            self._stop.wait(_RETRY_S)

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
                raise ConnectionResetError("central inference has gone")
            part = part[count:]

    def _check_wait(self, until: float) -> None:
        self._check_stop()
        if time.monotonic() >= until:
            raise RunError(
                f"central inference (silent for {self._patience_s:g} s) must answer; "
                f"look for its log"
            )

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise Interrupted
