"""The folder on a disk for a store's steps that memory does not hold."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from tengen.errors import UsageError, os_reason
from tengen.store.configs.store_config import StoreConfig
from tengen.store.folders.saved_config import (
    CONFIG_NAME,
    Differences,
    compare,
    describe_store,
    read_config,
    save_config,
)
from tengen.transport import LOCK_NAME, FolderLock

__all__ = ["OWN_NAMES", "DiskFolder"]

_STATE = "state-"
OWN_NAMES = ("rows-", "log-", _STATE, CONFIG_NAME, ".tmp-")
"""Prefixes of the files' names in such a folder."""


class DiskFolder:
    """Holds the folder for this process, until `end` or the end of the process.

    Args:
        config: The store's, with a disk.
        goes_on: Whether the store continues from memory that a killed store left.

    Raises:
        UsageError: The folder is in use by a store, holds other files, or has a
            checkpoint that this store cannot continue.

    Attributes:
        differences: Settings that differ from the store whose checkpoint is continued.
    """

    def __init__(self, config: StoreConfig, goes_on: bool) -> None:
        assert config.disk_directory is not None
        self._directory = Path(config.disk_directory)
        self._is_durable = config.is_durable
        self.differences = Differences([], [])
        self._lock = FolderLock("store", "disk_directory", self._directory, OWN_NAMES)
        try:
            names = sorted(path.name for path in self._directory.iterdir())
            has_checkpoint = any(name.startswith(_STATE) for name in names)
            if has_checkpoint and not config.is_durable:
                raise UsageError(
                    f"disk_directory ({self._directory}) must have no checkpoint with "
                    f"durability none; give another durability, or remove the folder"
                )
            now = describe_store(config)
            # One identity for all stores that continue one another, and for their
            # replicas.
            then = read_config(self._directory) if has_checkpoint else {}
            now["id"] = then.get("id") or secrets.token_hex(16)
            if has_checkpoint and not goes_on:
                self.differences = compare("disk_directory", self._directory, now, ())
            if not has_checkpoint and not goes_on:
                for name in names:
                    if name != LOCK_NAME:
                        (self._directory / name).unlink(missing_ok=True)
            self._description = now
            if not has_checkpoint:
                # Written before the first checkpoint, which is of no use without it.
                self.begin()
        except BaseException:
            self.leave()
            raise

    def begin(self) -> None:
        """Records the store's settings, once it is made.

        Raises:
            UsageError: The disk has no room for them, or has failed.
        """
        try:
            save_config(self._directory, self._description)
        except OSError as error:
            raise UsageError(
                f"disk_directory ({self._directory}) cannot have a store: "
                f"{os_reason(error)}; free room there, or choose another"
            ) from error

    def end(self) -> None:
        """Removes the folder, unless its content is to stay. Idempotent."""
        if not self._is_durable:
            shutil.rmtree(self._directory, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Releases the folder and leaves its content for the next store. Idempotent."""
        self._lock.leave()
