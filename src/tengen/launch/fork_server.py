"""The process from which the actors of one host are forked, with their imports done.

    python -P -m tengen.launch.fork_server RUN DESCRIPTOR

A process that imports what an actor needs takes half a second of a core and some 30 MB
of memory of its own. Forks begin within milliseconds and share these pages until they
write to them. RUN shows in ``ps`` to which run the processes belong; each is named by
its role and index (``actor-17``).

The process has one thread whenever it forks, so that no lock that another thread holds
is copied. So it imports no environment, whose package may start threads, and tells
OpenBLAS to start none. If it has more threads it ends at once, and the runner starts
actors as ordinary processes.

DESCRIPTOR is a socket to the runner. A request is the words of ``tengen.launch.child``
and what to add to its environment, as JSON, with the descriptor of a pipe that gets its
exit status. The answer is the process's number with a descriptor of the process, by
which the runner can kill it though it is not the runner's child; or ``{"error": WHY}``
if the system allows no further process.
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

__all__ = ["MOST_BYTES", "STATUS", "main"]

STATUS = struct.Struct("<i")
"""Format of the exit status in the pipe: an exit code, or below 0 the signal that ended
the process."""

MOST_BYTES = 1 << 16
"""More bytes than a request or an answer has."""

# Modules that every actor needs, whatever its environment is.
_PRELOADED = (
    "tengen.roles.actor.role",
    "tengen.roles.actor.remote_link",
    "numpy.random",
    "gymnasium.vector",
)
# The length that Linux gives a process's name.
_MOST_NAME = 15


def main(argv: list[str]) -> int:
    """Serves until the runner closes its end; in a fork, runs the child to its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for name in _PRELOADED:
        # If an environment needs a missing module, its actor reports that itself.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Reading a config imports every kind of agent and network.
    with contextlib.suppress(TengenError):
        read_config(RunDirectory.open(argv[0]))
    num_threads = len(os.listdir("/proc/self/task"))
    if num_threads > 1:
        print(f"fork server: has {num_threads} threads, so forks none", file=sys.stderr)
        return 1
    # Else the collector would write to every object's page, and each fork would copy
    # it.
    gc.collect()
    gc.freeze()
    words = _serve(socket.socket(fileno=int(argv[1])))
    return 0 if words is None else child.main(words)


def _serve(control: socket.socket) -> list[str] | None:
    """Returns a fork's command line; None in the server, once the runner has gone."""
    waiter = select.poll()
    waiter.register(control, select.POLLIN)
    # By a process's descriptor its number, and the pipe for its status.
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
    # If the runner has gone, the next read reports the end.
    with contextlib.suppress(OSError):
        socket.send_fds(control, [json.dumps(message).encode()], descriptors)


def _bury(process: int, number: int, status: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    os.close(process)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, STATUS.pack(code))
    os.close(status)


def _become(words: list[str]) -> None:
    """Makes a fork equal to a process that was started anew."""
    # An environment may draw from numpy's global stream, so each process needs its own
    # seed. Python does this for ``random`` by itself.
    np.random.seed()
    args = child.arguments(words)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write(f"{args.roles[0]}-{args.index}"[:_MOST_NAME])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
