"""The fork server, which imports the actors' modules and forks the actors of one host.

    python -P -m tengen.launch.fork_server RUN DESCRIPTOR

The imports of an actor take half a second of CPU time and about 30 MB of memory. Forks
start within milliseconds and share this memory until they write to it. In ``ps`` the
argument RUN shows the run of a process, and each fork has the name of its role and
index (``actor-17``).

The server must have a single thread when it forks, because a fork would never release a
lock held by another thread. So the server imports no environment package, which might
start threads, and OpenBLAS is configured to start none. If the server has more threads,
it exits immediately, and the runner starts actors as ordinary processes.

DESCRIPTOR is a socket to the runner. A request is JSON with the arguments of
``tengen.launch.child`` and additional environment variables, and the descriptor of a
pipe to which the exit status is written. The response has the process ID and a process
descriptor, with which the runner can kill a process that is not its child. If the
system allows no further process, the response is ``{"error": WHY}``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys

import numpy as np

from tengen.errors import TengenError
from tengen.launch import child
from tengen.roles import read_config
from tengen.run import RunDirectory

STATUS = struct.Struct("<i")
"""Format of the exit status in the pipe: the exit code, or the negated number of the
signal that ended the process."""

MOST_BYTES = 1 << 16
"""The maximum size of a request or response in bytes."""

# Modules that every actor needs, independent of its environment.
_PRELOADED = (
    "tengen.roles.actor.role",
    "tengen.roles.actor.remote_link",
    "numpy.random",
    "gymnasium.vector",
)
# The maximum length of a process name on Linux.
_MOST_NAME = 15


def main(argv: list[str]) -> int:
    """Forks actors until the runner closes the socket. In a fork, runs the actor."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for name in _PRELOADED:
        # Ignore a missing module, because the actor that needs it reports the error.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Read the config, because that imports the modules of all agents and networks.
    with contextlib.suppress(TengenError):
        read_config(RunDirectory.open(argv[0]))
    num_threads = len(os.listdir("/proc/self/task"))
    if num_threads > 1:
        print(f"fork server: has {num_threads} threads, so forks none", file=sys.stderr)
        return 1
    # Without the freeze, the garbage collector of each fork would write to all objects,
    # and so copy their memory pages.
    gc.collect()
    gc.freeze()
    words = _serve(socket.socket(fileno=int(argv[1])))
    return 0 if words is None else child.main(words)


def _serve(control: socket.socket) -> list[str] | None:
    """Handles requests. Returns None in the server, and a command line in each fork."""
    waiter = select.poll()
    waiter.register(control, select.POLLIN)
    # Maps a process descriptor to the process ID and the pipe for the exit status.
    living: dict[int, tuple[int, int]] = {}
    while True:
        for ready, _ in waiter.poll():
            if ready != control.fileno():
                waiter.unregister(ready)
                _bury(ready, *living.pop(ready))
                continue
            request, passed, _, _ = socket.recv_fds(control, MOST_BYTES, 1)
            if not request:
                return None
            (status,) = passed
            try:
                number = os.fork()
            except OSError as error:
                _answer(control, {"error": error.strerror})
                os.close(status)
                continue
            words: list[str]
            words, environment = json.loads(request)
            if number == 0:
                control.close()
                for process, (_, others) in living.items():
                    os.close(process)
                    os.close(others)
                os.close(status)
                os.environ.update(environment)
                _become(words)
                return words
            process = os.pidfd_open(number)
            living[process] = number, status
            waiter.register(process, select.POLLIN)
            _answer(control, {"pid": number}, process)


def _answer(
    control: socket.socket, message: dict[str, object], *descriptors: int
) -> None:
    # Ignore an error, because the next read detects that the runner has exited.
    with contextlib.suppress(OSError):
        socket.send_fds(control, [json.dumps(message).encode()], descriptors)


def _bury(process: int, number: int, status: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    os.close(process)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, STATUS.pack(code))
    os.close(status)


def _become(words: list[str]) -> None:
    """Gives a fork its own random state and process name."""
    # Reseed numpy's global generator, which an environment may use. Python itself
    # reseeds ``random``.
    np.random.seed()
    args = child.arguments(words)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write(f"{args.roles[0]}-{args.index}"[:_MOST_NAME])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
