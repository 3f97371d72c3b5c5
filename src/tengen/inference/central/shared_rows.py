"""Memory that an actor and central inference share, without a name in a file system.

The memory is freed when the last process that has it ends, in whatever way. The server
makes it, and the core passes its descriptor over the session's socket.
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

# The byte that core/inference/row_session.cc sends with the descriptor.
_BELL = b"m"


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
