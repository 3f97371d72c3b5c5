"""The protocols by which Atari games are played and scored in published results.

All protocols have a frame skip of 4 with the maximum of the last two frames, grey
screens of 84 x 84, and episodes of at most 108,000 emulator frames. A step is four
emulator frames; a step that only resets has none. ``tengen train --frames`` counts
steps.

Source: `v5` Machado et al. 2018, "Revisiting the Arcade Learning Environment"
(arXiv:1709.06009), sections 5 and 6; `r2d2` Kapturowski et al. 2019, "Recurrent
Experience Replay in Distributed Reinforcement Learning", appendix; `classic` Mnih et
al. 2015, "Human-level control through deep reinforcement learning", methods.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROTOCOLS", "Protocol"]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One way to play, for training and for scores."""

    name: str
    """The protocol's name, as in the task ``atari/Pong/classic``."""
    sticky: float
    """Probability, at each frame, that the emulator repeats the action before."""
    all_actions: bool
    """Whether all 18 actions are available, or only those used by the game."""
    max_noops: int
    """The most actions that do nothing at the beginning of an episode."""
    presses_fire: bool
    """Whether fire is pressed at the start in games that wait for it."""
    ends_with_life: bool
    """Whether losing a life ends the episode for learning; scores count whole games."""
    reward_bound: float | None
    """Absolute value that rewards are clipped to for learning; scores are not clipped.
    None for no bound."""


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            name="v5",
            sticky=0.25,
            all_actions=False,
            max_noops=0,
            presses_fire=False,
            ends_with_life=False,
            reward_bound=None,
        ),
        Protocol(
            name="r2d2",
            sticky=0.0,
            all_actions=True,
            max_noops=30,
            presses_fire=False,
            ends_with_life=False,
            reward_bound=None,
        ),
        Protocol(
            name="classic",
            sticky=0.0,
            all_actions=False,
            max_noops=30,
            presses_fire=True,
            ends_with_life=True,
            reward_bound=1.0,
        ),
    )
}
"""Protocols by name; the first is used where a task names none."""
