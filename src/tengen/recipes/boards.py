"""Recipes for board games by self-play, tuned by the sweeps of benchmarks/results.

A run begins with a small network, which evaluates fast and so plays many games, and
takes a larger one once there are enough games.

Measured, on two cores of a CPU and for 10 to 60 minutes (benchmarks/results/recipes.md
and strength.md): a 2x32 network to the end below 40 core-minutes; growth to 4x64 in
longer runs; and the games of a generation, slots and shards that the recipes give,
which do not change on two threads.

Reasoned from the rates in docs/explanation/performance_inference.md, and not measured:
longer runs with larger networks, and more threads. A GPU changes nothing, because its
rate is not known.
"""

from __future__ import annotations

import dataclasses

from tengen.actors import SelfplayConfig
from tengen.agents import NetStage
from tengen.agents.alphazero import AlphaZero
from tengen.errors import UsageError
from tengen.evaluation import LadderConfig
from tengen.experience import SamplesPerInsertConfig, WindowConfig
from tengen.games import OPENSPIEL_PREFIX, open_game
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig, parse_net
from tengen.roles import RunConfig
from tengen.search import PlayConfig, SearchConfig

__all__ = [
    "GROWTH",
    "connect4",
    "fill_threads",
    "go",
    "gomoku",
    "openspiel",
    "own_game",
    "tictactoe",
]

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


# Each setting was measured (benchmarks/results/strength.md). Together they make 3.6
# times the simulations per CPU-second of fp32 with one leaf at a time, and choose moves
# by LCB. The score, cPUCT by the spread of values and root symmetries did not pay.
_PLAY = PlayConfig(search=SearchConfig(lcb_stdevs=5.0), precision="run", batch_rows=8)


def tictactoe(task: str, num_threads: int) -> RunConfig:
    """A perfect player in well under a minute, on any machine."""
    _serves(task, "tictactoe", task == "tictactoe")
    return RunConfig(
        task=task,
        recipe="tictactoe",
        minutes=0.5,
        net=parse_net("2x16"),
        agent=AlphaZero(
            play=_PLAY,
            actor=SelfplayConfig(
                games_per_generation=256,
                full_simulations=32,
                max_opening_plies=2,
                num_slots=32,
                temperature_halflife=3.0,
            ),
        ),
        learner=LearnerConfig(batch_size=128),
        store=WindowConfig(
            min_rows=500, limiter=SamplesPerInsertConfig(samples_per_row=8.0)
        ),
    )


def connect4(task: str, num_threads: int) -> RunConfig:
    """Optimal moves in nearly every position after ten minutes.

    Source: benchmarks/results/recipes.md.
    """
    _serves(task, "connect4", task == "connect4")
    config = RunConfig(
        task=task,
        recipe="connect4",
        net=parse_net("2x32"),
        agent=AlphaZero(
            play=_PLAY,
            stages=GROWTH,
            actor=SelfplayConfig(
                games_per_generation=512,
                search=SearchConfig(policy="gumbel"),
                full_simulations=32,
                max_opening_plies=8,
                policy_surprise_share=0.5,
                value_surprise_share=0.1,
                num_slots=32,
                temperature_halflife=8.0,
            ),
        ),
        learner=LearnerConfig(batch_size=256),
        store=WindowConfig(
            min_rows=8_000,
            max_rows=1_000_000,
            limiter=SamplesPerInsertConfig(samples_per_row=4.0),
        ),
    )
    return fill_threads(config, num_threads)


def gomoku(task: str, num_threads: int) -> RunConfig:
    """A strong player on 9x9 after ten minutes; larger boards take longer.

    Source: benchmarks/results/recipes.md.
    """
    _serves(task, "gomoku", task.split("/")[0] == "gomoku")
    return _board(
        task,
        "gomoku",
        int(task.split("/")[1]),
        num_threads,
        net=parse_net("2x32"),
        search=SearchConfig(policy="gumbel"),
        games_per_generation=384,
        samples_per_row=8.0,
    )


def go(task: str, num_threads: int) -> RunConfig:
    """A player of Go on any board, whose network also learns owners and scores.

    Source: benchmarks/results/recipes.md.
    """
    _serves(task, "go", task.split("/")[0] == "go")
    game = open_game(task)
    net = parse_net("2x32")
    return _board(
        task,
        "go",
        max(game.height, game.width),
        num_threads,
        net=dataclasses.replace(net, auxiliary=True),
        # Without it, a side that leads may pass until it no longer leads.
        search=SearchConfig(policy="gumbel", score_weight=0.4),
        games_per_generation=128,
        samples_per_row=4.0,
    )


def _board(
    task: str,
    recipe: str,
    size: int,
    num_threads: int,
    *,
    net: NetConfig,
    search: SearchConfig,
    games_per_generation: int,
    samples_per_row: float,
) -> RunConfig:
    config = RunConfig(
        task=task,
        recipe=recipe,
        net=net,
        agent=AlphaZero(
            play=_PLAY,
            stages=GROWTH,
            actor=SelfplayConfig(
                games_per_generation=games_per_generation,
                search=search,
                full_simulations=32,
                max_opening_plies=size // 2,
                num_slots=32,
                temperature_halflife=size / 2,
            ),
        ),
        learner=LearnerConfig(batch_size=256),
        store=WindowConfig(
            min_rows=8_000,
            max_rows=1_000_000,
            limiter=SamplesPerInsertConfig(samples_per_row=samples_per_row),
        ),
    )
    return fill_threads(config, num_threads)


def own_game(task: str, num_threads: int) -> RunConfig:
    """A game of your own in Python; its methods set the speed."""
    _serves(task, "own-game", ":" in task)
    return _external(task, "own-game", num_threads)


def openspiel(task: str, num_threads: int) -> RunConfig:
    """A game of OpenSpiel; its rules are fast, its positions pass through Python."""
    _serves(task, "openspiel", task.startswith(OPENSPIEL_PREFIX))
    return _external(task, "openspiel", num_threads)


def _external(task: str, recipe: str, num_threads: int) -> RunConfig:
    config = RunConfig(
        task=task,
        recipe=recipe,
        net=parse_net("2x32"),
        agent=AlphaZero(
            play=_PLAY,
            stages=GROWTH,
            actor=SelfplayConfig(
                games_per_generation=64,
                full_simulations=32,
                search=SearchConfig(policy="gumbel"),
                max_opening_plies=2,
            ),
            # A thousand playouts of a game in Python would take longer than the
            # learning.
            rating=LadderConfig(
                num_games=8,
                anchors=("random", "mcts:10", "mcts:100"),
                anchor_games=8,
                final_games=16,
                final_opponent="mcts:100",
            ),
        ),
        store=WindowConfig(min_rows=1_000),
    )
    return fill_threads(config, num_threads)


def _serves(task: str, recipe: str, fits: bool) -> None:
    if not fits:
        raise UsageError(f"recipe ({recipe}) does not serve {task}; leave --recipe out")
