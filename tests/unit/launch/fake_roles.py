"""Roles that only count, a launcher of them and a journal, for schedules at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tengen.launch import Budget, TrainingCall
from tengen.launch.schedule import run_schedule
from tengen.launch.workers import Worker
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig, StopListener, write_config
from tengen.run import RunDirectory

CHOSEN = (
    "inference.devices=cpu",
    "inference.backend=torch",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
)
Turn = Callable[["Fake"], "dict[str, Any] | None"]


class Fake:
    """A process with one role, which does what its script says."""

    def __init__(self, role: str, turn: Turn) -> None:
        self.roles = (role,)
        self.stopped = threading.Event()
        self.num_turns = 0
        self.details: list[Any] = []
        self.is_closed = False
        self.tell: Any = None
        self.script = turn

    def turn(
        self, role: str, on_progress: Any, on_death: Any, details: Any
    ) -> dict[str, Any] | None:
        assert (role,) == self.roles
        self.details.append(details)
        if self.stopped.is_set():
            return {"stopped": True}
        self.num_turns += 1
        self.tell = on_progress
        if self.script not in (without_room, in_a_moment):
            on_progress({"stage": role})
        return self.script(self)

    def stop(self) -> None:
        self.stopped.set()

    def kill(self) -> None:
        raise AssertionError("only actors of environments are killed")

    def close(self) -> None:
        assert self.stopped.is_set()
        self.is_closed = True


class Journal:
    """Keeps what it is told, and that it is told by one thread at a time."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.stages: list[str] = []
        self.waits: list[list[str]] = []
        self.num_generations = 0
        self._is_used = threading.Lock()

    def begin(self, spending: Any) -> None:
        self.spending = spending

    def progress(self, report: dict[str, Any]) -> None:
        with self.alone():
            if "starting" not in report:
                self.stages.append(report["stage"])

    def report(self, role: str, report: dict[str, Any], seconds: float) -> None:
        with self.alone():
            self.reports.append((role, report))

    def waiting(self, names: list[str]) -> None:
        with self.alone():
            self.waits.append(names)

    def end_generation(self, busy: dict[str, float] | None = None) -> None:
        assert all(0.0 <= share <= 1.0 for share in (busy or {}).values())
        self.num_generations += 1

    def alone(self) -> threading.Lock:
        assert not self._is_used.locked()
        return self._is_used

    def of(self, role: str) -> list[dict[str, Any]]:
        return [report for name, report in self.reports if name == role]


def called(*parts: Any, num_threads: int = 1) -> TrainingCall:
    """Returns a call of a config, a run, a budget, a journal and a stop."""
    names = ("config", "run", "budget", "journal", "stop")
    return TrainingCall(**dict(zip(names, parts, strict=True)), num_threads=num_threads)


def played(fake: Fake) -> dict[str, Any]:
    time.sleep(0.01)
    return {"num_games": 10, "num_recovered": 0}


def nothing(fake: Fake) -> None:
    return None


def until_stopped(fake: Fake) -> dict[str, Any]:
    fake.tell({"stage": fake.roles[0], "num_steps": 1})
    assert fake.stopped.wait(900)
    return {"num_steps": 3, "stopped": True, "steps_left": 100}


def without_room(fake: Fake) -> dict[str, Any]:
    """A turn of a process that never begins, an hour of it each tick."""
    hours = 0
    while not fake.stopped.wait(0.01):
        hours += 1
        fake.tell({"stage": "waiting", "waiting_s": 3600.0 * hours})
    return {"stopped": True}


def in_a_moment(fake: Fake) -> dict[str, Any]:
    """The same, where only a moment has passed."""
    while not fake.stopped.wait(0.01):
        fake.tell({"stage": "waiting", "waiting_s": 0.1})
    return {"stopped": True}


class Roles:
    """The processes of a call, which are fakes.

    Args:
        scripts: By role, of several as ``selfplay-1`` from the second on; the others
            find nothing to do.

    Attributes:
        kind: What its processes are.
    """

    kind: type[Fake] = Fake

    def __init__(self, scripts: dict[str, Turn]) -> None:
        self.fakes: dict[str, Fake] = {}
        self.num_threads: dict[str, int] = {}
        self._scripts = scripts

    def start(self, worker: Worker) -> Fake:
        (role,) = worker.roles
        name = f"{role}-{worker.index}" if worker.index else role
        self.fakes[name] = self.kind(role, self._scripts.get(name, nothing))
        self.num_threads[name] = worker.num_threads
        return self.fakes[name]


def config(*settings: str) -> RunConfig:
    return override(make_config("tictactoe", None, None), [*CHOSEN, *settings])


def train(
    run: RunDirectory,
    scripts: dict[str, Turn],
    budget: Budget,
    made: RunConfig | None = None,
    stopping: Callable[[StopListener, Roles], None] | None = None,
    journal: Journal | None = None,
) -> tuple[Roles, Any]:
    made = made or config()
    write_config(run, made)
    roles, journal = Roles(scripts), journal or Journal()
    any_roles: Any = roles
    with StopListener(run) as stop:
        if stopping is not None:
            threading.Thread(target=stopping, args=(stop, roles)).start()
        try:
            call = called(made, run, budget, journal, stop, num_threads=8)
            run_schedule(any_roles, call)
        finally:
            assert all(fake.is_closed for fake in roles.fakes.values())
    return roles, journal
