"""A stand-in for a self-play process that tests kill while it writes games.

Writes the missing games of each generation, seals the generation, and prints each game
as soon as the game is durable. Arguments: the writer's folder, the incarnation.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "unit" / "experience"))

from store_games import random_game

from tengen.experience import ExperienceWriter

NUM_GENERATIONS = 4
NUM_GAMES = 12
RECORDS = [
    [random_game("tictactoe", index, generation) for index in range(NUM_GAMES)]
    for generation in range(NUM_GENERATIONS)
]


def play(directory: Path, incarnation: int, report: Callable[[str], object]) -> None:
    with ExperienceWriter(directory, incarnation) as writer:
        for generation, records in enumerate(RECORDS):
            done = set(writer.recorded_games(generation).indices)
            missing = [index for index in range(NUM_GAMES) if index not in done]
            random.Random(incarnation).shuffle(missing)
            if missing:
                segment = writer.open_games(generation, "tictactoe")
                num_reported = 0
                for number, index in enumerate(missing):
                    segment.sink.put(records[index])
                    if number % 3 == 2:
                        segment.flush()
                    for durable in missing[num_reported : segment.num_durable]:
                        report(f"{generation} {durable}\n")
                        num_reported += 1
                segment.close()
            writer.seal(generation)
    report("done\n")


if __name__ == "__main__":

    def to_stdout(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    play(Path(sys.argv[1]), int(sys.argv[2]), to_stdout)
