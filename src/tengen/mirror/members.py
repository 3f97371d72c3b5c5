"""The mirrors that a run's service knows: who they are, and that they hold their locks.

A mirror is a self-play writer or an actor like any other: the service holds the lock of
that writer or actor for it. It keeps its place when it is cut off, for as long as the
service waits for it; a service that is started again waits anew.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tengen.errors import RunError, UsageError
from tengen.experience import MAX_WRITERS, TRAIN_WRITER, writer_directory
from tengen.experience.games.files import writer_files
from tengen.experience.games.generations import num_trained
from tengen.mirror.run_client import Place
from tengen.mirror.segments import close_generations
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

__all__ = ["Member", "Members", "folder_of", "log_name"]

_SILENT_S = 5.0
"""A mirror asks something every second."""
_AWAY_S = 60.0
"""After which a mirror that is not heard of is said to be away."""


@dataclass
class Member:
    """One mirror, as the service holds it."""

    record: MirrorRecord
    """As it is published."""
    lock: WriterLock
    """Of its writer or its actor."""
    heard_s: float = field(default_factory=time.monotonic)
    """When it last asked something."""
    is_here: bool = True
    """Whether its process has not said that it ends."""
    working: threading.RLock = field(default_factory=threading.RLock)
    """Held by who reads or writes its files, or changes what it is; taken behind the
    lock of the table, and never before it."""


class Members:
    """Not thread-safe: the service asks under its lock, but for ``work_of``.

    Args:
        run: The run. The records of an earlier service are taken over.
        task: The run's.
        say: Takes a line for people.

    Raises:
        RunError: A record is damaged, or the disk refuses.
    """

    def __init__(
        self, run: RunDirectory, task: str, say: Callable[[str], None]
    ) -> None:
        self._run = run
        self._task = task
        self._say = say
        self._members: dict[str, Member] = {}
        self._is_closed = False
        for record in read_mirrors(run):
            try:
                lock = self._lock(record.role, record.index)
            except UsageError:
                # Somebody took its place while no service held it.
                forget_mirror(run, record.mirror)
                continue
            self._members[record.mirror] = Member(record, lock)

    def of(self, mirror: str, events: int) -> Member:
        """Returns a member, which was heard of now.

        Args:
            mirror: Its id.
            events: What ``join`` gave the process that asks.

        Raises:
            UsageError: It is none, or another process works on the mirror, as on a copy
                of its folder.
            RunError: The service has ended just now.
        """
        member = self._known(mirror)
        if member is None:
            raise _no_place(mirror)
        _check_process(member.record, events)
        member.heard_s = time.monotonic()
        if member.record.is_away and not self._publish(member, is_away=False):
            self.part_with(member)
            raise _no_place(mirror)
        return member

    @contextmanager
    def work_of(self, member: Member, events: int) -> Iterator[None]:
        """Has a member's files for oneself; any thread, without the service's lock.

        Others are answered meanwhile: what one sends keeps nobody else waiting.

        Args:
            member: As ``of`` returned it.
            events: As for ``of``.

        Raises:
            UsageError: It lost its place, or its process, just before.
            RunError: The service has ended just now.
        """
        with member.working:
            self._check_open()
            if self._members.get(member.record.mirror) is not member:
                raise _no_place(member.record.mirror)
            _check_process(member.record, events)
            yield

    def bye(self, member: Member) -> None:
        """Takes down that a mirror's process ends."""
        member.is_here = False
        if not self._publish(member, is_away=True):
            self.part_with(member)

    def num_here(self, within_s: float) -> int:
        """Returns how many processes were heard of within so many seconds."""
        now_s = time.monotonic()
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
        """Gives a mirror's new process its place.

        Args:
            mirror: Its id.
            role: What works on it.
            index: Which actor or writer it is; None: the writer that this mirror was
                before, or one that is free.
            process: ``PID on HOST``.
            is_vouched: Whether the run itself started the process, as the only one of
                its index: then it takes the place of any mirror that has it. Else it
                takes that of one that was not heard of for some seconds.
            had_place: Whether the mirror has games of a place that it had before.

        Returns:
            None where it had a place that it has no more: it is to join without the
            games of then, as another mirror.

        Raises:
            UsageError: The place is taken, or there is none.
            RunError: The disk refuses, or the service has ended just now.
        """
        was_evicted = mirror in self._members
        member = self._known(mirror)
        was_evicted &= member is None
        if was_evicted and index is not None and not is_vouched:
            # Else it might be here before the process that its place is for.
            raise _no_place(mirror)
        if member is not None and role != member.record.role:
            raise UsageError(
                f"mirror ({mirror}) must be of role {member.record.role}, as it was; "
                f"choose another folder"
            )
        if member is not None and index not in (None, member.record.index):
            self.part_with(member)
            member = None
        if member is None and had_place:
            return None
        if member is None:
            lock, index = self._place(role, index, 0.0 if is_vouched else _SILENT_S)
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

    def _begin(self, member: Member, process: str) -> None:
        """Gives a process its numbers and its folder."""
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

    def part_with(self, member: Member, *, were_begun: bool = True) -> None:
        """Seals what a mirror has sent and gives its place to others.

        Args:
            member: The mirror.
            were_begun: See ``close_generations``.

        Raises:
            RunError: The disk refuses; it keeps its place.
        """
        with member.working:
            # Another one may have the place by now.
            if self._members.get(member.record.mirror) is member:
                self._part_with(member, were_begun=were_begun)

    def _part_with(self, member: Member, *, were_begun: bool) -> None:
        record = member.record
        text = f"{record.role} of {record.process} has given back its place"
        if were_begun:
            text = (
                f"{record.role} of {record.process} has lost its place, as it was away "
                f"for long or is elsewhere now; what it sent is kept"
            )
        if record.role == "selfplay":
            folder = folder_of(self._run, member)
            num_refused = close_generations(
                self._run, folder, self._task, were_begun=were_begun
            )
            if num_refused:
                text += f", but for {num_refused} files that are no journals (.refused)"
        self._say(text)
        self._members.pop(member.record.mirror, None)
        forget_mirror(self._run, member.record.mirror)
        member.lock.release()

    def look(self, away_s: float) -> list[Member]:
        """Publishes who is away, and returns those to part with.

        They were away for so many seconds, or ``evict_mirrors`` has taken their place.
        """
        late = []
        known = {record.mirror for record in read_mirrors(self._run)}
        for member in self._members.values():
            if member.record.mirror not in known:
                late.append(member)  # a process of this host has its place now
                continue
            silent_s = time.monotonic() - member.heard_s
            if silent_s >= _AWAY_S and not member.record.is_away:
                self._publish(member, is_away=True)
            if silent_s >= away_s:
                late.append(member)
        return late

    def close(self) -> None:
        """Lets go of every lock; the records stay for the next service."""
        members = [*self._members.values()]
        # Before their locks go: who waits for one's files is told.
        self._is_closed = True
        self._members.clear()
        for member in members:
            with member.working:
                member.lock.release()

    def _known(self, mirror: str) -> Member | None:
        """Returns a member; None where it is none, or lost its place just now."""
        self._check_open()
        member = self._members.get(mirror)
        if member is not None and not has_mirror(self._run, mirror):
            # A process of this host takes it, and must not be published away.
            self.part_with(member)
            return None
        return member

    def _check_open(self) -> None:
        """Refuses a question of the last moment, which the next service answers."""
        if self._is_closed:
            raise RunError(f"service of run ({self._run.path}) ends; ask again")

    def _publish(self, member: Member, **changes: object) -> bool:
        """Publishes changes of a record; returns False where it was evicted.

        The member has the changes in either case.
        """
        record = dataclasses.replace(member.record, **changes)  # type: ignore[arg-type]
        is_there = change_mirror(self._run, record)
        member.record = record
        return is_there

    def _place(
        self, role: str, index: int | None, silent_s: float
    ) -> tuple[WriterLock, int]:
        now_s = time.monotonic()
        if index is not None:
            for member in [*self._members.values()]:
                record = member.record
                is_silent = now_s - member.heard_s >= silent_s or not member.is_here
                if (record.role, record.index) == (role, index) and is_silent:
                    self.part_with(member)
            return self._lock(role, index), index
        players = [one for one in self._members.values() if one.record.role == role]
        taken = {member.record.index for member in players}
        # From the end: the run itself has the first ones, and more when it is scaled.
        first = TRAIN_WRITER + num_trained(self._run)
        for number in reversed(range(first, MAX_WRITERS)):
            folder = writer_directory(self._run, number)
            # One with games that are not sealed is another process's to go on with.
            if number in taken or writer_files(folder, "journal"):
                continue
            try:
                return self._lock(role, number), number
            except UsageError:
                continue
        gone = [
            one for one in players if not one.is_here or now_s - one.heard_s >= _AWAY_S
        ]
        if gone:
            # Pods that come and go without their folders leave such places behind.
            longest = min(gone, key=lambda member: member.heard_s)
            self.part_with(longest)
            return self._lock(role, longest.record.index), longest.record.index
        raise UsageError(
            f"run ({self._run.path}) has {MAX_WRITERS} self-play processes, the most; "
            f"stop one"
        )

    def _lock(self, role: str, index: int) -> WriterLock:
        if role == "selfplay":
            folder = writer_directory(self._run, index)
            return WriterLock(folder / "lock", folder)
        return self._run.lock(f"{role}-{index}")


def _check_process(record: MirrorRecord, events: int) -> None:
    if events != record.events:
        raise UsageError(
            f"mirror ({record.mirror}) is worked on by process {record.process} now; "
            f"stop one of them, or use another folder"
        )


def _no_place(mirror: str) -> UsageError:
    return UsageError(
        f"mirror ({mirror}) has no place in this run any more, as it was away for too "
        f"long or another process has its place; start the role again"
    )


def log_name(role: str, place: MirrorRecord | Place) -> str:
    """Returns the file in ``logs`` that a mirror's process prints to: its own."""
    return f"{role}-{place.index}-{place.events}.log"


def folder_of(run: RunDirectory, member: Member) -> Path:
    """Returns the folder that a member's games go into."""
    if member.record.role != "selfplay":
        raise RunError(f"mirror ({member.record.mirror}) writes no games")
    return writer_directory(run, member.record.index)
