"""The messages between a runner and its role processes: one line of JSON each.

A child begins with ``Begun``. The runner sends ``Turn`` or ``Stop``. During a turn the
child sends ``Progress`` and ``Alive``, and at its end ``Report`` or ``Failed``; a child
that ends itself, to be started again, sends ``Dying`` first. A child that leaves sends
``Saved``, and only then lets foreign code close, as that of an environment. Before
``Saved`` no deadline ends the child; after it nobody asks how the child ends.

When one side closes the connection, the other one ends too, so that no process is left
over: a child whose runner is gone stops its turn, saves and ends, and is ended by
``_core.Lifeline`` if it does not.
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
"""The most bytes of a message."""


@dataclass(frozen=True)
class Turn:
    """To the child: take a turn."""

    role: str
    """One of the roles of the process."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """See ``RoleHost.turn``."""


@dataclass(frozen=True)
class Stop:
    """To the child: end the turn, save and leave."""


@dataclass(frozen=True)
class Begun:
    """The process is there and takes turns."""

    process: int = 0
    """Its number on its host."""
    host: str = ""
    """Its host's name."""
    place: str = ""
    """Where a cluster has put it, in the cluster's words."""


@dataclass(frozen=True)
class Progress:
    """What a turn has done so far.

    ``cpu_s`` has the CPU-seconds of the child and its descendants since the message
    before, ``starting`` what the child does before a turn's own work.
    """

    report: dict[str, Any]


@dataclass(frozen=True)
class Alive:
    """A promise: the next sign of life, or the turn's end, comes in time.

    If it does not, the runner kills the child.
    """

    within_s: float
    otherwise: str
    """The reason to report if the child is killed."""


@dataclass(frozen=True)
class Report:
    """The end of a turn."""

    report: dict[str, Any] | None
    """What the turn did; None if there was nothing to do. See ``Progress``."""
    is_saved: bool = True
    """Whether all that the process learned is on the disk."""


@dataclass(frozen=True)
class Failed:
    """The role or the process failed; a new process would fail too."""

    error: str
    exit_code: int


@dataclass(frozen=True)
class Dying:
    """The process ends itself, and is to be started again."""

    reason: str


@dataclass(frozen=True)
class Saved:
    """A process that leaves saves nothing more."""

    is_saved: bool
    """Whether all that it learned is on the disk; False after an error."""


@dataclass(frozen=True)
class Note:
    """What a launcher and a process that starts others for it tell each other."""

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
    """Returns the message of some bytes.

    Raises:
        RunError: They are none.
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
