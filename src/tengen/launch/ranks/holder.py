"""A rank of ``mpirun`` that is not the first: it holds the processes of its roles.

The first rank, the runner, tells the holder which processes to start. Messages between
the runner and these processes pass through the holder. From the runner:

    {"begin": ID, "words": [...],      starts Python with these arguments, which sees
     "devices": [...] | null}          these GPUs alone; null: those of the rank
    {"tell": ID, "line": TEXT}         a line for the process
    {"kill": ID}
    {"end": ID, "timeout_s": S}        closes its input; killed after S seconds
    {"look": FILE, "call": CALL}       does this host see the file of this call?
    {"ping": N}
    {"over": true}                     the rank ends

To the runner:

    {"hello": {...}}                   ``RankInfo``, once
    {"line": ID, "text": TEXT}         a line of the process
    {"closed": ID}                     its output is at its end
    {"ended": ID, "how": TEXT}         as ``Child.end``
    {"looked": CALL, "found": BOOL}
    {"pong": N}

The processes are in sessions of their own: ``mpirun`` kills a rank together with its
group a second after a signal, and a role needs longer to save. It ends by itself once
its input is closed, which the end of the rank does.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tengen.errors import refusal
from tengen.launch.process import ended
from tengen.launch.ranks.devices import environment_with
from tengen.observe import read_hosts
from tengen.run import RunDirectory, close_owned, own_files

__all__ = ["Holder"]

_LOOK_S = 10.0
"""Seconds for a file of another host to be seen: a network filesystem may be late."""
_PAUSE_S = 0.25


class Holder:
    """Holds the processes of one rank.

    Args:
        send: Sends a message to the runner. Does not block; any thread.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._held: dict[int, _Held] = {}
        self._is_over = threading.Event()
        self._why = ""

    def take(self, message: dict[str, Any]) -> None:
        """Does what the runner says. Does not block; one thread."""
        if "begin" in message:
            self._begin(message["begin"], message["words"], message["devices"])
        elif "tell" in message and (held := self._held.get(message["tell"])):
            held.write(message["line"])
        elif "kill" in message and (held := self._held.get(message["kill"])):
            held.kill()
        elif "end" in message and (held := self._held.pop(message["end"], None)):
            held.end_soon(message["timeout_s"])
        elif "look" in message:
            looking = threading.Thread(target=self._look, args=(message,), daemon=True)
            looking.start()
        elif "ping" in message:
            self._send({"pong": message["ping"]})
        elif "over" in message:
            self._is_over.set()

    def lose(self, why: str) -> None:
        """Makes ``wait`` return: the runner is lost. Does not block; any thread."""
        self._why = why
        self._is_over.set()

    def wait(self) -> str:
        """Blocks until the rank is to end and its processes have ended.

        Returns:
            Why the rank ends, if not at the runner's request; else "".
        """
        self._is_over.wait()
        # Without its runner a process saves and ends, or ends itself.
        ending = [held.end_soon(None) for held in self._held.values()]
        for thread in ending:
            thread.join()
        return self._why

    def _begin(self, number: int, words: list[str], devices: list[str] | None) -> None:
        try:
            self._held[number] = _Held(number, words, devices, self._send)
        except OSError as error:
            known = refusal(error) or error
            text = json.dumps({"error": str(known), "exit_code": 1})
            self._send({"line": number, "text": text})
            self._send({"closed": number})
            self._send({"ended": number, "how": "a start that failed"})

    def _look(self, message: dict[str, Any]) -> None:
        run = RunDirectory(Path(message["look"]))
        pause = threading.Event()
        found = False
        for _ in range(round(_LOOK_S / _PAUSE_S)):
            with contextlib.suppress(OSError):
                hosts = read_hosts(run)
                found = hosts is not None and hosts.call == message["call"]
            if found:
                break
            pause.wait(_PAUSE_S)
        self._send({"looked": message["call"], "found": found})


class _Held:
    """A role's process, whose lines go to the runner."""

    def __init__(
        self,
        number: int,
        words: list[str],
        devices: list[str] | None,
        send: Callable[[dict[str, Any]], None],
    ) -> None:
        self._number = number
        self._send = send
        self._process = subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=environment_with(devices),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        own_files(self._process.stdin, self._process.stdout)
        threading.Thread(target=self._read, daemon=True).start()

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        # The process is gone already; the reader notices the end.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()

    def end_soon(self, timeout_s: float | None) -> threading.Thread:
        """Begins to end the process; returns the thread that waits for it."""
        thread = threading.Thread(target=self._end, args=(timeout_s,), daemon=True)
        thread.start()
        return thread

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                self._send({"line": self._number, "text": line.decode()})
        close_owned(self._process.stdout)
        self._send({"closed": self._number})

    def _end(self, timeout_s: float | None) -> None:
        how = ended(self._process, timeout_s)
        self._send({"ended": self._number, "how": how})
