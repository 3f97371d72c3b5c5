"""The messages of an actor and central inference on a session's stream.

A request is ``REQUEST``. Where the rows are not in shared memory, ``is_first`` and the
inputs follow it, in the order of the signature. A reply is ``REPLY``. Where the rows
are not in shared memory, the outputs follow it, and then the state if the request asked
for it. An error is ``REPLY`` and a text. Numbers are little-endian.

On one host the first request of a session is ``OPEN``, whose reply is the descriptor
of the shared memory. The server's side is ``core/inference/row_session.cc``.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from tengen.inference.row_arrays import RowArrays

__all__ = [
    "ANSWERS",
    "ERROR",
    "EVALUATE",
    "MAX_ROWS",
    "OPEN",
    "REPLY",
    "REQUEST",
    "Reply",
    "Request",
    "Stream",
    "reply_parts",
    "request_parts",
]

REQUEST = struct.Struct("<IIQ")
REPLY = struct.Struct("<IIQqq")
OPEN, EVALUATE = 1, 2
ANSWERS, ERROR = 1, 2
MAX_ROWS = 4096
"""The most rows of one session."""


class Stream(NamedTuple):
    """The stream of a session, and how its rows are passed."""

    connection: socket.socket
    """The connection to the other process."""
    is_shared: bool
    """Whether the rows are in memory that both processes share. The actor tells the
    server, because the actor knows whether it connected by a folder of its host."""


class Request(NamedTuple):
    """The head of a request."""

    kind: int
    """``OPEN`` or ``EVALUATE``."""
    wants_state: int
    """1 where the reply must have the state, else 0."""
    number: int
    """The request's number in its session; the reply has the same number."""


class Reply(NamedTuple):
    """The head of a reply."""

    kind: int
    """``ANSWERS`` or ``ERROR``."""
    num_bytes: int
    """Length of an error's text, else 0."""
    number: int
    """The request's number."""
    version: int
    """The version of the model that answered: its learner steps."""
    model: int
    """The number of the model that answered."""


def request_parts(arrays: RowArrays) -> Iterator[memoryview]:
    """Yields the bytes that follow a request on a stream."""
    for array in (arrays.is_first, *arrays.inputs.values()):
        yield array.data.cast("B")


def reply_parts(arrays: RowArrays, wants_state: bool) -> Iterator[memoryview]:
    """Yields the bytes that follow an answer on a stream."""
    told = arrays.state if wants_state else {}
    for array in (*arrays.outputs.values(), *told.values()):
        yield array.data.cast("B")
