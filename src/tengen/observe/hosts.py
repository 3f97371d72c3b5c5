"""On which hosts the processes of a call are, if it has several hosts.

``RUN/events/hosts-N.jsonl`` is the file of one call. First it has ``placed``, the
table, then what became of the places; if a cluster itself places processes, one event
for each process as it begins. Only ``tengen train`` writes the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from tengen.observe.events import EventWriter, read_events
from tengen.run import RunDirectory

__all__ = ["Hosts", "HostsLog", "Place", "read_hosts"]

_ROLE = "hosts"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A process of a run and where it is."""

    place: str
    """The launcher's name of the place, such as ``rank 1``."""
    host: str
    """The name of its host."""
    name: str
    """The process, such as ``selfplay-0``."""
    roles: tuple[str, ...]
    """The roles that it hosts."""
    num_threads: int
    """Threads that each of its roles may use."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """What the file of a call says."""

    call: str
    """The id of the call, which no other call has."""
    process: str
    """The process of ``tengen train``, as ``lock_holder`` names it."""
    places: tuple[Place, ...]
    """Every process."""
    lost: tuple[str, ...]
    """Places that were lost since, and how, one line each."""


class HostsLog:
    """Writes the file of one call. Used by one thread at a time.

    Args:
        run: The run.
        call: The id of the call, which no other call has.
        process: The process of ``tengen train``, as ``lock_holder`` names it.
        places: Every process.

    Raises:
        RunError: The disk refuses.
    """

    def __init__(
        self, run: RunDirectory, call: str, process: str, places: Sequence[Place]
    ) -> None:
        self._events = EventWriter(run, _ROLE, run.new_incarnation(_ROLE))
        rows = [asdict(place) for place in places]
        self._events.write("placed", call=call, process=process, places=rows)

    def moved(self, place: Place) -> None:
        """Keeps that a process began somewhere, perhaps elsewhere than before.

        Raises:
            RunError: The disk refuses.
        """
        self._events.write("moved", **asdict(place))

    def lost(self, what: str) -> None:
        """Keeps that a place was lost, a line for people.

        Raises:
            RunError: The disk refuses.
        """
        self._events.write("lost", what=what)

    def close(self) -> None:
        """Closes the file."""
        self._events.close()


def read_hosts(run: RunDirectory) -> Hosts | None:
    """Returns what the newest call says that has such a file; None where none has."""
    numbers = run.incarnations(_ROLE)
    if not numbers:
        return None
    found = list(read_events(run.events_path(_ROLE, numbers[-1])))
    if not found or found[0]["kind"] != "placed":
        return None
    first = found[0]
    lost = [str(event["what"]) for event in found[1:] if event["kind"] == "lost"]
    places = {row["name"]: _place(row) for row in first["places"]}
    for event in found[1:]:
        if event["kind"] == "moved":
            places[event["name"]] = _place(event)
    return Hosts(
        call=first["call"],
        process=first["process"],
        places=tuple(places.values()),
        lost=tuple(lost),
    )


def _place(row: dict[str, Any]) -> Place:
    known = {field.name: row[field.name] for field in fields(Place)}
    return Place(**{**known, "roles": tuple(row["roles"])})
