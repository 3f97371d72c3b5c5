"""What more time and other hardware change in a recipe for a board.

Measured, on two cores of a CPU and 10 to 60 minutes (benchmarks/results/recipes.md and
strength.md): a 2x32 network to the end below 40 core-minutes, the growth to 4x64 in
longer runs, and games a generation, slots and shards as the recipes give them, which
nothing here changes on two threads.

Reasoned, from the rates in docs/performance_inference.md, and not measured: all the
rest, that is longer runs with larger networks, more threads, and GPUs.
"""

from __future__ import annotations

import dataclasses

from tengen.actors import SelfplayConfig
from tengen.nets import parse_net
from tengen.recipes.resources import Resources
from tengen.roles import NetStage, RunConfig

__all__ = ["fill_hardware", "growth"]

_GROWTH: tuple[tuple[float, tuple[tuple[float, str], ...]], ...] = (
    # With less the small network is stronger to the end: it plays many games.
    (0.0, ()),
    # Once games are plenty; early growth is worse.
    (40.0, ((0.4, "4x64"),)),
    # 6x96 is 3.4 times as dear as 4x64, which learns from 24 core-minutes on: in half
    # of the budget it has twice as many evaluations.
    (400.0, ((0.2, "4x64"), (0.5, "6x96"))),
    # 10x128 is three times as dear again, for ten times the time.
    (4000.0, ((0.1, "4x64"), (0.3, "6x96"), (0.6, "10x128"))),
)
"""Least core-minutes, and shares of the budget with the networks that begin there."""

# The last games of a generation leave slots empty: so each slot plays two at least.
_GAMES_A_SLOT = 2
# Three batches at once of 1,024 rows, which a GPU computes nearly as fast as 128. Slots
# need no rule: self-play has as many as these batches want.
_GAMES_OF_A_GPU = 3 * 1024
# A step keeps a thread a shard busy. A shard has norm statistics of its own: from fewer
# rows they say too little.
_MIN_SHARD_ROWS = 16
# A GPU has threads enough for a whole batch, and each shard costs it a launch of every
# kernel.
_SHARDS_ON_A_GPU = 1


def growth(resources: Resources) -> tuple[NetStage, ...]:
    """Returns the larger networks that a budget is enough for."""
    stages = [row for least, row in _GROWTH if least <= resources.core_minutes][-1]
    return tuple(NetStage(share=share, net=parse_net(net)) for share, net in stages)


def fill_hardware(
    config: RunConfig, resources: Resources, *, is_slow: bool = False
) -> RunConfig:
    """Returns the config with games and shards enough to keep the hardware busy.

    Args:
        config: As tuned on two cores, of self-play.
        resources: Threads and GPUs.
        is_slow: The rules or what is around them run in Python, which feeds no GPU:
            a generation is not made longer for it.
    """
    actor, learner = config.actor, config.learner
    assert isinstance(actor, SelfplayConfig)
    games = max(
        actor.games_per_generation,
        _GAMES_A_SLOT * actor.num_slots * resources.num_threads,
        0 if is_slow else _GAMES_OF_A_GPU * resources.num_gpus,
    )
    num_shards = min(resources.num_threads, learner.batch_size // _MIN_SHARD_ROWS)
    num_shards = max(learner.num_shards, num_shards)
    if resources.num_gpus > 0:
        num_shards = _SHARDS_ON_A_GPU
    return dataclasses.replace(
        config,
        actor=dataclasses.replace(actor, games_per_generation=games),
        learner=dataclasses.replace(learner, num_shards=num_shards),
    )
