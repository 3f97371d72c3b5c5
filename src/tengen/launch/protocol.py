"""The protocol between a runner and its role processes: JSON lines over pipes.

To the child: ``{"turn": ROLE, "core_minutes": MINUTES, "core_minutes_in_all": MINUTES |
null, "remaining": SHARE | null, "asked": SHARE | null, "sealed": N, "follow_models":
BOOL, "frames_left": N | null, "opponent": PLAYER, "generation_s": S | null,
"is_changed": BOOL}`` or ``{"stop": true}``. From the child, during a turn
``{"progress": {...}}`` and at its end ``{"report": {...} | null, "saved": BOOL}`` or
``{"error": MESSAGE, "exit_code": N}``; before it ends itself, to be started again,
``{"dying": REASON}``. Progress and report have ``cpu_s``, the CPU-seconds of the child
and its descendants since the message before. ``{"progress": {"starting": WHAT}}`` says
what the child does before a turn's own work. ``{"alive": {"within_s": S, "otherwise":
REASON}}`` during a turn makes the runner kill the child unless the next such message or
the turn's end comes within S seconds.

``saved`` in a report says whether all that the process learned is on the disk. A child
that ends says ``{"saved": true}`` once that is so, or ``{"saved": false}`` after an
error, and only then lets foreign code close, as that of an environment. Before this
message no deadline ends the child; after it nobody asks how the child ends.

When one side closes its end, the other one ends too, so that no process is left over: a
child whose runner is gone stops its turn, saves and ends, and is ended by
``_core.Lifeline`` if it does not.
"""

from __future__ import annotations

import json
from io import RawIOBase
from typing import IO, Any

__all__ = ["log_name", "read_message", "write_message"]


def log_name(roles: tuple[str, ...], index: int) -> str:
    """Returns the name of the file in ``RUN/logs`` that a process prints to.

    Args:
        roles: What it hosts.
        index: Which of several with these roles, from 0.
    """
    return f"{roles[0]}-{index}.log" if index else f"{roles[0]}.log"


def write_message(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Writes one message and flushes.

    Raises:
        BrokenPipeError: The other side is gone.
    """
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def read_message(stream: IO[bytes] | RawIOBase) -> dict[str, Any] | None:
    """Returns the next message, or None when the other side is gone. Blocks."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    message: dict[str, Any] = json.loads(line)
    return message
