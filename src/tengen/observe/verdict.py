"""What limits a run, in one line, and what to set: pure functions of shares of time.

Roles take turns, so what is short shows in how the time is divided.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ADVICE", "Shares", "verdict", "waiting_verdict"]

# Of the time, where another stage than playing is worth looking at.
_MUCH = 0.5
_SOME = 0.25
# Of the time, below which another stage is not told of.
_SHOWN = 0.05
# A stage that works more than this share of its time has nothing left to give.
_FULL = 0.85
# Slots that have no game to go on with leave batches emptier than this.
_HALF_EMPTY = 0.6

ADVICE = {
    "selfplay": {
        "learning": (
            "learning takes most; lower --set store.limiter.samples_per_row to use "
            "each row less often"
        ),
        "gate": (
            "the gate's matches take long; lower --set gate.num_simulations or raise "
            "--set actor.games_per_generation"
        ),
        "rating": "rating takes long; lower --set rating.time_share",
        "publishing": (
            "publishing models takes long; raise --set actor.games_per_generation"
        ),
        "tail": (
            "cores wait for the last games of a generation; raise --set "
            "actor.games_per_generation"
        ),
        "batches": (
            "batches run part empty; raise --set actor.games_per_generation or lower "
            "--set actor.num_slots"
        ),
        "tree": (
            "games and trees take more than the net; lower --set "
            "actor.full_simulations, or give a new run a larger --set net.num_blocks"
        ),
        "inference": (
            "the net takes most; lower --set actor.full_simulations, or give more "
            "cores by --threads"
        ),
    },
    "environment": {
        "learning": (
            "learning takes most; raise --set learner.batch_size to make fewer steps"
        ),
        "publishing": (
            "publishing models takes long; raise --set actor.num_unrolls, and --set "
            "store.capacity_items with it"
        ),
        "tree": (
            "stepping the environments takes most; raise --set actor.num_envs to "
            "step more of them at once"
        ),
        "inference": (
            "the net takes most; raise --set actor.num_envs for larger batches"
        ),
    },
}
"""What to do, by kind of actor and by what limits."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of time over one generation, each in [0, 1]."""

    playing: float
    """Self-play, or acting in environments, of the whole."""
    learning: float
    """The learner, of the whole; what no field has is publishing."""
    inference_busy: float
    """The net, of the threads' time while playing."""
    tree_busy: float
    """Games, trees and environments, of the threads' time while playing."""
    batch_fill: float = 1.0
    """Rows in an inference batch over its capacity."""
    gate: float = 0.0
    """The gate's matches, of the whole."""
    rating: float = 0.0
    """Matches that rate models, of the whole."""

    @property
    def others(self) -> dict[str, float]:
        """What is neither playing nor learning, by its name, of the whole."""
        named = self.playing + self.learning + self.gate + self.rating
        return {
            "gate": self.gate,
            "rating": self.rating,
            "publishing": max(0.0, 1.0 - named),
        }


def verdict(kind: str, shares: Shares) -> str:
    """Returns the shares and the advice, ``<stage> <share>; ...: <what to do>``.

    Args:
        kind: Of the actor, ``selfplay`` or ``environment``.
        shares: Of the last generation.
    """
    stages = [
        f"{'self-play' if kind == 'selfplay' else 'acting'} {shares.playing:.0%} "
        f"(net {shares.inference_busy:.0%}, "
        f"{'trees' if kind == 'selfplay' else 'steps'} {shares.tree_busy:.0%}, "
        f"batches {shares.batch_fill:.0%} full)",
        f"learning {shares.learning:.0%}",
    ]
    stages += [
        f"{name} {part:.0%}" for name, part in shares.others.items() if part >= _SHOWN
    ]
    return f"{'; '.join(stages)}: {ADVICE[kind][_limit(kind, shares)]}"


def waiting_verdict(learning: float, waiting: float) -> str:
    """Returns the same for a run that learns from another's games.

    Args:
        learning: The learner's share of the time, in [0, 1].
        waiting: That in which there were no new games.
    """
    advice = (
        "games come slowly; raise --set store.limiter.samples_per_row to use each row "
        "more often"
        if waiting > _SOME
        else "the learner has as many games as it can use"
    )
    return f"waiting for games {waiting:.0%}; learning {learning:.0%}: {advice}"


def _limit(kind: str, shares: Shares) -> str:
    if shares.learning > _MUCH:
        return "learning"
    others = shares.others
    if sum(others.values()) > _SOME:
        return max(others, key=others.__getitem__)
    if kind == "selfplay" and shares.inference_busy + shares.tree_busy < _FULL:
        return "tail"
    if kind == "selfplay" and shares.batch_fill < _HALF_EMPTY:
        return "batches"
    return "tree" if shares.tree_busy > shares.inference_busy else "inference"
