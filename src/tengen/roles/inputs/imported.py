"""Checks of a run's imported games, which it learns from first."""

from __future__ import annotations

import dataclasses

from tengen.roles.config import RunConfig

__all__ = ["checked_imported"]


def checked_imported(config: RunConfig) -> RunConfig:
    """Returns the config with ``store.imported`` as the full path of its folder.

    Raises:
        UsageError: The games are missing, too few, of another board, or in a damaged
            file.
    """
    return dataclasses.replace(config, store=config.store.checked(config.task))
