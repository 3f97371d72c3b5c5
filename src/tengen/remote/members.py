"""The run service's table of mirrors.

Each mirror has the slot of an ordinary self-play writer or actor of the run. The
service holds the slot's lock on the mirror's behalf. A disconnected mirror keeps its
slot until a timeout expires. A restarted service loads the records in ``RUN/mirrors/``
and restarts the timeouts.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tengen.errors import RunError, TengenError, UsageError
from tengen.experience import MAX_WRITERS, TRAIN_WRITER, writer_directory
from tengen.experience.games.files import writer_files
from tengen.experience.games.generations import num_trained
from tengen.remote.games import close_generations
from tengen.run import (
    MirrorRecord,
    RunDirectory,
    WriterLock,
    change_mirror,
    forget_mirror,
    has_mirror,
    read_mirrors,
    storage_error,
    sync_directory,
    write_mirror,
)

_SILENT_S = 5.0
"""Seconds without a heartbeat after which another process may take a mirror's slot. A
mirror sends a request every second."""
_AWAY_S = 60.0
"""Seconds without a request after which a mirror is reported as away."""


@dataclass
class Member:
    """The service's state of one mirror."""

    record: MirrorRecord
    """The mirror's published record."""
    lock: WriterLock
    """The lock of the self-play writer or actor whose slot the mirror has."""
    heard_s: float = field(default_factory=time.monotonic)
    """The ``time.monotonic`` time of the last request; infinity during ``working``."""
    is_here: bool = True
    """Whether the mirror's process has joined and has not reported its end."""
    working: threading.RLock = field(default_factory=threading.RLock)
    """Held while the mirror's files are read or written. A thread that needs both this
    lock and ``Members._lock`` must acquire ``Members._lock`` first."""


class Members:
    """The table of a run's mirrors. Thread-safe.

    Args:
        run: The run, whose service is the caller.
        task: The run's task.
        say: Called with each log message.

    Raises:
        RunError: A record is damaged, or a file operation fails.
    """

    def __init__(
        self, run: RunDirectory, task: str, say: Callable[[str], None]
    ) -> None:
        self._run = run
        self._task = task
        self._say = say
        self._lock = threading.RLock()
        self._members: dict[str, Member] = {}
        self._is_closed = False
        for record in read_mirrors(run):
            try:
                lock = self._hold(record.role, record.index)
            except UsageError:
                # Another process took the mirror's slot while no service ran.
                forget_mirror(run, record.mirror)
                continue
            self._members[record.mirror] = Member(record, lock)

    def hear(self, mirror: str, events: int) -> Member:
        """Records the time of a mirror's request. Returns the mirror's member.

        Args:
            mirror: The ID of the mirror.
            events: The ID of the event file that ``join`` assigned to the process.

        Raises:
            UsageError: The mirror has no slot, or another process uses the slot, for
                example with a copy of the mirror's folder.
            RunError: The service has ended.
        """
        with self._lock:
            member = self._known(mirror)
            if member is None:
                raise _no_place(mirror)
            _check_process(member.record, events)
            member.heard_s = time.monotonic()
            if member.record.is_away and not self._publish(member, is_away=False):
                self._part_with(member)
                raise _no_place(mirror)
            return member

    @contextmanager
    def working(self, mirror: str, events: int) -> Iterator[Member]:
        """Does ``hear``, and locks the mirror's files, but not the table of mirrors.

        The arguments and errors are the same as in ``hear``.
        """
        member = self.hear(mirror, events)
        with member.working:
            self._check_open()
            if self._members.get(mirror) is not member:
                raise _no_place(mirror)
            _check_process(member.record, events)
            member.heard_s = math.inf  # not silent: it waits for the response
            try:
                yield member
            finally:
                member.heard_s = time.monotonic()

    def end(self, mirror: str, events: int, *, keeps_place: bool) -> None:
        """Records that the process of a mirror ends.

        Args:
            mirror: The ID of the mirror.
            events: The ID of the process's event file.
            keeps_place: Whether to reserve the slot for the next process of the mirror.
                If false, the mirror has sent all games of every generation.

        Raises:
            TengenError: See ``hear``; or a file operation fails.
        """
        with self._lock:
            member = self.hear(mirror, events)
            if not keeps_place:
                self._part_with(member, were_begun=False)
                return
            member.is_here = False
            if not self._publish(member, is_away=True):
                self._part_with(member)

    def num_here(self, within_s: float) -> int:
        """Returns the number of processes with a request in the last ``within_s`` s."""
        now_s = time.monotonic()
        with self._lock:
            return sum(
                one.is_here and now_s - one.heard_s <= within_s
                for one in self._members.values()
            )

    def join(
        self,
        mirror: str,
        role: str,
        index: int | None,
        process: str,
        *,
        is_vouched: bool = False,
        had_place: bool = False,
    ) -> Member | None:
        """Assigns a slot to a new process of a mirror.

        Args:
            mirror: The ID of the mirror.
            role: The role that works on the mirror.
            index: The index of the actor or writer. None for the mirror's previous
                index, or a free index if there is none.
            process: ``PID on HOST``.
            is_vouched: Whether the run started the process, as the only process with
                ``index``. If so, it may take any mirror's slot; otherwise only that of
                a mirror that has been silent for some seconds.
            had_place: Whether the mirror has games of an earlier slot.

        Returns:
            The member, or None if the mirror has lost an earlier slot. The mirror must
            then set its games aside and join with a new ID.

        Raises:
            UsageError: The slot is taken, or no slot is free.
            RunError: A file operation fails, or the service has ended.
        """
        with self._lock:
            was_evicted = mirror in self._members
            member = self._known(mirror)
            was_evicted &= member is None
            if was_evicted and index is not None and not is_vouched:
                # Reject an evicted mirror, so that the evicting process gets the slot.
                raise _no_place(mirror)
            if member is not None and role != member.record.role:
                raise UsageError(
                    f"mirror ({mirror}) must keep its role {member.record.role}; "
                    "choose another folder"
                )
            if member is not None and index not in (None, member.record.index):
                self._part_with(member)
                member = None
            if member is None and had_place:
                return None
            if member is None:
                # The last request may be newer than the time that _place reads.
                silent_s = -math.inf if is_vouched else _SILENT_S
                lock, index = self._place(role, index, silent_s)
                record = MirrorRecord(
                    mirror=mirror,
                    role=role,
                    index=index,
                    process=process,
                    incarnation=0,
                    events=0,
                    is_away=False,
                )
                member = self._members[mirror] = Member(record, lock)
                write_mirror(self._run, record)
            with member.working:
                self._begin(member, process)
            return member

    def look(self, away_s: float) -> None:
        """Marks silent mirrors as away, and removes mirrors that have lost their slots.

        A mirror loses its slot if it sends no request for ``away_s`` seconds, or if
        ``evict_mirrors`` removes its record.

        Raises:
            RunError: A file operation fails, or a record is damaged.
        """
        late = []
        with self._lock:
            known = {record.mirror for record in read_mirrors(self._run)}
            for member in self._members.values():
                is_known = member.record.mirror in known  # or evicted by this host
                silent_s = time.monotonic() - member.heard_s
                if is_known and silent_s >= _AWAY_S and not member.record.is_away:
                    self._publish(member, is_away=True)
                if silent_s >= away_s or not is_known:
                    late.append(member)
        for member in late:
            # If a file operation fails, the next call of look() retries.
            with self._lock, suppress(TengenError):
                self._part_with(member)

    def close(self) -> None:
        """Releases all mirrors' locks. Their records remain for the next service."""
        with self._lock:
            members = [*self._members.values()]
            # Set first, so that threads that wait for a member's lock then raise.
            self._is_closed = True
            self._members.clear()
            for member in members:
                with member.working:
                    member.lock.release()

    def _begin(self, member: Member, process: str) -> None:
        """Assigns an incarnation, an event file and a folder to a mirror's process."""
        role = member.record.role
        member.heard_s = time.monotonic()
        member.is_here = True
        incarnation = self._run.new_incarnation(role)
        self._run.forget_incarnations(role, incarnation)
        if role == "selfplay":
            folder = writer_directory(self._run, member.record.index)
            try:
                (folder / str(incarnation)).mkdir(parents=True, exist_ok=True)
                sync_directory(folder)
                sync_directory(folder.parent)
            except OSError as error:
                raise storage_error(folder, error) from error
        self._publish(
            member,
            is_away=False,
            process=process,
            incarnation=incarnation,
            events=self._run.new_incarnation(f"{role}-command"),
        )

    def _part_with(self, member: Member, *, were_begun: bool = True) -> None:
        """Seals a mirror's games with ``close_generations``, and frees its slot.

        If sealing raises, the mirror keeps its slot.
        """
        record = member.record
        with member.working:
            # Another thread may have freed the slot in the meantime.
            if self._members.get(record.mirror) is not member:
                return
            text = f"{record.role} of {record.process} has released its place"
            if were_begun:
                text = (
                    f"{record.role} of {record.process} has lost its place, because it "
                    "was away too long or has moved; what it sent is kept"
                )
            if record.role == "selfplay":
                folder = writer_directory(self._run, record.index)
                num_refused = close_generations(
                    self._run, folder, self._task, were_begun=were_begun
                )
                if num_refused:
                    text += (
                        f", except {num_refused} files that are not journals (.refused)"
                    )
            self._say(text)
            self._members.pop(record.mirror, None)
            forget_mirror(self._run, record.mirror)
            member.lock.release()

    def _known(self, mirror: str) -> Member | None:
        """Returns the member of a mirror; None if the mirror has no slot."""
        self._check_open()
        member = self._members.get(mirror)
        if member is not None and not has_mirror(self._run, mirror):
            # The record was removed by evict_mirrors, so the mirror loses its slot.
            self._part_with(member)
            return None
        return member

    def _check_open(self) -> None:
        """Raises RunError after ``close``. The mirror then asks the next service."""
        if self._is_closed:
            raise RunError(f"service of run ({self._run.path}) is ending; try again")

    def _publish(self, member: Member, **changes: object) -> bool:
        """Applies ``changes`` to a member's record; publishes it unless it was evicted.

        Returns:
            Whether the published record still exists.
        """
        record = dataclasses.replace(member.record, **changes)  # type: ignore[arg-type]
        is_there = change_mirror(self._run, record)
        member.record = record
        return is_there

    def _place(
        self, role: str, index: int | None, silent_s: float
    ) -> tuple[WriterLock, int]:
        """Returns the lock and index of a slot, possibly taken from a silent mirror."""
        now_s = time.monotonic()
        members = [one for one in self._members.values() if one.record.role == role]
        if index is not None:
            for member in members:
                is_silent = now_s - member.heard_s >= silent_s or not member.is_here
                if member.record.index == index and is_silent:
                    self._part_with(member)
            return self._hold(role, index), index
        taken = {member.record.index for member in members}
        # Start at the highest index, because the run's own writers use the lowest.
        first = TRAIN_WRITER + num_trained(self._run)
        for number in reversed(range(first, MAX_WRITERS)):
            folder = writer_directory(self._run, number)
            # Skip writers with unsealed games, which another process may resume.
            if number in taken or writer_files(folder, "journal"):
                continue
            with suppress(UsageError):
                return self._hold(role, number), number
        # If no slot is free, take the slot of the mirror that is away longest.
        gone = [
            one for one in members if not one.is_here or now_s - one.heard_s >= _AWAY_S
        ]
        if not gone:
            raise UsageError(
                f"run ({self._run.path}) has {MAX_WRITERS} self-play processes, the "
                "maximum; stop one"
            )
        longest = min(gone, key=lambda member: member.heard_s)
        self._part_with(longest)
        return self._hold(role, longest.record.index), longest.record.index

    def _hold(self, role: str, index: int) -> WriterLock:
        if role == "selfplay":
            folder = writer_directory(self._run, index)
            return WriterLock(folder / "lock", folder)
        return self._run.lock(f"{role}-{index}")


def _check_process(record: MirrorRecord, events: int) -> None:
    if events != record.events:
        raise UsageError(
            f"mirror ({record.mirror}) is in use by process {record.process}; stop it, "
            "or use another folder"
        )


def _no_place(mirror: str) -> UsageError:
    return UsageError(
        f"mirror ({mirror}) has lost its place in this run, because it was away too "
        "long or another process took it; start the role again"
    )
