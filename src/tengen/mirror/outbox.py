"""What a mirror has for its run's host, sent again and again until it is there."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.experience.games.files import writer_files
from tengen.mirror.growing_file import Prefix, next_piece, read_prefix
from tengen.mirror.messages import Growing
from tengen.mirror.run_client import RunClient
from tengen.run import storage_error

__all__ = ["GamesOutbox", "GrowingOutbox"]

_KEPT = 4
"""Segments that stay after they were sent: who plays looks back at a few."""


class GrowingOutbox:
    """Sends a file as it grows. Used by one thread.

    Args:
        client: To the run's service.
        path: The file, which need not be there yet.
        where: What it is to the service.
    """

    def __init__(self, client: RunClient, path: Path, where: Mapping[str, Any]) -> None:
        self._client = client
        self._path = path
        self._where = where
        self._sent: Prefix | None = None

    def send(self) -> None:
        """Sends what was added. Raises as ``RunClient``."""
        with suppress(FileNotFoundError):
            if self._sent is None:
                size = self._client.size_there(self._where)
                self._sent = read_prefix(self._path, size)
                if self._sent is None:
                    return  # the host has more, of before this host lost its end
            while data := next_piece(self._path, self._sent):
                held = self._client.append(self._where, self._sent, data)
                if held != self._sent.size + len(data):
                    self._sent = None  # an answer was lost: ask where the host is
                    return
                self._sent.grow(data)

    @property
    def unsent_bytes(self) -> int:
        """What was added and not sent."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return 0
        return size if self._sent is None else max(0, size - self._sent.size)


class GamesOutbox:
    """Sends a writer's journals as they grow, and its segments. Used by one thread.

    Args:
        client: To the run's service.
        folder: The writer's.
    """

    def __init__(self, client: RunClient, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._journals: dict[Path, GrowingOutbox] = {}
        self._is_sent: set[Path] = set()

    def send(self) -> None:
        """Sends all that is there. Raises as ``RunClient``.

        A segment that was sent is kept while it is one of the newest few.
        """
        for path in writer_files(self._folder, "npz"):
            if path in self._is_sent:
                continue
            data = path.read_bytes()
            self._client.send_segment(
                int(path.parent.name),
                int(path.stem),
                len(data),
                int(_core.crc32c(data)),
                path,
            )
            self._is_sent.add(path)
        self._remove_old()
        journals = writer_files(self._folder, "journal")
        self._journals = {
            path: self._journals.get(path) or self._outbox(path) for path in journals
        }
        for outbox in self._journals.values():
            outbox.send()

    @property
    def has_journals(self) -> bool:
        """Whether a generation is begun here and not sealed."""
        return bool(writer_files(self._folder, "journal"))

    def sent_generations(self) -> set[int]:
        """Returns the generations whose segments are at the host. Any thread."""
        return {int(path.stem) for path in tuple(self._is_sent)}

    def unsent_bytes(self) -> int:
        """Returns the bytes of games that only this host has. Any thread."""
        unsent = 0
        for path in writer_files(self._folder, "npz"):
            if path not in self._is_sent:
                with suppress(FileNotFoundError):
                    unsent += path.stat().st_size
        known = dict(self._journals)
        for path in writer_files(self._folder, "journal"):
            outbox = known.get(path) or self._outbox(path)
            unsent += outbox.unsent_bytes
        return unsent

    def _outbox(self, path: Path) -> GrowingOutbox:
        where = {
            "kind": Growing.JOURNAL,
            "incarnation": int(path.parent.name),
            "generation": int(path.stem),
        }
        return GrowingOutbox(self._client, path, where)

    def _remove_old(self) -> None:
        sent = sorted(self._is_sent, key=lambda path: int(path.stem))
        for path in sent[:-_KEPT]:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(path, error) from error
