"""Recipes for MLPerf's reinforcement-learning benchmark, minigo.

Source: MLPerf training v0.7 to v2.1, training rules, and the reference's
``ml_perf/flags/19``.

"What differs from the reference" in docs/howto/train/mlperf.md lists the differences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tengen.actors import BootstrapConfig, SelfplayConfig
from tengen.agents.alphazero import AlphaZero
from tengen.agents.alphazero_loss import AlphaZeroLossConfig
from tengen.errors import UsageError
from tengen.evaluation import LadderConfig, TargetConfig
from tengen.experience import GenerationsConfig
from tengen.learners import LearnerConfig, SgdConfig
from tengen.nets.minigo import MinigoConfig
from tengen.roles import RunConfig
from tengen.search import PlayConfig, SearchConfig

_BOARD = re.compile("go/([0-9]+)")
_RULES = "/nosuicide/planes=minigo"
_POINTS_OF_19 = 19 * 19
_NOISE_OF_19 = 0.03


@dataclass(frozen=True, kw_only=True)
class _Small:
    """Settings for a small board, which replace the benchmark's settings."""

    net: MinigoConfig
    """Config of the network."""
    num_games: int = 256
    """Number of games in a generation."""
    full_simulations: int = 96
    """Simulations per full search."""
    share: float = 0.3
    """Share of the rows of the last five generations that a learning pass samples."""
    iterations: int
    """Number of models after which training ends."""
    rates: tuple[float, ...] = (0.005, 0.05, 0.01)
    """Learning rates, in the order of use."""
    boundaries: tuple[int, ...]
    """Learner steps after which the next of ``rates`` applies."""


SMALL_BOARDS = {
    5: _Small(
        net=MinigoConfig(num_blocks=2, num_channels=32, fc_width=32),
        iterations=12,
        boundaries=(64, 600),
    ),
    7: _Small(
        net=MinigoConfig(num_blocks=3, num_channels=32, fc_width=32),
        iterations=14,
        boundaries=(64, 1600),
    ),
    # On 9x9, networks learn too slowly with the other boards' ``share`` and heads.
    9: _Small(
        net=MinigoConfig(
            num_blocks=2, num_channels=32, policy_channels=32, value_channels=8
        ),
        num_games=512,
        full_simulations=128,
        share=1.0,
        iterations=48,
        rates=(0.005, 0.05, 0.02, 0.005),
        boundaries=(100, 20_000, 40_000),
    ),
}
"""Settings of the scaled benchmark, by the side of the board."""


def serves_minigo(task: str) -> bool:
    """Returns whether ``task`` is Go on the benchmark's 19x19 board."""
    return _side(task) == 19


def serves_small(task: str) -> bool:
    """Returns whether ``task`` is Go on a board of the scaled benchmark."""
    return _side(task) in SMALL_BOARDS


def minigo(task: str, num_threads: int) -> RunConfig:
    """Returns the config of the 19x19 benchmark.

    A run takes days on a CPU and hours on a cluster. The user must set a target. The
    run begins with games of a random network. For a run in the closed division, set
    ``learner.initial_model`` and ``store.imported`` to the published checkpoint; see
    docs/howto/train/mlperf.md.
    """
    if not serves_minigo(task):
        raise UsageError(f"recipe (mlperf_minigo) does not support {task}; use go/19")
    return RunConfig(
        task=_task(task),
        recipe="mlperf_minigo",
        net=MinigoConfig(),
        agent=AlphaZero(
            iterations=70,
            bootstrap=BootstrapConfig(),
            actor=SelfplayConfig(
                # When roles work in turns, a turn of self-play plays one generation.
                games_per_generation=8192,
                search=_search(19),
                full_simulations=800,
                cheap_simulations=80,
                full_probability=0.25,
                settled_playout_share=0.0,
                # Per core; a GPU uses more. With four leaves per game, batches of 64.
                num_slots=16,
                cache_mib=256,
            ),
            loss=_LOSS,
            play=_PLAY,
            rating=_NO_RATING,
            # Large parts suit GPUs: half of the 64 games wait for the opponent, so each
            # of two threads batches four leaves of 16 games. Not measured on a GPU.
            target=TargetConfig(needs_opponent=True, chunk_games=64),
        ),
        store=GenerationsConfig(),
        learner=LearnerConfig(
            batch_size=4096,
            # More samples than a pass has, so that each pass produces one model.
            epoch_samples=1_000_000_000,
            # Batch norm uses each learner's complete batch, as in the reference.
            num_shards=1,
            optimizer=_optimizer((0.016, 0.16, 0.016, 0.0016), (128, 10_000, 20_000)),
        ),
    )


def minigo_small(task: str, num_threads: int) -> RunConfig:
    """Returns the config of the benchmark scaled down to two cores.

    The rules stay the same. Source of the settings: benchmarks/results/mlperf.md.
    """
    if not serves_small(task):
        boards = ", ".join(f"go/{side}" for side in SMALL_BOARDS)
        raise UsageError(
            f"recipe (mlperf_minigo_small) does not support {task}; use one of {boards}"
        )
    side = _side(task)
    small = SMALL_BOARDS[side]
    return RunConfig(
        task=_task(task),
        recipe="mlperf_minigo_small",
        net=small.net,
        agent=AlphaZero(
            iterations=small.iterations,
            bootstrap=BootstrapConfig(simulations=16),
            actor=SelfplayConfig(
                games_per_generation=small.num_games,
                search=_search(side),
                full_simulations=small.full_simulations,
                cheap_simulations=16,
                full_probability=0.25,
                soft_pick_plies=side * side // 12 // 2 * 2,
                settled_playout_share=0.0,
                num_slots=32,
            ),
            loss=_LOSS,
            play=_PLAY,
            rating=_NO_RATING,
            target=TargetConfig(
                opponent="mcts:200",
                num_games=64,
                num_simulations=32,
                confirming_games=128,
                chunk_games=32,
            ),
        ),
        store=GenerationsConfig(min_games=small.num_games, share=small.share),
        learner=LearnerConfig(
            batch_size=32,
            epoch_samples=1_000_000_000,
            optimizer=_optimizer(small.rates, small.boundaries),
        ),
    )


_LOSS = AlphaZeroLossConfig(
    masks_illegal=False, value_loss="squared", value_cost=0.5, search_value_share=0.0
)
# For play against people: a search that differs from training's and may be slower.
_PLAY = PlayConfig(search=SearchConfig(lcb_stdevs=5.0), precision="run", batch_rows=8)
_NO_RATING = LadderConfig(time_share=0.0, final_games=0)


def _search(side: int) -> SearchConfig:
    return SearchConfig(
        policy="minigo",
        noise_weight=0.3,
        minigo_noise_alpha=_NOISE_OF_19 * _POINTS_OF_19 / (side * side),
    )


def _optimizer(rates: tuple[float, ...], boundaries: tuple[int, ...]) -> SgdConfig:
    return SgdConfig(
        nesterov=False,
        rates=rates,
        boundaries=boundaries,
        weight_decay=1e-4,
        decays_scales=True,
        max_grad_norm=0.0,
        average_decay=0.0,
    )


def _side(task: str) -> int:
    """Returns the board's side if ``task`` is Go with the benchmark's rules, or 0."""
    match = _BOARD.fullmatch(task.removesuffix(_RULES))
    return 0 if match is None else int(match[1])


def _task(task: str) -> str:
    return task.removesuffix(_RULES) + _RULES
