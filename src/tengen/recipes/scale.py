"""What more time and more cores change in a recipe for a board.

Measured, on two cores of a CPU and 10 to 60 minutes (benchmarks/results/recipes.md and
strength.md): a 2x32 network to the end below 40 core-minutes, the growth to 4x64 in
longer runs, and games a generation, slots and shards as the recipes give them, which
nothing here changes on two threads.

Reasoned, from the rates in docs/performance_inference.md, and not measured: all the
rest, that is longer runs with larger networks, and more threads. A GPU changes nothing:
no rate of one is known.
"""

from __future__ import annotations

import dataclasses

from tengen.agents.alphazero import AlphaZero, NetStage
from tengen.nets import parse_net
from tengen.recipes.resources import Resources
from tengen.roles import RunConfig

__all__ = ["fill_threads", "growth"]

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
# A step keeps a thread a shard busy. A shard has norm statistics of its own: from fewer
# rows they say too little.
_MIN_SHARD_ROWS = 16


def growth(resources: Resources) -> tuple[NetStage, ...]:
    """Returns the larger networks that a budget is enough for."""
    stages = [row for least, row in _GROWTH if least <= resources.core_minutes][-1]
    return tuple(NetStage(share=share, net=parse_net(net)) for share, net in stages)


def fill_threads(config: RunConfig, resources: Resources) -> RunConfig:
    """Returns the config with games and shards enough to keep the threads busy.

    Args:
        config: As tuned on two cores, of self-play.
        resources: Threads.
    """
    agent, learner = AlphaZero.of(config, "selfplay"), config.learner
    actor = agent.actor
    games = max(
        actor.games_per_generation,
        _GAMES_A_SLOT * actor.num_slots * resources.num_threads,
    )
    num_shards = min(resources.num_threads, learner.batch_size // _MIN_SHARD_ROWS)
    num_shards = max(learner.num_shards, num_shards)
    return dataclasses.replace(
        config,
        agent=dataclasses.replace(
            agent, actor=dataclasses.replace(actor, games_per_generation=games)
        ),
        learner=dataclasses.replace(learner, num_shards=num_shards),
    )
