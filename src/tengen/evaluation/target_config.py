"""The config of a run's target: the opponent that its models play after training."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.evaluation.match import MAX_GAMES, check_moves

__all__ = ["TargetConfig"]


@dataclass(frozen=True, kw_only=True)
class TargetConfig:
    """The opponent that a run's models play, in order, until one model passes.

    The matches start after training has ended, so they do not slow it down. The result
    is the time at which the first passing model was created.

    Source: MLPerf training v2.1, reinforcement learning (minigo), the evaluation of
    models in order.
    """

    opponent: str = ""
    """RUN, ``RUN@17``, a model directory, ``onnx:FILE`` with a network for the task's
    planes, ``gtp:COMMAND``, ``random`` or ``mcts:N``. Empty for no target."""
    needs_opponent: bool = False
    """Whether a run without an opponent is rejected."""
    num_games: int = bounded(256, 2, MAX_GAMES)
    """Games per model, at least 2; colours alternate."""
    num_simulations: int = 100
    """Simulations per move of the model, and of an opponent that is a network."""
    opening_plies: int = 0
    """Random plies at the start of each game. With 0, games between two networks differ
    only in the random symmetries of the networks' inputs."""
    win_rate: float = bounded(
        0.5, 0, 1, above=True, rule="must be above 0 and at most 1; use 0.5"
    )
    """Minimum share of points with which a model passes, in (0, 1]."""
    chunk_games: int = bounded(16, 2, MAX_GAMES)
    """Games per part of a match, at least 2; one process plays each part."""
    confirming_games: int = bounded(512, 0, MAX_GAMES, "0 plays none")
    """Games of a second match of the passing model, with new seeds, to confirm the
    result; 0 for none."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_moves(self.num_simulations, self.opening_plies)
        for name in ("num_games", "chunk_games", "confirming_games"):
            value = getattr(self, name)
            check(
                value % 2 == 0, name, value, "must be even, colours alternate; add one"
            )
