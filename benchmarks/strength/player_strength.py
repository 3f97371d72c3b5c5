"""Measures a bundled player's strength and writes it into ``player.json``.

    python benchmarks/strength/player_strength.py strength connect4
    python benchmarks/strength/player_strength.py strength go/9 --games 100
    python benchmarks/strength/player_strength.py levels connect4 --games 100

What ``strength`` measures depends on the game: the share of optimal moves, the share of
lines that are not lost, or the score of a match. ``levels`` plays each level against
the next lower level and against fixed players, and rates all together; ``random`` has
rating 0. Results depend only on the command line and the core, except games of GNU Go.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.bundle_player import write_manifest

from tengen import bundled, load
from tengen.bundled.players import FOLDER
from tengen.evaluation.elo import Tally
from tengen.evaluation.match import play_match
from tengen.evaluation.named_players import fixed_player, open_player
from tengen.evaluation.players import MatchPlayer, ModelPlayer
from tengen.evaluation.ratings.anchors import shipped_pairings
from tengen.evaluation.ratings.fit import Pairing, fit_ratings
from tengen.games import open_game
from tengen.play import Player
from tengen.search import Level
from tests.oracle.connect4_solver import optimal_moves, random_positions

GNU_GO = (
    "gnugo --mode gtp --chinese-rules --level 10 --capture-all-dead "
    "--positional-superko --allow-suicide"
)
LEVELS = {
    # Only for gomoku, where random playouts are weak.
    "starter": Level(temperature=20.0),
    "beginner": Level(temperature=4.0),
    "novice": Level(temperature=2.0),
    "casual": Level(temperature=1.0),
    "club": Level(temperature=0.5),
    "strong": Level(simulations=1),
    "expert": Level(simulations=32),
    "master": Level(simulations=200),
    "champion": Level(simulations=800),
}
WEAK = ("beginner", "novice", "casual", "club")
ALL = (*WEAK, "strong", "expert", "master", "champion")
# In tic-tac-toe all levels that search draw, so one is enough. The other ladders end at
# the last level that was measured.
LADDERS = {
    "tictactoe": (*WEAK, "expert"),
    "gomoku/9": ("starter", *ALL[:-1]),
    "gomoku/15": ("starter", *ALL),
    "go/7": ALL[:-1],
    "go/9": ALL[:-2],
}
# A level's opponents in addition to the next lower level.
ANCHORS = {
    "starter": ("random", "mcts:30", "mcts:100"),
    "beginner": ("random", "mcts:30"),
    "novice": ("mcts:30", "mcts:100"),
    "casual": ("mcts:100",),
    "club": ("mcts:100",),
    "strong": ("mcts:300",),
}
LADDER = ("random", "mcts:30", "mcts:100", "mcts:300")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("strength", "levels"))
    parser.add_argument("name", metavar="NAME", help="of a bundled player")
    parser.add_argument("--games", type=int, default=100, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    args = parser.parse_args()
    start_s = time.process_time()
    manifest = bundled.read_manifest(bundled.known_name(args.name))
    if args.part == "strength":
        found = measured(manifest.task, args.games, args.threads)
        print(found)
        manifest = dataclasses.replace(manifest, strength=found)
    else:
        command = f"python benchmarks/strength/player_strength.py levels {args.name}"
        manifest = dataclasses.replace(
            manifest,
            levels=rated(manifest.task, args.games, args.threads),
            levels_command=f"{command} --games {args.games}",
        )
        for level in manifest.levels:
            print(level)
    # Read the file again, to keep changes made in the meantime.
    now = bundled.read_manifest(args.name)
    changed = ("strength",) if args.part == "strength" else ("levels", "levels_command")
    values = {name: getattr(manifest, name) for name in changed}
    write_manifest(
        FOLDER / args.name.replace("/", "-"), dataclasses.replace(now, **values)
    )
    print(f"{time.process_time() - start_s:.0f} CPU-seconds")


def measured(task: str, games: int, threads: int) -> tuple[bundled.Strength, ...]:
    """Returns a player's measured strength."""
    again = (
        f"python benchmarks/strength/player_strength.py strength {task} --games {games}"
    )
    if task == "tictactoe":
        lost, lines = lines_lost()
        what = "lines not lost, against every reply, 64 simulations"
        return (figure(what, Tally(lines - lost, 0, lost), again),)
    if task == "connect4":
        with load(f"bundled:{task}") as player:
            assert isinstance(player, Player)
            rows = [
                player.choose(moves, simulations=64) in optimal_moves(moves)
                for moves in map(list, random_positions(games, 8, 30, 0))
            ]
        what = "moves that an exact solver calls optimal, 64 simulations"
        return (figure(what, Tally(sum(rows), 0, len(rows) - sum(rows)), again),)
    is_go = task.startswith("go/")
    opponent = f"gtp:{GNU_GO}" if is_go else "mcts:1000"
    simulations = 400 if is_go else 64
    tally = play_match(
        open_game(task),
        open_player(f"bundled:{task}", num_threads=threads),
        open_player(opponent),
        num_games=games,
        num_simulations=simulations,
        num_threads=threads,
    ).tally
    named = "GNU Go level 10" if is_go else opponent
    words = ("tengen", "match", f"bundled:{task}", opponent)
    command = f"{shlex.join(words)} --simulations {simulations} --games {games}"
    what = f"score against {named}, {simulations} simulations"
    return (figure(what, tally, command),)


def figure(what: str, tally: Tally, command: str) -> bundled.Strength:
    """Returns a score as an entry of ``player.json``."""
    low, high = tally.score_interval
    return bundled.Strength(
        what=what,
        value=round(tally.score, 4),
        low=round(low, 4),
        high=round(high, 4),
        number=tally.num_games,
        command=command,
    )


def lines_lost() -> tuple[int, int]:
    """Returns the number of tic-tac-toe lines that the player loses, and the total.

    The player plays each side in turn, and the opponent tries every legal move.
    """
    game = open_game("tictactoe")
    with load("bundled:tictactoe") as player:
        assert isinstance(player, Player)

        def ends(moves: list[int], own: int) -> Iterator[float]:
            state = game.new_state()
            for move in moves:
                state.apply(move)
            if state.is_terminal():
                yield state.returns()[own]
                return
            replies = state.legal_actions()
            if state.to_play == own:
                replies = [player.choose(moves, simulations=64)]
            for move in replies:
                yield from ends([*moves, int(move)], own)

        found = [value for own in (0, 1) for value in ends([], own)]
    return sum(value < 0 for value in found), len(found)


def rated(task: str, games: int, threads: int) -> tuple[bundled.RatedLevel, ...]:
    """Returns the levels of a player with their ratings, measured in matches."""
    game = open_game(task)
    model = open_player(f"bundled:{task}", num_threads=threads)
    assert isinstance(model, ModelPlayer)
    names = LADDERS.get(task, ALL)

    def play(a: MatchPlayer, b: MatchPlayer, name_a: str, name_b: str) -> Pairing:
        report = play_match(game, a, b, num_games=games, num_threads=threads)
        print(f"{name_a} {report.tally.score:.3f} {name_b}", flush=True)
        return Pairing(name_a, name_b, report.tally)

    def level(name: str) -> MatchPlayer:
        return dataclasses.replace(model, level=LEVELS[name])

    def fixed(name: str) -> MatchPlayer:
        found = fixed_player(name)
        assert found is not None
        return found

    pairings = shipped_pairings(task)
    if not pairings:
        for below, above in itertools.pairwise(LADDER):
            pairings.append(play(fixed(above), fixed(below), above, below))
    for below, above in itertools.pairwise(names):
        pairings.append(play(level(above), level(below), above, below))
    for name in names:
        for anchor in ANCHORS.get(name, ()):
            pairings.append(play(level(name), fixed(anchor), name, anchor))
    ratings = fit_ratings(pairings, {"random": 0.0})
    return tuple(
        bundled.RatedLevel(
            name=name,
            simulations=LEVELS[name].simulations,
            temperature=LEVELS[name].temperature,
            rating=round(ratings[name].elo),
            rating_error=round(ratings[name].error),
        )
        for name in names
    )


if __name__ == "__main__":
    main()
