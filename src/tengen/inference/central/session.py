"""The side of central inference of one session: an actor's rows and their state."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.inference.backend import Backend, Runner
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
from tengen.inference.central.shared_rows import make_shared, send_shared
from tengen.inference.row_arrays import RowArrays
from tengen.tensors import Signature

__all__ = ["Session"]


class Session:
    """Reads requests and writes replies, and never blocks. For the server's thread.

    Args:
        stream: To the actor; the session's from here on.
        signature: Of the network.
        num_rows: N of the actor.

    Attributes:
        arrays: The actor's rows.
        state: ``[N, ...]`` each, the recurrent state. It is here alone: a reply has a
            copy where the request asked for one.
        asked_s: When the request that waits came whole, for whoever fires batches.
        has_unsent: Whether a part of a reply waits for room in the socket.
    """

    def __init__(self, stream: Stream, signature: Signature, num_rows: int) -> None:
        stream.connection.setblocking(False)
        self._connection, self._is_shared = stream
        self._descriptor = -1
        memory = None
        if self._is_shared:
            self._descriptor, shared = make_shared(
                RowArrays.num_bytes(signature, num_rows)
            )
            memory = memoryview(shared)
        self.arrays = RowArrays(signature, num_rows, memory)
        self.state: Mapping[str, NDArray[Any]] = {
            name: spec.zeros(num_rows) for name, spec in signature.state.items()
        }
        self.asked_s = 0.0
        self._head = bytearray(REQUEST.size)
        self._parts: list[memoryview] = [memoryview(self._head)]
        self._request: Request | None = None
        self._unsent: list[memoryview] = []
        self._bound: tuple[Backend, Runner] | None = None

    def fileno(self) -> int:
        """Returns the descriptor to wait for."""
        return self._connection.fileno()

    @property
    def num_rows(self) -> int:
        """N."""
        return self.arrays.num_rows

    @property
    def has_unsent(self) -> bool:
        """See the class."""
        return bool(self._unsent)

    def receive(self) -> bool:
        """Reads what is there; returns whether a whole request to evaluate is.

        Raises:
            OSError: The actor is gone, or sent what is no request.
        """
        while True:
            while self._parts:
                try:
                    count = self._connection.recv_into(self._parts[0])
                except BlockingIOError:
                    return False
                if count == 0:
                    raise ConnectionResetError("the actor has gone")
                self._parts[0] = self._parts[0][count:]
                if not self._parts[0]:
                    self._parts.pop(0)
            if self._request is None:
                self._begin(Request(*REQUEST.unpack(self._head)))
                if self._parts or self._request is None:
                    continue
            return True

    def prepare(self) -> None:
        """Zeroes the state of rows whose episode begins."""
        for array in self.state.values():
            array[self.arrays.is_first] = 0

    def runner(self, backend: Backend) -> Runner:
        """Returns a runner over the rows where they lie."""
        if self._bound is None or self._bound[0] is not backend:
            arrays = self.arrays
            bound = backend.bind(arrays.inputs, arrays.outputs, self.state)
            self._bound = backend, bound
        return self._bound[1]

    def answer(self, version: int, model: int) -> None:
        """Sends the answers, which lie in ``arrays``, and takes the next request.

        Raises:
            OSError: The actor is gone.
        """
        assert self._request is not None
        wants_state = bool(self._request.wants_state)
        if wants_state:
            for name, array in self.state.items():
                np.copyto(self.arrays.state[name], array)
        reply = REPLY.pack(*Reply(ANSWERS, 0, self._request.number, version, model))
        rest = [] if self._is_shared else list(reply_parts(self.arrays, wants_state))
        self._end_request()
        self._send([memoryview(reply), *rest])

    def refuse(self, reason: str) -> None:
        """Sends why there is no answer; the actor ends the session."""
        text = reason.encode()
        number = 0 if self._request is None else self._request.number
        reply = REPLY.pack(*Reply(ERROR, len(text), number, 0, 0))
        self._end_request()
        if self._unsent:
            return  # it would be taken for the rest of an answer
        with contextlib.suppress(OSError):
            self._send([memoryview(reply), memoryview(text)])

    def send_rest(self) -> None:
        """Sends more of a reply for which there was no room.

        Raises:
            OSError: The actor is gone.
        """
        unsent, self._unsent = self._unsent, []
        self._send(unsent)

    def close(self) -> None:
        """Ends the session. A second call does nothing."""
        self._connection.close()
        self._bound = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _begin(self, request: Request) -> None:
        """Takes the head of a request."""
        if request.kind == OPEN:
            self._end_request()
            if self._is_shared and self._descriptor >= 0:
                send_shared(self._connection, self._descriptor)
                os.close(self._descriptor)
                self._descriptor = -1
            return
        if request.kind != EVALUATE or self._unsent:
            raise ConnectionResetError("it is no request")
        self._request = request
        if not self._is_shared:
            self._parts = [part for part in request_parts(self.arrays) if part]

    def _end_request(self) -> None:
        self._request = None
        self._parts = [memoryview(self._head)]

    def _send(self, parts: list[memoryview]) -> None:
        parts = [part for part in parts if part]
        while parts:
            try:
                count = self._connection.sendmsg(parts[:64])
            except BlockingIOError:
                # Outputs are overwritten only after the actor's next request, which
                # comes when it has all of them.
                self._unsent = parts
                return
            while parts and count >= len(parts[0]):
                count -= len(parts.pop(0))
            if count:
                parts[0] = parts[0][count:]
