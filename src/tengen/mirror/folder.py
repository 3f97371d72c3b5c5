"""What a mirror's folder says of itself: ``mirror.json``, and what was given up."""

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

__all__ = ["MirrorFolder"]

_GIVEN_UP = "given-up"


class MirrorFolder:
    """A folder that is a mirror, or is to become one. Used by one thread.

    Args:
        run: The folder; it need not exist.
        host: The address of the run's service, for people.

    Raises:
        UsageError: The folder is a run of its own, or its record is damaged.

    Attributes:
        mirror: The mirror's id.
        run_id: The run's; None before it is known.
        has_place: Whether a process of this mirror took a place in the run, and has not
            given it back.
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
                f"run ({run.path}) is a run of its own; name a folder for what this "
                f"host needs of the other's"
            )

    def make(self) -> None:
        """Makes the folder, this user's alone: what it holds is played, and trusted.

        Raises:
            UsageError: It is another user's.
            RunError: The disk refuses.
        """
        path = self._run.path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = path.stat().st_uid
        except OSError as error:
            raise storage_error(path, error) from error
        if owner != os.getuid():
            raise UsageError(f"folder ({path}) is another user's; name one of your own")

    def write(self) -> None:
        """Publishes the attributes. Raises RunError where the disk refuses."""
        content = {
            "schema": MIRROR_SCHEMA,
            "mirror": self.mirror,
            "run": self.run_id,
            "host": self._host,
            "has_place": self.has_place,
        }
        publish_json(self._run.path / MIRROR_FILE, content)

    def give_up(self) -> str:
        """Puts the games aside that the run takes no more, and becomes a new mirror.

        Returns:
            What to tell people.

        Raises:
            RunError: The disk refuses; the next call goes on.
        """
        aside = self._run.path / _GIVEN_UP / self.mirror
        experience = self._run.experience
        num_generations = 0
        try:
            # A call that was cut short has moved it.
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
            f"the place of this mirror was given up while it was away; "
            f"{num_generations} generations, of which the run has what it was sent "
            f"before, are in {aside} now"
        )
