"""On which hosts the processes of a call are, where a cluster has several.

``RUN/events/hosts-N.jsonl`` is the file of one call: first ``placed``, the table, then
what became of the places; a cluster that places processes itself tells of each as it
begins there. ``tengen train`` alone writes it.
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
    """As the launcher names it, ``rank 1``."""
    host: str
    """Its host's name."""
    name: str
    """The process, ``selfplay-0``."""
    roles: tuple[str, ...]
    """What it hosts."""
    num_threads: int
    """That each of its roles may use."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """What the file of a call says."""

    call: str
    """No other call has it."""
    process: str
    """Of ``tengen train``, as ``RunDirectory.lock_holder`` names it."""
    places: tuple[Place, ...]
    """Every process."""
    lost: tuple[str, ...]
    """Places that were lost since, and how, a line each."""


class HostsLog:
    """Writes the file of one call. Used by one thread at a time.

    Args:
        run: The run.
        call: No other call has it.
        process: Of ``tengen train``, as ``RunDirectory.lock_holder`` names it.
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
