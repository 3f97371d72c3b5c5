"""Records the hosts of a call's processes, if the call uses several hosts.

``RUN/events/hosts-N.jsonl`` is the file of one call. Its first event, ``placed``, is
the table of processes. An event ``moved`` follows when a cluster starts a process, and
``lost`` when a place is lost. Only ``tengen train`` writes the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from tengen.observe.events import EventWriter, read_events
from tengen.run import RunDirectory

HOSTS = "hosts"
"""The role name of event files about hosts."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The placement of one process of a run: its host, roles and threads."""

    place: str
    """The launcher's name for the process's position, such as ``rank 1``."""
    host: str
    """Name of the host."""
    name: str
    """Name of the process, such as ``selfplay-0``."""
    roles: tuple[str, ...]
    """The roles that the process has."""
    num_threads: int
    """Threads that each role of the process may use."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The current placement of a call's processes, from the events in its file."""

    call: str
    """The unique ID of the call."""
    process: str
    """The process of ``tengen train``, as ``lock_holder`` names it."""
    places: tuple[Place, ...] = ()
    """Placements of all processes."""
    lost: tuple[str, ...] = ()
    """Descriptions of lost places, such as MPI ranks; one line per place."""

    @staticmethod
    def after(before: Hosts | None, event: Mapping[str, Any]) -> Hosts | None:
        """Returns the placement after ``event``, given the placement ``before`` it."""
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
    """Writes the hosts file of one call. Used by one thread at a time.

    Args:
        run: The run.
        call: The unique ID of the call.
        process: The process of ``tengen train``, as ``lock_holder`` names it.
        places: Placements of all processes.

    Raises:
        RunError: Writing to the disk fails.
    """

    def __init__(
        self, run: RunDirectory, call: str, process: str, places: Sequence[Place]
    ) -> None:
        self._events = EventWriter(run, HOSTS, run.new_incarnation(HOSTS))
        rows = [asdict(place) for place in places]
        self._events.write("placed", call=call, process=process, places=rows)

    def moved(self, place: Place) -> None:
        """Records that a process has started, perhaps on another host than before.

        Raises:
            RunError: Writing to the disk fails.
        """
        self._events.write("moved", **asdict(place))

    def lost(self, what: str) -> None:
        """Records that a place, such as an MPI rank, was lost.

        Args:
            what: A description of the loss in one line.

        Raises:
            RunError: Writing to the disk fails.
        """
        self._events.write("lost", what=what)

    def close(self) -> None:
        """Closes the event file."""
        self._events.close()


def read_hosts(run: RunDirectory) -> Hosts | None:
    """Returns the placement of the newest call with a hosts file; None without one."""
    numbers = run.incarnations(HOSTS)
    found = None
    for event in read_events(run.events_path(HOSTS, numbers[-1])) if numbers else ():
        found = Hosts.after(found, event)
    return found


def _place(row: Mapping[str, Any]) -> Place:
    known = {field.name: row[field.name] for field in fields(Place)}
    return Place(**{**known, "roles": tuple(row["roles"])})
