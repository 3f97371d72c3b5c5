"""Measures the ladder of anchors of a game, neighbour against neighbour.

    python benchmarks/measure_anchors.py gomoku/9 connect4 --games 200

prints each result and rewrites these games' rows of
``src/tengen/evaluation/anchors.json``: ``[a, b, wins_a, draws, wins_b]``. The results
are a function of the command line and the core alone, on any machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

from tengen import games
from tengen.evaluation.anchors import fixed_players
from tengen.evaluation.ladder import LadderConfig
from tengen.evaluation.match import play_match
from tengen.run import available_cores

TABLE = Path(__file__).parents[1] / "src/tengen/evaluation/anchors.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", metavar="TASK", nargs="+")
    parser.add_argument("--games", type=int, default=200, metavar="N")
    parser.add_argument("--anchors", nargs="+", default=list(LadderConfig().anchors))
    args = parser.parse_args()
    players = fixed_players(args.anchors)
    for task in args.tasks:
        rows = []
        for below, above in itertools.pairwise(players):
            report = play_match(
                games.make(task),
                above,
                below,
                num_games=args.games,
                num_threads=available_cores(),
            )
            tally = report.tally
            rows.append([above.name, below.name, tally.wins, tally.draws, tally.losses])
            print(task, *rows[-1], f"{tally.elo:+.0f}", tally.elo_interval, flush=True)
        table = json.loads(TABLE.read_text())
        table[task] = rows
        write(table)


def write(table: dict[str, list[list[object]]]) -> None:
    """Writes one row a line, games in order."""
    blocks = []
    for task in sorted(table):
        rows = ",\n    ".join(json.dumps(row) for row in table[task])
        blocks.append(f"  {json.dumps(task)}: [\n    {rows}\n  ]")
    TABLE.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    main()
