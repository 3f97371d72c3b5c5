"""The files of a mirror that go to its run's host, sent until they are there.

Every file is sent in the same way, piece by piece as it grows: journals, segments, logs
and event files. The messages of a segment also have its size and CRC-32, and the host
publishes a segment once it has arrived whole.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tengen.errors import TengenError
from tengen.experience.games.files import writer_files
from tengen.remote.client import RunClient
from tengen.remote.copies import Prefix, read_prefix
from tengen.remote.messages import PIECE_BYTES, encoded, number_in
from tengen.run import storage_error

__all__ = ["GameUploads", "Upload"]

_KEPT = 4
"""Segments that stay here after they were sent, for forks and resignation."""


class Upload:
    """Sends one file. Used by one thread, except for ``num_sent``.

    Args:
        client: A client of the run's service.
        path: The file, which may not exist yet.
        where: The fields of a message that say which file it is: its ``kind``, for
            games their ``incarnation`` and ``generation``, for a segment its ``size``
            and ``whole_crc``.
    """

    def __init__(self, client: RunClient, path: Path, where: dict[str, Any]) -> None:
        self._client = client
        self._path = path
        self._where = where
        self._sent: Prefix | None = None

    def send(self) -> bool:
        """Sends the bytes that were added; returns whether the host has all of them.

        Raises:
            TengenError: As ``RunClient``. The next call asks what the host has.
        """
        try:
            return self._send()
        except FileNotFoundError:
            return False
        except TengenError:
            self._sent = None
            raise

    def _send(self) -> bool:
        with open(self._path, "rb") as file:
            if self._sent is None:
                held = self._append(Prefix(), b"")
                # None if this host has lost the end of its file.
                self._sent = read_prefix(self._path, held)
            while (sent := self._sent) is not None:
                data = os.pread(file.fileno(), PIECE_BYTES, sent.size)
                if not data:
                    return True
                held = self._append(sent, data)
                after = sent.plus(data)
                self._sent = after if held == after.size else None
        return False

    def _append(self, before: Prefix, data: bytes) -> int:
        """Sends a piece; returns how many bytes of the file the run's host has."""
        answer = self._client.ask(
            "append",
            offset=before.size,
            crc=before.crc,
            data=encoded(data),
            **self._where,
        )
        return number_in(answer, "held", 1 << 41)

    @property
    def num_sent(self) -> int:
        """How many bytes the run's host has, as far as it is known. Any thread."""
        return 0 if (sent := self._sent) is None else sent.size


class GameUploads:
    """Sends a writer's journals as they grow, and its segments.

    Used by one thread, except where a method says otherwise.

    Args:
        client: A client of the run's service.
        folder: The writer's folder.
    """

    def __init__(self, client: RunClient, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._uploads: dict[Path, Upload] = {}
        self._is_sent: set[Path] = set()

    def send(self) -> None:
        """Sends all games. The newest few segments stay here after they were sent.

        Raises:
            TengenError: As ``RunClient``, or the disk refuses.
        """
        for path in self._unsent():
            upload = self._uploads.get(path) or self._upload(path)
            self._uploads[path] = upload
            if upload.send() and path.suffix == ".npz":
                self._is_sent.add(path)
        self._uploads = {
            path: upload
            for path, upload in self._uploads.items()
            if path not in self._is_sent and path.exists()
        }
        sent = sorted(self._is_sent, key=lambda path: int(path.stem))
        for path in sent[:-_KEPT]:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(path, error) from error

    @property
    def has_journals(self) -> bool:
        """Whether a generation has begun here and is not sealed."""
        return bool(writer_files(self._folder, "journal"))

    def sent_generations(self) -> set[int]:
        """Returns the generations whose segments are at the host. Any thread."""
        return {int(path.stem) for path in tuple(self._is_sent)}

    def unsent_bytes(self) -> int:
        """Returns the bytes of games that only this host has. Any thread."""
        known = dict(self._uploads)
        num_bytes = 0
        for path in self._unsent():
            num_sent = known[path].num_sent if path in known else 0
            with suppress(FileNotFoundError):
                num_bytes += max(0, path.stat().st_size - num_sent)
        return num_bytes

    def _unsent(self) -> list[Path]:
        """Returns the segments that were not sent, and then the journals."""
        segments = writer_files(self._folder, "npz")
        unsent = [path for path in segments if path not in self._is_sent]
        return unsent + writer_files(self._folder, "journal")

    def _upload(self, path: Path) -> Upload:
        where: dict[str, Any] = {
            "kind": "journal",
            "incarnation": int(path.parent.name),
            "generation": int(path.stem),
        }
        if path.suffix == ".npz":
            whole = read_prefix(path, path.stat().st_size) or Prefix()
            where |= {"kind": "segment", "size": whole.size, "whole_crc": whole.crc}
        return Upload(self._client, path, where)
