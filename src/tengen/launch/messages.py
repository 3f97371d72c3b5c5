"""The messages between a runner and its role processes, encoded as lines of JSON.

A child first sends ``Begun``. The runner sends ``Turn`` or ``Stop``. During a turn the
child sends ``Progress`` and ``Alive``, and at the end ``Report`` or ``Failed``. A child
that ends itself in order to be restarted sends ``Dying``. A child that leaves sends
``Saved`` before it closes external code, such as that of an environment. Before
``Saved`` the child has no deadline; after it, the child's exit status is ignored.

When one side closes the connection, the other side ends too, so that no orphan process
remains. A child whose runner is gone stops its turn, saves and exits; otherwise
``_core.Lifeline`` ends it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tengen.errors import RunError

__all__ = [
    "MOST_BYTES",
    "Alive",
    "Begun",
    "Dying",
    "Failed",
    "Message",
    "Note",
    "Progress",
    "Report",
    "Saved",
    "Stop",
    "Turn",
    "decode",
    "encode",
]

MOST_BYTES = 4 << 20
"""The maximum size of a message in bytes."""


@dataclass(frozen=True)
class Turn:
    """Requests a turn from the child."""

    role: str
    """One of the roles of the process."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """See ``RoleHost.turn``."""


@dataclass(frozen=True)
class Stop:
    """Tells the child to end its turn, save and exit."""


@dataclass(frozen=True)
class Begun:
    """The first message of a process, which is now ready for turns."""

    process: int = 0
    """The process ID."""
    host: str = ""
    """The host name."""
    place: str = ""
    """The cluster's description of the process's location."""


@dataclass(frozen=True)
class Progress:
    """A progress report during a turn.

    ``cpu_s`` has the CPU-seconds of the child and its descendants since the previous
    message. ``starting`` describes work that precedes the turn's own work.
    """

    report: dict[str, Any]


@dataclass(frozen=True)
class Alive:
    """A heartbeat; the runner kills a child whose next message is late."""

    within_s: float
    """Seconds in which the next heartbeat, or the end of the turn, must arrive."""
    otherwise: str
    """The reason to report if the child is killed."""


@dataclass(frozen=True)
class Report:
    """The end of a turn."""

    report: dict[str, Any] | None
    """The turn's report; None if there was nothing to do. See ``Progress``."""
    is_saved: bool = True
    """Whether the process has no unsaved training."""


@dataclass(frozen=True)
class Failed:
    """The role or process failed with an error that a restart would not fix."""

    error: str
    exit_code: int


@dataclass(frozen=True)
class Dying:
    """The process ends itself and requests a restart."""

    reason: str


@dataclass(frozen=True)
class Saved:
    """The process is exiting and has finished saving."""

    is_saved: bool
    """Whether everything was saved; False after an error."""


@dataclass(frozen=True)
class Note:
    """A message between the MPI launcher and a rank that starts processes for it."""

    details: dict[str, Any]


Message = (
    Turn | Stop | Begun | Progress | Alive | Report | Failed | Dying | Saved | Note
)

_KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind
    for kind in (Turn, Stop, Begun, Progress, Alive, Report, Failed, Dying, Saved, Note)
}
_OBJECTS = {"details": (dict,), "report": (dict, type(None))}
_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}


def encode(message: Message) -> bytes:
    """Returns a message as JSON without a newline."""
    fields = {
        one.name: getattr(message, one.name) for one in dataclasses.fields(message)
    }
    return json.dumps({"kind": type(message).__name__.lower(), **fields}).encode()


def decode(data: bytes) -> Message:
    """Decodes a message.

    Raises:
        RunError: ``data`` is not a valid message.
    """
    try:
        found = json.loads(data)
        kind = _KINDS[found.pop("kind")]
        for one in dataclasses.fields(kind):
            wanted = _OBJECTS.get(one.name) or _SCALARS[str(one.type)]
            if one.name in found and type(found[one.name]) not in wanted:
                raise TypeError(one.name)
        message: Message = kind(**found)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise RunError(
            f"message ({data[:80]!r}) must be one of a runner or of a role process; "
            f"install the same tengen on all hosts"
        ) from None
    return message
