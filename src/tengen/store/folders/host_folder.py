"""The folder of a store on a host: one server at a time, and what a killed one left."""

from __future__ import annotations

from pathlib import Path

from tengen.store.configs.store_config import StoreConfig
from tengen.store.folders.saved_config import (
    CONFIG_NAME,
    compare,
    describe_store,
    save_config,
)
from tengen.transport import LOCK_NAME, SOCKET_NAME, HostFolder

__all__ = ["StoreFolder"]

_OWN = (CONFIG_NAME, "slab-", "session-", "log-", "state-", ".tmp-")


class StoreFolder(HostFolder):
    """Holds the folder for this process, until `leave` or the end of the process.

    Args:
        directory: The folder; made when absent, for this user alone.
        config: The store's.

    Raises:
        UsageError: The folder is in use by a store, holds other files, may be another
            user's, or was left by a killed store of other tables.

    Attributes:
        goes_on: Whether the store continues from what a killed store left.
        differences: A line for each setting that differs from the killed store's.
        changed: Numbers of the tables whose limits or capacity differ.
    """

    def __init__(self, directory: Path, config: StoreConfig) -> None:
        super().__init__("store", directory, _OWN)
        self.goes_on = False
        self.differences: list[str] = []
        self.changed: list[int] = []
        try:
            self._compare(config)
        except BaseException:
            self.leave()
            raise

    def begin(self, config: StoreConfig) -> None:
        """Records the store's settings, once it is made."""
        save_config(self.path, describe_store(config))

    def _compare(self, config: StoreConfig) -> None:
        """Decides whether to continue from what is there; if not, removes it."""
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
