"""The layout of the run directory, which contains all files of one run.

docs/reference/run_directory.md describes the layout. Entries are ordered by number,
never by file time. Every file has exactly one writer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tengen.errors import RunError, UsageError
from tengen.run.lock import WriterLock, lock_holder
from tengen.run.machine import code_text
from tengen.run.publish import (
    first_error,
    publish_directory,
    publish_file,
    publish_json,
    remove_directory,
    remove_leftovers,
    storage_error,
)
from tengen.run.reading import find_files, read_object

__all__ = ["SCHEMA", "NumberedFolder", "RunDirectory"]

SCHEMA = 3
"""The layout version that this code writes, and the newest version that it reads."""

_NUMBER = re.compile("[0-9]{6}|[1-9][0-9]{6,17}")
_NUMBERED = ("models", "candidates", "rejected", "checkpoints", "shuffled")
_FOLDERS = (
    *_NUMBERED,
    "templates",
    "experience",
    "eval",
    "games",
    "logs",
    "events",
    "endpoints",
    "locks",
)
_FILES = ("run.json", "code.txt", "STOP", "store", "rows")


class NumberedFolder:
    """A folder of immutable folders named by six digits: ``models/000017``.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def numbers(self) -> list[int]:
        """Returns the numbers of the published folders in increasing order."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def latest(self) -> int | None:
        """Returns the greatest published number, or None if the folder has none."""
        return max(self.numbers(), default=None)

    def entry(self, number: int) -> Path:
        """Returns the path of entry ``number``, whether or not it is published."""
        return self.path / f"{number:06d}"

    def publish(self, number: int, write: Callable[[Path], None]) -> Path:
        """Publishes a folder as ``number``; see ``publish_directory``.

        Returns:
            The path of the published folder.

        Raises:
            RunError: The number is taken, or a file cannot be written.
        """
        publish_directory(self.entry(number), write)
        return self.entry(number)

    def remove(self, number: int) -> None:
        """Removes entry ``number``. Only the writer of the entries may call this."""
        remove_directory(self.entry(number))

    def retire(self, num_kept: int) -> None:
        """Removes all but the newest ``num_kept`` entries; see ``remove``."""
        for number in self.numbers()[:-num_kept]:
            self.remove(number)

    def retire_before(self, first: int) -> None:
        """Removes all entries with numbers below ``first``; see ``remove``."""
        for number in self.numbers():
            if number < first:
                self.remove(number)


class RunDirectory:
    """The paths and files of one run. Stateless, so a run may have several objects.

    Use ``create_or_resume`` to train, and ``open`` for all other purposes.

    Attributes:
        path: The directory.
        models: Published models, accepted by the gate.
        candidates: Exported models that await the gate's decision.
        rejected: Models that the gate rejected.
        checkpoints: Learner states to resume from.
        shuffled: Batches sampled in advance for the learner, one entry per turn.
        experience: Segments, ``<writer>/<incarnation>/NNNNNN``.
        eval: Ratings and matches.
        games: Human-readable game records.
        logs: Output of the roles.
        events: Event files, ``<role>-<incarnation>.jsonl``.
        endpoints: Endpoints of the run's services.
        actors: Counts of each actor outside the learner's process.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.models = NumberedFolder(self.path / "models")
        self.candidates = NumberedFolder(self.path / "candidates")
        self.rejected = NumberedFolder(self.path / "rejected")
        self.checkpoints = NumberedFolder(self.path / "checkpoints")
        self.shuffled = NumberedFolder(self.path / "shuffled")
        self.experience = self.path / "experience"
        self.eval = self.path / "eval"
        self.games = self.path / "games"
        self.logs = self.path / "logs"
        self.events = self.path / "events"
        self.endpoints = self.path / "endpoints"
        self.actors = self.path / "actors"

    @classmethod
    def create_or_resume(cls, path: Path | str) -> RunDirectory:
        """Returns the run at ``path``, whose folders are created if absent.

        The run's ``is_new`` is true until ``write_run`` is called.

        Raises:
            UsageError: ``path`` is a file, a folder with unrelated content, or a run
                with a newer schema; or this process lacks write access.
            RunError: A folder cannot be created.
        """
        run = cls(path)
        if not run.is_new:
            run.read_run()
        elif run.path.is_dir():
            run._refuse_foreign()
        try:
            for name in _FOLDERS:
                (run.path / name).mkdir(parents=True, exist_ok=True)
        except NotADirectoryError:
            raise UsageError(
                f"path ({run.path}) must be a directory, not a file or below one; "
                "choose another --out"
            ) from None
        except OSError as error:
            raise first_error(run.path, error) from error
        for folder in (run.path, *(run.path / name for name in _FOLDERS)):
            remove_leftovers(folder)
        return run

    @classmethod
    def open(cls, path: Path | str) -> RunDirectory:
        """Returns the existing run at ``path``.

        Raises:
            UsageError: There is no run at ``path``, or the run has a newer schema.
            RunError: The run's ``run.json`` is damaged.
        """
        run = cls(path)
        if run.is_new:
            raise UsageError(
                f"run ({path}) is not a run directory; "
                f"give the folder that tengen train --out made"
            )
        run.read_run()
        return run

    @property
    def is_new(self) -> bool:
        """Whether the run has no ``run.json`` yet."""
        return not (self.path / "run.json").exists()

    def check_new(self) -> None:
        """Checks that a run may begin in this directory.

        Raises:
            UsageError: There are files of an earlier run, but no ``run.json``.
        """
        if not self.is_new or not self.path.is_dir():
            return
        folders = (self.checkpoints, self.candidates, self.models)
        made = [folder.path for folder in folders if folder.numbers()]
        if made:
            raise UsageError(
                f"run ({self.path}) has {made[0].name}/, but no run.json; restore "
                "run.json from a copy, or choose another folder"
            )

    def write_run(self, content: Mapping[str, Any]) -> None:
        """Publishes ``run.json``, with the resolved config and one-time measurements.

        Args:
            content: JSON values. The key ``schema`` is added.

        Raises:
            RunError: The file cannot be written.
        """
        publish_json(self.path / "run.json", {"schema": SCHEMA, **content})

    def read_run(self) -> dict[str, Any]:
        """Returns the content of ``run.json``, including ``schema``.

        Raises:
            UsageError: The schema is newer than ``SCHEMA``.
            RunError: The file is damaged.
        """
        path = self.path / "run.json"
        advice = "restore it from a copy, or choose another --out"
        content = read_object(path, "run.json", schema=SCHEMA, advice=advice)
        for name, absent in (("config", None), ("measured", {})):
            if not isinstance(content.get(name, absent), dict):
                raise RunError(
                    f"run.json ({path}) is damaged, {name} is not an object; {advice}"
                )
        return content

    def write_code(self) -> None:
        """Adds this process's code, libraries and machine to ``code.txt`` if changed.

        Raises:
            RunError: The file cannot be written.
        """
        path = self.path / "code.txt"
        # Read as bytes, to preserve notes that users added in any encoding.
        blocks = path.read_bytes().split(b"\n\n") if path.exists() else []
        block = code_text().strip().encode()
        if not blocks or blocks[-1].strip() != block:
            text = b"\n\n".join([*(old.strip() for old in blocks), block])
            publish_file(path, text + b"\n")

    def lock(self, name: str, *, wait: bool = False) -> WriterLock:
        """Acquires the lock of an exclusive operation, such as ``train``.

        Args:
            name: Name of the lock.
            wait: Whether to wait until the holder releases the lock.

        Raises:
            UsageError: Another process holds the lock; the message names the process.
            RunError: The lock file cannot be written.
        """
        return WriterLock(self.path / "locks" / name, self.path, wait=wait)

    def lock_holder(self, name: str) -> str | None:
        """Returns a lock's holder, ``PID on HOST``, or None if the lock is free."""
        return lock_holder(self.path / "locks" / name)

    def new_incarnation(self, role: str) -> int:
        """Returns the next incarnation of ``role``, starting with 1.

        Two processes never get the same number, because the event file is created
        exclusively. Even if event files are lost, the number is above all incarnations
        that wrote experience.

        Raises:
            RunError: The event file cannot be created.
        """
        written = [
            int(path.name)
            for folder in (role, f"{role}-*")
            for path in find_files(self.experience, f"{folder}/*")
            if path.name.isdecimal()
        ]
        number = max([*self.incarnations(role), *written], default=0)
        while True:
            number += 1
            try:
                os.close(
                    os.open(
                        self.events_path(role, number),
                        os.O_CREAT | os.O_EXCL | os.O_WRONLY,
                        0o644,
                    )
                )
            except FileExistsError:
                continue
            except OSError as error:
                raise storage_error(self.events, error) from error
            return number

    def forget_incarnations(self, role: str, newest: int) -> None:
        """Removes empty event files of ``role`` with numbers below ``newest``.

        Empty files only number the incarnations, for which the newest file is enough.
        """
        for number in self.incarnations(role):
            path = self.events_path(role, number)
            with suppress(OSError):
                if number < newest and path.stat().st_size == 0:
                    path.unlink()

    def incarnations(self, role: str) -> list[int]:
        """Returns all incarnations of ``role`` so far, in increasing order."""
        found = []
        for path in find_files(self.events, f"{role}-*.jsonl"):
            number = path.stem.removeprefix(f"{role}-")
            if number.isdecimal():
                found.append(int(number))
        return sorted(found)

    def events_path(self, role: str, incarnation: int) -> Path:
        """Returns the event file of one incarnation."""
        return self.events / f"{role}-{incarnation}.jsonl"

    def request_stop(self) -> None:
        """Requests that every role end cleanly.

        Raises:
            RunError: The file ``STOP`` cannot be written.
        """
        publish_file(self.path / "STOP", b"")

    def clear_stop(self) -> None:
        """Withdraws a request to stop, by removing ``STOP``. Called when a run starts.

        Raises:
            RunError: The file ``STOP`` cannot be removed.
        """
        try:
            (self.path / "STOP").unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(self.path / "STOP", error) from error

    def stop_requested(self) -> bool:
        """Returns whether the file ``STOP`` exists, with which users end all roles."""
        return (self.path / "STOP").exists()

    def _refuse_foreign(self) -> None:
        """Raises UsageError if the folder contains files that are not part of a run."""
        known = {*_FOLDERS, *_FILES}
        foreign = sorted(
            name
            for name in os.listdir(self.path)
            if name not in known and not name.startswith(".")
        )
        if foreign:
            raise UsageError(
                f"out ({self.path}) contains {foreign[0]} and no run; choose an empty "
                "or new folder"
            )
