"""Whether players and learner keep pace, where each runs by itself, and what to set.

The learner may use each row a number of times (``store.limiter.samples_per_row``) and
then waits for new rows. So the share of time in which it learns shows which side is
slower.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from tengen.observe.roles import (
    RoleProcess,
    RoleProcesses,
    needed_roles,
    of_agent,
    role_holders,
)
from tengen.run import RunDirectory

__all__ = ["ratio", "read_ratio"]

_FULL = 0.9
_HALF = 0.5


def read_ratio(run: RunDirectory, processes: RoleProcesses) -> str | None:
    """Returns the verdict on self-play and learner; None if it cannot be told."""
    content = run.read_run()
    roles, now_s = needed_roles(content), time.time()

    def newest(role: str) -> RoleProcess | None:
        """Returns the process that has the role now."""
        alive = processes.alive(role, role_holders(run, role))
        return alive[-1] if alive else None

    learner = None if of_agent(content["config"], "learn_from") else newest("learn")
    if learner is None or "learn" not in roles:
        return None
    suppliers = {
        role: None if (one := newest(role)) is None else one.busy_share(now_s)
        for role in roles[: roles.index("learn")]
    }
    return ratio(learner, content["config"], now_s, suppliers)


def ratio(
    learner: RoleProcess,
    config: Mapping[str, Any],
    now_s: float,
    suppliers: Mapping[str, float | None],
) -> str | None:
    """Returns the verdict in one line; None before the learner's first steps.

    Args:
        learner: The learner's process.
        config: The run's, as in ``run.json``.
        now_s: The time, unix seconds.
        suppliers: The roles that the learner waits for, in the order in which rows pass
            them, each with the share of time in which it is busy, or None if no process
            has the role.
    """
    if learner.learned_s is None:
        return None
    # From the first turn with steps on: before it there was nothing to learn from.
    busy = learner.busy_share(now_s, learner.learned_s)
    uses, advice = _uses(learner.learned, config), _advice(busy, suppliers)
    return f"the learner is busy {busy:.0%} of the time{uses}: {advice}"


def _advice(busy: float, suppliers: Mapping[str, float | None]) -> str:
    in_environments = "actor" in suppliers
    if busy >= _FULL and in_environments:
        return (
            "learner too slow; give tengen learn more --threads or a GPU by --devices, "
            "raise --set learner.batch_size, or stop an actor"
        )
    if busy >= _FULL:
        return (
            "learner too slow; lower --set store.limiter.samples_per_row, give tengen "
            "learn more --threads or a GPU by --devices, or stop a self-play process"
        )
    if busy < _HALF:
        for role, share in suppliers.items():
            if share is None:
                return f"nothing comes without {role}; start tengen {role} on this run"
        if (suppliers.get("shuffle") or 0.0) >= _FULL:
            return "shuffle too slow; give tengen shuffle more --threads or other cores"
        if in_environments:
            return (
                "actors too slow; make a run with more --actors, or raise --set "
                "agent.actor.num_envs"
            )
        return (
            "self-play too slow; start another tengen selfplay on this run, lower "
            "--set agent.actor.full_simulations, or raise --set "
            "store.limiter.samples_per_row"
        )
    acting = "actors" if in_environments else "self-play"
    return f"{acting} and learner go together"


def _uses(turn: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Returns how often rows were used, of how often they may be."""
    num_rows = turn.get("table", {}).get("num_rows")
    wanted = config.get("store", {}).get("limiter", {}).get("samples_per_row")
    if not num_rows or wanted is None:
        return ""
    num_samples = turn["total_steps"] * config["learner"]["batch_size"]
    return f", each row was used {num_samples / num_rows:.1f} times of {wanted:g}"
