"""What more time and more cores change in a recipe for a board.

Measured, on two cores of a CPU and 10 to 60 minutes (benchmarks/results/recipes.md and
strength.md): a 2x32 network to the end below 40 core-minutes, the growth to 4x64 in
longer runs, and games a generation, slots and shards as the recipes give them, which
nothing here changes on two threads.

Reasoned, from the rates in docs/explanation/performance_inference.md, and not measured:
all the rest, that is longer runs with larger networks, and more threads. A GPU changes
nothing: no rate of one is known.
"""

from __future__ import annotations

import dataclasses

from tengen.agents import NetStage
from tengen.agents.alphazero import AlphaZero
from tengen.nets import parse_net
from tengen.roles import RunConfig

__all__ = ["GROWTH", "fill_threads"]

GROWTH = (
    # With less the small network is stronger to the end: it plays many games. It grows
    # once games are plenty; early growth is worse.
    NetStage(net=parse_net("4x64"), share=0.4, least=40.0, latest=80.0),
    # 6x96 is 3.4 times as dear as 4x64, which learns from 24 core-minutes on: in half
    # of the budget it has twice as many evaluations.
    NetStage(net=parse_net("6x96"), share=0.5, least=400.0, latest=1200.0),
    # 10x128 is three times as dear again, for ten times the time.
    NetStage(net=parse_net("10x128"), share=0.6, least=4000.0),
)
"""The larger networks of every game, by the core-minutes that a run is given."""

# The last games of a generation leave slots empty: so each slot plays two at least.
_GAMES_A_SLOT = 2
# A step keeps a thread a shard busy. A shard has norm statistics of its own: from fewer
# rows they say too little.
_MIN_SHARD_ROWS = 16


def fill_threads(config: RunConfig, num_threads: int) -> RunConfig:
    """Returns the config with games and shards enough to keep the threads busy.

    Args:
        config: As tuned on two cores, of self-play.
        num_threads: Of the CPU, at least 1.
    """
    agent, learner = AlphaZero.of(config, "selfplay"), config.learner
    actor = agent.actor
    games = max(
        actor.games_per_generation,
        _GAMES_A_SLOT * actor.num_slots * num_threads,
    )
    num_shards = min(num_threads, learner.batch_size // _MIN_SHARD_ROWS)
    num_shards = max(learner.num_shards, num_shards)
    return dataclasses.replace(
        config,
        agent=dataclasses.replace(
            agent, actor=dataclasses.replace(actor, games_per_generation=games)
        ),
        learner=dataclasses.replace(learner, num_shards=num_shards),
    )
