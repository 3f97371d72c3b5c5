"""Players that the package brings: small trained models, how they were made and rated.

A folder each in ``players/``: a model directory in half precision, and ``player.json``.
``tengen.models.resolve_model`` opens them wherever a model is named. Importing this
imports no torch.
"""

from __future__ import annotations

from tengen.bundled.players import (
    BUNDLED,
    Manifest,
    RatedLevel,
    Strength,
    bundled_folder,
    bundled_name,
    bundled_names,
    find_level,
    known_name,
    level_of,
    read_manifest,
)

__all__ = [
    "BUNDLED",
    "Manifest",
    "RatedLevel",
    "Strength",
    "bundled_folder",
    "bundled_name",
    "bundled_names",
    "find_level",
    "known_name",
    "level_of",
    "read_manifest",
]
