"""Runs that learn from imported games first: made sure of before anything starts."""

from __future__ import annotations

import dataclasses

from tengen.roles.config import RunConfig

__all__ = ["checked_imported"]


def checked_imported(config: RunConfig) -> RunConfig:
    """Returns the config with ``store.imported`` as the full path of its folder.

    Raises:
        UsageError: There are no such games, they are of another board, too few, or in a
            file that is damaged.
    """
    return dataclasses.replace(config, store=config.store.checked(config.task))
