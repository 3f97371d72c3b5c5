"""Games that a gate plays: the sequential test beside a fixed number, by chance.

    python benchmarks/gate_games.py chance             by chance, a table
    python benchmarks/gate_games.py match RUN@9 RUN@4  one real match, judged by both

The fixed gate is KataGo's: 200 games, a score of at least a half passes, and it ends
once it is decided. ``match`` plays 200 games of two models once and judges them by
either gate from every tenth pair on, going round.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tengen.config import override
from tengen.evaluation import (
    MatchGate,
    ModelPlayer,
    SprtGate,
    open_player,
    play_match,
)
from tengen.games import make
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
    """Plays two models once, and prints what either gate says of the games."""
    a, b = (open_player(name, num_threads=available_cores()) for name in names)
    assert isinstance(a, ModelPlayer)
    report = play_match(
        make(a.task),
        a,
        b,
        num_games=FIXED.num_games,
        num_simulations=gate.num_simulations,
        seed=seed,
        num_threads=available_cores(),
        opening_plies=gate.opening_plies,
    )
    scores = np.array([game.score_a for game in report.games]) * 2
    pairs = scores.astype(np.int64).reshape(-1, 2)
    rounds = np.array(
        [np.roll(pairs, -10 * i, axis=0) for i in range(len(pairs) // 10)]
    )
    print(f"{names[0]} against {names[1]}: Elo {report.tally.elo_text}, pairs ", end="")
    print(np.bincount(pairs.sum(1), minlength=5).tolist())
    print("| fixed passes | sprt passes | fixed games | sprt games |")
    print("|---|---|---|---|")
    print(_row(judge_match(FIXED, rounds), judge_sprt(gate, rounds)))


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
