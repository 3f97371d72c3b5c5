"""``check_env``: runs all checks of an environment in order, and reports the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tengen.envs.check.copies import MakeCopies, check_against_one, check_copies
from tengen.envs.check.cost import Cost, measure, measure_copies
from tengen.envs.check.episodes import EpisodeFacts, check_episodes, check_spaces
from tengen.envs.check.findings import CannotGoOnError, Finding, Findings
from tengen.envs.check.one import Maker
from tengen.envs.check.seeds import check_seeds
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.envs.timely import Deadline, HangError
from tengen.errors import UsageError

__all__ = ["Report", "check_env", "check_own_env"]

# Steps of each trajectory that is compared; there are a dozen.
_MAX_COMPARED = 300


@dataclass
class Report:
    """The results of a check."""

    findings: list[Finding]
    """In the order of discovery."""
    episodes: EpisodeFacts | None = None
    """Statistics of episodes; None where none were played."""
    cost: Cost | None = None
    """The cost of steps; None where it was not measured."""
    is_whole: bool = False
    """Whether all checks were made; otherwise a failure made the rest impossible."""

    @property
    def num_broken(self) -> int:
        """Rules that are broken."""
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
    """Checks an environment as actors use it. Blocks; see ``Deadline`` for hangs.

    Args:
        make: Returns copies of the environment.
        make_one: Returns one ``gymnasium.Env``; None where there is none, so that only
            the copies are checked.
        name: The task, for messages.
        num_steps: Random steps, at least 1.
        seed: Seed of episodes and actions, at least 0.
        timeout_s: Seconds that one call may take.
        before_end: Called with what was found, by another thread, before a call that
            hangs ends a process of tengen's own.
    """
    findings, report = Findings(), Report([])

    def hangs(call: str) -> None:
        findings.broken(
            "hangs",
            call,
            f"still runs after {timeout_s:g} s",
            "must return; correct what it waits for, or raise --timeout",
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
    """Checks an environment of one's own, for its tests; see ``check_env``.

    Args:
        make_one: A subclass of ``gymnasium.Env``, or a function that returns an
            environment; called without arguments, several times.
        name: The environment's name in messages; empty: the name of its class.
        num_steps: Random steps, at least 1.
        seed: Seed of episodes and actions, at least 0.

    Raises:
        UsageError: The contract is broken; the message has every broken rule.
    """
    shown = name or getattr(make_one, "__name__", type(make_one).__name__)
    report = check_env(
        lambda num_envs, seed: GymnasiumEnv(make_one, num_envs, seed, name=shown),
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
    """One check."""

    make: MakeCopies
    make_one: Callable[[], Any] | None
    name: str
    num_steps: int
    seed: int
    findings: Findings
    watch: Deadline
    report: Report

    def all(self) -> None:
        """Makes all checks.

        Raises:
            CannotGoOnError: A failure makes the rest impossible.
        """
        compared = min(self.num_steps, _MAX_COMPARED)
        if self.make_one is not None:
            maker = Maker(self.make_one, self.name, self.findings, self.watch)
            self._one(maker, compared)
        check_copies(self.make, compared, self.seed, self.findings, self.watch)
        if self.make_one is None:
            self.report.cost = measure_copies(
                self.make, self.num_steps, self.seed, self.findings
            )

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
            # Copies would fail in the same places, with other messages.
            raise CannotGoOnError
        if is_repeated:
            check_against_one(maker, compared, self.seed)
