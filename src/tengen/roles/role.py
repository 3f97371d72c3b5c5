"""What one process does in the loop: a role takes turns; a turn is safe to redo.

A role's state is in the run directory. Killed at any instant and started again, its
next turn carries on from what was published.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from tengen.errors import UsageError, did_you_mean
from tengen.experience import Experience
from tengen.mirror import Mirror
from tengen.roles.config import RunConfig
from tengen.roles.doors import Connect
from tengen.roles.inputs.learn_from import with_games
from tengen.run import RunDirectory

if TYPE_CHECKING:
    from tengen.nets.modules.net import Net

__all__ = [
    "ROLES",
    "LearnedNet",
    "Report",
    "Role",
    "RoleContext",
    "Shared",
    "make_role",
]

Report = Mapping[str, Any]


class LearnedNet(NamedTuple):
    """The learner's network, for who acts in the learner's own process."""

    net: Net
    """What a model is made of; the learner changes it in place in its next turn."""
    num_steps: int
    """Learner steps behind it."""


@dataclass
class Shared:
    """What roles of one process share, which take turns in one thread."""

    experience: Experience | None = None
    """What one adds to and another draws from."""
    learned: LearnedNet | None = None
    """What the learner of this process learned last, no older than any published model;
    None before its first steps, and where the actor has to load published models."""


@dataclass
class RoleContext:
    """What a role is given by whoever runs it."""

    num_threads: int = 1
    """Threads that it may keep busy."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set from outside: end the turn within a few seconds, losing nothing durable."""
    progress: Callable[[Report], None] = lambda report: None
    """Takes counts during a turn, for the view; cheap to call often."""
    remaining: float | None = None
    """Part of the run's budget still to come, in [0, 1], for the learning rate's
    cool-down: of the minutes times cores or the frames that all calls gave it, this one
    with them. None where this call's is in neither, so that games decide."""
    asked: float | None = None
    """Part of the same that this call asks for, in (0, 1]."""
    core_minutes: float | None = None
    """Minutes times cores that all calls gave the run so far; None where the role runs
    by itself, so that its time does not count."""
    core_minutes_in_all: float | None = None
    """These, and what this call has still to come; None where it has no budget in
    minutes, so that no stage in core-minutes begins."""
    follow_models: bool = False
    """Whether a generation may go on with a model that is published meanwhile; a run
    whose roles take turns is the same for a seed, and never does."""
    say: Callable[[str], None] = lambda text: None
    """Takes what a role by itself does from now on, a line for people."""
    write: Callable[[Callable[[], object]], object] = lambda write: write()
    """Calls what writes to the disk; a role by itself waits there for room."""
    sealed: int | None = None
    """The newest generation that the writer had sealed before the turn began: a turn
    that is redone after a kill, and finds a newer one, is over. None always plays."""
    index: int = 0
    """Which of several actors, learners or inference servers the role is, from 0."""
    at_once: bool = False
    """Whether the other roles of the run are in processes of their own, and work at the
    same time."""
    connect: Connect | None = None
    """Where a role by itself finds the services of the run; None: the run directory
    says it."""
    is_vouched: bool = False
    """Whether a runner gives the turns, and this is its only process of the index: then
    another one that holds what is this role's ends, or is a mirror's that is lost.
    Self-play is the writer of its index then, else one that is free."""
    mirror: Mirror | None = None
    """Where the run directory is on another host: the run is then this mirror's folder.
    """
    frames_left: int | None = None
    """Frames that all actors have still to make in this call; None without a budget."""
    die: Callable[[str], NoReturn] = lambda reason: _die(reason)
    """Ends the process at once, from any thread, for a reason that it can recover from
    only by being started again."""
    alive: Callable[[float, str], None] = lambda within_s, otherwise: None
    """Told again and again during a turn, from any thread: unless the next call or the
    turn's end comes within so many seconds, whoever runs the role kills the process for
    the reason that is given. A role by itself has nobody who would."""
    saves: bool = True
    """Whether the learner saves what it learned before its turn ends. Where False it
    may put that off for some seconds, as another turn in the same process follows."""
    shared: Shared = field(default_factory=Shared)
    """What roles of one process share."""


class Role(Protocol):
    """One role. Used by one thread."""

    waits_for: str
    """What the last turn lacked for its work, and what to do; empty where it did it."""

    def turn(self) -> Report | None:
        """Does one turn and returns what it did, or None when there is nothing to do.

        Blocks until the turn is over or ``context.stop`` is set; a turn that was
        stopped reports ``stopped: true``.
        """

    def close(self) -> None:
        """Releases what the role holds. A second call does nothing."""


def _die(reason: str) -> NoReturn:
    print(reason, file=sys.stderr, flush=True)
    os._exit(1)


ROLES = {
    "actor": "tengen.roles.actor.role:ActorRole",
    "eval": "tengen.roles.judging.target:EvalRole",
    "export": "tengen.roles.learning.export:ExportRole",
    "follow": "tengen.roles.learning.follow:FollowRole",
    "gate": "tengen.roles.judging.gate:GateRole",
    "inference": "tengen.roles.serving.role:InferenceRole",
    "learn": "tengen.roles.learning.learn:LearnRole",
    "rate": "tengen.roles.judging.rate:RateRole",
    "selfplay": "tengen.roles.selfplay.role:SelfplayRole",
    "shuffle": "tengen.roles.learning.shuffle:ShuffleRole",
}
"""Name -> ``module:class``; each is imported when it is made."""


def make_role(
    name: str, config: RunConfig, run: RunDirectory, context: RoleContext
) -> Role:
    """Returns the role ``name`` on a run.

    Raises:
        UsageError: No such role, or the run's family has none of it.
    """
    if name not in ROLES:
        raise UsageError(f"role ({name}) is not known; {did_you_mean(name, ROLES)}")
    run = with_games(config, run)
    module, _, attribute = ROLES[name].partition(":")
    made: Role = getattr(importlib.import_module(module), attribute)(
        config, run, context
    )
    return made
