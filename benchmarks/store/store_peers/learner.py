"""Measures a DQN learner on the CPU that samples from one store: its speed and waits.

The network of Mnih et al. 2015 on stacks of four frames of 84 x 84, batches of 32, the
double-Q loss of n-step returns with importance weights, and TD errors sent back as
priorities. The learner is the same for every store: it uses a `Peer`, and one thread of
torch, which leaves a core to the store's process. ``--accelerator-ms`` sleeps instead
of learning, to simulate a learner on another device, and measures the store's
throughput for a fast learner. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import torch
from measure import tree_cpu_seconds
from numpy.typing import NDArray
from peer import Peer, Table
from torch import nn

NUM_ACTIONS = 18
_FRAMES = (4, 84, 84)
_WARM_STEPS = 10
_TARGET_EVERY = 100
_TABLE = Table(
    columns={
        "observation": ("uint8", _FRAMES),
        "next_observation": ("uint8", _FRAMES),
        "action": ("int64", ()),
        "reward": ("float32", ()),
        # Discount of the bootstrap value: gamma ** n, 0 if the episode ended.
        "discount": ("float32", ()),
    },
    num_items=20_000,
    batch_size=32,
    is_prioritized=True,
)
_BLOCK = 100


Step = Callable[[Any, Any], NDArray[np.float64]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", help="module:class")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--accelerator-ms", type=float, default=0.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module, _, name = args.store.partition(":")
    peer: Peer = getattr(importlib.import_module(module), name)(_TABLE)
    for seed in range(_TABLE.num_items // _BLOCK):
        peer.insert(transitions(seed))
    peer.flush()
    step: Step = Learner().step
    if args.accelerator_ms:
        step = sleeper(args.accelerator_ms / 1e3)
    row = {"figure": "learn", "accelerator_ms": args.accelerator_ms}
    print(json.dumps({**row, **learn(peer, step, args.steps)}), flush=True)
    peer.close()


def learn(peer: Peer, learner_step: Step, num_steps: int) -> dict[str, Any]:
    """Runs learner steps; returns their total time and the time spent on the store."""
    draw_s = update_s = 0.0
    for step in range(_WARM_STEPS + num_steps):
        if step == _WARM_STEPS:
            start, start_cpu = time.perf_counter(), tree_cpu_seconds()
            draw_s = update_s = 0.0
        begin = time.perf_counter()
        drawn = peer.sample()
        drawn_at = time.perf_counter()
        priorities = learner_step(drawn.columns, drawn.weights)
        learned_at = time.perf_counter()
        drawn.update(priorities)
        draw_s += drawn_at - begin
        update_s += time.perf_counter() - learned_at
    seconds = time.perf_counter() - start
    return {
        "steps": num_steps,
        "seconds": seconds,
        "cpu_seconds": tree_cpu_seconds() - start_cpu,
        "draw_s": draw_s,
        "update_s": update_s,
        "torch": torch.__version__,
    }


class Learner:
    """Double Q-learning with a target network."""

    def __init__(self) -> None:
        self._online, self._target = _network(), _network()
        self._target.load_state_dict(self._online.state_dict())
        self._optimizer = torch.optim.Adam(self._online.parameters(), 6.25e-5)
        self._num_steps = 0

    def step(self, columns: Any, weights: Any) -> NDArray[np.float64]:
        """Runs one learner step, and returns the absolute TD errors."""
        batch = {name: torch.as_tensor(columns[name]) for name in _TABLE.columns}
        # Stores return scalar columns as [B] or [B, 1].
        reward, discount, action = (
            batch[name].reshape(-1, 1) for name in ("reward", "discount", "action")
        )
        with torch.no_grad():
            following = _planes(batch["next_observation"])
            best = self._online(following).argmax(1, keepdim=True)
            value = self._target(following).gather(1, best)
            wanted = reward + discount * value
        q = self._online(_planes(batch["observation"])).gather(1, action)
        weight = torch.as_tensor(weights, dtype=torch.float32).reshape(-1, 1)
        losses = nn.functional.smooth_l1_loss(q, wanted, reduction="none")
        loss = (losses * weight).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._num_steps += 1
        if self._num_steps % _TARGET_EVERY == 0:
            self._target.load_state_dict(self._online.state_dict())
        errors = (q - wanted).detach().abs()[:, 0].numpy()
        return np.asarray(errors, np.float64) + 1e-6


def sleeper(seconds: float) -> Step:
    """Returns a step that sleeps, in place of work on an accelerator."""
    rows = cycle(np.random.default_rng(0).random((64, _TABLE.batch_size)))

    def step(columns: Any, weights: Any) -> NDArray[np.float64]:
        time.sleep(seconds)
        return next(rows)

    return step


def transitions(seed: int) -> dict[str, NDArray[Any]]:
    """Returns synthetic transitions: uniform backgrounds with a few moving blocks."""
    rng = np.random.default_rng(seed)
    shape = (_BLOCK, *_FRAMES)
    columns: dict[str, NDArray[Any]] = {}
    for name in ("observation", "next_observation"):
        frames = np.zeros(shape, np.uint8) + rng.integers(0, 256, dtype=np.uint8)
        for frame in frames.reshape(-1, *_FRAMES[1:]):
            top, left = rng.integers(0, 64, 2)
            frame[top : top + 20, left : left + 20] = rng.integers(0, 256)
        columns[name] = frames
    columns["action"] = rng.integers(0, NUM_ACTIONS, _BLOCK)
    columns["reward"] = rng.integers(-1, 2, _BLOCK).astype(np.float32)
    columns["discount"] = np.full(_BLOCK, 0.99**3, np.float32)
    return columns


def _network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 512),
        nn.ReLU(),
        nn.Linear(512, NUM_ACTIONS),
    )


def _planes(frames: torch.Tensor) -> torch.Tensor:
    return frames.float() / 255


if __name__ == "__main__":
    main()
