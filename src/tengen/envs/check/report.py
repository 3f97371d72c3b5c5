"""Runs all checks of an environment and measures its speed."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.envs.check.copies import MakeCopies, check_against_one, check_copies
from tengen.envs.check.episodes import (
    EpisodeFacts,
    check_agents,
    check_episodes,
    check_spaces,
)
from tengen.envs.check.one import Maker, agents_actions, own_actions
from tengen.envs.check.seeds import check_seeds
from tengen.envs.check.seen import CannotGoOnError, Finding, Findings
from tengen.envs.copies import RAISED
from tengen.envs.masks import legal_actions
from tengen.envs.parallel_env import copies_of
from tengen.envs.parallel_parts import is_parallel
from tengen.envs.teams import joint_step
from tengen.envs.timely import Deadline, HangError
from tengen.errors import UsageError
from tengen.run.machine import resident_bytes
from tengen.tensors import ACTION_MASK

# Memory is measured after each quarter of the steps, to detect steady growth.
_NUM_PARTS = 4
_MAX_GROWTH_BYTES = 1 << 20
_MAX_SECONDS = 10.0
_NUM_COPIES = 8
# Number of sampled actions; a measurement with more steps repeats these actions.
_NUM_ACTIONS = 1000


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The measured cost of steps on this machine, under its current load."""

    steps_per_second: float
    """Steps per second in total over all copies, resets included."""
    num_copies: int
    """Number of copies, all stepped by one thread."""
    reset_share: float | None
    """Fraction of time spent in ``reset``; None if the copies reset within ``step``."""
    memory_growth_bytes: int | None
    """Growth of the process's resident memory during the steps; None if unknown."""


class _Clock:
    """Total time spent in steps and in resets."""

    def __init__(self) -> None:
        self.step_s = self.reset_s = 0.0

    @property
    def total_s(self) -> float:
        return self.step_s + self.reset_s


def measure(maker: Maker, num_steps: int, seed: int) -> Cost:
    """Measures the cost of one environment's steps.

    Args:
        maker: Creates the environment.
        num_steps: The maximum number of steps; the measurement stops after 10 s.
        seed: Seed of the actions.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
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
    """Measures the cost of vectorized copies that are not ``gymnasium.Env`` objects.

    Args:
        make: Creates the copies.
        num_steps: As for ``measure``, in total over all copies.
        seed: Seed of the copies and actions.
        findings: Receives a warning if memory grows.
    """
    env = make(_NUM_COPIES, seed)
    spec = env.spec
    actions = agents_actions(spec.actions, _NUM_ACTIONS, env.num_envs, seed)
    observation = env.reset()
    clock = _Clock()
    num_rows = num_taken = 0

    def advance() -> int:
        nonlocal num_rows, num_taken, observation
        chosen = actions[num_rows % len(actions)]
        if spec.has_action_mask:
            mask = observation[ACTION_MASK]
            chosen = legal_actions(chosen, mask, spec.actions.num_choices)
        start = time.perf_counter()
        step = env.step(chosen)
        clock.step_s += time.perf_counter() - start
        observation = step.observation
        num_rows += 1
        taken = int(np.sum(~joint_step(step, spec).is_reset))
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
    """Runs all steps; returns the growth of memory in bytes, or None if unknown.

    Growth in the first part is not counted, because the first steps fill caches.
    """
    num_taken = 0
    memory = []
    for part in range(1, _NUM_PARTS + 1):
        while (
            num_taken < num_steps * part // _NUM_PARTS
            and clock.total_s < _MAX_SECONDS * part / _NUM_PARTS
        ):
            num_taken += advance()
        gc.collect()
        memory.append(resident_bytes())
    if not sys.platform.startswith("linux"):
        return None  # Only Linux reports the current resident size.
    growth = np.diff(memory)
    if growth.min() > _MAX_GROWTH_BYTES:
        share = len(growth) / _NUM_PARTS
        findings.warning(
            "cost.memory",
            "memory",
            f"grew by {growth.sum() / 2**20:.0f} MiB in {int(num_taken * share):,} "
            "steps, without a pause",
            "should stop growing; keep no data of past steps",
        )
    return int(growth.sum())


# Maximum length of the trajectories compared by the checks of seeds and copies.
_MAX_COMPARED = 300


@dataclass
class Report:
    """The results of checking an environment."""

    findings: list[Finding]
    """The findings, in the order of discovery."""
    episodes: EpisodeFacts | None = None
    """Statistics of the episodes; None if none were played."""
    cost: Cost | None = None
    """The measured cost of steps; None if it was not measured."""
    is_whole: bool = False
    """Whether all checks ran; False if a violation made some checks impossible."""

    @property
    def num_broken(self) -> int:
        """Number of broken rules."""
        return sum(finding.is_broken for finding in self.findings)


def check_env(
    make: MakeCopies,
    make_one: Callable[[], Any] | None,
    name: str,
    *,
    num_steps: int = 2000,
    seed: int = 0,
    timeout_s: float = 60.0,
    before_end: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Checks an environment by using it as actors do. Blocks; see ``Deadline``.

    Args:
        make: Creates vectorized copies of the environment.
        make_one: Creates one ``gymnasium.Env`` or parallel environment; None to check
            only the vectorized copies.
        name: The task's name, for error messages.
        num_steps: Number of random steps, at least 1.
        seed: Seed of the episodes and actions, at least 0.
        timeout_s: The time limit of a call into the environment, in seconds.
        before_end: Called from another thread with the findings so far, before a hang
            terminates a process that tengen started.
    """
    findings, report = Findings(), Report([])

    def hangs(call: str) -> None:
        findings.broken(
            "hangs",
            call,
            f"still runs after {timeout_s:g} s",
            "must return; find what it waits for, or raise --timeout",
        )
        report.findings = findings.all

    def end(call: str) -> None:
        hangs(call)
        before_end(report)

    watch = Deadline(timeout_s, f"environment ({name})", end)
    work = _Work(make, make_one, name, num_steps, seed, findings, watch, report)
    try:
        with watch:
            work.all()
        report.is_whole = True
    except CannotGoOnError:
        pass
    except HangError as error:
        hangs(str(error))
    report.findings = findings.all
    return report


def check_own_env(
    make_one: Callable[[], Any], name: str = "", num_steps: int = 1000, seed: int = 0
) -> None:
    """Checks a user's environment, for use in tests; see ``check_env``.

    Args:
        make_one: A subclass of ``gymnasium.Env``, a class with PettingZoo's parallel
            interface, or a function that returns an environment; called without
            arguments, several times.
        name: The environment's name in messages; empty for the name of ``make_one``.
        num_steps: Number of random steps, at least 1.
        seed: Seed of the episodes and actions, at least 0.

    Raises:
        UsageError: The contract is broken; the message lists every broken rule.
    """
    shown = name or getattr(make_one, "__name__", type(make_one).__name__)
    report = check_env(
        lambda num_envs, seed: copies_of(make_one, num_envs, seed, name=shown),
        make_one,
        shown,
        num_steps=num_steps,
        seed=seed,
    )
    if report.num_broken:
        broken = [one.message for one in report.findings if one.is_broken]
        raise UsageError(" | ".join(broken))


@dataclass
class _Work:
    """One check of an environment: its arguments, and the checks to run."""

    make: MakeCopies
    make_one: Callable[[], Any] | None
    name: str
    num_steps: int
    seed: int
    findings: Findings
    watch: Deadline
    report: Report

    def all(self) -> None:
        """Runs all checks.

        Raises:
            CannotGoOnError: A failure makes the remaining checks impossible.
        """
        compared = min(self.num_steps, _MAX_COMPARED)
        is_alone = self.make_one is not None
        if self.make_one is not None:
            maker = Maker(self.make_one, self.name, self.findings, self.watch)
            made = maker.made()
            is_alone = not is_parallel(made)
            if is_alone:
                self._close(made)
                self._one(maker, compared)
            else:
                self.report.episodes = check_agents(
                    made, maker, self.num_steps, self.seed
                )
        check_copies(self.make, compared, self.seed, self.findings, self.watch)
        if not is_alone:
            self.report.cost = measure_copies(
                self.make, self.num_steps, self.seed, self.findings
            )

    def _close(self, made: Any) -> None:
        # ``OneEnv.close`` reports an environment that cannot be closed.
        with contextlib.suppress(*RAISED), self.watch.during("close()"):
            made.close()

    def _one(self, maker: Maker, compared: int) -> None:
        env = maker()
        check_spaces(env, self.findings)
        registered = getattr(env.env, "spec", None)
        is_limited = bool(registered and registered.max_episode_steps)
        env.close()
        self.report.episodes = check_episodes(
            maker, self.num_steps, self.seed, is_limited
        )
        is_repeated = check_seeds(maker, compared, self.seed)
        self.report.cost = measure(maker, self.num_steps, self.seed)
        if self.findings.num_broken:
            # Checks of vectorized copies would only report the same errors again.
            raise CannotGoOnError
        if is_repeated:
            check_against_one(maker, compared, self.seed)
