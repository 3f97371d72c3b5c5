"""What a replay table's capacity is worth: a small DQN's returns, samples a second.

    python benchmarks/store/replay_size.py learn --out rows.jsonl --seeds 10 --jobs 2
    python benchmarks/store/replay_size.py draw
    python benchmarks/store/replay_size.py table rows.jsonl

``learn`` trains double Q-learning with prioritized 3-step replay on CartPole-v1, once a
capacity and seed, and goes on where a file of rows ends; two variants change the
capacity half way. ``draw`` times draws and priorities of full tables of the same items.
``table`` prints what ``learn`` found.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

from tengen.store import Column, RateLimits, Selector, Store, StoreConfig, TableConfig

ENVIRONMENT = "CartPole-v1"
NUM_OBSERVATIONS, NUM_ACTIONS = 4, 2
NUM_RETURN_STEPS = 3
DISCOUNT = 0.99
BATCH_SIZE = 64
LEARNING_RATE = 5e-4
IMPORTANCE_EXPONENT = 0.4
TARGET_EVERY = 250
STEPS_PER_UPDATE = 2
RANDOM_UNTIL, LEAST_RANDOM = 5_000, 0.05
EVALUATE_EVERY, EVALUATED_EPISODES = 2_500, 3
# Items at the start, and from half way on.
VARIANTS = {
    "100": (100, 100),
    "1 k": (1_000, 1_000),
    "10 k": (10_000, 10_000),
    "100 k": (100_000, 100_000),
    "1 k, then 100 k": (1_000, 100_000),
    "100 k, then 1 k": (100_000, 1_000),
}
DRAWN_CAPACITIES = (1_000, 10_000, 100_000, 1_000_000)


def replay(max_items: int) -> TableConfig:
    """Items are runs of steps, one more than a return has; runs share their steps."""
    return TableConfig(
        name="replay",
        columns={
            "observation": Column(dtype="float32", shape=(NUM_OBSERVATIONS,)),
            "action": Column(dtype="int64"),
            "reward": Column(dtype="float32"),
            # Whether an episode has ended here, and whether that was for good. Such a
            # step has an observation and no action; what follows is another episode.
            "is_end": Column(dtype="bool"),
            "is_terminal": Column(dtype="bool"),
        },
        sampler=Selector(kind="prioritized", exponent=0.6),
        max_items=max_items,
        limits=RateLimits(min_size=BATCH_SIZE),
        num_steps=NUM_RETURN_STEPS + 1,
    )


class Learner:
    """Double Q-learning of n-step returns."""

    def __init__(self) -> None:
        self._online, self._target = network(), network()
        self._target.load_state_dict(self._online.state_dict())
        self._optimizer = torch.optim.Adam(self._online.parameters(), LEARNING_RATE)
        self._num_updates = 0

    @torch.no_grad()
    def best_action(self, observation: Any) -> int:
        return int(self._online(torch.as_tensor(observation)).argmax())

    def update(self, columns: Any, weights: Any) -> Any:
        """Makes a step, and returns the size of each error."""
        batch = {name: torch.as_tensor(array) for name, array in columns.items()}
        rows = torch.arange(BATCH_SIZE)
        # Steps until the value is taken: to the end of the episode, at most n.
        ends = batch["is_end"].clone()
        ends[:, NUM_RETURN_STEPS] = True
        length = ends.int().argmax(1)
        gains = DISCOUNT ** torch.arange(NUM_RETURN_STEPS + 1)
        counts = torch.arange(NUM_RETURN_STEPS + 1) < length[:, None]
        returns = (batch["reward"] * gains * counts).sum(1)
        with torch.no_grad():
            following = batch["observation"][rows, length]
            best = self._online(following).argmax(1)
            value = self._target(following)[rows, best]
            value[batch["is_terminal"][rows, length]] = 0.0
            wanted = returns + gains[length] * value
        q = self._online(batch["observation"][:, 0])[rows, batch["action"][:, 0]]
        losses = nn.functional.smooth_l1_loss(q, wanted, reduction="none")
        loss = (losses * torch.as_tensor(weights, dtype=torch.float32)).mean()
        self._optimizer.zero_grad()
        torch.autograd.backward(loss)
        self._optimizer.step()
        self._num_updates += 1
        if self._num_updates % TARGET_EVERY == 0:
            self._target.load_state_dict(self._online.state_dict())
        return (q - wanted).detach().abs().double().numpy() + 1e-3


class Actor:
    """Plays, and writes each step once; items are the last steps of the stream."""

    def __init__(self, store: Store, seed: int) -> None:
        self._writer = store.writer(
            "actor", "replay", max_item_steps=NUM_RETURN_STEPS + 1
        )
        self._environment = gymnasium.make(ENVIRONMENT)
        self._rng = np.random.default_rng(seed)
        self._observation, _ = self._environment.reset(seed=seed)
        self._was_end = [True] * (NUM_RETURN_STEPS + 1)

    def act(self, learner: Learner, random_share: float, priority: float) -> None:
        if self._rng.random() < random_share:
            action = int(self._rng.integers(NUM_ACTIONS))
        else:
            action = learner.best_action(self._observation)
        following, reward, terminated, truncated, _ = self._environment.step(action)
        self._append(self._observation, action, reward, False, False, priority)
        self._observation = following
        if terminated or truncated:
            self._append(following, 0, 0.0, True, terminated, priority)
            self._observation, _ = self._environment.reset()

    def _append(
        self,
        observation: Any,
        action: int,
        reward: Any,
        is_end: bool,
        is_terminal: bool,
        priority: float,
    ) -> None:
        self._writer.append(
            {
                "observation": observation,
                "action": action,
                "reward": np.float32(reward),
                "is_end": is_end,
                "is_terminal": is_terminal,
            }
        )
        self._was_end = [*self._was_end[1:], is_end]
        # An item begins where an action was taken; at first there are too few steps.
        if not self._was_end[0]:
            self._writer.insert("replay", NUM_RETURN_STEPS + 1, priority)


def train(task: tuple[str, int, int]) -> dict[str, Any]:
    """Trains one agent, and returns what came of it."""
    variant, seed, num_steps = task
    first, second = VARIANTS[variant]
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    learner, highest, draw_s = Learner(), 1.0, 0.0
    curve: list[float] = []
    num_samples = 0
    start = time.process_time()
    with Store(
        StoreConfig.of([replay(first)], memory_bytes=64 << 20, seed=seed)
    ) as store:
        table = store.table("replay")
        actor = Actor(store, seed)
        batches = table.sampler(BATCH_SIZE)
        for step in range(1, num_steps + 1):
            if step == num_steps // 2:
                table.set_capacity(second)
            random_share = max(LEAST_RANDOM, 1.0 - step / RANDOM_UNTIL)
            actor.act(learner, random_share, highest)
            if step % STEPS_PER_UPDATE == 0 and step > 2 * BATCH_SIZE:
                begin = time.process_time()
                batch = batches.sample()
                weights = batch.importance_weights(IMPORTANCE_EXPONENT)
                drawn = time.process_time()
                priorities = learner.update(batch.columns, weights)
                learned = time.process_time()
                batch.ack(priorities)
                draw_s += time.process_time() - learned + drawn - begin
                highest = max(highest, float(priorities.max()))
                num_samples += BATCH_SIZE
            if step % EVALUATE_EVERY == 0:
                curve.append(evaluate(learner, seed))
    half = len(curve) // 2
    return {
        "variant": variant,
        "seed": seed,
        "steps": num_steps,
        "return_late": statistics.mean(curve[half:]),
        "return_all": statistics.mean(curve),
        "curve": curve,
        "samples_per_cpu_s": num_samples / (time.process_time() - start),
        "store_samples_per_cpu_s": num_samples / draw_s,
    }


def evaluate(learner: Learner, seed: int) -> float:
    """Returns the mean return of the best actions."""
    environment = gymnasium.make(ENVIRONMENT)
    total = 0.0
    for episode in range(EVALUATED_EPISODES):
        observation, _ = environment.reset(seed=1000 * (seed + 1) + episode)
        is_over = False
        while not is_over:
            action = learner.best_action(observation)
            observation, reward, terminated, truncated, _ = environment.step(action)
            total += float(reward)
            is_over = terminated or truncated
    return total / EVALUATED_EPISODES


def learn(args: argparse.Namespace) -> None:
    names = args.variants or list(VARIANTS)
    tasks = [(name, seed, args.steps) for seed in range(args.seeds) for name in names]
    if args.out.exists():
        rows = map(json.loads, args.out.read_text().splitlines())
        done = {(row["variant"], row["seed"], row["steps"]) for row in rows}
        tasks = [task for task in tasks if task not in done]
    with (
        ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool,
        args.out.open("a") as out,
    ):
        for row in pool.map(train, tasks):
            print(json.dumps(row), file=out, flush=True)


def draw(args: argparse.Namespace) -> None:
    """Times draws with priorities sent back from full tables of four sizes."""
    print("| items | samples/CPU-s | microseconds a batch | memory |")
    print("|---|---|---|---|")
    for capacity in DRAWN_CAPACITIES:
        config = replay(capacity)
        needed = (capacity + 8192) * config.step_bytes * 5 // 4 + (8 << 20)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with Store(StoreConfig.of([config], memory_bytes=needed)) as store:
            fill(store, capacity)
            batches = store.table("replay").sampler(BATCH_SIZE)
            priorities = np.random.default_rng(0).random((64, BATCH_SIZE))
            count, start = 0, time.process_time()
            while time.process_time() < start + args.cpu_seconds:
                batches.sample().ack(priorities[count % 64])
                count += 1
            seconds = time.process_time() - start
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(
            f"| {capacity:,} | {count * BATCH_SIZE / seconds:,.0f} "
            f"| {1e6 * seconds / count:.1f} | {(after - before) / 1024:.0f} MB |",
            flush=True,
        )


def fill(store: Store, capacity: int) -> None:
    """Fills the table with made-up steps, each the first of an item."""
    size = 1000
    columns: dict[str, Any] = {
        "observation": np.zeros((size, NUM_OBSERVATIONS), np.float32),
        "action": np.zeros(size, np.int64),
        "reward": np.ones(size, np.float32),
        "is_end": np.zeros(size, bool),
        "is_terminal": np.zeros(size, bool),
    }
    length = NUM_RETURN_STEPS + 1
    with store.writer("filler", "replay", max_item_steps=size + length) as writer:
        writer.append(columns)
        for _ in range(0, capacity, size):
            writer.append(columns)
            writer.insert_each("replay", length, count=size)


def table(args: argparse.Namespace) -> None:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in args.rows.read_text().splitlines():
        row = json.loads(line)
        found[row["variant"]].append(row)
    print(
        "| items | seeds | return, second half | least, greatest seed "
        "| return, all of it | samples/CPU-s | of the store alone |"
    )
    print("|---" * 7 + "|")
    for variant in VARIANTS:
        rows = found[variant]
        if not rows:
            continue
        late = [row["return_late"] for row in rows]
        cells = [
            variant,
            str(len(rows)),
            interval(late),
            f"{min(late):.0f}, {max(late):.0f}",
            interval([row["return_all"] for row in rows]),
            f"{statistics.median(row['samples_per_cpu_s'] for row in rows):,.0f}",
            f"{statistics.median(row['store_samples_per_cpu_s'] for row in rows):,.0f}",
        ]
        print(f"| {' | '.join(cells)} |")


def interval(values: list[float]) -> str:
    """Returns the mean with its standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.0f} +- {error:.0f}"


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(NUM_OBSERVATIONS, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, NUM_ACTIONS),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    learning = commands.add_parser("learn")
    learning.add_argument("variants", nargs="*", metavar="VARIANT")
    learning.add_argument("--out", type=Path, required=True)
    learning.add_argument("--seeds", type=int, default=10)
    learning.add_argument("--steps", type=int, default=30_000)
    learning.add_argument("--jobs", type=int, default=2)
    learning.set_defaults(call=learn)
    drawing = commands.add_parser("draw")
    drawing.add_argument("--cpu-seconds", type=float, default=2.0)
    drawing.set_defaults(call=draw)
    printing = commands.add_parser("table")
    printing.add_argument("rows", type=Path)
    printing.set_defaults(call=table)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
