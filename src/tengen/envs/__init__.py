"""The interface of environments, and functions that create them by name.

``make(name, num_envs, seed)`` returns an ``Env``. An environment's library is
imported when the environment is first used, not with this package.
"""

from __future__ import annotations

from tengen.envs.check import check_own_env
from tengen.envs.env import (
    ActionSpec,
    Arrays,
    CompiledEnv,
    Env,
    EnvSpec,
    EnvWrapper,
    GroupEnv,
    Scale,
    Step,
    hide_state,
)
from tengen.envs.filmed import FilmedEnv, Picture
from tengen.envs.masks import ActionMasks, legal_actions, nth_legal
from tengen.envs.registry import (
    env_spec,
    is_known,
    make,
    make_filmed,
    make_groups,
    maker_of_one,
    names,
    prefixes,
    with_protocol,
)
from tengen.envs.suites.gymnasium_ids import make_own
from tengen.envs.teams import joint_step, team_rewards
from tengen.envs.timely import TimelyEnv

__all__ = [
    "ActionMasks",
    "ActionSpec",
    "Arrays",
    "CompiledEnv",
    "Env",
    "EnvSpec",
    "EnvWrapper",
    "FilmedEnv",
    "GroupEnv",
    "Picture",
    "Scale",
    "Step",
    "TimelyEnv",
    "check_own_env",
    "env_spec",
    "hide_state",
    "is_known",
    "joint_step",
    "legal_actions",
    "make",
    "make_filmed",
    "make_groups",
    "make_own",
    "maker_of_one",
    "names",
    "nth_legal",
    "prefixes",
    "team_rewards",
    "with_protocol",
]
