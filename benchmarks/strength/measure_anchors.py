"""Measures a game's ladder of anchors, each against its neighbours.

    python benchmarks/strength/measure_anchors.py gomoku/9 connect4 --games 200

Prints each result and replaces its row in
``src/tengen/evaluation/ratings/anchors.json``:
``[a, b, wins_a, draws, wins_b]``. ``--anchors`` selects a part of the ladder, for
example because strong anchors are too slow for many games. The results depend only on
the command line and the core.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

from tengen import games
from tengen.evaluation.match import play_match
from tengen.evaluation.named_players import fixed_player
from tengen.evaluation.ratings.ladder import LadderConfig
from tengen.run import available_cores

TABLE = Path(__file__).parents[2] / "src/tengen/evaluation/ratings/anchors.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", metavar="TASK", nargs="+")
    parser.add_argument("--games", type=int, default=200, metavar="N")
    parser.add_argument("--anchors", nargs="+", default=list(LadderConfig().anchors))
    args = parser.parse_args()
    for task in args.tasks:
        players = [p for word in args.anchors if (p := fixed_player(word))]
        for below, above in itertools.pairwise(players):
            report = play_match(
                games.make(task),
                above,
                below,
                num_games=args.games,
                num_threads=available_cores(),
            )
            tally = report.tally
            row = [above.name, below.name, tally.wins, tally.draws, tally.losses]
            print(task, *row, f"{tally.elo:+.0f}", flush=True)
            table = json.loads(TABLE.read_text())
            rows = [old for old in table.get(task, []) if old[:2] != row[:2]]
            table[task] = sorted([*rows, row], key=lambda kept: strength(kept[0]))
            write(table)


def strength(name: str) -> int:
    return int(name.partition(":")[2] or 0)


def write(table: dict[str, list[list[object]]]) -> None:
    """Writes one row per line, games in order."""
    blocks = []
    for task in sorted(table):
        rows = ",\n    ".join(json.dumps(row) for row in table[task])
        blocks.append(f"  {json.dumps(task)}: [\n    {rows}\n  ]")
    TABLE.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    main()
