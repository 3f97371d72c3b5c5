"""Uploads of a mirror's files to the run's host.

Journals, segments, logs and event files are sent in chunks as they grow. The messages
of a segment also contain its size and CRC-32. The run's host publishes a segment when
it is complete.
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
"""Number of uploaded segments to keep, for forked games and resignation thresholds."""


class Upload:
    """The upload of one file. Single-threaded, except for ``num_sent``.

    Args:
        client: A client of the run's service.
        path: The file, which may not exist yet.
        where: The message fields that identify the file: ``kind``; for games also
            ``incarnation`` and ``generation``; for a segment also ``size`` and
            ``whole_crc``.
    """

    def __init__(self, client: RunClient, path: Path, where: dict[str, Any]) -> None:
        self._client = client
        self._path = path
        self._where = where
        self._sent: Prefix | None = None

    def send(self) -> bool:
        """Sends new bytes of the file. Returns whether the run's host has all bytes.

        Raises:
            TengenError: See ``RunClient``. The next call requests the size again.
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
                # read_prefix() returns None if the local file is shorter than the copy.
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
        """Sends a chunk. Returns the size of the copy on the run's host."""
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
        """The last known size of the copy on the run's host. Thread-safe."""
        return 0 if (sent := self._sent) is None else sent.size


class GameUploads:
    """The uploads of a writer's journals and segments.

    Single-threaded, except for the methods marked as thread-safe.

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
        """Uploads all games, and removes all uploaded segments except the newest few.

        Raises:
            TengenError: See ``RunClient``; or a file operation failed.
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
        """Whether the writer has an unsealed generation."""
        return bool(writer_files(self._folder, "journal"))

    def sent_generations(self) -> set[int]:
        """Returns the numbers of generations with uploaded segments. Thread-safe."""
        return {int(path.stem) for path in tuple(self._is_sent)}

    def unsent_bytes(self) -> int:
        """Returns the number of bytes of games not yet uploaded. Thread-safe."""
        known = dict(self._uploads)
        num_bytes = 0
        for path in self._unsent():
            num_sent = known[path].num_sent if path in known else 0
            with suppress(FileNotFoundError):
                num_bytes += max(0, path.stat().st_size - num_sent)
        return num_bytes

    def _unsent(self) -> list[Path]:
        """Returns the paths of unsent segments, followed by those of all journals."""
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
