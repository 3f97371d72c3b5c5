"""Lists a run's standalone role processes, and finds the one that limits the run."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, TypeGuard

from tengen.observe.verdict import alone_advice
from tengen.run import RunDirectory, find_files, lock_holder, read_mirrors

_SERVING = "inference"
_FILE = re.compile(r"(.+)-command-([0-9]+)\.jsonl")

_WINDOW_S = 600.0


class Spans:
    """The time spans in which a role worked, within the last ten minutes."""

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque()

    def add(self, begun_s: float, ended_s: float) -> None:
        """Adds a span, which must not end before earlier spans."""
        self._spans.append((begun_s, ended_s))
        while self._spans[0][1] < ended_s - _WINDOW_S:
            self._spans.popleft()

    def share(self, first_s: float, now_s: float, open_s: float | None = None) -> float:
        """Returns the share of the time that the role worked, in [0, 1].

        Args:
            first_s: Start of the interval, limited to the last ten minutes.
            now_s: The current time, the end of the interval.
            open_s: Start of the work in progress; None if the role is idle.
        """
        first_s = max(first_s, now_s - _WINDOW_S)
        spans = [*self._spans, *([] if open_s is None else [(open_s, now_s)])]
        busy_s = sum(max(0.0, end - max(first_s, begun)) for begun, end in spans)
        return min(1.0, busy_s / max(1e-9, now_s - first_s))


class RoleProcess:
    """The state of a standalone role process, from its events.

    Args:
        event: The first event of the process.

    Attributes:
        name: The process, ``PID on HOST``.
        begun_s: Start time of the process, UNIX seconds.
        last: The newest event.
        learned_s: Start of the first turn with learner steps; None without one.
        learned: The newest turn with learner steps; empty without one.
    """

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.name = event.get("process")
        self.begun_s = self._idle_s = float(event["time_s"])
        self.last = event
        self.learned_s: float | None = None
        self.learned: Mapping[str, Any] = {}
        self._turns = Spans()

    def take(self, event: Mapping[str, Any]) -> None:
        """Processes the next event of the process."""
        self.last, time_s = event, float(event["time_s"])
        if event["kind"] == "turn":
            turn_s = event.get("turn_s")
            begun_s = time_s - (turn_s if is_number(turn_s) else 0.0)
            self._turns.add(begun_s, time_s)
            if event.get("num_steps"):
                self.learned = event
                self.learned_s = begun_s if self.learned_s is None else self.learned_s
        if event["kind"] != "busy":
            self._idle_s = max(self._idle_s, time_s)

    def busy_share(self, now_s: float, first_s: float | None = None) -> float:
        """Returns the share of the time that the process worked in turns, in [0, 1].

        Args:
            now_s: The current time, UNIX seconds.
            first_s: Start of the interval, limited to the last ten minutes; None for
                the start of the process.
        """
        # A busy process began its turn after its last event that was not ``busy``.
        open_s = self._idle_s if self.last["kind"] == "busy" else None
        first_s = self.begun_s if first_s is None else first_s
        return self._turns.share(first_s, now_s, open_s)

    @property
    def state(self) -> str:
        """The process's current activity, as human-readable text."""
        try:
            return _state(self.last)
        except (LookupError, TypeError, ValueError):
            return "unknown"  # The event is malformed.


class RoleProcesses:
    """All standalone role processes of a run so far."""

    def __init__(self) -> None:
        self._found: dict[str, dict[int, RoleProcess]] = {}

    def take(self, event: Mapping[str, Any], file: str) -> None:
        """Processes an event from a file; ignores files of ``tengen train``."""
        if (named := _FILE.fullmatch(file)) is None:
            return
        numbered = self._found.setdefault(named[1], {})
        if (number := int(named[2])) in numbered:
            numbered[number].take(event)
        else:
            numbered[number] = RoleProcess(event)

    @property
    def roles(self) -> list[str]:
        """The roles that have run as standalone processes."""
        return sorted(self._found)

    def alive(self, role: str, names: Mapping[str, Any]) -> list[RoleProcess]:
        """Returns the role's processes that are named in ``names``, newest last.

        If several have the same name, as in containers, only the newest is returned.
        """
        found: dict[Any, RoleProcess] = {}
        for _, one in sorted(self._found.get(role, {}).items()):
            if one.name in names:
                found.pop(one.name, None)
                found[one.name] = one
        return list(found.values())


def read_roles(run: RunDirectory, processes: RoleProcesses) -> list[dict[str, Any]]:
    """Returns a run's standalone role processes as JSON values.

    Keys: ``role``; ``process``, ``PID on HOST``, or None if the run needs the role and
    no process runs it; ``writer``, the self-play writer, or one of several inference
    servers; ``state``; and ``age_s``, the age of the state in seconds. Empty if no role
    has run standalone, or if ``tengen train`` is running.
    """
    if not processes.roles or run.lock_holder("train") is not None:
        return []
    found = []
    needed = needed_roles(run.read_run())
    away = {one.process for one in read_mirrors(run) if one.is_away}
    for role in dict.fromkeys((*needed, *processes.roles)):
        holders = role_holders(run, role)
        alive = {one.name: one for one in processes.alive(role, holders)}
        for process, writer in holders.items():
            if process in alive:
                state = alive[process].state
                state = f"out of contact; last {state}" if process in away else state
                age_s = max(0.0, time.time() - float(alive[process].last["time_s"]))
                found.append(_row(role, process, writer, state, round(age_s, 1)))
        if not alive and role in needed:
            found.append(_missing(run, role))
        elif role == _SERVING and role in needed and (count := _num_servers(run)) > 1:
            found += [
                _missing(run, role, _server_name(index), f" --index {index}")
                for index in range(count)
                if _server_name(index) not in holders.values()
            ]
    return found


def read_ratio(run: RunDirectory, processes: RoleProcesses) -> str | None:
    """Returns the verdict on the pace of a standalone learner; None if unknown."""
    content = run.read_run()
    roles, now_s = needed_roles(content), time.time()

    def newest(role: str) -> RoleProcess | None:
        """Returns the process that currently has the role, if any."""
        alive = processes.alive(role, role_holders(run, role))
        return alive[-1] if alive else None

    learner = None if of_agent(content["config"], "learn_from") else newest("learn")
    if learner is None or "learn" not in roles:
        return None
    suppliers = {
        role: None if (one := newest(role)) is None else one.busy_share(now_s)
        for role in roles[: roles.index("learn")]
    }
    return ratio(learner, content["config"], now_s, suppliers)


def ratio(
    learner: RoleProcess,
    config: Mapping[str, Any],
    now_s: float,
    suppliers: Mapping[str, float | None],
) -> str | None:
    """Returns a one-line verdict on the learner's pace; None before its first steps.

    Args:
        learner: The learner's process.
        config: The run's config, as in ``run.json``.
        now_s: The current time, UNIX seconds.
        suppliers: The roles that supply the learner, in the order in which rows pass
            them, with the share of time that each role is busy, or None if no process
            runs it.
    """
    if learner.learned_s is None:
        return None
    # Count from the first turn with learner steps, because no rows existed before it.
    busy = learner.busy_share(now_s, learner.learned_s)
    uses, advice = _uses(learner.learned, config), alone_advice(busy, suppliers)
    return f"the learner is busy {busy:.0%} of the time{uses}: {advice}"


def role_holders(run: RunDirectory, role: str) -> dict[str, str | None]:
    """Returns the processes that hold a role's locks, with their writer names.

    For a process on a host without the run directory, the run's service holds the lock.
    """
    if role == _SERVING and _num_servers(run) > 1:
        locks = [role, *(f"{role}-{index}" for index in range(1, _num_servers(run)))]
        return {
            process: _server_name(index)
            for index, lock in enumerate(locks)
            if (process := run.lock_holder(lock)) is not None
        }
    mirrors = {one.index: one.process for one in read_mirrors(run) if one.role == role}
    if role != "selfplay":
        # If there are several actors, the first one represents the role.
        holder = run.lock_holder(role) or run.lock_holder(f"{role}-0")
        holder = mirrors.get(0, holder)
        return {} if holder is None else {holder: None}
    folders = sorted(find_files(run.experience, "selfplay-*"))
    held = {lock_holder(folder / "lock"): folder.name for folder in folders}
    held |= {process: f"selfplay-{index}" for index, process in mirrors.items()}
    return {process: name for process, name in held.items() if process is not None}


def needed_roles(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the roles that a run needs to make progress.

    Args:
        content: The content of ``run.json``.
    """
    if "roles" in content:
        return tuple(content["roles"])
    # In earlier versions, only runs of games had standalone roles.
    config = content["config"]
    if config.get("actor", {}).get("kind") == "environment":
        return ()
    plays = () if config.get("learn_from") else ("selfplay",)
    is_shuffled = config.get("store", {}).get("drawn_by") == "shuffle"
    return (*plays, *(("shuffle",) if is_shuffled else ()), "learn", "export", "gate")


def has_actors(content: Mapping[str, Any]) -> bool:
    """Returns whether a run steps environments; otherwise the run plays games.

    Args:
        content: The content of ``run.json``.
    """
    return "actor" in needed_roles(content)


def of_agent(config: Mapping[str, Any], name: str) -> Any:
    """Returns a setting of a run's agent; None if it has no such setting.

    Args:
        config: The config in ``run.json``. Earlier versions stored the agent's settings
            at the top level, next to the agent's name.
        name: Name of the setting.
    """
    agent = config.get("agent")
    return (agent if isinstance(agent, dict) else config).get(name)


def is_number(value: Any) -> TypeGuard[float]:
    """Returns whether a JSON value is a number; booleans are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _num_servers(run: RunDirectory) -> int:
    """Returns the number of inference servers of a run."""
    launch = run.read_run()["config"].get("launch", {})
    return int(launch.get("roles", {}).get(_SERVING, {}).get("count", 1))


def _server_name(index: int) -> str:
    return f"server {index}"


def _missing(
    run: RunDirectory, role: str, name: str | None = None, option: str = ""
) -> dict[str, Any]:
    state = f"not running; start tengen {role} {run.path}{option}"
    return _row(role, None, name, state, None)


def _row(
    role: str, process: str | None, writer: str | None, state: str, age_s: float | None
) -> dict[str, Any]:
    return {
        "role": role,
        "process": process,
        "writer": writer,
        "state": state,
        "age_s": age_s,
    }


def _state(event: Mapping[str, Any]) -> str:
    if event["kind"] == "state":
        return str(event["state"])
    if event["kind"] == "busy":
        done = [_done(event, name, word) for name, word in _DONE if name in event]
        return ", ".join([str(event.get("stage", "busy")), *done])
    if event["kind"] == "turn" and event.get("role") == _SERVING:
        rate = event["num_evaluations"] / max(1e-9, event["seconds"])
        return (
            f"evaluates {rate:,.0f} rows/s for {event['num_sessions']} groups, "
            f"{event['batch_rows']:.1f} per batch, with model {event['model']}"
        )
    if event["kind"] == "turn":
        did = [f"{word} {event[name]}" for name, word in _DID if name in event]
        return ", ".join(["at the next turn", *did])
    if event["kind"] == "gate":
        return f"gate, {event.get('summary')}"
    return "starts"


def _done(event: Mapping[str, Any], name: str, word: str) -> str:
    """Returns the progress of a role's turn as text, with the total if it is known."""
    total = event.get(name.replace("num_", "of_"))
    of = "" if total is None else f" of {total:,}"
    return f"{event[name]:,}{of} {word}"


_DONE = (("num_games", "games"), ("num_steps", "steps"))
_DID = (
    ("generation", "after generation"),
    ("model", "on model"),
    ("checkpoint", "wrote checkpoint"),
    ("candidate", "of candidate"),
)


def _uses(turn: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Returns how often the learner used each row, as text; empty if unknown."""
    num_rows = turn.get("table", {}).get("num_rows")
    wanted = config.get("store", {}).get("limiter", {}).get("samples_per_row")
    if not num_rows or wanted is None:
        return ""
    num_samples = turn["total_steps"] * config["learner"]["batch_size"]
    return f", each row was used {num_samples / num_rows:.1f} times (limit {wanted:g})"
