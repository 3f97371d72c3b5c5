"""The disk of a store: where, how much, and what of it outlives the host."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError

__all__ = ["DiskConfig", "Durability"]

Durability = Literal["none", "checkpoint", "async", "sync"]


@dataclass(frozen=True, kw_only=True)
class DiskConfig:
    """Where, how much, and what becomes of bad rows."""

    directory: Path
    """On a disk; made when absent."""

    num_bytes: int
    """Of all rows, above 0."""

    on_damage: Literal["skip", "refuse"] = "skip"
    """Items that cannot be read are removed and others drawn instead, or whoever draws
    them gets an error."""

    durability: Durability = "none"
    """What outlives the host: nothing; the last checkpoint; that, and one is made every
    `durability_ms`; that, and a writer's flush waits for one."""

    durability_ms: float = bounded(100.0, 0.001, 1e9)
    """Milliseconds between two checkpoints of ``async`` and ``sync``, above 0."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_range("disk_bytes", self.num_bytes, 1, 2**62)

    @property
    def is_durable(self) -> bool:
        """Whether anything outlives the host."""
        return self.durability != "none"

    @classmethod
    def of(
        cls,
        num_bytes: int,
        directory: str | os.PathLike[str] | None,
        on_damage: str,
        durability: str,
        durability_ms: float,
    ) -> DiskConfig | None:
        """Returns the config of a store's options; None where there is no disk.

        Raises:
            UsageError: One of the first two is missing, or a value is refused.
        """
        if num_bytes == 0 and directory is None:
            check(
                durability == "none",
                "durability",
                durability,
                "must be none without a disk; give disk_bytes and disk_directory",
            )
            return None
        if directory is None:
            raise UsageError(
                f"disk_directory (None) must be given with disk_bytes ({num_bytes}); "
                f"name a folder on a disk"
            )
        check(
            num_bytes > 0,
            "disk_bytes",
            num_bytes,
            "must be above 0 with a disk_directory; say how much of it is the store's",
        )
        return cls(
            directory=Path(directory).absolute(),
            num_bytes=num_bytes,
            on_damage=on_damage,  # type: ignore[arg-type]
            durability=durability,  # type: ignore[arg-type]
            durability_ms=durability_ms,
        )
