"""The config of a store that has a process of its own, from a file and ``--set``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check, from_dict
from tengen.errors import UsageError, os_reason
from tengen.store.configs.disk_config import Durability
from tengen.store.configs.table_config import TableConfig

__all__ = ["StoreConfig"]

_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
}


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """The config of a store: tables within one budget of memory."""

    tables: dict[str, TableConfig] = field(default_factory=dict)
    """The tables by name."""

    memory_bytes: int = bounded(1 << 30, 1, 2**62)
    """Memory for all steps of all tables; with ``disk_bytes`` for those that are used
    most."""

    disk_bytes: int = bounded(0, 0, 2**62)
    """Disk space, in the run directory, for steps that memory does not hold; 0: memory
    holds all steps."""

    on_damage: Literal["skip", "refuse"] = "skip"
    """What happens if steps on the disk cannot be read: ``skip`` removes their items,
    ``refuse`` raises an error in the caller that draws them."""

    durability: Durability = "none"
    """What is kept if the host is lost; see `Store`."""

    durability_ms: float = bounded(100.0, 0.001, 1e9)
    """Milliseconds between two checkpoints of ``async`` and ``sync``, above 0."""

    listen: str | None = None
    """``HOST:PORT`` to listen on for clients of other hosts, port 0 for a free one;
    None: for this host only. Clients must send the token in the variable
    ``TENGEN_STORE_TOKEN``."""

    certificate_file: str | None = None
    """TLS certificate for clients of ``listen``, a PEM file; the path is relative to
    the working directory."""

    key_file: str | None = None
    """The certificate's private key, a PEM file."""

    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        for name, table in self.tables.items():
            check(
                table.name == name,
                f"tables.{name}.name",
                table.name,
                f"must be {name}, the key of the table; change one of them",
            )
        check_fields(self)
        check(
            self.durability == "none" or self.disk_bytes > 0,
            "durability",
            self.durability,
            "must be none without a disk; give disk_bytes",
        )
        for name, file in (
            ("certificate_file", self.certificate_file),
            ("key_file", self.key_file),
        ):
            check(
                self.listen is not None or file is None,
                name,
                file,
                "must be left out without listen; give listen too",
            )

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str = "") -> StoreConfig:
        """Reads JSON values. A table's ``name`` may be left out.

        Args:
            data: The fields.
            where: Dotted path of ``data`` in its file, for messages.

        Raises:
            UsageError: A key is unknown, is missing or has a wrong value.
        """
        tables = data.get("tables", {}) if isinstance(data, Mapping) else None
        if isinstance(tables, Mapping):
            named = {
                name: {"name": name, **table} if isinstance(table, Mapping) else table
                for name, table in tables.items()
            }
            data = {**data, "tables": named}
        return from_dict(cls, data, where)

    @classmethod
    def read(cls, path: Path) -> StoreConfig:
        """Reads a file of TOML or JSON.

        Raises:
            UsageError: The file cannot be read, or its content is refused.
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
                f"config ({path}) is no {path.suffix[1:].upper()}: {error}; mend it"
            ) from error
        return cls.from_json(data)
