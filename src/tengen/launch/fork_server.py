"""The process that actors of one host are forked from, after it imported their modules.

    python -P -m tengen.launch.fork_server RUN DESCRIPTOR

A process that imports what an actor imports takes half a second of a core and some 30
MB for itself alone. Its forks begin within milliseconds and share these pages with it
until they write to them. RUN tells a reader of ``ps`` whose processes they are; each is
named as its role and index (``actor-17``).

It has one thread whenever it forks, so that no lock of another thread is copied while
it is held: it imports no environment, whose package may start threads, and OpenBLAS is
told to start none. With more threads it ends at once, and the runner starts actors as
processes of their own.

DESCRIPTOR is a socket to the runner. A request is the words of ``tengen.launch.child``
as JSON with three descriptors: its standard input, its standard output, and a pipe that
gets its exit status. The answer is its number with a descriptor of the process, by
which the runner can end it though it is no child of the runner's, or ``{"error": WHY}``
where this system lets no other process begin.
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
"""What the pipe gets: an exit code, or less than 0 the signal that ended a process."""

MOST_BYTES = 1 << 16
"""A request or an answer has fewer."""

# What every actor needs of tengen and of its packages, whatever its environment is.
_PRELOADED = (
    "tengen.roles.actor.role",
    "tengen.roles.actor.remote_link",
    "numpy.random",
    "gymnasium.vector",
)
_NUM_DESCRIPTORS = 3
# The length that Linux gives a process's name.
_MOST_NAME = 15


def main(argv: list[str]) -> int:
    """Serves until the runner's end is closed; in a fork, is that child to its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for name in _PRELOADED:
        # A run whose environment needs one that is missing says so in its own words.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # What reading a config imports: every kind of agent and network.
    with contextlib.suppress(TengenError):
        read_config(RunDirectory.open(argv[0]))
    num_threads = len(os.listdir("/proc/self/task"))
    if num_threads > 1:
        print(f"fork server: has {num_threads} threads, so forks none", file=sys.stderr)
        return 1
    # The collector would write to the pages of every object, and have a copy of each.
    gc.collect()
    gc.freeze()
    words = _serve(socket.socket(fileno=int(argv[1])))
    return 0 if words is None else child.main(words)


def _serve(control: socket.socket) -> list[str] | None:
    """Returns what a fork is to be; None in the server, once the runner has gone."""
    waiter = select.poll()
    waiter.register(control, select.POLLIN)
    # By the descriptor of a process: its number, and the pipe for its status.
    living: dict[int, tuple[int, int]] = {}
    while True:
        for ready, _ in waiter.poll():
            if ready != control.fileno():
                waiter.unregister(ready)
                _bury(ready, *living.pop(ready))
                continue
            request, passed, _, _ = socket.recv_fds(
                control, MOST_BYTES, _NUM_DESCRIPTORS
            )
            if not request:
                return None
            stdin, stdout, status = passed
            try:
                number = os.fork()
            except OSError as error:
                _answer(control, {"error": error.strerror})
                for descriptor in passed:
                    os.close(descriptor)
                continue
            words: list[str] = json.loads(request)
            if number == 0:
                control.close()
                for process, (_, others) in living.items():
                    os.close(process)
                    os.close(others)
                os.close(status)
                _become(words, stdin, stdout)
                return words
            os.close(stdin)
            os.close(stdout)
            process = os.pidfd_open(number)
            living[process] = number, status
            waiter.register(process, select.POLLIN)
            _answer(control, {"pid": number}, process)


def _answer(
    control: socket.socket, message: dict[str, object], *descriptors: int
) -> None:
    # Where the runner has gone, the next request is its end.
    with contextlib.suppress(OSError):
        socket.send_fds(control, [json.dumps(message).encode()], descriptors)


def _bury(process: int, number: int, status: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    os.close(process)
    with contextlib.suppress(BrokenPipeError):
        os.write(status, STATUS.pack(code))
    os.close(status)


def _become(words: list[str], stdin: int, stdout: int) -> None:
    """Makes a fork what a process that was started anew would be."""
    for passed, own in ((stdin, 0), (stdout, 1)):
        os.dup2(passed, own)
        os.close(passed)
    # An environment may draw by numpy's own stream; each process begins another. Python
    # does so for ``random`` by itself.
    np.random.seed()
    args = child.arguments(words)
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write(f"{args.roles[0]}-{args.index}"[:_MOST_NAME])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
