"""Whether players and learner keep pace, where each runs by itself, and what to set.

The learner may use each row a number of times (``store.limiter.samples_per_row``) and
then waits for new rows. So the share of time in which it learns shows which side is
slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["WINDOW_S", "busy_share", "ratio"]

WINDOW_S = 600.0
"""How far back it looks."""

_FULL = 0.9
_HALF = 0.5


def ratio(
    events: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    now_s: float,
    suppliers: Mapping[str, float | None],
) -> str | None:
    """Returns the verdict in one line; None before the learner's first steps.

    Args:
        events: The learner's, in order.
        config: The run's, as in ``run.json``.
        now_s: The time, unix seconds.
        suppliers: The roles that the learner waits for, in the order in which rows pass
            them, each with the share of time in which it is busy, or None if no process
            has the role.
    """
    turns = [event for event in events if event["kind"] == "turn"]
    steps = [turn for turn in turns if turn.get("num_steps")]
    if not steps:
        return None
    # From the first turn with steps on: before it there was nothing to learn from.
    busy = busy_share(events, steps[0]["time_s"] - steps[0]["turn_s"], now_s)
    uses = _uses(steps[-1], config)
    advice = _advice(busy, suppliers)
    return f"the learner is busy {busy:.0%} of the time{uses}: {advice}"


def busy_share(
    events: Sequence[Mapping[str, Any]], first_s: float, now_s: float
) -> float:
    """Returns the share of the time in which a role was in a turn, 0 to 1.

    Args:
        events: The role's, in order, at least one.
        first_s: From when on, unix seconds; no more than ``WINDOW_S`` ago counts.
        now_s: The time, unix seconds.
    """
    turns = [event for event in events if event["kind"] == "turn"]
    first_s = max(first_s, now_s - WINDOW_S)
    spans = [(turn["time_s"] - turn["turn_s"], turn["time_s"]) for turn in turns]
    if events[-1]["kind"] == "busy":
        # In a turn that began after whatever it said before.
        spans.append((max(e["time_s"] for e in events if e["kind"] != "busy"), now_s))
    busy_s = sum(max(0.0, end_s - max(first_s, start_s)) for start_s, end_s in spans)
    return float(min(1.0, busy_s / max(1e-9, now_s - first_s)))


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
