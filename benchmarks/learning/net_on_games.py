"""How soon a network learns from the games that a run has played.

    python benchmarks/learning/net_on_games.py RUN --rows 120000
    python benchmarks/learning/net_on_games.py RUN --rows 120000 \\
        --set net.policy_channels=32 --set learner.optimizer.kind=adamw

A network with random weights learns from the rows of a run with ``store.kind``
generations, by the run's network, losses, optimizer and batch, or by those that
``--set`` names. It learns in passes from ``--generations`` generations before the
newest one, each row with a new symmetry. After each fifth of the rows it is measured on
the newest generation, which it never learns from. No game is played, so that a network
or a rate is judged in a minute or two. Prints a table of Markdown; CPU-seconds are
those of learning, measuring included.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tengen.agents.alphazero import AlphaZero
from tengen.errors import TengenError, UsageError
from tengen.experience import GenerationsConfig
from tengen.experience.generations.passes import GenerationPass
from tengen.experience.generations.stock import GenerationStock
from tengen.learners.optimizer import Optimizer
from tengen.learners.update import Update
from tengen.nets import Net
from tengen.overrides import override
from tengen.roles import read_config
from tengen.run import RunDirectory

MEASURES = ("policy_loss", "value_loss", "policy_accuracy", "value_accuracy")
NUM_PARTS = 5
CHUNK_ROWS = 512


class Rows:
    """Rows of a run's games, by generation.

    Args:
        run: The run.
        task: Its task.
        config: Its store.
        num_learned: Most generations to learn from.
    """

    def __init__(
        self,
        run: RunDirectory,
        task: str,
        config: GenerationsConfig,
        num_learned: int,
    ) -> None:
        whole = dataclasses.replace(config, share=1.0, imported="")
        several = dataclasses.replace(whole, num_generations=num_learned)
        one = dataclasses.replace(whole, num_generations=1)
        self.stock = GenerationStock(task, run.experience, several, 0)
        self.stock.refresh()
        known = [
            number
            for number in self.stock.generations()
            if self.stock.num_games(number) >= config.min_games
        ]
        if len(known) < 2:
            raise UsageError(
                f"run ({run.path}) must have two generations of store.min_games "
                f"({config.min_games}) games; play more"
            )
        num_segments = len(self.stock.segments)
        before, self.newest = known[-2:]
        self.learned = self.stock.rows_of_pass(GenerationPass(0, before, num_segments))
        # Both stocks number the rows alike, as they read the same files.
        last = GenerationStock(task, run.experience, one, 0)
        last.refresh()
        self.kept = last.rows_of_pass(GenerationPass(0, self.newest, num_segments))
        last.close()

    def columns(
        self, keys: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, torch.Tensor]:
        columns: dict[str, NDArray[Any]] = self.stock.derive(keys, symmetries)
        return {name: torch.from_numpy(array) for name, array in columns.items()}


@torch.no_grad()
def measured(net: Net, update: Update, rows: Rows) -> dict[str, float]:
    """Returns means over the rows of the newest generation."""
    net.eval()
    sums = dict.fromkeys(MEASURES, 0.0)
    for first in range(0, len(rows.kept), CHUNK_ROWS):
        keys = rows.kept[first : first + CHUNK_ROWS]
        loss = update.loss(net, rows.columns(keys, np.zeros(len(keys), np.uint8)))
        for name in MEASURES:
            sums[name] += float(loss.metrics[name]) * len(keys)
    net.train()
    return {name: total / len(rows.kept) for name, total in sums.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Learns and prints the table; 2 where the run has no such games."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, default=120_000, help="rows to learn from")
    parser.add_argument("--generations", type=int, default=7, help="the newest so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    try:
        run = RunDirectory.open(args.run)
        config = override(read_config(run), args.settings)
        agent = AlphaZero.of(config, "learn")
        if not isinstance(config.store, GenerationsConfig):
            raise UsageError(
                f"store.kind ({config.store.kind}) must be generations; give a run of "
                f"MLPerf's minigo"
            )
        rows = Rows(run, config.task, config.store, args.generations)
        torch.manual_seed(args.seed)
        net = config.net.build(agent.signature(config.task))
    except TengenError as error:
        print(f"net_on_games: {error}", file=sys.stderr)
        return 2
    update = agent.make_update(config, net)
    optimizer = Optimizer(config.learner.optimizer, net)
    size = config.learner.batch_size
    parameters = list(net.parameters())
    draws = np.random.default_rng(args.seed)
    order = np.zeros(0, np.int64)
    num_steps, began_s = args.rows // size, time.process_time()
    print(f"{len(rows.learned)} rows, and {len(rows.kept)} of generation {rows.newest}")
    print("| rows | " + " | ".join(MEASURES).replace("_", " ") + " | CPU-s |")
    print("|---" * (len(MEASURES) + 2) + "|")
    net.train()
    for step in range(1, num_steps + 1):
        if len(order) < size:
            order = draws.permutation(rows.learned)
        keys, order = order[:size], order[size:]
        symmetries = draws.integers(0, rows.stock.num_symmetries, size, np.uint8)
        loss = update.loss(net, rows.columns(keys, symmetries)).loss
        optimizer.step(torch.autograd.grad(loss, parameters))
        if step % max(1, num_steps // NUM_PARTS) == 0:
            found = measured(net, update, rows)
            cells = [f"{found[name]:.3f}" for name in MEASURES]
            cpu_s = time.process_time() - began_s
            print(f"| {step * size} | {' | '.join(cells)} | {cpu_s:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
