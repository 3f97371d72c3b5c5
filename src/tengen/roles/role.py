"""The interface of a role. A role works in turns, and a killed turn can be repeated.

A role's state is in the run directory. If a role is killed at any time and restarted,
its next turn continues from the published files.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, TypeVar

from tengen.errors import UsageError, did_you_mean
from tengen.experience import Experience
from tengen.inference.central import Interrupted
from tengen.remote import Mirror
from tengen.roles.config import RunConfig
from tengen.roles.doors import Connect
from tengen.roles.inputs import with_games
from tengen.run import RunDirectory

if TYPE_CHECKING:
    from tengen.nets.modules.net import Net

Report = Mapping[str, Any]
_PATIENCE_S = 600.0
"""The maximum wait for a role's lock, in seconds. An orphaned process needs only
seconds of CPU time to release its locks, but on a busy machine these take minutes."""
_RETRY_S = 0.5
_NO_MODEL = "no model is published yet; run tengen learn, export and gate first"

Taken = TypeVar("Taken")


class LearnedNet(NamedTuple):
    """The learner's network, for an actor in the learner's own process."""

    net: Net
    """The network with the averaged weights, which are also exported as models. The
    learner updates the network in place in its next turn."""
    num_steps: int
    """Number of learner steps that produced these weights."""


@dataclass
class Shared:
    """Objects shared by the roles of one process, which take turns in one thread."""

    experience: Experience | None = None
    """The experience that the actor writes to and the learner samples from."""
    learned: LearnedNet | None = None
    """The newest network of this process's learner, as new as any published model.
    None before the learner's first steps, or if the actor must load published models.
    """


@dataclass
class RoleContext:
    """The settings, callbacks and shared objects that the caller passes to a role."""

    num_threads: int = 1
    """Number of threads that the role may keep busy."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by the caller to make the role end its turn within a few seconds. No durable
    data is lost."""
    progress: Callable[[Report], None] = lambda report: None
    """Called during a turn with progress counts to display; cheap to call often."""
    remaining: float | None = None
    """Fraction of the run's budget that is left, in [0, 1], for the learning rate's
    cool-down. The budget is the core-minutes or the frames of all calls, including this
    one. None if this call's budget is in neither unit, for example in games."""
    asked: float | None = None
    """This call's fraction of the budget in ``remaining``, in (0, 1]."""
    core_minutes: float | None = None
    """CPU-minutes that all calls have spent on the run so far; None for a standalone
    role, whose time does not count."""
    core_minutes_in_all: float | None = None
    """Expected ``core_minutes`` at the end of this call; None if this call's budget is
    not in minutes, in which case no stage given in core-minutes begins."""
    generation_s: float | None = None
    """Time limit of self-play per generation, in seconds. A machine that is too slow
    plays fewer games per generation. None: no limit."""
    counts_cpu: bool = False
    """Whether ``generation_s`` is CPU-seconds per thread instead of wall seconds, so
    that generations have equal sizes on a busy machine."""
    follow_models: bool = False
    """Whether self-play may switch to a model that is published during a generation.
    False if roles take turns, so that a seed always gives the same run."""
    starting: Callable[[str], AbstractContextManager[None]] = lambda what: nullcontext()
    """Returns a context for preparatory work, such as compiling a network. The runner
    shows ``what``, such as "compiling the network". A stop request in this context ends
    the process immediately, so a role must not enter it after the turn's work began."""
    say: Callable[[str], None] = lambda text: None
    """Called with a line of text about the role's current activity, for the user."""
    write: Callable[[Callable[[], object]], object] = lambda write: write()
    """Calls a function that writes to the disk. In a standalone role, it waits while
    the disk is full."""
    sealed: int | None = None
    """The newest generation that the writer had sealed before the turn began. If a turn
    repeated after a kill finds a newer one, it does nothing. None: always play."""
    index: int = 0
    """Index of this actor, learner or inference server, from 0."""
    at_once: bool = False
    """Whether the run's other roles work concurrently in other processes."""
    connect: Connect | None = None
    """The run's address, for a role on a host without the run directory. None: use the
    addresses in the run directory's endpoint files."""
    is_vouched: bool = False
    """Whether a runner started this process as the only one with its role and index.
    If so, another process that holds this role's locks is ending or belongs to a lost
    mirror, and self-play uses the writer of its index instead of any free writer."""
    waits_for_lock: bool = False
    """Whether the role waits for its lock instead of failing. Set if an earlier process
    of the role may still save: after the death of a process, whose end the runner may
    not see (a lost Ray actor), and in a new call on a cluster."""
    mirror: Mirror | None = None
    """The mirror on which the role works if the run directory is on another host; None:
    the run directory is on this host."""
    frames_left: int | None = None
    """Number of frames that all actors together must still generate in this call; None
    without a budget in frames."""
    opponent: str | None = None
    """The opponent of ``agent.target``, if the user named it in this call. None: an
    opponent that is an external program is rejected."""
    die: Callable[[str], NoReturn] = lambda reason: _die(reason)
    """Ends the process immediately, from any thread, after a failure from which only a
    new process can recover."""
    alive: Callable[[float, str], None] = lambda within_s, otherwise: None
    """Called regularly during a turn, from any thread, with a time limit in seconds and
    a reason. If neither the next call nor the end of the turn comes within the limit,
    the runner kills the process and reports the reason. No effect without a runner."""
    saves: bool = True
    """Whether the learner must save its state before its turn ends. If False, it may
    save some seconds later, because another turn in the same process follows."""
    shared: Shared = field(default_factory=Shared)
    """Objects shared by the roles of this process."""


class Role:
    """The base class of roles. Only one thread may use a role.

    Args:
        config: The run's config.
        run: The run.
        context: The settings, callbacks and shared objects of the role's process.
        lock: Name of the run's lock that the role holds until ``close``, so that no
            other process works in the same role; "" for no lock.

    Raises:
        UsageError: Another process holds the lock, or the run does not have this role.
        RunError: A file that the role needs is damaged.

    Attributes:
        waits_for: A message that states what the last turn lacked, such as a model;
            else "".
    """

    _held: ExitStack
    """Releases what the constructor acquires, also if the constructor fails."""

    def __new__(cls, *_: Any) -> Self:
        """Creates a role that holds nothing."""
        made = super().__new__(cls)
        made._held = ExitStack()
        return made

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext, lock: str = ""
    ) -> None:
        self.waits_for = ""
        self._config = config
        self._run = run
        self._context = context
        if lock and context.waits_for_lock:
            taken = patiently(lambda: run.lock(lock), context)
            self._held.callback(taken.release)
        elif lock:
            self._held.callback(run.lock(lock).release)

    def turn(self) -> Report | None:
        """Runs one turn and returns its report, or None if there was nothing to do.

        Blocks until the turn ends or ``context.stop`` is set. A stopped turn reports
        ``stopped: true``.
        """
        raise NotImplementedError

    @property
    def is_saved(self) -> bool:
        """Whether all learner state is on the disk. Thread-safe between turns."""
        return True

    def save(self) -> None:
        """Saves the learner state if it is not saved. Must be called before ``close``.

        Experience may stay unsaved; ``close`` makes it durable.

        Raises:
            RunError: Writing to the disk failed.
        """

    def close(self) -> None:
        """Releases the role's lock and other resources. A second call does nothing."""
        self._held.close()

    def _newest_model(self) -> int | None:
        """Returns the newest published model's number; sets ``waits_for`` if None."""
        number = self._run.models.latest()
        self.waits_for = "" if number is not None else _NO_MODEL
        return number


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
"""Role classes by role name, as ``module:class``; imported when a role is created."""


def make_role(
    name: str, config: RunConfig, run: RunDirectory, context: RoleContext
) -> Role:
    """Creates the role ``name`` for a run.

    Raises:
        UsageError: ``name`` is not a role, or the run does not have this role.
    """
    if name not in ROLES:
        raise UsageError(f"role ({name}) is not known; {did_you_mean(name, ROLES)}")
    run = with_games(config, run)
    module, _, attribute = ROLES[name].partition(":")
    # Garbage collection would take a tenth of the time that importing torch takes, and
    # later visit the imported objects in vain.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        is_new = module not in sys.modules
        role = getattr(importlib.import_module(module), attribute)
        if is_new:
            gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
    made: Role = role.__new__(role)
    try:
        role.__init__(made, config, run, context)
    except BaseException:
        # A process may try again, for example when a full disk has space again. Not
        # ``made.close``, which needs a complete role.
        Role.close(made)
        raise
    return made


def patiently(take: Callable[[], Taken], context: RoleContext) -> Taken:
    """Retries ``take`` until it acquires its lock, and returns its result.

    Used for locks that the runner has assigned to this process. Any other holder is a
    process that is ending, or the run's service on behalf of a mirror. The service
    releases the lock within seconds (``run.evict_mirrors``).

    Args:
        take: Acquires the lock, or raises UsageError.
        context: Its ``stop`` ends the wait; its ``progress`` reports the lock's holder.

    Raises:
        UsageError: Another process still holds the lock after the maximum wait.
        Interrupted: The process was told to stop.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return take()
        except UsageError as error:
            if time.monotonic() >= until:
                raise
            if context.stop.wait(_RETRY_S):
                raise Interrupted from None
            context.progress({"stage": f"waiting, {str(error).partition(';')[0]}"})
