"""Self-play of a game in plain Python against alpha-zero-general's published method.

    python benchmarks/selfplay/own_game_speed.py --json

Both play Connect Four with random weights of the same network and the same number of
simulations a move, and count rows (searched moves) per CPU-second of all threads and
processes. The reference is ``published_loop.py``, torch on one thread in float32; the
other side is what a self-play role does with ``own_connect4.py``: it takes the fastest
backend and precision that this machine has. Rounds take turns; medians are reported.
With ``--checkout`` the project itself plays, its own rules and its own search, with the
network that the reference has.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from published_loop import Board, NumpyConnectFour, play_game

from tengen import _core, games
from tengen.actors import GamesOfGeneration, SelfplayConfig, SelfplayProcesses
from tengen.bench.random_model import publish_random
from tengen.inference import InferenceConfig, choose
from tengen.nets import board_of, parse_net
from tengen.run import RunDirectory, available_cores, machine_line
from tengen.tensors import BoardSpec

TASK = "own_connect4:ConnectFour"
NUM_ROUNDS = 3


def cpu_seconds() -> float:
    """Returns the CPU time of this process and of its ended children."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(
            resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
    )


class Reference:
    """The published loop with a network of ours."""

    def __init__(self, features: BoardSpec, net: str, simulations: int) -> None:
        import torch

        from tengen.nets import InferenceHead

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self._head = InferenceHead(parse_net(net).build(features.signature)).eval()
        self._torch = torch
        self._simulations = simulations
        self._rng = np.random.default_rng(0)

    def evaluate(self, board: Board) -> tuple[Any, float]:
        stones = (np.ones_like(board), board == 1, board == -1, np.ones_like(board))
        planes = self._torch.from_numpy(np.stack(stones).astype(np.float32))[None]
        with self._torch.inference_mode():
            logits, value = self._head(planes)
            return logits.softmax(1)[0].double().numpy(), float(value[0])

    def play_game(self) -> int:
        """Plays a game, and returns how many rows it has."""
        rules = NumpyConnectFour()
        return len(play_game(rules, self.evaluate, self._simulations, self._rng))

    def rows_per_cpu_s(self, seconds: float) -> float:
        start_s, num_rows = cpu_seconds(), 0
        while cpu_seconds() - start_s < seconds:
            num_rows += self.play_game()
        return num_rows / (cpu_seconds() - start_s)


class Checkout(Reference):
    """The project itself, from a checkout of it, with a network of ours.

    Two names that numpy dropped are given back, as its code of 2022 asks for them.
    """

    def __init__(
        self, features: BoardSpec, net: str, simulations: int, checkout: Path
    ) -> None:
        super().__init__(features, net, simulations)
        setattr(np, "int", int)  # noqa: B010 - it is no name of numpy's any more
        sys.path.insert(0, str(checkout))
        self._search = importlib.import_module("MCTS").MCTS
        theirs = importlib.import_module("connect4.Connect4Game").Connect4Game
        keys = {"stringRepresentation": lambda _, board: board.tobytes()}
        self._game = type("Connect4Game", (theirs,), keys)()
        self._args = argparse.Namespace(numMCTSSims=simulations, cpuct=1.0)

    def predict(self, board: Board) -> tuple[Any, float]:
        """Evaluates a board as the project's networks do."""
        return self.evaluate(board)

    def play_game(self) -> int:
        """Plays a game as its ``Coach.executeEpisode`` does."""
        game, search = self._game, self._search(self._game, self, self._args)
        board, player, num_rows = game.getInitBoard(), 1, 0
        while game.getGameEnded(board, player) == 0:
            policy = search.getActionProb(game.getCanonicalForm(board, player))
            action = int(self._rng.choice(len(policy), p=policy))
            board, player = game.getNextState(board, player, action)
            num_rows += 1
        return num_rows


class Ours:
    """What the self-play role does, in processes."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        run = RunDirectory.create_or_resume(folder)
        self._directory = publish_random(run, TASK, args.net)
        planes = games.random_positions(games.make(TASK), 64, seed=0)
        self._inference = choose(
            self._directory, InferenceConfig(), {"planes": planes}, 1
        ).config
        self._args = args

    @property
    def backend(self) -> str:
        return f"{self._inference.backend} {self._inference.precision}"

    def rows_per_cpu_s(self, seed: int, num_games: int) -> tuple[float, float]:
        """Returns rows per CPU-second and per second, the processes' start included."""
        what = GamesOfGeneration(
            task=TASK,
            config=SelfplayConfig(
                games_per_generation=num_games,
                full_simulations=self._args.simulations,
                num_slots=self._args.slots,
            ),
            directory=self._directory,
            inference=self._inference,
            seed=seed,
            generation=1,
            model=0,
        )
        start_s, start_cpu_s = time.perf_counter(), cpu_seconds()
        processes = SelfplayProcesses(self._args.processes)
        frames: list[bytes] = []
        processes.play(what, frames.append, lambda *_: None)
        processes.close()
        num_rows = sum(len(_core.decode_game(frame).plies) for frame in frames)
        spent_s = cpu_seconds() - start_cpu_s
        return num_rows / spent_s, num_rows / (time.perf_counter() - start_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", default="4x64", help="blocks x channels (4x64)")
    parser.add_argument("--simulations", type=int, default=25, help="a move (25)")
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--slots", type=int, default=32, help="games a process (32)")
    parser.add_argument("--games", type=int, default=512, help="ours, a round (512)")
    parser.add_argument("--seconds", type=float, default=20.0, help="reference, round")
    parser.add_argument("--checkout", type=Path, help="of alpha-zero-general itself")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    # For the processes, which look for the game as any Python does.
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    games.allow(TASK)
    rules = games.make(TASK)
    features = board_of(rules)
    if args.checkout is None:
        reference = Reference(features, args.net, args.simulations)
    else:
        reference = Checkout(features, args.net, args.simulations, args.checkout)
    with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
        ours = Ours(args, Path(folder))
        rounds = [
            (
                reference.rows_per_cpu_s(args.seconds),
                *ours.rows_per_cpu_s(index, args.games),
            )
            for index in range(NUM_ROUNDS)
        ]
        backend = ours.backend
    slow, fast, wall = (
        statistics.median(column) for column in zip(*rounds, strict=True)
    )
    report = {
        "name": "own_game_speed",
        "reference": str(args.checkout or "published method"),
        "net": args.net,
        "simulations": args.simulations,
        "processes": args.processes,
        "backend": backend,
        "machine": machine_line(),
        "reference_rows_per_cpu_s": round(slow, 2),
        "rows_per_cpu_s": round(fast, 2),
        "rows_per_s": round(wall, 2),
        "ratio": round(fast / slow, 2),
    }
    print(json.dumps(report) if args.json else report)


if __name__ == "__main__":
    main()
