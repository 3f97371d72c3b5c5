"""How games are played by a run's first model, whose weights are random."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tengen.actors.selfplay_config import SelfplayConfig
from tengen.bounds import bounded, check_fields
from tengen.search import MAX_SIMULATIONS

__all__ = ["BootstrapConfig"]


@dataclass(frozen=True, kw_only=True)
class BootstrapConfig:
    """How games are played by model 0 where it is random; later models play as usual.

    The policy targets of these games are not pruned.

    Source: MLPerf training v2.1, reinforcement learning (minigo), ``bootstrap.flags``.
    """

    simulations: int = bounded(80, 1, MAX_SIMULATIONS)
    """Simulations at every ply, at least 1; there are no fast plies."""
    resign_from: float = bounded(0.99, 0, 1)
    """In place of ``actor.resign_from`` for these games, in [0, 1]; 1 for never."""
    may_pass: bool = False
    """In place of ``actor.may_pass`` for these games."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def played(self, actor: SelfplayConfig) -> SelfplayConfig:
        """Returns how the first model's games are played.

        Args:
            actor: How the games of later models are played.
        """
        return dataclasses.replace(
            actor,
            full_simulations=self.simulations,
            full_probability=1.0,
            resign_from=self.resign_from,
            may_pass=self.may_pass,
            prunes_target=False,
            # All games of this generation are played by the random model.
            switch_models=False,
        )
