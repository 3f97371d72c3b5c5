"""Recipes for self-play in board games, tuned with the sweeps in benchmarks/results.

A run starts with a small network, whose fast evaluation yields many games, and grows it
into larger networks when there are enough games. Gomoku has a network of line patterns,
all others have residual networks.

Some settings were measured on two CPU cores for 10 to 60 minutes (recipes.md and
strength.md in benchmarks/results): a 2x32 network for runs below 40 core-minutes; a
switch to 4x64 in longer runs; and for two threads the games per generation, slots and
shards.

Other settings were not measured, but derived from the speeds in
docs/explanation/performance_inference.md: larger networks in longer runs, and more than
two threads. Recipes do not depend on GPUs, on which they were not measured.
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
from tengen.learners import AdamWConfig, LearnerConfig, OptimizerConfig, SgdConfig
from tengen.nets import NetConfig, parse_net
from tengen.nets.lines import LinesConfig
from tengen.roles import RunConfig
from tengen.search import PlayConfig, SearchConfig

GROWTH = (
    # In shorter runs the 2x32 network stays stronger, because it plays more games. In
    # longer runs, switching with too few games makes the agent weaker.
    NetStage(net=parse_net("4x64"), share=0.4, least=40.0, latest=80.0),
    # 6x96 takes 3.4 times as long as 4x64. In half of its minimum budget it still
    # evaluates twice as many positions as 4x64 in its minimum of 24 core-minutes.
    NetStage(net=parse_net("6x96"), share=0.5, least=400.0, latest=1200.0),
    # 10x128 takes 3 times as long as 6x96, but has 10 times the minimum budget.
    NetStage(net=parse_net("10x128"), share=0.6, least=4000.0),
)
"""The default network stages of every game with residual networks, with their
core-minutes."""

# Not measured in long runs. On frozen games of gomoku/15, twice as many channels reach
# equal losses in 240 CPU-seconds, with two thirds of the steps (recipes.md).
_GROWTH_OF_LINES = (
    NetStage(net=LinesConfig(num_channels=128), share=0.4, least=40.0, latest=80.0),
)

# Slots become idle near the end of a generation, so each slot plays at least two games.
_GAMES_A_SLOT = 2
# A learner step uses one thread per shard. Each shard has its own normalization
# statistics, which need at least this many rows.
_MIN_SHARD_ROWS = 16


def fill_threads(config: RunConfig, num_threads: int) -> RunConfig:
    """Returns the config with enough games and batch shards to keep all threads busy.

    Args:
        config: A config for self-play, tuned on two cores.
        num_threads: The number of CPU threads, at least 1.
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


# Measured in benchmarks/results/strength.md: these settings give 3.6 times the
# simulations per CPU-second of fp32 with one leaf per batch, and choose moves by LCB.
# Score utility, variance-scaled cPUCT and root symmetries brought no improvement.
_PLAY = PlayConfig(search=SearchConfig(lcb_stdevs=5.0), precision="run", batch_rows=8)


def tictactoe(task: str, num_threads: int) -> RunConfig:
    """Returns a config that trains a perfect player in well under a minute."""
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
    """Returns a config that trains nearly optimal play in ten minutes.

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
    """Returns a config for strong 9x9 play in ten minutes; larger boards take longer.

    Source: benchmarks/results/recipes.md.
    """
    _serves(task, "gomoku", task.split("/")[0] == "gomoku")
    return _board(
        task,
        "gomoku",
        int(task.split("/")[1]),
        num_threads,
        # It evaluates so fast on CPUs that searches may have twice as many simulations.
        net=LinesConfig(),
        search=SearchConfig(policy="gumbel"),
        games_per_generation=256,
        samples_per_row=8.0,
        full_simulations=64,
        num_slots=64,
        optimizer=AdamWConfig(learning_rate=0.01, weight_decay=0.01),
        stages=_GROWTH_OF_LINES,
    )


def go(task: str, num_threads: int) -> RunConfig:
    """Returns a config for Go, whose network also learns ownership and scores.

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
        # Without a score weight, the leading side may pass until its lead is lost.
        search=SearchConfig(policy="gumbel", score_weight=0.4),
        games_per_generation=128,
        samples_per_row=4.0,
        # Measured in benchmarks/results/strength.md: saves more than half of the plies.
        play=dataclasses.replace(_PLAY, resign_below=-0.95),
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
    full_simulations: int = 32,
    num_slots: int = 32,
    optimizer: OptimizerConfig | None = None,
    stages: tuple[NetStage, ...] = GROWTH,
    play: PlayConfig = _PLAY,
) -> RunConfig:
    config = RunConfig(
        task=task,
        recipe=recipe,
        net=net,
        agent=AlphaZero(
            play=play,
            stages=stages,
            actor=SelfplayConfig(
                games_per_generation=games_per_generation,
                search=search,
                full_simulations=full_simulations,
                max_opening_plies=size // 2,
                num_slots=num_slots,
                temperature_halflife=size / 2,
            ),
        ),
        learner=LearnerConfig(batch_size=256, optimizer=optimizer or SgdConfig()),
        store=WindowConfig(
            min_rows=8_000,
            max_rows=1_000_000,
            limiter=SamplesPerInsertConfig(samples_per_row=samples_per_row),
        ),
    )
    return fill_threads(config, num_threads)


def own_game(task: str, num_threads: int) -> RunConfig:
    """Returns a config for a user's game, whose Python code is the bottleneck."""
    _serves(task, "own-game", ":" in task)
    return _external(task, "own-game", num_threads)


def openspiel(task: str, num_threads: int) -> RunConfig:
    """Returns a config for an OpenSpiel game, which is played through Python."""
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
            # With the anchor mcts:1000, matches in Python would take too long.
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
        raise UsageError(f"recipe ({recipe}) is not for {task}; leave --recipe out")
