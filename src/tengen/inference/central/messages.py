"""The messages of an actor and central inference on a session's stream.

A request is ``REQUEST``. Where the rows are not in shared memory, ``is_first`` and the
inputs follow it, in the order of the signature. A reply is ``REPLY``. Where the rows
are not in shared memory, the outputs follow it, and then the state if the request asked
for it. An error is ``REPLY`` and a text. Numbers are little-endian.

On one host the first request of a session is ``OPEN``, whose reply is the descriptor
of the shared memory. That memory has no name in a file system, and is freed when the
last process that has it ends, in whatever way. The server makes it, and the core passes
its descriptor over the session's socket. The server's side of the messages is
``core/inference/row_session.cc``.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import socket
import struct
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from tengen.errors import RunError, os_reason
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
    "make_shared",
    "receive_shared",
    "reply_parts",
    "request_parts",
]

REQUEST = struct.Struct("<IIQ")
REPLY = struct.Struct("<IIQqq")
OPEN, EVALUATE = 1, 2
ANSWERS, ERROR = 1, 2
MAX_ROWS = 4096
"""The most rows of one session."""

# The byte that core/inference/row_session.cc sends with the descriptor.
_BELL = b"m"


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


def make_shared(num_bytes: int) -> int:
    """Returns a descriptor of new memory of zeros, all of it allocated.

    On Linux the memory is sealed, so that no process that has it can shrink it.

    Raises:
        RunError: There is not enough memory.
    """
    descriptor = _unnamed()
    try:
        os.truncate(descriptor, num_bytes)
        if hasattr(os, "posix_fallocate"):
            # Otherwise a write to a page that has no memory would kill the process.
            os.posix_fallocate(descriptor, 0, num_bytes)
        if hasattr(fcntl, "F_ADD_SEALS"):
            with contextlib.suppress(OSError):  # a file has no seals
                fcntl.fcntl(
                    descriptor,
                    fcntl.F_ADD_SEALS,
                    fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL,
                )
        return descriptor
    except OSError as error:
        os.close(descriptor)
        raise RunError(
            f"shared memory ({num_bytes} bytes) cannot be had: {os_reason(error)}; "
            f"use fewer environments an actor"
        ) from error


def receive_shared(connection: socket.socket, num_bytes: int) -> mmap.mmap:
    """Receives a descriptor and maps its memory.

    Args:
        connection: The connection that the descriptor comes on.
        num_bytes: Size of the memory.

    Raises:
        OSError: The other side is gone, or passed something else.
    """
    bell, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    try:
        if bell != _BELL or len(descriptors) != 1:
            raise ConnectionResetError("no memory was passed")
        if os.fstat(descriptors[0]).st_size < num_bytes:
            raise ConnectionResetError("the memory is too small")
        return mmap.mmap(descriptors[0], num_bytes)
    except ValueError as error:
        raise ConnectionResetError(str(error)) from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _unnamed() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("tengen-rows", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    descriptor, path = tempfile.mkstemp(prefix="tengen-rows-")
    os.unlink(path)
    return descriptor
