"""Transfers between a mirror and the run's host.

``Downloads`` fetches run.json, STOP, the status and models. Journals, segments, logs
and event files are sent in chunks as they grow. The messages of a segment also contain
its size and CRC-32. The run's host publishes a segment when it is complete.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tengen.errors import RunError, TengenError
from tengen.experience.games.files import writer_files
from tengen.observe.status import HOST_STATUS
from tengen.remote.copies import Prefix, read_prefix
from tengen.remote.messages import (
    MAX_FILE_BYTES,
    PIECE_BYTES,
    RunClient,
    decoded,
    encoded,
    number_in,
    word_in,
)
from tengen.run import (
    RunDirectory,
    file_sha256,
    find_files,
    publish_json,
    storage_error,
)

_KEPT_MODELS = 3
_KEPT_SEGMENTS = 4
"""The number of uploaded segments kept locally, for forks and resignation."""
_MOST_FILES = 16
_FETCHING = "fetching"
_STATUS_S = 10.0


class Downloads:
    """Keeps a mirror's files in sync with the run. Used by one thread.

    Args:
        client: A client of the run's service.
        run: The mirror's folder.
        between: Called after each chunk of a model. If ``between`` raises, the next
            call of ``follow`` resumes the download.
    """

    def __init__(
        self, client: RunClient, run: RunDirectory, between: Callable[[], None]
    ) -> None:
        self._client = client
        self._run = run
        self._models = run.models
        self._parts = run.path / _FETCHING
        self._between = between
        self._is_checked = False
        self._sha256 = ""
        self._status_s = -math.inf
        # Whether STOP came from the run; initially True, to remove an old STOP.
        self._is_stopped_there = True

    def take(self, totals: tuple[int, int] | None = None) -> int | None:
        """Downloads all files except models; returns the run's newest model number.

        Args:
            totals: The actor's frame and episode counts to report; None if unchanged.

        Raises:
            TengenError: See ``RunClient``; or a write fails.
        """
        asks_status = time.monotonic() - self._status_s >= _STATUS_S
        found = self._client.ask(
            "look", sha256=self._sha256, totals=totals, asks_status=asks_status
        )
        content = found["content"]
        if content is not None:
            if not isinstance(content, dict):
                raise RunError(f"run.json of {self._client.name} is not an object")
            publish_json(self._run.path / "run.json", content)
            self._sha256 = str(found["sha256"])
        self._take_stop(bool(found["stop"]))
        if asks_status:
            self._status_s = time.monotonic()
        if found["status"] is not None:
            content = {"schema": 1, "time_s": time.time(), "report": found["status"]}
            publish_json(self._run.path / HOST_STATUS, content)
        return None if found["model"] is None else number_in(found, "model")

    def follow(self, newest: int | None) -> None:
        """Downloads model ``newest``, and removes models with higher numbers.

        An interrupted download resumes at the byte where it stopped.

        Args:
            newest: The number of the run's newest model; None if there is no model.

        Raises:
            RunError: A file arrived damaged, the run has removed the model, or a write
                fails.
            TengenError: See ``RunClient``.
        """
        for number in self._models.numbers():
            if newest is None or number > newest:
                self._models.remove(number)  # perhaps from a learner in this folder
        if newest is None:
            return
        here = self._models.numbers()
        if not self._is_checked and newest in here and not self._is_same(newest):
            self._models.remove(newest)
        self._is_checked = True
        if newest not in self._models.numbers():
            self._fetch(newest)
            self._models.retire(_KEPT_MODELS)

    def _take_stop(self, is_asked: bool) -> None:
        """Mirrors the run's STOP file. A STOP requested on this host remains."""
        if is_asked and not self._run.stop_requested():
            self._run.request_stop()
            self._is_stopped_there = True
        elif not is_asked and self._is_stopped_there:
            self._run.clear_stop()
            self._is_stopped_there = False

    def _is_same(self, number: int) -> bool:
        """Returns whether the mirror's files of a model match those of the run."""
        there = {
            word_in(file, "name"): word_in(file, "sha256")
            for file in self._files(number)
        }
        try:
            here = {
                path.name: file_sha256(path)
                for path in find_files(self._models.entry(number), "*")
            }
        except OSError:
            return False
        return here == there

    def _files(self, number: int) -> list[Mapping[str, Any]]:
        """Returns the name, size and SHA-256 of each file of model ``number``."""
        files = self._client.ask("model", number=number)["files"]
        if not isinstance(files, list) or not 1 <= len(files) <= _MOST_FILES:
            raise RunError(f"model ({number}) of {self._client.name} has no files")
        return files

    def _fetch(self, number: int) -> None:
        files = self._files(number)
        part = self._parts / f"{number:06d}"
        try:
            for other in find_files(self._parts, "*"):
                if other != part:
                    shutil.rmtree(other, ignore_errors=True)
            part.mkdir(parents=True, exist_ok=True)
            for file in files:
                self._fetch_file(part, number, file)
        except OSError as error:
            raise storage_error(part, error) from error

        def write(folder: Path) -> None:
            for file in files:
                os.replace(part / file["name"], folder / file["name"])

        self._models.publish(number, write)
        shutil.rmtree(self._parts, ignore_errors=True)

    def _fetch_file(self, part: Path, number: int, file: Mapping[str, Any]) -> None:
        name, sha256 = word_in(file, "name"), word_in(file, "sha256")
        size = number_in(file, "size", MAX_FILE_BYTES)
        path = part / name
        with open(path, "ab") as out:
            offset = out.tell()
            while offset < size:
                data = decoded(
                    self._client.ask("piece", number=number, name=name, offset=offset)
                )
                if not data or offset + len(data) > size:
                    break
                out.write(data)
                offset += len(data)
                self._between()
        if offset != size or file_sha256(path) != sha256:
            path.unlink()
            raise RunError(
                f"model ({number}, {name}) of {self._client.name} arrived damaged; it "
                f"is downloaded again"
            )


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

    def send(self, until: float) -> None:
        """Uploads games, and removes all uploaded segments except the newest few.

        Args:
            until: The ``time.monotonic`` time after which no second upload begins.

        Raises:
            TengenError: See ``RunClient``; or a file operation failed.
        """
        for path in self.unsent():
            upload = self._uploads.get(path) or self._upload(path)
            self._uploads[path] = upload
            if upload.send() and path.suffix == ".npz":
                self._is_sent.add(path)
            if time.monotonic() > until:
                break
        self._uploads = {
            path: upload
            for path, upload in self._uploads.items()
            if path not in self._is_sent and path.exists()
        }
        sent = sorted(self._is_sent, key=lambda path: int(path.stem))
        for path in sent[:-_KEPT_SEGMENTS]:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(path, error) from error

    def sent_generations(self) -> set[int]:
        """Returns the numbers of generations with uploaded segments. Thread-safe."""
        return {int(path.stem) for path in tuple(self._is_sent)}

    def unsent_bytes(self) -> int:
        """Returns the number of bytes of games not yet uploaded. Thread-safe."""
        known = dict(self._uploads)
        num_bytes = 0
        for path in self.unsent():
            num_sent = known[path].num_sent if path in known else 0
            with suppress(FileNotFoundError):
                num_bytes += max(0, path.stat().st_size - num_sent)
        return num_bytes

    def unsent(self) -> list[Path]:
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
