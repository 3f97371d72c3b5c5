"""Actors turn inference into actions and experience: by tree search or by the policy.

Importing this package imports no torch.
"""

from __future__ import annotations

from typing import TypeAlias

from tengen.actors.environment import (
    EnvironmentActorConfig,
    EnvironmentPort,
    EnvironmentStats,
    environment_seed,
    features_of,
)
from tengen.actors.processes import GamesOfGeneration, SelfplayProcesses
from tengen.actors.selfplay import GenerationReport, play_generation
from tengen.actors.selfplay_config import MAX_SLOTS, SelfplayConfig
from tengen.actors.unroll import Unrolls, unroll_columns, unroll_counts

__all__ = [
    "MAX_SLOTS",
    "ActorConfig",
    "EnvironmentActorConfig",
    "EnvironmentPort",
    "EnvironmentStats",
    "GamesOfGeneration",
    "GenerationReport",
    "SelfplayConfig",
    "SelfplayProcesses",
    "Unrolls",
    "environment_seed",
    "features_of",
    "play_generation",
    "unroll_columns",
    "unroll_counts",
]

ActorConfig: TypeAlias = SelfplayConfig | EnvironmentActorConfig
