"""The models of a mirror: the newest of its run, fetched piece by piece."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.mirror.messages import MAX_FILE_BYTES, number_in, word_in
from tengen.mirror.run_client import RunClient
from tengen.run import RunDirectory, file_sha256, find_files, storage_error

__all__ = ["MirroredModels"]

_KEPT = 3
_FETCHING = "fetching"


class MirroredModels:
    """Has the newest model of a run in a mirror, and none that the run has not.

    A fetch that breaks goes on where it was. Used by one thread.

    Args:
        client: To the run's service.
        run: The mirror's folder.
        between: Called after each piece; what it raises ends the fetch for now.
    """

    def __init__(
        self, client: RunClient, run: RunDirectory, between: Callable[[], None]
    ) -> None:
        self._client = client
        self._models = run.models
        self._parts = run.path / _FETCHING
        self._between = between
        self._is_checked = False

    def follow(self, newest: int | None) -> None:
        """Has this model, and none above it.

        Args:
            newest: The newest that the run has.

        Raises:
            RunError: A file is not what the service said, the model is not at the host
                any more, or the disk refuses. Else as ``RunClient``.
        """
        for number in self._models.numbers():
            if newest is None or number > newest:
                self._models.remove(number)  # somebody's who took the folder for a run
        if newest is None:
            return
        here = newest in self._models.numbers()
        if here and not self._is_checked and not self._is_same(newest):
            self._models.remove(newest)
            here = False
        self._is_checked = True
        if not here:
            self._fetch(newest)
            self._models.retire(_KEPT)

    def _is_same(self, number: int) -> bool:
        there = {
            word_in(file, "name"): word_in(file, "sha256")
            for file in self._client.model_files(number)
        }
        try:
            here = {
                path.name: file_sha256(path)
                for path in find_files(self._models.entry(number), "*")
            }
        except OSError:
            return False
        return here == there

    def _fetch(self, number: int) -> None:
        files = self._client.model_files(number)
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
                data = self._client.model_piece(number, name, offset)
                if not data or offset + len(data) > size:
                    break
                out.write(data)
                offset += len(data)
                self._between()
        if offset != size or file_sha256(path) != sha256:
            path.unlink()
            raise RunError(
                f"model ({number}, {name}) of {self._client.name} arrived damaged; it "
                f"is fetched again"
            )
