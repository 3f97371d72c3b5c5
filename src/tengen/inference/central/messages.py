"""Messages between an actor and an inference server on the stream of a session.

A request begins with the structure ``REQUEST``, and a reply with ``REPLY``. If the rows
are not in shared memory, a request continues with ``is_first`` and the inputs in the
signature's order, and a reply with the outputs, and the state if it was requested. An
error reply continues with a message. Numbers are little-endian.

On one host, the first request of a session is ``OPEN``. The server then creates shared
memory and sends its descriptor over the session's socket. The memory has no name in a
file system, and is freed when the last process that maps it ends.
``core/inference/row_session.cc`` implements the server's side of the messages.
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
"""Maximum number of rows in a session of central inference."""

# core/inference/row_session.cc sends this byte with the descriptor of shared memory.
_BELL = b"m"


class Stream(NamedTuple):
    """The connection of a session, and whether its rows are in shared memory."""

    connection: socket.socket
    """The socket of the session, connected to the actor or the server."""
    is_shared: bool
    """Whether the rows are in memory shared by both processes. The actor decides, and
    notifies the server, because only the actor knows which kind of address it used."""


class Request(NamedTuple):
    """The fixed-size header of a request to the server."""

    kind: int
    """``OPEN`` or ``EVALUATE``."""
    wants_state: int
    """1 if the reply must contain the recurrent state, or else 0."""
    number: int
    """Sequence number of the request in its session; the reply has the same number."""


class Reply(NamedTuple):
    """The fixed-size header of a reply from the server."""

    kind: int
    """``ANSWERS`` or ``ERROR``."""
    num_bytes: int
    """Length of the error message that follows, or 0."""
    number: int
    """Sequence number of the request that is answered."""
    version: int
    """Version of the model that evaluated the rows, counted in learner steps."""
    model: int
    """Number of the model that evaluated the rows."""


def request_parts(arrays: RowArrays) -> Iterator[memoryview]:
    """Yields buffers of the data that follows a request header on a stream."""
    for array in (arrays.is_first, *arrays.inputs.values()):
        yield array.data.cast("B")


def reply_parts(arrays: RowArrays, wants_state: bool) -> Iterator[memoryview]:
    """Yields buffers of the data that follows a reply header on a stream."""
    told = arrays.state if wants_state else {}
    for array in (*arrays.outputs.values(), *told.values()):
        yield array.data.cast("B")


def make_shared(num_bytes: int) -> int:
    """Creates zeroed, fully allocated shared memory and returns its descriptor.

    On Linux the memory is sealed, so that no process can resize it.

    Raises:
        RunError: There is not enough memory.
    """
    descriptor = _unnamed()
    try:
        os.truncate(descriptor, num_bytes)
        if hasattr(os, "posix_fallocate"):
            # Allocate all pages now, because a later write to an unallocated page would
            # kill the process (SIGBUS) if no memory is free.
            os.posix_fallocate(descriptor, 0, num_bytes)
        if hasattr(fcntl, "F_ADD_SEALS"):
            with contextlib.suppress(OSError):  # sealing fails for a regular file
                fcntl.fcntl(
                    descriptor,
                    fcntl.F_ADD_SEALS,
                    fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL,
                )
        return descriptor
    except OSError as error:
        os.close(descriptor)
        raise RunError(
            f"shared memory ({num_bytes} bytes) cannot be allocated: "
            f"{os_reason(error)}; use fewer environments per actor"
        ) from error


def receive_shared(connection: socket.socket, num_bytes: int) -> mmap.mmap:
    """Receives the descriptor of shared memory, and maps the memory.

    Args:
        connection: The connection on which the descriptor arrives.
        num_bytes: Minimum size of the memory.

    Raises:
        OSError: The connection was closed, or the server sent no or too little memory.
    """
    bell, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    try:
        if bell != _BELL or len(descriptors) != 1:
            raise ConnectionResetError("the actor passed no memory")
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
