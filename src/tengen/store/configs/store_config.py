"""The config of a store: its tables, memory, disk and address."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check, from_dict
from tengen.errors import UsageError, os_reason
from tengen.store.configs.table_config import (
    TableConfig,
    check_kind,
    without_dropped,
)

_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
}
# Removed settings, and the values that earlier versions wrote into run.json.
_DROPPED = {"on_damage": "skip"}
_PATHS = ("directory", "disk_directory", "certificate_file", "key_file")


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """The config of a store, whose tables share one memory budget."""

    tables: dict[str, TableConfig] = field(default_factory=dict)
    """The tables by name."""

    memory_bytes: int = bounded(1 << 30, 1, 2**62)
    """Memory for all tables' steps; with `disk_bytes`, for the most used steps."""

    seed: int = bounded(0, 0, 2**64 - 1)
    """Seed of the random number generator that samples items."""

    directory: str | None = None
    """A folder in a memory file system, such as ``/dev/shm/experience``, created if
    absent, from which other processes of this host map the steps. None: only this
    process uses the store. `tengen store` chooses the folder."""

    disk_bytes: int = bounded(0, 0, 2**62)
    """Disk space for steps that do not fit in memory; 0: all steps stay in memory."""

    disk_directory: str | None = None
    """A folder on a disk for `disk_bytes`, created if absent. `Store.close` removes the
    folder, unless `durability` is set. `tengen store` puts it into the run directory.
    """

    durability: Literal["none", "checkpoint", "async", "sync"] = "none"
    """Data that the next store with the same `disk_directory` restores after the host
    was lost or the store was closed. ``none``: nothing. ``checkpoint``: the last
    checkpoint. ``async``: as ``checkpoint``, with a checkpoint every `durability_ms`.
    ``sync``: as ``async``, and all inserts for which a writer's ``flush`` returned."""

    durability_ms: float = bounded(100.0, 0.001, 1e9)
    """Milliseconds between two checkpoints of ``async`` and ``sync``, above 0."""

    listen: str | None = None
    """``HOST:PORT`` to listen on for clients on other hosts; port 0 selects a free
    port. None: only clients on this host. Clients must send the token in the
    environment variable ``TENGEN_STORE_TOKEN``."""

    certificate_file: str | None = None
    """PEM file of the TLS certificate for clients of `listen`; the path is relative to
    the working directory."""

    key_file: str | None = None
    """PEM file of the private key of `certificate_file`."""

    def __post_init__(self) -> None:
        for name in _PATHS:
            if isinstance(path := getattr(self, name), os.PathLike):
                object.__setattr__(self, name, path := os.fspath(path))
            check(
                path is None or isinstance(path, str),
                name,
                repr(path),
                "must be a path; give a string or a pathlib.Path",
            )
        check_kind("tables", self.tables, dict)
        for name, table in self.tables.items():
            check_kind("tables", table, TableConfig)
            check(
                table.name == name,
                f"tables.{name}.name",
                table.name,
                f"must be {name}, the table's key; change one of them",
            )
        check_fields(self)
        check(
            self.durability == "none" or self.disk_bytes > 0,
            "durability",
            self.durability,
            "must be none without a disk; set disk_bytes",
        )
        for name in ("certificate_file", "key_file"):
            file = getattr(self, name)
            check(
                self.listen is not None or file is None,
                name,
                file,
                "needs listen; set it, or leave this out",
            )

    @property
    def is_durable(self) -> bool:
        """Whether the store's checkpoints survive the loss of the host."""
        return self.durability != "none"

    def check_ready(self) -> None:
        """Checks that the config is sufficient to create a store.

        Raises:
            UsageError: There is no table, or only one of `disk_bytes` and
                `disk_directory` is set.
        """
        check(
            bool(self.tables),
            "tables",
            "none",
            "must be at least one; add a table",
        )
        check(
            self.disk_bytes == 0 or self.disk_directory is not None,
            "disk_directory",
            self.disk_directory,
            f"must be set with disk_bytes ({self.disk_bytes}); choose a folder on a "
            "disk",
        )
        check(
            self.disk_bytes > 0 or self.disk_directory is None,
            "disk_bytes",
            self.disk_bytes,
            "must be above 0 with a disk_directory; set the maximum disk usage",
        )

    @classmethod
    def of(cls, tables: Iterable[TableConfig], **settings: Any) -> StoreConfig:
        """Returns the config of a store with the given tables.

        Args:
            tables: The table configs, which must have unique names.
            settings: The other fields of the config.

        Raises:
            UsageError: A value is rejected, or two tables have the same name.
        """
        check(
            not isinstance(tables, TableConfig | str | Mapping),
            "tables",
            tables,
            "must be a list; list the store's tables",
        )
        by_name: dict[str, TableConfig] = {}
        for table in tables:
            check_kind("tables", table, TableConfig)
            check(
                table.name not in by_name,
                "table",
                table.name,
                "must have a unique name; rename one",
            )
            by_name[table.name] = table
        return cls(tables=by_name, **settings)

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str = "") -> StoreConfig:
        """Returns the store config that ``data`` describes.

        Args:
            data: The fields as JSON values. A table's ``name`` may be omitted.
            where: Dotted path of ``data`` in its file, for error messages.

        Raises:
            UsageError: A key is unknown or missing, or has an invalid value.
        """
        tables = data.get("tables", {}) if isinstance(data, Mapping) else None
        if isinstance(tables, Mapping):
            named = {
                name: without_dropped({"name": name, **table})
                if isinstance(table, Mapping)
                else table
                for name, table in tables.items()
            }
            rest = {
                name: value
                for name, value in data.items()
                if name not in _DROPPED or value != _DROPPED[name]
            }
            data = {**rest, "tables": named}
        return from_dict(cls, data, where)

    @classmethod
    def read(cls, path: Path) -> StoreConfig:
        """Returns the store config in the TOML or JSON file ``path``.

        Raises:
            UsageError: The file cannot be read, or its content is invalid.
        """
        reader = _READERS.get(path.suffix)
        if reader is None:
            raise UsageError(
                f"config ({path}) must end in {' or '.join(_READERS)}; rename it"
            )
        try:
            data = reader(path.read_text())
        except OSError as error:
            raise UsageError(
                f"config ({path}) cannot be read: {os_reason(error)}; check it"
            ) from error
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"config ({path}) is invalid {path.suffix[1:].upper()}: {error}; fix it"
            ) from error
        return cls.from_json(data)
