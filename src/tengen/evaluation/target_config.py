"""Settings of a run's target: a fixed opponent that models play after training."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.evaluation.match import MAX_GAMES, check_moves


@dataclass(frozen=True, kw_only=True)
class TargetConfig:
    """Settings of a target, which a run's models play in order until a model passes.

    The matches begin after training has ended, so they do not slow it down. The run's
    result is the training time at which the first passing model was created.

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
    """Simulations per move of the model, and of the target if it is a network."""
    opening_plies: int = 0
    """Number of random plies at the start of each game. With 0, only the random
    symmetries under which positions are evaluated make games between two networks
    differ."""
    win_rate: float = bounded(
        0.5, 0, 1, above=True, rule="must be above 0 and at most 1; use 0.5"
    )
    """Minimum mean score per game of a model that passes, in (0, 1]."""
    chunk_games: int = bounded(16, 2, MAX_GAMES)
    """Games per chunk of a match, at least 2. A chunk is the part that one process
    plays."""
    confirming_games: int = bounded(512, 0, MAX_GAMES, "0 plays none")
    """Number of games of a second match, with new seeds, that checks the model that
    passed; 0 for no second match."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid."""
        check_fields(self)
        check_moves(self.num_simulations, self.opening_plies)
        for name in ("num_games", "chunk_games", "confirming_games"):
            value = getattr(self, name)
            check(
                value % 2 == 0, name, value, "must be even, colours alternate; add one"
            )
