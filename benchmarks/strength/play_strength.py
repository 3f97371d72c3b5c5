"""Compares the strength of two ways to play with one network at equal time per move.

    python benchmarks/strength/play_strength.py RUN --seconds 0.1 --games 200 \
        --a search.lcb_stdevs=5 --a precision=int8
    python benchmarks/strength/play_strength.py RUN --clock wall --a-threads 2 \
        --a-keeps-tree

By default both sides use the settings from before ``agent.play`` existed: PUCT in fp32,
one thread, one leaf at a time, no tree reuse. ``--a`` and ``--b`` change settings,
``--recipe`` makes A play with its model's settings, and ``--a-ends-early`` lets A stop
the search of a clear move early and extend that of an unclear move, at the same mean
time. The two games of a pair start from one opening, random or from ``--book``, with
sides exchanged. ``--clock cpu`` counts the CPU-seconds of the process, which is fair on
a shared machine; ``wall`` is the time that users see, and needs an idle machine if a
side has several threads.

The match ends after ``--games``, or by the gate's sequential test on pairs of games
(``--elo0``, ``--elo1``; errors of 5 %). Prints one JSON object.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tengen.evaluation import PairedTally, log_likelihood_ratio, sprt_bounds
from tengen.evaluation.named_players import open_model
from tengen.games import Game, openings_text, read_book
from tengen.models import resolve_model
from tengen.overrides import override
from tengen.play import Player
from tengen.play.session.searches import Limits, Thinker
from tengen.search import MAX_SIMULATIONS, PlayConfig

CLOCKS = {"cpu": time.process_time, "wall": time.monotonic}
# Maximum time of an unclear move, relative to the mean, as in ``tengen gtp``.
_MOST_SHARES = 2.5
# Estimated simulations per search; the actual number depends on the time.
EXPECTED = 400


class Side:
    """One side of the match: a model with its settings, threads and time per move."""

    def __init__(
        self,
        word: str,
        play: PlayConfig,
        threads: int,
        seconds: float,
        now: Callable[[], float],
        ends_early: bool = False,
    ) -> None:
        """Loads the model and makes three moves, to measure its speed."""
        model = resolve_model(word)
        scores = "score" in model.meta.signature.outputs
        opened = open_model(model, word, num_threads=threads, play=play, scores=scores)
        self.player = Player(opened)
        self.play, self.threads, self.seconds = play, threads, seconds
        self.ends_early = ends_early
        self._now, self._thinker = now, Thinker(now)
        self.num_moves = self.num_simulations = 0
        self.spent_s = 0.0
        for _ in range(3):
            self.move([])
        self.num_moves, self.num_simulations, self.spent_s = 0, 0, 0.0

    def move(self, moves: list[int]) -> int:
        """Searches for the time of a move and returns the move."""
        begun_s = self._now()
        # Compensate for the previous searches, which ended slightly early or late.
        due_s = self.seconds * (self.num_moves + 1) - self.spent_s
        seconds = min(max(due_s, 0.5 * self.seconds), 1.5 * self.seconds)
        most = _MOST_SHARES * seconds if self.ends_early else None
        limits = Limits(MAX_SIMULATIONS, seconds, most, self.ends_early)
        with self.player.begin(moves, EXPECTED, threads=self.threads) as search:
            before = search.num_simulations
            self._thinker.think(search, limits, begun_s, lambda: False)
            found = search.analysis()
        self.spent_s += self._now() - begun_s
        self.num_moves += 1
        self.num_simulations += found.num_simulations - before
        return found.best_action


def opening(game: Game, rng: np.random.Generator, num_plies: int) -> list[int]:
    """Returns random moves after which the game has not ended."""
    while True:
        state = game.new_state()
        moves: list[int] = []
        while len(moves) < num_plies and not state.is_terminal():
            moves.append(int(rng.choice(state.legal_actions())))
            state.apply(moves[-1])
        if not state.is_terminal():
            return moves


def play_game(game: Game, sides: tuple[Side, Side], moves: list[int]) -> float:
    """Plays from an opening; returns the value of the first mover, -1 to 1."""
    state = game.new_state()
    for action in moves:
        state.apply(action)
    moves = list(moves)
    while not state.is_terminal():
        moves.append(sides[len(moves) % 2].move(moves))
        state.apply(moves[-1])
    return float(state.returns()[0])


def main() -> None:
    """Plays the match and prints the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--opening-plies", type=int, default=4)
    parser.add_argument("--book", type=Path, help="openings, in place of random plies")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--elo0", type=float, default=None)
    parser.add_argument("--elo1", type=float, default=None)
    parser.add_argument("--recipe", action="store_true", help="A as its model says")
    for side in "ab":
        parser.add_argument(f"--{side}", action="append", default=[], metavar="F=v")
        parser.add_argument(f"--{side}-threads", type=int, default=1)
        parser.add_argument(f"--{side}-keeps-tree", action="store_true")
        parser.add_argument(f"--{side}-ends-early", action="store_true")
    args = parser.parse_args()
    now = CLOCKS[args.clock]
    said = resolve_model(args.model).meta.play if args.recipe else None
    sides = []
    for name, base in (("a", said or PlayConfig()), ("b", PlayConfig())):
        play = override(base, getattr(args, name))
        if getattr(args, f"{name}_keeps_tree"):
            play = dataclasses.replace(play, keeps_tree=True)
        threads = getattr(args, f"{name}_threads")
        early = getattr(args, f"{name}_ends_early")
        sides.append(Side(args.model, play, threads, args.seconds, now, early))
    a, b = sides
    game = a.player.game
    rng = np.random.default_rng(args.seed)
    book = args.book and read_book(args.book, game)
    places = rng.permutation(len(book.openings) if book else 0)
    lengths: list[int] = []
    results = PairedTally()
    is_tested = args.elo0 is not None and args.elo1 is not None
    for index in range(args.games // 2):
        if book:
            moves = list(book.openings[places[index % len(places)]])
        else:
            moves = opening(game, rng, args.opening_plies)
        values = []
        for order, sign in (((a, b), 1), ((b, a), -1)):
            started = order[0].num_moves + order[1].num_moves
            values.append(sign * play_game(game, order, moves))
            lengths.append(order[0].num_moves + order[1].num_moves - started)
        for value in values:
            results = results.after(value / 2 + 0.5)
        tally = results.tally
        print(f"pair {index + 1}: {tally.points:g} points", file=sys.stderr, end="\r")
        if is_tested:
            least, most = sprt_bounds(0.05, 0.05)
            ratio = log_likelihood_ratio(results.pairs, args.elo0, args.elo1)
            if not least < ratio < most:
                break
    low, high = tally.elo_interval
    print(
        json.dumps(
            {
                "model": args.model,
                "clock": args.clock,
                "seconds": args.seconds,
                "openings": openings_text(0 if book else args.opening_plies, book),
                "games": tally.num_games,
                "wins_a": tally.wins,
                "draws": tally.draws,
                "elo": round(tally.elo, 1),
                "interval": [round(low, 1), round(high, 1)],
                "simulations": [
                    round(s.num_simulations / max(s.num_moves, 1)) for s in sides
                ],
                "seconds_a_move": [
                    round(s.spent_s / max(s.num_moves, 1), 4) for s in sides
                ],
                "plies": round(float(np.mean(lengths)), 1),
            }
        )
    )


if __name__ == "__main__":
    main()
