"""Actors, which play games or step environments and write the experience.

Importing this package does not import torch.
"""

from __future__ import annotations

from tengen.actors.actions import (
    ActionDraws,
    Policy,
    Slots,
    clip_actions,
    encode_actions,
    encoded_length,
    is_legal,
    make_action_draws,
    make_squashed_draws,
    random_choices,
)
from tengen.actors.behaviour import (
    INTRINSIC,
    Bandit,
    Behaviour,
    Behaviours,
    InTurn,
    Selector,
)
from tengen.actors.block import (
    IS_PRESENT,
    StepBlock,
    TeamBlock,
    step_tensors,
    team_tensors,
)
from tengen.actors.environment import (
    EnvironmentActorConfig,
    EnvironmentPort,
    EnvironmentStats,
)
from tengen.actors.environment_rows import LAST_ACTION, LAST_REWARD, EnvironmentRows
from tengen.actors.episodic_memory import EpisodicMemory
from tengen.actors.opponents import NUM_OPPONENTS, Opponents
from tengen.actors.playback import play_back
from tengen.actors.processes import GamesOfGeneration, SelfplayProcesses
from tengen.actors.selfplay import GenerationReport, play_generation
from tengen.actors.selfplay_config import MAX_SLOTS, BootstrapConfig, SelfplayConfig

__all__ = [
    "INTRINSIC",
    "IS_PRESENT",
    "LAST_ACTION",
    "LAST_REWARD",
    "MAX_SLOTS",
    "NUM_OPPONENTS",
    "ActionDraws",
    "Bandit",
    "Behaviour",
    "Behaviours",
    "BootstrapConfig",
    "EnvironmentActorConfig",
    "EnvironmentPort",
    "EnvironmentRows",
    "EnvironmentStats",
    "EpisodicMemory",
    "GamesOfGeneration",
    "GenerationReport",
    "InTurn",
    "Opponents",
    "Policy",
    "Selector",
    "SelfplayConfig",
    "SelfplayProcesses",
    "Slots",
    "StepBlock",
    "TeamBlock",
    "clip_actions",
    "encode_actions",
    "encoded_length",
    "is_legal",
    "make_action_draws",
    "make_squashed_draws",
    "play_back",
    "play_generation",
    "random_choices",
    "step_tensors",
    "team_tensors",
]
