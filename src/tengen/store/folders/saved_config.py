"""A store's settings, as its folders keep them for the next store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tengen.errors import UsageError
from tengen.run.publish import publish_json
from tengen.store.configs.disk_config import DiskConfig
from tengen.store.configs.table_config import Column, TableConfig
from tengen.store.messages import VERSION

__all__ = [
    "CONFIG_NAME",
    "Differences",
    "compare",
    "describe_store",
    "left_columns",
    "read_config",
    "save_config",
]

CONFIG_NAME = "store.json"
# If one of these changed, the stored bytes would be read as other steps.
_FIXED = ("name", "columns", "num_steps", "steps_per_chunk")
# Settings of the store that may differ, which is reported. The disk may lie elsewhere.
_TOLD = ("memory_bytes", "disk_bytes", "on_damage", "durability", "durability_ms")


class Differences(NamedTuple):
    """Differences between an ended store's settings and the next store's.

    Attributes:
        lines: Text for people, one line for each setting.
        changed: Numbers of the tables whose limits or capacity differ.
    """

    lines: list[str]
    changed: list[int]


def describe_store(
    configs: Sequence[TableConfig], memory_bytes: int, disk: DiskConfig | None
) -> dict[str, Any]:
    """Returns a store's settings as JSON values."""
    tables = [
        {**config.to_dict(), "steps_per_chunk": config.chunk_length}
        for config in configs
    ]
    return {
        "version": VERSION,
        "memory_bytes": memory_bytes,
        "disk_directory": None if disk is None else str(disk.directory),
        "disk_bytes": 0 if disk is None else disk.num_bytes,
        "on_damage": None if disk is None else disk.on_damage,
        "durability": "none" if disk is None else disk.durability,
        "durability_ms": None if disk is None else disk.durability_ms,
        "tables": tables,
    }


def save_config(directory: Path, description: dict[str, Any]) -> None:
    """Writes what ``describe_store`` returned into a folder."""
    publish_json(directory / CONFIG_NAME, description)


def read_config(directory: Path) -> dict[str, Any]:
    """Returns what was written there; empty if the file is missing or cut short."""
    try:
        read = json.loads((directory / CONFIG_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def left_columns(directory: Path, table: str) -> dict[str, Column]:
    """Returns the columns of a table of the ended store that left a folder.

    Args:
        directory: The folder, on a host or a disk, which need not exist.
        table: The table's name.

    Returns:
        The columns by name; empty if no store left such a table there.

    Raises:
        UsageError: The folder's file is not as a store writes it.
    """
    for left in read_config(directory).get("tables", []):
        if left["name"] == table:
            return TableConfig.from_dict(left).columns
    return {}


def compare(
    name: str, directory: Path, now: dict[str, Any], fixed: Sequence[str]
) -> Differences:
    """Compares a new store's settings with those of the store that left a folder.

    Args:
        name: The option that names the folder.
        directory: The folder.
        now: What ``describe_store`` returns for the new store.
        fixed: Keys of ``now`` that must not change, besides the version.

    Raises:
        UsageError: A setting differs that must not.
    """

    def refuse(key: str, before: Any, after: Any) -> UsageError:
        return UsageError(
            f"{key} ({after}) must be {before}, as in the ended store that left "
            f"{name} {directory}; give the same, or remove the folder"
        )

    then = read_config(directory)
    if not {"version", "tables"} <= then.keys():
        raise UsageError(
            f"{name} ({directory}) must have the {CONFIG_NAME} of the ended store that "
            f"left it; bring that back, or remove the folder"
        )
    if then["version"] != now["version"]:
        raise UsageError(
            f"{name} ({directory}) must be of this tengen's version {now['version']}, "
            f"and is of {then['version']}; use the tengen that left it, or remove the "
            "folder"
        )
    now = json.loads(json.dumps(now))
    for key in fixed:
        if then.get(key) != now[key]:
            raise refuse(key, then.get(key), now[key])
    names_then = [table["name"] for table in then["tables"]]
    names_now = [table["name"] for table in now["tables"]]
    if names_then != names_now:
        raise refuse("tables", names_then, names_now)
    differences = Differences([], [])
    for key in _TOLD:
        if key in then and then[key] != now[key]:
            differences.lines.append(_differs(key, then[key], now[key]))
    for number, (before, after) in enumerate(
        zip(then["tables"], now["tables"], strict=True)
    ):
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


def _differs(setting: str, before: Any, after: Any) -> str:
    return f"{setting} was {before} when the store ended, and is {after} now"
