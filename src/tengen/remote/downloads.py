"""Downloads run.json, STOP, the status and models from a run to its mirror."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.observe.status import HOST_STATUS
from tengen.remote.client import RunClient
from tengen.remote.messages import MAX_FILE_BYTES, decoded, number_in, word_in
from tengen.run import (
    RunDirectory,
    file_sha256,
    find_files,
    publish_json,
    storage_error,
)

__all__ = ["Downloads"]

_KEPT = 3
_MOST_FILES = 16
_FETCHING = "fetching"
_STATUS_S = 10.0


class Downloads:
    """Keeps a mirror's files in sync with the run. Used by one thread.

    Args:
        client: A client of the run's service.
        run: The mirror's folder.
        between: Called after each chunk of a model. If it raises, the download stops
            until the next call of ``follow``.
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
        # Initially True, so that a STOP file of an earlier process is removed.
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
        is_here = newest in self._models.numbers()
        if is_here and not self._is_checked and not self._is_same(newest):
            self._models.remove(newest)
            is_here = False
        self._is_checked = True
        if not is_here:
            self._fetch(newest)
            self._models.retire(_KEPT)

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
                "is downloaded again"
            )
