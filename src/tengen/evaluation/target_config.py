"""A target that a run trains towards: whom its models meet, in order, at the end."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.evaluation.match import MAX_GAMES, check_moves

__all__ = ["TargetConfig"]


@dataclass(frozen=True, kw_only=True)
class TargetConfig:
    """Whom every model of a run plays, in order, until one passes.

    The matches begin once training has ended, so they take no time from it. The result
    is when the first model that passes was made.

    Source: MLPerf training v2.1, reinforcement learning (minigo), the evaluation of
    models in order.
    """

    opponent: str = ""
    """RUN, ``RUN@17``, a model directory, ``onnx:FILE`` of a network with the planes of
    the task, ``gtp:COMMAND``, ``random`` or ``mcts:N``. Empty: models are not played
    against a target."""
    needs_opponent: bool = False
    """Whether a call of a run without an opponent is refused."""
    num_games: int = bounded(256, 2, MAX_GAMES)
    """Games of each model, at least 2; colours alternate."""
    num_simulations: int = 100
    """Simulations a move of the model, and of a target that is a network."""
    opening_plies: int = 0
    """Random plies that each game begins with. Without any, games of two networks
    differ by the symmetries under which positions are shown to them."""
    win_rate: float = bounded(
        0.5, 0, 1, above=True, rule="must be above 0 and at most 1; use 0.5"
    )
    """Least share of points that passes, in (0, 1]; exactly this share passes."""
    chunk_games: int = bounded(16, 2, MAX_GAMES)
    """Games of a part of a match, at least 2; each part is played by one process."""
    confirming_games: int = bounded(512, 0, MAX_GAMES, "0 plays none")
    """Games of a second match, with new seeds, which checks the result of the model
    that passed; 0 for none."""

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
