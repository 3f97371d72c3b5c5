"""Memory that an actor and central inference share, which no file names.

It ends with the last process that has it, however that one ended. The server makes it,
and the core passes its descriptor over the session's socket.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import socket
import tempfile

from tengen.errors import RunError, os_reason

__all__ = ["make_shared", "receive_shared"]

# As core/inference/row_session.cc sends it.
_BELL = b"m"


def make_shared(num_bytes: int) -> int:
    """Returns a descriptor of new memory of zeros, all of it there.

    Nobody who gets the descriptor can cut the memory short where Linux seals it.

    Raises:
        RunError: There is no room.
    """
    descriptor = _unnamed()
    try:
        os.truncate(descriptor, num_bytes)
        if hasattr(os, "posix_fallocate"):
            # Or a write to a page for which there is no room would end the process.
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
    """Maps the memory whose descriptor comes next.

    Args:
        connection: Where from.
        num_bytes: Of the memory.

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
