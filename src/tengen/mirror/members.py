"""The mirrors that a run's service knows: who they are, and that they hold their locks.

A mirror is a self-play writer or an actor like any other: the service holds the lock of
that writer or actor for it. It keeps its place when it is cut off, for as long as the
service waits for it; a service that is started again waits anew.
"""

from __future__ import annotations

import dataclasses
import threading
import time
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
    read_mirrors,
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
    working: threading.Lock = field(default_factory=threading.Lock)
    """Held where its files are written, or who works on it changes. Whoever holds it
    does not wait for the lock of all members."""
    has_place: bool = True
    """Whether it was not parted with."""


class Members:
    """Not thread-safe but for ``check``: the service asks under its lock.

    Args:
        run: The run. The records of an earlier service are taken over.

    Raises:
        RunError: A record is damaged, or the disk refuses.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._members: dict[str, Member] = {}
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
        """
        member = self._members.get(mirror)
        if member is None:
            raise _has_no_place(mirror)
        self.check(member, events)
        member.heard_s = time.monotonic()
        if member.record.is_away and not self._change(member, is_away=False):
            self.part_with(member)
            raise _has_no_place(mirror)
        return member

    def check(self, member: Member, events: int) -> None:
        """Makes sure that a process still works on a member.

        Args:
            member: The member; what holds ``working`` knows that it stays so.
            events: What ``join`` gave the process that asks.

        Raises:
            UsageError: It does not.
        """
        record = member.record
        if not member.has_place:
            raise _has_no_place(record.mirror)
        if events != record.events:
            raise UsageError(
                f"mirror ({record.mirror}) is worked on by process {record.process} "
                f"now; stop one of them, or use another folder"
            )

    def bye(self, member: Member) -> None:
        """Takes down that a mirror's process ends."""
        member.is_here = False
        if not self._change(member, is_away=True):
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
    ) -> Member:
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

        Raises:
            UsageError: The place is taken, as by who evicted this mirror, or there is
                none.
            RunError: The disk refuses.
        """
        member = self._members.get(mirror)
        if member is not None and role != member.record.role:
            raise UsageError(
                f"mirror ({mirror}) must be of role {member.record.role}, as it was; "
                f"choose another folder"
            )
        if member is not None and index not in (None, member.record.index):
            self.part_with(member)
            member = None
        if member is not None and not self._change(member):
            self.part_with(member)
            member = None
            if index is not None and not is_vouched:
                # Else it might be here before the process that its place is for.
                raise _has_no_place(mirror)
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
        member.heard_s = time.monotonic()
        member.is_here = True
        incarnation = self._run.new_incarnation(role)
        self._run.forget_incarnations(role, incarnation)
        if role == "selfplay":
            folder = writer_directory(self._run, member.record.index)
            (folder / str(incarnation)).mkdir(parents=True, exist_ok=True)
        with member.working:
            self._change(
                member,
                is_away=False,
                process=process,
                incarnation=incarnation,
                events=self._run.new_incarnation(f"{role}-command"),
            )
        return member

    def part_with(self, member: Member, *, were_begun: bool = True) -> None:
        """Seals what a mirror has sent and gives its place to others, once.

        Args:
            member: The mirror.
            were_begun: See ``close_generations``.

        Raises:
            RunError: The disk refuses, or what was sent is damaged; it keeps its place.
        """
        with member.working:
            if not member.has_place:
                return  # another one may have it by now
            if member.record.role == "selfplay":
                folder = folder_of(self._run, member)
                close_generations(folder, were_begun=were_begun)
            member.has_place = False
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
                self._change(member, is_away=True)
            if silent_s >= away_s:
                late.append(member)
        return late

    def close(self) -> None:
        """Lets go of every lock; the records stay for the next service."""
        for member in self._members.values():
            with member.working:
                member.has_place = False
                member.lock.release()
        self._members.clear()

    def _change(self, member: Member, **changes: object) -> bool:
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
        taken = {member.record.index for member in self._members.values()}
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
        gone = [one for one in self._members.values() if not one.is_here]
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


def _has_no_place(mirror: str) -> UsageError:
    return UsageError(
        f"mirror ({mirror}) has no place in this run any more, as it was away for too "
        f"long, a process of the run's host has its place or its run was removed; "
        f"start the role again"
    )


def log_name(role: str, place: MirrorRecord | Place) -> str:
    """Returns the file in ``logs`` that a mirror's process prints to: its own."""
    return f"{role}-{place.index}-{place.events}.log"


def folder_of(run: RunDirectory, member: Member) -> Path:
    """Returns the folder that a member's games go into."""
    if member.record.role != "selfplay":
        raise RunError(f"mirror ({member.record.mirror}) writes no games")
    return writer_directory(run, member.record.index)
