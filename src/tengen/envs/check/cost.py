"""Measures an environment: time of steps and resets, and memory that is not freed."""

from __future__ import annotations

import gc
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tengen.envs.check.actions import agents_actions, own_actions
from tengen.envs.check.copies import MakeCopies
from tengen.envs.check.findings import Findings
from tengen.envs.check.one import Maker

__all__ = ["Cost", "measure", "measure_copies"]

_STATM = Path("/proc/self/statm")
# Memory that grows by so much in each of these parts of the steps is no chance.
_NUM_PARTS = 4
_MAX_GROWTH_BYTES = 1 << 20
_MAX_SECONDS = 10.0
_NUM_COPIES = 8
# Distinct actions, which are then repeated.
_NUM_ACTIONS = 1000


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of some steps on this machine, beside its other work."""

    steps_per_second: float
    """Steps per second of all copies together, resets included."""
    num_copies: int
    """Number of copies, stepped by one thread."""
    reset_share: float | None
    """Share of the time that was spent in reset, 0 to 1; None where copies of a suite
    reset by themselves."""
    memory_growth_bytes: int | None
    """Growth of the process's memory in bytes; None where it is unknown."""


class _Clock:
    """Time of steps and resets."""

    def __init__(self) -> None:
        self.step_s = self.reset_s = 0.0

    @property
    def total_s(self) -> float:
        return self.step_s + self.reset_s


def measure(maker: Maker, num_steps: int, seed: int) -> Cost:
    """Measures one environment, and keeps none of its results.

    Args:
        maker: Makes the environment.
        num_steps: The most steps; they take at most ten seconds.
        seed: Seed of the actions.

    Raises:
        CannotGoOnError: An answer cannot be used.
    """
    env = maker()
    drawn = own_actions(env.env.action_space, seed)
    actions = list(itertools.islice(drawn, min(num_steps, _NUM_ACTIONS)))
    env.reset(seed)
    clock = _Clock()
    num_taken, is_over = 0, False

    def advance() -> int:
        nonlocal num_taken, is_over
        start = time.perf_counter()
        if is_over:
            env.reset()
            is_over = False
            clock.reset_s += time.perf_counter() - start
            return 0
        is_over = env.step(actions[num_taken % len(actions)]).is_over
        clock.step_s += time.perf_counter() - start
        num_taken += 1
        return 1

    growth = _advance_all(advance, clock, num_steps, maker.findings)
    env.close()
    return Cost(
        steps_per_second=num_taken / clock.total_s,
        num_copies=1,
        reset_share=clock.reset_s / clock.total_s,
        memory_growth_bytes=growth,
    )


def measure_copies(
    make: MakeCopies, num_steps: int, seed: int, findings: Findings
) -> Cost:
    """Measures copies of a suite without a ``gymnasium.Env``; see ``measure``.

    Args:
        make: Returns the copies.
        num_steps: Steps of all copies together.
        seed: Seed of copies and actions.
        findings: Where growing memory is noted.
    """
    env = make(_NUM_COPIES, seed)
    actions = agents_actions(env.spec.actions, _NUM_ACTIONS, _NUM_COPIES, seed)
    env.reset()
    clock = _Clock()
    num_rows = num_taken = 0

    def advance() -> int:
        nonlocal num_rows, num_taken
        start = time.perf_counter()
        step = env.step(actions[num_rows % len(actions)])
        clock.step_s += time.perf_counter() - start
        num_rows += 1
        taken = int(np.sum(~step.is_reset))
        num_taken += taken
        return taken

    growth = _advance_all(advance, clock, num_steps, findings)
    env.close()
    return Cost(
        steps_per_second=num_taken / clock.total_s,
        num_copies=_NUM_COPIES,
        reset_share=None,
        memory_growth_bytes=growth,
    )


def _advance_all(
    advance: Callable[[], int], clock: _Clock, num_steps: int, findings: Findings
) -> int | None:
    """Makes the steps in parts, and returns how memory grew after the first part.

    The first part is not counted, because it fills permanent caches.
    """
    num_taken = 0
    memory = []
    for part in range(1, _NUM_PARTS + 1):
        while (
            num_taken < num_steps * part // _NUM_PARTS
            and clock.total_s < _MAX_SECONDS * part / _NUM_PARTS
        ):
            num_taken += advance()
        size = _memory_bytes()
        if size is not None:
            memory.append(size)
    if not memory:
        return None
    growth = np.diff(memory)
    if growth.min() > _MAX_GROWTH_BYTES:
        share = len(growth) / _NUM_PARTS
        findings.warning(
            "cost.memory",
            "memory",
            f"{growth.sum() / 2**20:.0f} MiB more in {int(num_taken * share):,} steps, "
            f"and more in each part of them",
            "should not grow for ever; keep nothing of steps that are over",
        )
    return int(growth.sum())


def _memory_bytes() -> int | None:
    """Returns the memory that this process uses; None where it is unknown."""
    gc.collect()
    if not sys.platform.startswith("linux"):
        return None
    import resource

    return int(_STATM.read_text().split()[1]) * resource.getpagesize()
