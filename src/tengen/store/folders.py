"""A store's folders in shared memory and on disk, and the settings stored there."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tengen.errors import UsageError
from tengen.run import publish_json
from tengen.store.configs.store_config import StoreConfig
from tengen.store.configs.table_config import Column, TableConfig, without_dropped
from tengen.store.messages import FOLDER_VERSION
from tengen.transport import LOCK_NAME, SOCKET_NAME, FolderLock, HostFolder

CONFIG_NAME = "store.json"
# Table settings that must not change, because they determine the layout of steps.
_FIXED = ("name", "columns", "num_steps", "steps_per_chunk")
# Store settings that may change. Each change is reported to the user.
_TOLD = ("memory_bytes", "disk_bytes", "durability", "durability_ms")
_STATE = "state-"
OWN_NAMES = ("rows-", "log-", _STATE, CONFIG_NAME, ".tmp-")
"""Prefixes of the file names in a store's folder on disk."""
_HOST_NAMES = (CONFIG_NAME, "slab-", "session-", "log-", "state-", ".tmp-")


class Differences(NamedTuple):
    """Differences between the settings of a store and of the store it resumes from.

    Attributes:
        lines: Human-readable descriptions, one line per setting.
        changed: Indices of the tables whose limits or capacity differ.
    """

    lines: list[str]
    changed: list[int]


def describe_store(config: StoreConfig) -> dict[str, Any]:
    """Returns the settings of ``config`` as JSON values for `CONFIG_NAME`."""
    tables = [
        {**table.to_dict(), "steps_per_chunk": table.chunk_length}
        for table in config.tables.values()
    ]
    has_disk = config.disk_bytes > 0
    return {
        "version": FOLDER_VERSION,
        "memory_bytes": config.memory_bytes,
        "disk_directory": config.disk_directory,
        "disk_bytes": config.disk_bytes,
        "durability": config.durability,
        "durability_ms": config.durability_ms if has_disk else None,
        "tables": tables,
    }


def save_config(directory: Path, description: dict[str, Any]) -> None:
    """Replaces the settings in ``directory``. Blocks until they are durable.

    Raises:
        RunError: The folder is not writable or is full. The old settings remain.
    """
    publish_json(directory / CONFIG_NAME, description)


def read_config(directory: Path) -> dict[str, Any]:
    """Returns the settings in ``directory``; {} if they are missing or unreadable."""
    try:
        read = json.loads((directory / CONFIG_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def left_columns(directory: Path, table: str) -> dict[str, Column]:
    """Returns the columns of a table from the folder of a store that has ended.

    Args:
        directory: The store's folder in shared memory or on disk; may be missing.
        table: The table's name.

    Returns:
        The columns by name; empty if the folder has no table called ``table``.

    Raises:
        UsageError: The settings in the folder are malformed.
    """
    try:
        for left in _tables_of(read_config(directory)):
            if left["name"] == table:
                return TableConfig.from_dict(left).columns
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"{CONFIG_NAME} (in {directory}) is damaged; restore it, or remove the "
            "folder"
        ) from error
    return {}


def compare(
    name: str, directory: Path, now: dict[str, Any], fixed: Sequence[str]
) -> Differences:
    """Compares the settings of a new store and of the store it resumes from.

    Args:
        name: Name of the setting that gives the folder, for error messages.
        directory: The folder of the ended store.
        now: The new store's settings, from ``describe_store``.
        fixed: Keys of ``now`` that must not change, in addition to the version.

    Raises:
        UsageError: A setting that must not change differs.
    """

    def refuse(key: str, before: Any, after: Any) -> UsageError:
        key, before, after = _innermost(key, before, after)
        return UsageError(
            f"{key} ({after}) must be {before}, as in the previous store of {name} "
            f"{directory}; set it so, or remove the folder"
        )

    then = read_config(directory)
    tables_then = _tables_of(then)
    if "version" not in then or tables_then != then.get("tables"):
        raise UsageError(
            f"{name} ({directory}) must have the {CONFIG_NAME} of its previous store; "
            "restore it, or remove the folder"
        )
    if then["version"] != now["version"]:
        raise UsageError(
            f"{name} ({directory}) must be of version {now['version']}, not "
            f"{then['version']}; use the tengen that made it, or remove the folder"
        )
    now = json.loads(json.dumps(now))
    if isinstance(disk := then.get("disk_directory"), str):
        then["disk_directory"] = os.path.abspath(disk)
    for key in fixed:
        if then.get(key) != now[key]:
            raise refuse(key, then.get(key), now[key])
    names_then = [table["name"] for table in tables_then]
    names_now = [table["name"] for table in now["tables"]]
    if names_then != names_now:
        raise refuse("tables", names_then, names_now)
    differences = Differences([], [])
    for key in _TOLD:
        if key in then and then[key] != now[key]:
            differences.lines.append(_differs(key, then[key], now[key]))
    for number, (before, after) in enumerate(
        zip(tables_then, now["tables"], strict=True)
    ):
        before = without_dropped(before)
        for key, value in after.items():
            if before.get(key) == value:
                continue
            setting = f"{after['name']}.{key}"
            if key in _FIXED:
                raise refuse(setting, before.get(key), value)
            differences.lines.append(_differs(setting, before.get(key), value))
            if key in ("limits", "max_items", "max_bytes"):
                differences.changed.append(number)
    return differences


def _tables_of(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the well-formed table entries of the JSON object ``config``."""
    tables = config.get("tables")
    return [
        table
        for table in (tables if isinstance(tables, list) else ())
        if isinstance(table, dict) and isinstance(table.get("name"), str)
    ]


def _innermost(setting: str, before: Any, after: Any) -> tuple[str, Any, Any]:
    """Returns the first entry in which two settings differ, and its two values."""
    while isinstance(before, dict) and isinstance(after, dict):
        pairs = {
            name: (before.get(name, "absent"), after.get(name, "absent"))
            for name in sorted({*before, *after})
        }
        name = next(name for name, (then, now) in pairs.items() if then != now)
        setting, (before, after) = f"{setting}.{name}", pairs[name]
    return setting, before, after


def _differs(setting: str, before: Any, after: Any) -> str:
    return f"{setting} was {before} in the previous store, and is now {after}"


class DiskFolder:
    """A store's folder on disk, locked until `end`, `leave` or the process exits.

    Args:
        config: The config of a store with a disk.
        goes_on: Whether the store resumes from the shared memory of a killed store.

    Raises:
        UsageError: The folder is in use by a store, has unrelated files, or has a
            checkpoint from which this store cannot resume.

    Attributes:
        differences: Settings that differ from those stored with the checkpoint.
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
                    "durability none; set another durability, or remove the folder"
                )
            now = describe_store(config)
            # A store and its replicas have the ID of the store that they resume from.
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
                # Write the settings first: a checkpoint cannot be loaded without them.
                self.begin()
        except BaseException:
            self.leave()
            raise

    def begin(self) -> None:
        """Records the store's settings after the store has been created.

        Raises:
            RunError: The disk is full, or the folder cannot be written.
        """
        save_config(self._directory, self._description)

    def end(self) -> None:
        """Unlocks the folder, and removes it if it is not durable. Idempotent."""
        if not self._is_durable:
            shutil.rmtree(self._directory, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Unlocks the folder and leaves its content for the next store. Idempotent."""
        self._lock.leave()


class StoreFolder(HostFolder):
    """A store's folder in shared memory, locked until `leave` or the process ends.

    Args:
        directory: The folder, created if absent with access for this user only.
        config: The store's config.

    Raises:
        UsageError: The folder is in use by a store, has unrelated files, may belong to
            another user, or was left by a killed store with different tables.

    Attributes:
        goes_on: Whether the store resumes from the data of a killed store.
        differences: One line for each setting that differs from the killed store.
        changed: Indices of the tables whose limits or capacity differ.
    """

    def __init__(self, directory: Path, config: StoreConfig) -> None:
        super().__init__("store", directory, _HOST_NAMES)
        self.goes_on = False
        self.differences: list[str] = []
        self.changed: list[int] = []
        try:
            self._compare(config)
        except BaseException:
            self.leave()
            raise

    def begin(self, config: StoreConfig) -> None:
        """Records the store's settings after the store has been created.

        Raises:
            RunError: The file system is full, or the folder cannot be written.
        """
        save_config(self.path, describe_store(config))

    def _compare(self, config: StoreConfig) -> None:
        """Sets ``goes_on`` if the folder has a state; otherwise removes its files."""
        names = sorted(path.name for path in self.path.iterdir())
        has_state = any(name.startswith("state-") for name in names)
        if not has_state or CONFIG_NAME not in names:
            for name in names:
                if name != LOCK_NAME:
                    (self.path / name).unlink(missing_ok=True)
            return
        (self.path / SOCKET_NAME).unlink(missing_ok=True)
        differences = compare(
            "directory",
            self.path,
            describe_store(config),
            ("memory_bytes", "disk_directory"),
        )
        self.differences = differences.lines
        self.changed = differences.changed
        self.goes_on = True
