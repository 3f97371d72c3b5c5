"""How a recipe for a board changes with more time and more cores.

Measured, on two cores of a CPU and for 10 to 60 minutes (benchmarks/results/recipes.md
and strength.md): a 2x32 network to the end below 40 core-minutes; growth to 4x64 in
longer runs; and the games of a generation, slots and shards that the recipes give,
which this file does not change on two threads.

Reasoned from the rates in docs/explanation/performance_inference.md, and not measured:
longer runs with larger networks, and more threads. A GPU changes nothing, because its
rate is not known.
"""

from __future__ import annotations

import dataclasses

from tengen.agents import NetStage
from tengen.agents.alphazero import AlphaZero
from tengen.nets import parse_net
from tengen.roles import RunConfig

__all__ = ["GROWTH", "fill_threads"]

GROWTH = (
    # With less time the small network is stronger to the end, because it plays many
    # games. It grows once there are many games; earlier growth is worse.
    NetStage(net=parse_net("4x64"), share=0.4, least=40.0, latest=80.0),
    # 6x96 costs 3.4 times as much as 4x64, which learns for at least 24 core-minutes.
    # In half of its own least budget 6x96 makes twice as many evaluations.
    NetStage(net=parse_net("6x96"), share=0.5, least=400.0, latest=1200.0),
    # 10x128 costs three times as much as 6x96, and has ten times the time.
    NetStage(net=parse_net("10x128"), share=0.6, least=4000.0),
)
"""The larger networks of every game, by the core-minutes of a run."""

# The last games of a generation leave slots empty, so each slot plays at least two.
_GAMES_A_SLOT = 2
# A step keeps one thread busy for each shard. Each shard has its own norm statistics,
# which need at least so many rows.
_MIN_SHARD_ROWS = 16


def fill_threads(config: RunConfig, num_threads: int) -> RunConfig:
    """Returns the config with enough games and shards to keep the threads busy.

    Args:
        config: A config for self-play, tuned on two cores.
        num_threads: Threads of the CPU, at least 1.
    """
    agent, learner = AlphaZero.of(config.agent, "selfplay"), config.learner
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
