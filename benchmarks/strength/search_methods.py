"""What KataGo's methods are worth in Connect Four: small runs, and an exact solver.

    python benchmarks/strength/search_methods.py train --out DIR --seed 0
    python benchmarks/strength/search_methods.py judge DIR/* --positions 1000
    python benchmarks/strength/search_methods.py play RUN --simulations 200
    python benchmarks/strength/search_methods.py match RUN --search "lcb 5" --games 200

``train`` makes one run a variant, ``judge`` gives the share of moves that the solver
calls optimal, of the bare policy and of 64 simulations, ``play`` that of one
network under several search settings, position by position, and ``match`` plays one
network with such settings against itself without.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tengen import _core
from tengen.evaluation import ModelPlayer, Tally, open_player, play_match
from tengen.games import core_game, make
from tengen.inference import (
    InferenceConfig,
    bind_port,
    drive,
    open_backend,
    search_outputs,
)
from tengen.recipes.run import train_task
from tengen.search import SearchConfig
from tests.oracle.connect4_solver import optimal_moves, random_positions

GUMBEL = ("agent.actor.search.policy=gumbel",)
PUCT = ("agent.actor.search.policy=puct", "agent.actor.full_simulations=64")
SURPRISE = (
    "agent.actor.policy_surprise_share=0.5",
    "agent.actor.value_surprise_share=0.1",
)
OPENINGS = ("agent.actor.max_opening_plies=0", "agent.actor.policy_opening_plies=3")
FORCED = (
    "agent.actor.search.forced_playouts=2",
    "agent.actor.search.noise_shaped=true",
)
REDUCE = ("agent.actor.reduce_above=0.9", "agent.actor.cheap_simulations=8")
NO_SURPRISE = (
    "agent.actor.policy_surprise_share=0",
    "agent.actor.value_surprise_share=0",
)
VARIANTS = {
    "gumbel": (*GUMBEL, *NO_SURPRISE),
    "gumbel-surprise": (*GUMBEL, *SURPRISE),
    "gumbel-policy-surprise": (*GUMBEL, *NO_SURPRISE, SURPRISE[0]),
    "gumbel-openings": (*GUMBEL, *NO_SURPRISE, *OPENINGS),
    "gumbel-reduce": (*GUMBEL, *NO_SURPRISE, *REDUCE),
    "puct": (*PUCT, *NO_SURPRISE),
    "puct-surprise": (*PUCT, *SURPRISE),
    "puct-forced": (*PUCT, *NO_SURPRISE, *FORCED),
    "puct-stdev": (*PUCT, *NO_SURPRISE, "agent.actor.search.cpuct_stdev_scale=0.85"),
}
# One network and one precision throughout, so that games alone differ.
COMMON = (
    "agent.stages=[]",
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    "inference.backend=openvino",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
    "agent.actor.games_per_generation=256",
)
SEARCHES = {
    "most visits": SearchConfig(),
    "lcb 5": SearchConfig(lcb_stdevs=5.0),
    "stdev 0.85": SearchConfig(cpuct_stdev_scale=0.85),
    "both": SearchConfig(lcb_stdevs=5.0, cpuct_stdev_scale=0.85),
    "gumbel": SearchConfig(policy="gumbel"),
}

MATCH_GAMES = 16
MATCH_INFERENCE = InferenceConfig(
    devices="cpu", backend="openvino", precision="bf16", batch_shape="dynamic"
)

Positions = Sequence[tuple[list[int], list[int]]]


def train(args: argparse.Namespace) -> None:
    for name in args.variants or VARIANTS:
        train_task(
            "connect4",
            out=args.out / f"{name}-s{args.seed}",
            games=args.games,
            seed=args.seed,
            threads=1,
            settings=(*COMMON, *VARIANTS[name]),
        )


def judge(args: argparse.Namespace) -> None:
    positions = solved(args.positions)
    for word in args.runs:
        is_optimal = searcher(word)
        shares = {
            name: interval(is_optimal(SearchConfig(), simulations, positions))
            for name, simulations in (("policy", 0), ("search", 64))
        }
        print(json.dumps({"run": Path(word).name, **shares}), flush=True)


def play(args: argparse.Namespace) -> None:
    positions = solved(args.positions)
    is_optimal = searcher(args.run)
    base = None
    for name, config in SEARCHES.items():
        found = is_optimal(config, args.simulations, positions)
        base = found if base is None else base
        row = {
            "search": name,
            "optimal": interval(found),
            "gain": interval(found - base),
        }
        print(json.dumps(row), flush=True)


def match(args: argparse.Namespace) -> None:
    player = open_player(args.run)
    assert isinstance(player, ModelPlayer)
    assert player.directory is not None
    outputs = search_outputs(scores=False)
    backend = open_backend(player.directory, MATCH_INFERENCE, 1, outputs=outputs)
    plain = dataclasses.replace(player, backend=backend)
    search = SEARCHES[args.search]
    changed = dataclasses.replace(
        plain, play=dataclasses.replace(plain.play, search=search)
    )
    tally = Tally()
    for seed in range(args.seed, args.seed + -(-args.games // MATCH_GAMES)):
        report = play_match(
            make(player.task),
            changed,
            plain,
            num_games=MATCH_GAMES,
            num_simulations=args.simulations,
            seed=seed,
            opening_plies=4,
        )
        tally += report.tally
        row = {"search": args.search, "seed": seed, "games": tally.num_games}
        print(json.dumps({**row, "elo": tally.elo_text}), flush=True)


def solved(count: int) -> Positions:
    """Returns positions with a move that is not optimal, and their optimal moves."""
    return [(list(m), optimal_moves(list(m))) for m in random_positions(count, 8, 30)]


def searcher(
    word: str,
) -> Callable[[SearchConfig, int, Positions], NDArray[np.float64]]:
    """Returns what says of each position whether a player's move there is optimal."""
    model = open_player(word)
    assert isinstance(model, ModelPlayer)
    game: Any = core_game(make("connect4"))

    def is_optimal(
        config: SearchConfig, simulations: int, positions: Positions
    ) -> NDArray[np.float64]:
        session = _core.make_session(game, config.to_native())
        runner = bind_port(model.backend, session)
        found = []
        for moves, optimal in positions:
            request = _core.SearchRequest()
            request.num_simulations, request.ply = simulations, len(moves)
            session.begin(moves, request)
            drive(session, runner)
            found.append(session.result.best_action in optimal)
        return np.array(found, np.float64)

    return is_optimal


def interval(values: NDArray[np.float64]) -> str:
    """Returns the mean in per cent with its 95 % interval."""
    half = 1.96 * values.std() / len(values) ** 0.5
    return f"{100 * values.mean():.1f} +- {100 * half:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("variants", nargs="*", metavar="VARIANT")
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--games", type=int, default=1536)
    training.set_defaults(call=train)
    judging = commands.add_parser("judge")
    judging.add_argument("runs", nargs="+", metavar="RUN")
    judging.add_argument("--positions", type=int, default=1000)
    judging.set_defaults(call=judge)
    playing = commands.add_parser("play")
    playing.add_argument("run", metavar="RUN")
    playing.add_argument("--simulations", type=int, default=64)
    playing.add_argument("--positions", type=int, default=1000)
    playing.set_defaults(call=play)
    matching = commands.add_parser("match")
    matching.add_argument("run", metavar="RUN")
    matching.add_argument("--search", choices=list(SEARCHES), default="lcb 5")
    matching.add_argument("--simulations", type=int, default=64)
    matching.add_argument("--games", type=int, default=200)
    matching.add_argument("--seed", type=int, default=0)
    matching.set_defaults(call=match)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
