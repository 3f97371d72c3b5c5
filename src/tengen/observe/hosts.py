"""On which hosts the processes of a call are, if it has several hosts.

``RUN/events/hosts-N.jsonl`` is the file of one call. First it has ``placed``, the
table, then what became of the places; if a cluster itself places processes, one event
for each process as it begins. Only ``tengen train`` writes the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tengen.observe.events import EventWriter, read_events
from tengen.run import RunDirectory

__all__ = ["HOSTS", "Hosts", "HostsLog", "Place", "read_hosts"]

HOSTS = "hosts"
"""The events of which the files are, as of a role."""


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
    places: tuple[Place, ...] = ()
    """Every process."""
    lost: tuple[str, ...] = ()
    """Places that were lost since, and how, one line each."""

    @staticmethod
    def after(before: Hosts | None, event: Mapping[str, Any]) -> Hosts | None:
        """Returns what is known after one more event of a call's file."""
        if event["kind"] == "placed":
            rows = tuple(_place(row) for row in event["places"])
            return Hosts(call=event["call"], process=event["process"], places=rows)
        if before is None:
            return None
        if event["kind"] == "moved":
            named = {place.name: place for place in before.places}
            moved = {**named, event["name"]: _place(event)}
            return replace(before, places=tuple(moved.values()))
        if event["kind"] == "lost":
            return replace(before, lost=(*before.lost, str(event["what"])))
        return before


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
        self._events = EventWriter(run, HOSTS, run.new_incarnation(HOSTS))
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
    """Returns what the newest call says that has such a file; None if none has one."""
    numbers = run.incarnations(HOSTS)
    found = None
    for event in read_events(run.events_path(HOSTS, numbers[-1])) if numbers else ():
        found = Hosts.after(found, event)
    return found


def _place(row: Mapping[str, Any]) -> Place:
    known = {field.name: row[field.name] for field in fields(Place)}
    return Place(**{**known, "roles": tuple(row["roles"])})
