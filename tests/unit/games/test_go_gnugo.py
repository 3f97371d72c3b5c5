"""Scores of finished games of Go compared with GNU Go's.

GNU Go estimates life and death by reading; if every point is pass-alive, no reading
is needed, so its score must equal the score by the rules.
"""

import os
import random
import shutil

import numpy as np
import pytest

from tengen import _core, games
from tengen.evaluation.engines.protocols import GtpEngine
from tengen.games.go_rules import write_vertex

GNUGO = shutil.which("gnugo", path=os.environ.get("PATH", "") + ":/usr/games")
OPTIONS = "--mode gtp --chinese-rules --positional-superko --allow-suicide"
pytestmark = pytest.mark.skipif(GNUGO is None, reason="gnugo is not installed")


def settled_game(size, komi, rng):
    """Plays random moves, except into own eyes, until all points are pass-alive."""
    name = f"go/{size}" if komi == 7.5 else f"go/{size}/komi={komi:g}"
    while True:
        state = games.make(name).new_state()
        moves = []
        while not state.is_terminal():
            # Stones of the side to move; the padding outside counts as its own.
            own = np.pad(state.observation()[1], 1, constant_values=1)
            beside = own[:-2, 1:-1] + own[2:, 1:-1] + own[1:-1, :-2] + own[1:-1, 2:]
            is_eye = (beside == 4).ravel()
            stones = [a for a in state.legal_actions()[:-1] if not is_eye[a]]
            if not stones:
                break
            moves.append(rng.choice(stones))
            state.apply(moves[-1])
            if len(moves) % size == 0 and _core.GoPosition(name, moves).is_settled():
                return name, moves


def compare_scores(size, num_games):
    rng = random.Random(size)
    with GtpEngine(f"{GNUGO} {OPTIONS}", 60.0) as engine:
        engine.ask(f"boardsize {size}")
        for _ in range(num_games):
            komi = rng.choice([7.5, 0.5, 5.5, 6.0, -3.5])
            name, moves = settled_game(size, komi, rng)
            engine.ask("clear_board")
            engine.ask(f"komi {komi}")
            for ply, action in enumerate(moves):
                vertex = write_vertex(action, size, size)
                engine.ask(f"play {'bw'[ply % 2]} {vertex}")
            # Self-play scores such a game this way: dead stones belong to the owner of
            # their point.
            score = _core.GoPosition(name, moves).pass_alive().sum() - komi
            side = "B" if score > 0 else "W"
            written = f"{side}+{abs(score):.1f}" if score else "0"
            assert engine.ask("final_score") == written, (name, moves)


@pytest.mark.parametrize("size", [5, 9])
def test_scores_are_those_of_gnugo(size):
    compare_scores(size, 3)


@pytest.mark.slow
def test_scores_of_many_games_are_those_of_gnugo():
    for size in range(5, 20):
        compare_scores(size, 30 // size)
