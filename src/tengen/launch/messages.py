"""The messages between a runner and its role processes, encoded as lines of JSON.

A child first sends ``Begun``. The runner sends ``Turn`` or ``Stop``. During a turn the
child sends ``Progress`` and ``Alive``, and at the end ``Report`` or ``Failed``. A child
that ends itself in order to be restarted sends ``Dying``. A child that exits sends
``Saved`` before it closes external code, such as an environment. Before ``Saved`` the
child has no deadline. After ``Saved`` its exit status is ignored.

When one side closes the connection, the other side ends, too, so that no orphan process
remains. A child whose runner is gone stops its turn, saves and exits. If the child does
not exit in time, ``_core.Lifeline`` ends it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tengen.errors import RunError

MOST_BYTES = 4 << 20
"""The maximum size of an encoded message in bytes."""


@dataclass(frozen=True)
class Turn:
    """Requests a turn of one role from the child."""

    role: str
    """The name of the role, which the process must host."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The argument ``details`` of ``RoleHost.turn``."""


@dataclass(frozen=True)
class Stop:
    """Tells the child to end its turn, save and exit."""


@dataclass(frozen=True)
class Begun:
    """The first message of a child, which is ready for turns."""

    process: int = 0
    """The child's process ID."""
    host: str = ""
    """The name of the child's host."""
    place: str = ""
    """The cluster's description of the child's location."""


@dataclass(frozen=True)
class Progress:
    """A progress report that a child sends during a turn.

    ``cpu_s`` has the CPU-seconds of the child and its descendants since the previous
    message. ``starting`` describes work that precedes the turn's own work.
    """

    report: dict[str, Any]


@dataclass(frozen=True)
class Alive:
    """A heartbeat. The runner kills a child whose next heartbeat is late."""

    within_s: float
    """Seconds in which the next heartbeat, or the end of the turn, must arrive."""
    otherwise: str
    """The reason to report if the child is killed."""


@dataclass(frozen=True)
class Report:
    """Reports that a turn has ended."""

    report: dict[str, Any] | None
    """The turn's report, with ``cpu_s`` as in ``Progress``; None if it did nothing."""
    is_saved: bool = True
    """Whether the child has no unsaved training."""


@dataclass(frozen=True)
class Failed:
    """Reports an error of a child that a restart would not fix."""

    error: str
    exit_code: int


@dataclass(frozen=True)
class Dying:
    """Reports that a child ends itself and must be restarted."""

    reason: str


@dataclass(frozen=True)
class Saved:
    """Reports that an exiting child has finished saving."""

    is_saved: bool
    """Whether all state was saved; False after an error."""


@dataclass(frozen=True)
class Note:
    """A message between the MPI launcher's runner and another rank."""

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
    """Encodes a message as JSON without a newline."""
    fields = {
        one.name: getattr(message, one.name) for one in dataclasses.fields(message)
    }
    return json.dumps({"kind": type(message).__name__.lower(), **fields}).encode()


def decode(data: bytes) -> Message:
    """Decodes a message from its JSON.

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
            f"message ({data[:80]!r}) is not known; install the same tengen version on "
            "all hosts"
        ) from None
    return message
