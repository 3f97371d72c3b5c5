"""The config of a store's disk."""

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
    """Where a store's disk is, its size, and what is kept if the host is lost."""

    directory: Path
    """A folder on a disk; made when absent."""

    num_bytes: int
    """Bytes of all rows, above 0."""

    on_damage: Literal["skip", "refuse"] = "skip"
    """What happens to items that cannot be read: ``skip`` removes them and draws
    others, ``refuse`` raises an error in the caller that draws them."""

    durability: Durability = "none"
    """What is kept if the host is lost. ``none``: nothing. ``checkpoint``: the last
    checkpoint. ``async``: as ``checkpoint``, and a checkpoint is made every
    `durability_ms`. ``sync``: as ``async``, and a writer's flush waits for a
    checkpoint."""

    durability_ms: float = bounded(100.0, 0.001, 1e9)
    """Milliseconds between two checkpoints of ``async`` and ``sync``, above 0."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_range("disk_bytes", self.num_bytes, 1, 2**62)

    @property
    def is_durable(self) -> bool:
        """Whether anything is kept if the host is lost."""
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
        """Returns the config from a store's options; None if there is no disk.

        Raises:
            UsageError: ``num_bytes`` or ``directory`` is missing, or a value is
                refused.
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
            "must be above 0 with a disk_directory; give the bytes that the "
            "store may use there",
        )
        return cls(
            directory=Path(directory).absolute(),
            num_bytes=num_bytes,
            on_damage=on_damage,  # type: ignore[arg-type]
            durability=durability,  # type: ignore[arg-type]
            durability_ms=durability_ms,
        )
