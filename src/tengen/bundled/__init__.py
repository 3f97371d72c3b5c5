"""Bundled players: small trained models, with manifests of their training and strength.

Each player is a folder in ``players/``: a model directory with half-precision weights
and ``player.json``. ``tengen.models.resolve_model`` finds players by name. Importing
this package does not import torch.
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
