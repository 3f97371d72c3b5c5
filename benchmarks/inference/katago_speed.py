#!/usr/bin/env python3
"""Evaluations per CPU-second of a network of KataGo's, as players compute it.

::

    python benchmarks/inference/katago_speed.py MODEL.bin.gz [--boards 9 19]
        [--seconds 5]

One thread, positions of one random game, policy and value; in batches of 1 and 8 and in
each precision that the CPU computes. Beside it the time that planes take, ns a
position. docs/howto/train/katago_networks.md has figures beside KataGo's own.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.evaluation.play_backend import open_for_play
from tengen.games import Game, open_game
from tengen.inference import allocate, search_outputs
from tengen.models import ModelDir, resolve_model
from tengen.search.play_config import PlayPrecision

_PRECISIONS: tuple[PlayPrecision, ...] = ("fp32", "bf16", "int8")
_BATCHES = (1, 8)
_NUM_POSITIONS = 64


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, metavar="MODEL.bin.gz")
    parser.add_argument("--boards", type=int, nargs="+", default=[9, 19])
    parser.add_argument("--seconds", type=float, default=5.0, help="a figure (5)")
    args = parser.parse_args()
    boards = resolve_model(f"katago:{args.file}").boards
    assert boards is not None
    for side in args.boards:
        model = boards(side, side)
        positions, planes_ns = _positions(open_game(model.meta.task))
        print(f"{side}x{side}: planes {planes_ns:.0f} ns a position")
        for precision in _PRECISIONS:
            rates = [
                _rate(model, precision, positions[:rows], args.seconds)
                for rows in _BATCHES
            ]
            words = ", ".join(
                f"{rate:.0f} in batches of {rows}"
                for rows, rate in zip(_BATCHES, rates, strict=True)
            )
            print(f"  {precision}: {words}, evaluations per CPU-s", flush=True)


def _positions(game: Game) -> tuple[NDArray[np.float32], float]:
    """Returns planes of a random game, and the time that they took."""
    rng, state, spent = np.random.default_rng(0), game.new_state(), 0
    found: list[NDArray[np.float32]] = []
    while len(found) < _NUM_POSITIONS and not state.is_terminal():
        begun = time.process_time_ns()
        found.append(state.observation())
        spent += time.process_time_ns() - begun
        state.apply(int(rng.choice(state.legal_actions())))
    return np.stack(found), spent / len(found)


def _rate(
    model: ModelDir,
    precision: PlayPrecision,
    positions: NDArray[np.float32],
    seconds: float,
) -> float:
    outputs = search_outputs(scores=False)
    backend = open_for_play(model.path, 1, outputs=outputs, precision=precision)
    inputs = allocate(backend.signature.inputs, len(positions))
    answers = allocate(backend.signature.outputs, len(positions))
    runner = backend.bind(inputs, answers)
    inputs["planes"][:] = positions
    runner.run(len(positions))
    num_done, begun, begun_cpu = 0, time.monotonic(), time.process_time()
    while time.monotonic() - begun < seconds:
        runner.run(len(positions))
        num_done += len(positions)
    return num_done / (time.process_time() - begun_cpu)


if __name__ == "__main__":
    main()
