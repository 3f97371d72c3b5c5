"""How the games of a run's random first model are played."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tengen.actors.selfplay_config import SelfplayConfig
from tengen.bounds import bounded, check_fields
from tengen.search import MAX_SIMULATIONS

__all__ = ["BootstrapConfig"]


@dataclass(frozen=True, kw_only=True)
class BootstrapConfig:
    """How games are played by model 0, where it is random; later ones as usual.

    Their targets are not pruned.

    Source: MLPerf training v2.1, reinforcement learning (minigo), ``bootstrap.flags``.
    """

    simulations: int = bounded(80, 1, MAX_SIMULATIONS)
    """Simulations at every ply, none of which is fast; at least 1."""
    resign_from: float = bounded(0.99, 0, 1)
    """As ``actor.resign_from``, in [0, 1]."""
    may_pass: bool = False
    """As ``actor.may_pass``."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def played(self, actor: SelfplayConfig) -> SelfplayConfig:
        """Returns how the first model's games are played.

        Args:
            actor: How those of later models are.
        """
        return dataclasses.replace(
            actor,
            full_simulations=self.simulations,
            full_probability=1.0,
            resign_from=self.resign_from,
            may_pass=self.may_pass,
            prunes_target=False,
            # A generation of random games stays one.
            switch_models=False,
        )
