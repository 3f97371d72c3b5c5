"""Games that a gate plays: the sequential test beside a fixed number, by chance.

    python benchmarks/strength/gate_games.py chance             by chance, a table
    python benchmarks/strength/gate_games.py match RUN@9 RUN@4  a real match by either

The fixed gate is KataGo's: 200 games, a score of at least a half passes, and it ends
once it is decided. Games that are in flight when a verdict comes are not counted by
``chance``; ``match`` tells them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tengen.evaluation import (
    MatchGate,
    ModelPlayer,
    PlayedGame,
    SprtGate,
    judge,
    open_player,
)
from tengen.games import make
from tengen.overrides import override
from tengen.run import available_cores
from tests.oracle.gate_matches import draw_points, judge_match, judge_sprt

FIXED = MatchGate(num_games=200, min_score=0.5)
ELOS = (-200, -150, -100, -70, -50, -35, -20, 0, 20, 35, 50, 70, 100, 150, 200)
# Share of draws in even openings, and of openings that decide the game.
MODELS = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.3, 0.2))


def by_chance(gate: SprtGate, num_matches: int, seed: int) -> None:
    """Prints how often either gate passes a candidate, and after how many games."""
    print(f"{gate}\n{FIXED}\n{num_matches} matches a row, seed {seed}")
    for draw_share, opening_share in MODELS:
        print(f"\ndraws {draw_share:.0%}, openings that decide {opening_share:.0%}")
        print("| Elo | fixed passes | sprt passes | fixed games | sprt games |")
        print("|---|---|---|---|---|")
        means = []
        for elo in ELOS:
            points = draw_points(
                np.random.default_rng([seed, elo + 1000]),
                elo=elo,
                draw_share=draw_share,
                opening_share=opening_share,
                num_matches=num_matches,
                num_pairs=max(FIXED.num_games, gate.max_games) // 2,
            )
            fixed, sprt = judge_match(FIXED, points), judge_sprt(gate, points)
            means.append((fixed[1].mean(), sprt[1].mean()))
            print(f"| {elo:+d} {_row(fixed, sprt)}")
        games = np.mean(means, axis=0)
        print(f"| mean | | | {games[0]:.0f} | {games[1]:.0f} |")


def _row(
    fixed: tuple[NDArray[np.bool_], NDArray[np.int64]],
    sprt: tuple[NDArray[np.bool_], NDArray[np.int64]],
) -> str:
    shares = " | ".join(f"{gate[0].mean():.1%}" for gate in (fixed, sprt))
    games = " | ".join(f"{gate[1].mean():.0f}" for gate in (fixed, sprt))
    return f"| {shares} | {games} |"


def real_match(gate: SprtGate, names: list[str], seed: int) -> None:
    """Lets either gate judge one model by another, as a run does."""
    num_threads = available_cores()
    a, b = (open_player(name, num_threads=num_threads) for name in names)
    assert isinstance(a, ModelPlayer)
    assert isinstance(b, ModelPlayer)
    print(f"{names[0]} against {names[1]}, {num_threads} threads, seed {seed}")
    print("| gate | passes | games | finished besides | seconds | CPU-s | results |")
    print("|---|---|---|---|---|---|---|")
    for judging in (FIXED, gate):
        finished: list[PlayedGame] = []
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        verdict = judge(
            judging,
            make(a.task),
            a,
            b,
            seed=seed,
            num_threads=num_threads,
            keep=finished.extend,
        )
        spent = time.monotonic() - start_s, time.process_time() - start_cpu_s
        print(
            f"| {judging.kind} | {verdict.is_accepted} | {len(verdict.games)} "
            f"| {len(finished) - len(verdict.games)} | {spent[0]:.1f} | {spent[1]:.1f} "
            f"| {verdict.results.to_json()['summary']} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", nargs="?", choices=("chance", "match"), default="chance"
    )
    parser.add_argument("models", nargs="*")
    parser.add_argument("--matches", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    args = parser.parse_args()
    gate = override(SprtGate(), args.settings)
    if args.what == "match":
        real_match(gate, args.models, args.seed)
    else:
        by_chance(gate, args.matches, args.seed)


if __name__ == "__main__":
    main()
