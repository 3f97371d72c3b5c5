"""Predicts how much memory the games of a window take, before they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tengen.errors import RunError
from tengen.experience.games.manifest import Manifest
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.experience.window_config import WindowConfig
from tengen.run import available_memory_bytes

__all__ = ["check_window_memory", "predicted_window_bytes"]


def predicted_window_bytes(
    game: str, experience: Path, config: WindowConfig, state: Mapping[str, Any] | None
) -> int:
    """Returns about how many bytes the window takes, estimated from its newest segment.

    Args:
        game: The game's name.
        experience: ``RUN/experience``.
        config: The window.
        state: What ``GameWindow.state`` returned, None for a new window. Segments
            sealed since then count too.

    Raises:
        RunError: The newest segment is missing or damaged.
    """
    manifest = _manifest(experience, state)
    entries = [entry for entry in manifest if entry.num_rows > 0]
    if not entries:
        return 0
    sample = DerivedRows(game, auxiliary=False)
    with entries[-1].open(experience) as reader:
        sample.add(reader.game_columns())
    return sample.num_bytes * config.window_rows(manifest.num_rows) // sample.num_rows


def check_window_memory(
    game: str, experience: Path, config: WindowConfig, state: Mapping[str, Any] | None
) -> None:
    """Refuses a window that does not fit the memory; see ``predicted_window_bytes``.

    Raises:
        RunError: The window does not fit, or its newest segment is damaged.
    """
    needed = predicted_window_bytes(game, experience, config, state)
    free = available_memory_bytes()
    if needed > free:
        num_rows = _manifest(experience, state).num_rows
        raise RunError(
            f"window ({config.window_rows(num_rows)} rows) must fit the "
            f"{free / 1e9:.1f} GB of memory that are free, and takes about "
            f"{needed / 1e9:.1f} GB; lower --set store.max_rows"
        )


def _manifest(experience: Path, state: Mapping[str, Any] | None) -> Manifest:
    manifest = Manifest(experience)
    if state is not None:
        manifest = Manifest.from_dict(experience, state["manifest"])
        manifest.set_aside()
    manifest.discover()
    return manifest
