"""The messages between an actor and central inference on a session's stream.

A request begins with ``REQUEST``, and a reply with ``REPLY``. If the rows are not in
shared memory, a request continues with ``is_first`` and the inputs, in the order of the
signature; a reply continues with the outputs, and with the state if it was requested.
An error reply continues with a message. Numbers are little-endian.

On one host, the first request of a session is ``OPEN``, whose reply passes the
descriptor of the shared memory over the session's socket. The memory has no name in a
file system, and is freed when the last process that maps it ends. The server creates
it. ``core/inference/row_session.cc`` implements the server's side of the messages.
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
"""Maximum number of rows in a session."""

# The byte that core/inference/row_session.cc sends with the descriptor.
_BELL = b"m"


class Stream(NamedTuple):
    """The stream of a session, and whether its rows are in shared memory."""

    connection: socket.socket
    """The connection to the other process."""
    is_shared: bool
    """Whether both processes share the memory of the rows. The actor decides and
    notifies the server, because only the actor knows which kind of address it used."""


class Request(NamedTuple):
    """The head of a request."""

    kind: int
    """``OPEN`` or ``EVALUATE``."""
    wants_state: int
    """1 if the reply must contain the state, else 0."""
    number: int
    """Sequence number of the request in its session; the reply has the same number."""


class Reply(NamedTuple):
    """The head of a reply."""

    kind: int
    """``ANSWERS`` or ``ERROR``."""
    num_bytes: int
    """Length of an error message, else 0."""
    number: int
    """Sequence number of the request."""
    version: int
    """Version of the model that evaluated the rows: its learner steps."""
    model: int
    """Number of the model that evaluated the rows."""


def request_parts(arrays: RowArrays) -> Iterator[memoryview]:
    """Yields the bytes that follow a request on a stream."""
    for array in (arrays.is_first, *arrays.inputs.values()):
        yield array.data.cast("B")


def reply_parts(arrays: RowArrays, wants_state: bool) -> Iterator[memoryview]:
    """Yields the bytes that follow a reply on a stream."""
    told = arrays.state if wants_state else {}
    for array in (*arrays.outputs.values(), *told.values()):
        yield array.data.cast("B")


def make_shared(num_bytes: int) -> int:
    """Returns a descriptor of new shared memory, zeroed and fully allocated.

    On Linux the memory is sealed, so that no process can shrink it.

    Raises:
        RunError: There is not enough memory.
    """
    descriptor = _unnamed()
    try:
        os.truncate(descriptor, num_bytes)
        if hasattr(os, "posix_fallocate"):
            # Otherwise a write to a page that cannot be allocated kills the process.
            os.posix_fallocate(descriptor, 0, num_bytes)
        if hasattr(fcntl, "F_ADD_SEALS"):
            with contextlib.suppress(OSError):  # fails for a regular file
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
    """Receives the descriptor of shared memory, and maps the memory.

    Args:
        connection: The connection on which the descriptor arrives.
        num_bytes: Minimum size of the memory.

    Raises:
        OSError: The server is gone, or did not pass memory of this size.
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
