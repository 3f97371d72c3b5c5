"""The interface of a role, which works in turns; a killed turn is safe to redo.

A role's state is in the run directory. If a role is killed at any instant and started
again, its next turn continues from what was published.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    NoReturn,
    Protocol,
    TypeVar,
    runtime_checkable,
)

from tengen.errors import UsageError, did_you_mean
from tengen.experience import Experience
from tengen.remote import Mirror
from tengen.roles.config import RunConfig
from tengen.roles.doors import Connect
from tengen.roles.inputs import with_games
from tengen.run import RunDirectory

if TYPE_CHECKING:
    from tengen.nets.modules.net import Net

__all__ = [
    "ROLES",
    "LearnedNet",
    "Report",
    "Role",
    "RoleContext",
    "SavingRole",
    "Shared",
    "make_role",
    "patiently",
]

Report = Mapping[str, Any]
_PATIENCE_S = 600.0
"""A process whose runner is gone needs only seconds of CPU time to end, but on a busy
machine it may wait minutes for them."""
_RETRY_S = 0.5

Taken = TypeVar("Taken")


class LearnedNet(NamedTuple):
    """The learner's network, for an actor in the learner's own process."""

    net: Net
    """The network that models are made of; the learner changes it in place in its next
    turn."""
    num_steps: int
    """Learner steps that it was trained for."""


@dataclass
class Shared:
    """What the roles of one process share; they take turns in one thread."""

    experience: Experience | None = None
    """The experience that one role adds to and another draws from."""
    learned: LearnedNet | None = None
    """The newest network of this process's learner, no older than any published model.
    None before its first steps, and where the actor must load published models."""


@dataclass
class RoleContext:
    """What a role gets from the code that runs it."""

    num_threads: int = 1
    """Threads that the role may keep busy."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set from outside: end the turn within a few seconds, losing nothing durable."""
    progress: Callable[[Report], None] = lambda report: None
    """Takes counts during a turn, for the view; cheap to call often."""
    remaining: float | None = None
    """Part of the run's budget that is still to come, in [0, 1], for the learning
    rate's cool-down. The budget is the core-minutes or the frames of all calls,
    including this one. None if this call's budget is in neither, such as in games."""
    asked: float | None = None
    """Part of that budget that this call adds, in (0, 1]."""
    core_minutes: float | None = None
    """CPU-minutes that all calls have spent on the run so far; None if the role runs
    by itself, because its time does not count."""
    core_minutes_in_all: float | None = None
    """``core_minutes`` and what the rest of this call's minutes will bring; None if its
    budget is not in minutes, and then no stage in core-minutes begins."""
    generation_s: float | None = None
    """Seconds that self-play may take for a generation; where the machine is too slow
    for that, generations get smaller. None: they never do."""
    follow_models: bool = False
    """Whether a generation may go on with a model that is published meanwhile. Never
    where roles take turns, so that a seed gives the same run."""
    starting: Callable[[str], AbstractContextManager[None]] = lambda what: nullcontext()
    """Returns a context for work that precedes a turn's own, such as compiling a
    network: the runner shows ``what``, words like "compiling the network", and a stop
    meanwhile ends the process at once. Nothing of the turn may be begun by then."""
    say: Callable[[str], None] = lambda text: None
    """Called with a line for people that says what a role by itself does now."""
    write: Callable[[Callable[[], object]], object] = lambda write: write()
    """Calls a function that writes to the disk; in a role by itself it waits for
    room."""
    sealed: int | None = None
    """The newest generation that the writer had sealed before the turn began. If a turn
    that is redone after a kill finds a newer one, it is over. None always plays."""
    index: int = 0
    """Which of several actors, learners or inference servers the role is, from 0."""
    at_once: bool = False
    """Whether the other roles of the run are in processes of their own, and work at the
    same time."""
    connect: Connect | None = None
    """Where a role by itself finds the services of the run; None: where the run
    directory says."""
    is_vouched: bool = False
    """Whether a runner gives the turns and has only this process for the index. Then
    another process that holds this role's locks is ending, or belongs to a lost mirror.
    Self-play is then the writer of its index, else any free writer."""
    mirror: Mirror | None = None
    """The mirror of a run directory on another host, whose folder is then the run;
    None: the run directory is here.
    """
    frames_left: int | None = None
    """Frames that all actors together still have to make in this call; None without a
    budget in frames."""
    opponent: str | None = None
    """The target's opponent, if the user typed it in this call; None refuses one that
    is a program."""
    die: Callable[[str], NoReturn] = lambda reason: _die(reason)
    """Ends the process at once, from any thread, for a failure that only a new process
    recovers from."""
    alive: Callable[[float, str], None] = lambda within_s, otherwise: None
    """Called again and again during a turn, from any thread, with a time in seconds and
    a reason. Unless the next call or the turn's end comes within that time, the runner
    kills the process for that reason. A role by itself has no runner."""
    saves: bool = True
    """Whether the learner must save what it learned before its turn ends. If False it
    may save some seconds later, because another turn in the same process follows."""
    shared: Shared = field(default_factory=Shared)
    """What roles of one process share."""


class Role(Protocol):
    """One role. Used by one thread."""

    waits_for: str
    """What the last turn lacked for its work, and what to do; empty if it worked."""

    def turn(self) -> Report | None:
        """Does one turn and returns what it did, or None when there is nothing to do.

        Blocks until the turn is over or ``context.stop`` is set; a turn that was
        stopped reports ``stopped: true``.
        """

    def close(self) -> None:
        """Releases what the role holds. A second call does nothing."""


@runtime_checkable
class SavingRole(Protocol):
    """A role that may keep in memory what it learned, from one turn to the next.

    So may its experience; ``close`` makes that durable, too.
    """

    @property
    def is_saved(self) -> bool:
        """Whether all of it is on the disk. Any thread, between turns."""

    def save(self) -> None:
        """Saves it before the role is closed; does nothing where all is saved.

        Raises:
            RunError: Writing to the disk failed.
        """


def _die(reason: str) -> NoReturn:
    print(reason, file=sys.stderr, flush=True)
    os._exit(1)


ROLES = {
    "actor": "tengen.roles.actor.role:ActorRole",
    "eval": "tengen.minigo.matches:TargetMatches",
    "export": "tengen.roles.learning.export:ExportRole",
    "follow": "tengen.roles.learning.follow:FollowRole",
    "gate": "tengen.roles.judging.gate:GateRole",
    "inference": "tengen.roles.serving:InferenceRole",
    "learn": "tengen.roles.learning.learn:LearnRole",
    "rate": "tengen.roles.judging.gate:RateRole",
    "selfplay": "tengen.roles.selfplay.role:SelfplayRole",
    "shuffle": "tengen.roles.learning.shuffle:ShuffleRole",
}
"""The classes of roles by name, as ``module:class``; imported when a role is made."""


def make_role(
    name: str, config: RunConfig, run: RunDirectory, context: RoleContext
) -> Role:
    """Returns the role ``name`` on a run.

    Raises:
        UsageError: There is no such role, or the run has no such role.
    """
    if name not in ROLES:
        raise UsageError(f"role ({name}) is not known; {did_you_mean(name, ROLES)}")
    run = with_games(config, run)
    module, _, attribute = ROLES[name].partition(":")
    # Collecting garbage while torch is imported would take a tenth of that time.
    gc.disable()
    try:
        role = getattr(importlib.import_module(module), attribute)
    finally:
        gc.enable()
    made: Role = role(config, run, context)
    return made


def patiently(take: Callable[[], Taken], context: RoleContext) -> Taken:
    """Returns what ``take`` returns, once the present holder has given it back.

    For locks that the run gives to one process. Another holder is a process that is
    ending, or a mirror's place that the run's service gives up within seconds
    (``run.evict_mirrors``).

    Args:
        take: Takes the lock, or raises UsageError.
        context: Its stop ends the waiting; progress says who has the lock.

    Raises:
        UsageError: Another process holds it for longer.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return take()
        except UsageError as error:
            if time.monotonic() >= until or context.stop.wait(_RETRY_S):
                raise
            context.progress({"stage": f"waiting, {str(error).partition(';')[0]}"})
