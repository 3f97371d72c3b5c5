"""The folder of a mirror, with ``mirror.json`` and games that the run rejects."""

from __future__ import annotations

import os
import secrets

from tengen.errors import UsageError
from tengen.experience.games.files import experience_files
from tengen.run import (
    MIRROR_FILE,
    MIRROR_SCHEMA,
    RunDirectory,
    publish_json,
    read_object,
    storage_error,
)

_GIVEN_UP = "given-up"


class MirrorFolder:
    """The folder of a mirror, created if missing. Single-threaded.

    The folder is accessible only to this user, because roles trust its content.

    Args:
        run: The folder, as a run directory.
        host: The address of the run's service, stored in ``mirror.json``.

    Raises:
        UsageError: The folder is the directory of a run, has a damaged record, or
            belongs to another user.
        RunError: The folder cannot be created.

    Attributes:
        mirror: The ID of the mirror.
        run_id: The ID of the run; None until the mirror has joined the run.
        has_place: Whether the mirror has a slot in the run that it has not given back.
    """

    def __init__(self, run: RunDirectory, host: str) -> None:
        self._run = run
        self._host = host
        self.mirror = secrets.token_hex(16)
        self.run_id: str | None = None
        self.has_place = False
        path = run.path / MIRROR_FILE
        if path.exists():
            advice = "choose another folder"
            known = read_object(
                path, "mirror", schema=MIRROR_SCHEMA, advice=advice, error=UsageError
            )
            if not isinstance(known.get("mirror"), str):
                raise UsageError(f"mirror ({path}) is damaged; {advice}")
            self.mirror, self.run_id = known["mirror"], known.get("run")
            self.has_place = known.get("has_place") is True
        elif not run.is_new and run.models.numbers():
            raise UsageError(
                f"run ({run.path}) is itself a run; choose a folder for this host's "
                "mirror of the other run"
            )
        try:
            run.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = run.path.stat().st_uid
        except OSError as error:
            raise storage_error(run.path, error) from error
        if owner != os.getuid():
            raise UsageError(
                f"folder ({run.path}) belongs to another user; choose one of your own"
            )

    def write(self) -> None:
        """Writes the attributes to ``mirror.json``. Raises RunError on failure."""
        content = {
            "schema": MIRROR_SCHEMA,
            "mirror": self.mirror,
            "run": self.run_id,
            "host": self._host,
            "has_place": self.has_place,
        }
        publish_json(self._run.path / MIRROR_FILE, content)

    def give_up(self) -> str:
        """Moves aside the games that the run no longer accepts, and creates a new ID.

        Returns:
            A message for the user that says where the games are.

        Raises:
            RunError: A file operation failed. The next call resumes the work.
        """
        aside = self._run.path / _GIVEN_UP / self.mirror
        experience = self._run.experience
        num_generations = 0
        try:
            # An interrupted earlier call may already have moved the games.
            if experience.exists():
                files = experience_files(experience, "npz")
                files += experience_files(experience, "journal")
                num_generations = len({int(path.stem) for path in files})
                aside.parent.mkdir(exist_ok=True)
                os.rename(experience, aside)
        except OSError as error:
            raise storage_error(aside, error) from error
        self.mirror, self.has_place = secrets.token_hex(16), False
        self.write()
        return (
            f"this mirror lost its place while it was away; {num_generations} "
            "generations, of which the run has what was sent before, are now in "
            f"{aside}"
        )
