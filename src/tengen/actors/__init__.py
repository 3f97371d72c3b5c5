"""Actors: how inference becomes actions, and actions experience; no torch here."""

from __future__ import annotations

from tengen.actors.environment import (
    EnvironmentActorConfig,
    EnvironmentPort,
    EnvironmentStats,
    environment_seed,
    features_of,
)
from tengen.actors.unroll import Unrolls, unroll_schema

__all__ = [
    "EnvironmentActorConfig",
    "EnvironmentPort",
    "EnvironmentStats",
    "Unrolls",
    "environment_seed",
    "features_of",
    "unroll_schema",
]
