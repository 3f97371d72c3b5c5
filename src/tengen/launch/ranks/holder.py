"""A rank of ``mpirun`` that is not the first: it starts the processes of its roles.

The rank joins the runner as a role process does, and is told by notes what to start:

    {"begin": ID, "words": [...],      starts Python with these arguments, and adds to
     "environment": {...},             its environment; it sees these GPUs alone, null:
     "devices": [...] | null}          those of the rank
    {"kill": ID}
    {"look": FILE, "call": CALL}       does this host see the file of this call?
    {"over": true}                     the rank ends

It answers with ``{"ended": ID, "how": TEXT}``, as ``Poll.end``, and ``{"looked": CALL,
"found": BOOL}``.

The processes are in sessions of their own: ``mpirun`` kills a rank together with its
group a second after a signal, and a role needs longer to save. A process ends by itself
once the runner closes its connection, which the end of the runner does.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import Any

from tengen.errors import RunError, refusal
from tengen.launch.launcher import Command, Handle, Placed
from tengen.launch.local import LocalLauncher
from tengen.launch.messages import Note
from tengen.launch.wire import Stream
from tengen.launch.workers import Worker
from tengen.observe import read_hosts
from tengen.run import RunDirectory

__all__ = ["Holder"]

_LOOK_S = 10.0
"""Seconds for a file of another host to be seen: a network filesystem may be late."""
_PAUSE_S = 0.25
_POLL_S = 0.05


class Holder:
    """Starts the processes of one rank.

    Args:
        stream: To the runner.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._launcher = LocalLauncher(own_session=True)
        self._held: dict[int, Handle] = {}
        self._watching: list[threading.Thread] = []

    def run(self) -> bool:
        """Does what the runner says until the rank is to end. Blocks.

        Returns:
            Whether the runner said so; else it is lost. In both cases the processes
            have ended: without its runner a process saves and ends, or ends itself.
        """
        is_over = False
        with contextlib.suppress(RunError):  # somebody else speaks: as an end
            while not is_over and (message := self._stream.receive()) is not None:
                if isinstance(message, Note):
                    is_over = "over" in message.details
                    self._take(message.details)
        for thread in self._watching:
            thread.join()
        return is_over

    def _take(self, message: dict[str, Any]) -> None:
        if "begin" in message:
            self._begin(message)
        elif "kill" in message and (held := self._held.get(message["kill"])):
            held.kill()
        elif "look" in message:
            looking = threading.Thread(target=self._look, args=(message,), daemon=True)
            looking.start()

    def _send(self, details: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the runner is gone
            self._stream.send(Note(details))

    def _begin(self, message: dict[str, Any]) -> None:
        number, devices = message["begin"], message["devices"]
        command = Command(words=message["words"], environment=message["environment"])
        placed = Placed(
            worker=Worker(name="", roles=()),
            devices=None if devices is None else tuple(devices),
        )
        try:
            held = self._launcher.start(command, placed)
        except OSError as error:
            how = f"a start that failed, {refusal(error) or error}"
            self._send({"ended": number, "how": how})
            return
        self._held[number] = held
        watching = threading.Thread(target=self._watch, args=(number,), daemon=True)
        self._watching = [one for one in self._watching if one.is_alive()] + [watching]
        watching.start()

    def _watch(self, number: int) -> None:
        while not (how := self._held[number].poll().end):
            time.sleep(_POLL_S)
        del self._held[number]
        self._send({"ended": number, "how": how})

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
