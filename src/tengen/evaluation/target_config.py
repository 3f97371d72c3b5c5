"""Settings of a run's target, the fixed opponent that models play after training."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.evaluation.match import MAX_GAMES, check_moves

__all__ = ["TargetConfig"]


@dataclass(frozen=True, kw_only=True)
class TargetConfig:
    """Settings of a target. The models of a run play it in order, until one passes.

    The matches begin after training has ended, so they do not slow down training. The
    result is the time at which the first passing model was created.

    Source: MLPerf training v2.1, reinforcement learning (minigo), which evaluates
    models in order.
    """

    opponent: str = ""
    """The target: RUN, ``RUN@17``, a model directory, ``onnx:FILE`` for a network whose
    input is the task's planes, ``gtp:COMMAND``, ``random`` or ``mcts:N``. Empty for no
    target."""
    needs_opponent: bool = False
    """Whether it is an error to train without an ``opponent``."""
    num_games: int = bounded(256, 2, MAX_GAMES)
    """Number of games that each model plays, at least 2; colours alternate."""
    num_simulations: int = 100
    """Simulations per move of the model, and of a target that is a network."""
    opening_plies: int = 0
    """Number of random plies at the start of each game. With 0, games between two
    networks differ only because random symmetries are applied to positions."""
    win_rate: float = bounded(
        0.5, 0, 1, above=True, rule="must be above 0 and at most 1; use 0.5"
    )
    """Minimum score per game with which a model passes, in (0, 1]."""
    chunk_games: int = bounded(16, 2, MAX_GAMES)
    """Games per chunk of a match, at least 2; each chunk is played by one process."""
    confirming_games: int = bounded(512, 0, MAX_GAMES, "0 plays none")
    """Number of games of a second match, with new seeds, that confirms the result of
    the model that passed; 0 for no second match."""

    def __post_init__(self) -> None:
        """Checks the ranges of the fields.

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
