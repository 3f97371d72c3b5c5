"""Environments: the interface, and how to get one by name.

``make(name, num_envs, seed)`` returns an ``Env``. Importing this package imports no
environment library before one is asked for.
"""

from __future__ import annotations

from tengen.envs.env import Env, EnvSpec, Step
from tengen.envs.registry import env_spec, make, names

__all__ = ["Env", "EnvSpec", "Step", "env_spec", "make", "names"]
