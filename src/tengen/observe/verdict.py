"""What limits a run, in one line: a pure function of the stages' shares of time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Shares", "verdict"]

# A stage that waits more than this share of its time is held up by another.
_HELD_UP = 0.25
# A stage that works more than this share of its time has nothing left to give.
_FULL = 0.85


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of time over one window, each in [0, 1]."""

    inference_busy: float
    """The backend evaluates, over all its threads."""
    actors_wait: float
    """Actors wait for inference."""
    learner_idle: float
    """The learner waits for experience, its turn included."""
    actors_blocked: float = 0.0
    """Actors wait for the store's rate limiter."""
    cores_busy: float = 0.0
    """CPU time used over the time of all available cores."""
    batch_fill: float = 1.0
    """Rows in an inference batch over its capacity."""


def verdict(shares: Shares) -> str:
    """Returns the shares and the advice, ``<stage> <share>; ...: <what to do>``.

    The experience side is looked at first when the learner is idle, else the learner:
    helping the other side would only make it wait more.
    """
    stages = [
        f"inference {shares.inference_busy:.0%} busy",
        f"actors wait {shares.actors_wait:.0%}",
        f"learner idle {shares.learner_idle:.0%}",
    ]
    if shares.actors_blocked > _HELD_UP:
        stages.append(f"actors blocked by the store {shares.actors_blocked:.0%}")
    return f"{'; '.join(stages)}: {_advice(shares)}"


def _advice(shares: Shares) -> str:
    if shares.learner_idle <= _HELD_UP:
        if shares.actors_blocked > _HELD_UP:
            return "the learner limits; give it more cores or a device"
        return "balanced"
    if shares.actors_blocked > _HELD_UP:
        return "the rate limiter holds both sides; lower its minimum size"
    if shares.actors_wait > _HELD_UP:
        if shares.inference_busy >= _FULL:
            return "inference limits; add a device or use a smaller net"
        if shares.batch_fill < _FULL:
            return "batches run part empty; add slots to the actors"
        return "inference starts late; add inference threads"
    if shares.cores_busy >= _FULL:
        return "every core is busy; add cores or use a smaller net"
    return "add actors"
