"""What the way to a device costs a core: self-play by lanes and without them.

    python benchmarks/selfplay/lane_cost.py --game go/19/nosuicide/planes=minigo

No device and no network: evaluations are random numbers that cost next to nothing. Both
ways have as many games at once on one thread, three batches of ``--rows``, and take
turns. Prints microseconds of a core for an evaluation, of each round and the medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen import _core, games
from tengen.actors import SelfplayConfig, play_generation
from tengen.bench.no_net import RandomBackend
from tengen.experience import ExperienceWriter
from tengen.inference import Arrays, Backend, RowLayout
from tengen.nets import board_of
from tengen.run import RunDirectory
from tengen.search import SearchConfig
from tengen.tensors import Signature

NUM_LANES = 4


class RandomLane:
    """A ``Lane`` in the host's memory."""

    device = 0

    def __init__(self, signature: Signature, layout: RowLayout, num_rows: int) -> None:
        self.rows: NDArray[np.uint8] = np.zeros((num_rows, layout.num_bytes), np.uint8)
        self.outputs: Arrays = {
            name: np.zeros((num_rows, *spec.shape), np.float32)
            for name, spec in signature.outputs.items()
        }
        self._num_batches = 0

    def run(self, num_rows: int) -> None:
        self._num_batches += 1
        policy, value = self.outputs["policy"], self.outputs["value"]
        _core.evaluate_at_random(policy, value, num_rows, self._num_batches)


class RandomLanes(RandomBackend):
    """A ``LaneBackend`` without a device."""

    num_devices = 1

    def __init__(self, signature: Signature, max_rows: int) -> None:
        super().__init__(signature)
        self.max_rows = max_rows
        self.notes: list[str] = []

    def rate(self, num_rows: int, seconds: float) -> float:
        """Is a trial of a device's batch sizes, which self-play does not make."""
        raise AssertionError("there is no device to time")

    def open_lanes(self, layout: RowLayout, num_rows: int) -> Sequence[RandomLane]:
        rows = min(num_rows, self.max_rows)
        return [RandomLane(self.signature, layout, rows) for _ in range(NUM_LANES)]


def measure(
    args: argparse.Namespace, rules: games.Game, backend: Backend, slots: int
) -> float:
    """Returns microseconds of a core for an evaluation."""
    config = SelfplayConfig(
        games_per_generation=10_000_000,
        search=SearchConfig(policy=args.policy),
        full_simulations=args.simulations,
        cheap_simulations=args.cheap_simulations,
        full_probability=0.25,
        num_slots=slots,
        max_opening_plies=4,
    )
    queue = _core.GameQueue(seed=1, generation=1, model=0, num_games=10_000_000)
    ends_s: list[float] = []

    def watch(num_games: int, num_evaluations: int) -> None:
        if not ends_s:
            ends_s.append(time.monotonic() + args.seconds)
        if time.monotonic() >= ends_s[0]:
            queue.stop()

    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.create_or_resume(Path(folder))
        writer = ExperienceWriter(run.experience / "bench", 1)
        segment = writer.open_games(1, rules.name)
        start_s = time.process_time()
        played = play_generation(
            rules,
            config,
            backend,
            queue,
            segment.sink,
            num_threads=1,
            on_progress=watch,
            progress_interval_s=0.02,
        )
        cpu_s = time.process_time() - start_s
        segment.close()
    return 1e6 * cpu_s / played.num_evaluations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="go/19/nosuicide/planes=minigo")
    parser.add_argument("--policy", default="minigo")
    parser.add_argument("--simulations", type=int, default=800)
    parser.add_argument("--cheap-simulations", type=int, default=80)
    parser.add_argument("--rows", type=int, default=1024, help="of a batch (1024)")
    parser.add_argument("--seconds", type=float, default=6.0, help="of a round (6)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rules = games.open_game(args.game)
    signature = board_of(rules).signature
    leaves = SearchConfig(policy=args.policy).leaves_at_once
    slots = 3 * args.rows // leaves
    ways = {
        "lanes": RandomLanes(signature, args.rows),
        "without": RandomBackend(signature),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(args.rounds):
        for way, backend in ways.items():
            # Lanes take as many games as fill three batches by themselves.
            own = 1 if way == "lanes" else slots
            found[way].append(measure(args, rules, backend, own))
            print(f"{way:8s} {found[way][-1]:6.2f} us")
    medians = {way: statistics.median(times) for way, times in found.items()}
    print(", ".join(f"{way} {time_us:.2f} us" for way, time_us in medians.items()))


if __name__ == "__main__":
    main()
