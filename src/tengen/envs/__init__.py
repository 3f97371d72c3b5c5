"""Environments: their interface, and how to make one by name.

``make(name, num_envs, seed)`` returns an ``Env``. Importing this package imports no
environment library; the first use of an environment does.
"""

from __future__ import annotations

from tengen.envs.check import check_own_env
from tengen.envs.env import ActionSpec, Arrays, Env, EnvSpec, GroupEnv, Scale, Step
from tengen.envs.filmed import FilmedEnv, Picture
from tengen.envs.registry import (
    env_spec,
    in_suite,
    make,
    make_filmed,
    make_groups,
    maker_of_one,
    names,
    prefixes,
    with_protocol,
)
from tengen.envs.suites.gymnasium_ids import make_own
from tengen.envs.timely import TimelyEnv

__all__ = [
    "ActionSpec",
    "Arrays",
    "Env",
    "EnvSpec",
    "FilmedEnv",
    "GroupEnv",
    "Picture",
    "Scale",
    "Step",
    "TimelyEnv",
    "check_own_env",
    "env_spec",
    "in_suite",
    "make",
    "make_filmed",
    "make_groups",
    "make_own",
    "maker_of_one",
    "names",
    "prefixes",
    "with_protocol",
]
