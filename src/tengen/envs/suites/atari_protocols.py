"""How an Atari game is played and scored: the presets that published figures name.

All have a frame skip of 4 with the greatest of the last two frames, grey screens of
84 x 84, and episodes of at most 108,000 frames of the emulator, of which a step is
four; a step that only resets is none. ``tengen train --frames`` counts steps.

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
    """As the task says it, ``atari/Pong/classic``."""
    sticky: float
    """Probability with which the emulator repeats the action before, each frame."""
    all_actions: bool
    """Whether there are all 18 actions, or those that do something in the game."""
    max_noops: int
    """An episode begins with up to so many actions that do nothing."""
    presses_fire: bool
    """Whether a game that waits for the fire button is started."""
    ends_with_life: bool
    """Whether what is learned from ends with a life; a score is of the whole game."""
    reward_bound: float | None
    """What is learned from is clipped to it; a score is not. None for no bound."""


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
"""By name; the first is that of a task which names none."""
