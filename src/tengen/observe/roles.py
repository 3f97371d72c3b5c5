"""Which roles of a run are processes of their own now, and what each does."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, TypeGuard

from tengen.observe.busy import Spans
from tengen.run import RunDirectory, find_files, lock_holder, read_mirrors

__all__ = [
    "RoleProcess",
    "RoleProcesses",
    "has_actors",
    "is_number",
    "needed_roles",
    "of_agent",
    "read_roles",
]

_SERVING = "inference"
_FILE = re.compile(r"(.+)-command-([0-9]+)\.jsonl")


class RoleProcess:
    """What a process has said that is a role by itself.

    Args:
        event: Its first event.

    Attributes:
        name: ``PID on HOST``.
        begun_s: When it began, unix seconds.
        last: Its newest event.
        learned_s: When its first turn with learner steps began; None without any.
        learned: Its newest turn with learner steps.
    """

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.name = event.get("process")
        self.begun_s = self._idle_s = float(event["time_s"])
        self.last = event
        self.learned_s: float | None = None
        self.learned: Mapping[str, Any] = {}
        self._turns = Spans()

    def take(self, event: Mapping[str, Any]) -> None:
        """Takes its next event."""
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
        """Returns the share of the time in which it was in a turn, in [0, 1].

        Args:
            now_s: The time, unix seconds.
            first_s: From when on; None for its begin. The last ten minutes count.
        """
        # One that is busy is in a turn that began after whatever it said before.
        open_s = self._idle_s if self.last["kind"] == "busy" else None
        first_s = self.begun_s if first_s is None else first_s
        return self._turns.share(first_s, now_s, open_s)

    @property
    def state(self) -> str:
        """What it does, for people."""
        try:
            return _state(self.last)
        except (LookupError, TypeError, ValueError):
            return "not known"  # its event has another form than tengen gives it


class RoleProcesses:
    """The processes that have been roles by themselves."""

    def __init__(self) -> None:
        self._found: dict[str, dict[int, RoleProcess]] = {}

    def take(self, event: Mapping[str, Any], file: str) -> None:
        """Takes an event of a file; one of ``tengen train`` is ignored."""
        if (named := _FILE.fullmatch(file)) is None:
            return
        numbered = self._found.setdefault(named[1], {})
        if (number := int(named[2])) in numbered:
            numbered[number].take(event)
        else:
            numbered[number] = RoleProcess(event)

    @property
    def roles(self) -> list[str]:
        """The roles that ever ran by themselves."""
        return sorted(self._found)

    def alive(self, role: str, names: Mapping[str, Any]) -> list[RoleProcess]:
        """Returns the processes of a role with these names.

        Of several with one name, as in containers, the newest counts. The newest
        process comes last.
        """
        found: dict[Any, RoleProcess] = {}
        for _, one in sorted(self._found.get(role, {}).items()):
            if one.name in names:
                found.pop(one.name, None)
                found[one.name] = one
        return list(found.values())


def read_roles(run: RunDirectory, processes: RoleProcesses) -> list[dict[str, Any]]:
    """Returns the roles that run by themselves, as JSON values.

    Keys: ``role``, ``process`` (``PID on HOST``, None for a role that the run needs and
    no process has), ``writer`` (of self-play; of several inference servers, which),
    ``state``, and ``age_s``, seconds since it said so. Empty if no role ever ran by
    itself, or ``tengen train`` runs.
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
                state = f"not heard of; last {state}" if process in away else state
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


def role_holders(run: RunDirectory, role: str) -> dict[str, str | None]:
    """Returns the processes that hold a role's locks, and which writer they are.

    The run's service holds the lock for a process on a host without the run directory.
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
        # Of several actors the first.
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
        content: Of ``run.json``.
    """
    if "roles" in content:
        return tuple(content["roles"])
    # Runs of earlier versions: self-play alone had roles by themselves.
    config = content["config"]
    if config.get("actor", {}).get("kind") == "environment":
        return ()
    plays = () if config.get("learn_from") else ("selfplay",)
    is_shuffled = config.get("store", {}).get("drawn_by") == "shuffle"
    return (*plays, *(("shuffle",) if is_shuffled else ()), "learn", "export", "gate")


def has_actors(content: Mapping[str, Any]) -> bool:
    """Returns whether a run steps environments; else it plays games.

    Args:
        content: Of ``run.json``.
    """
    return "actor" in needed_roles(content)


def of_agent(config: Mapping[str, Any], name: str) -> Any:
    """Returns a setting of a run's agent; None if it has no such setting.

    Args:
        config: As in ``run.json``, perhaps of an earlier version, where the agent's
            settings stood beside its name.
        name: Of the setting.
    """
    agent = config.get("agent")
    return (agent if isinstance(agent, dict) else config).get(name)


def is_number(value: Any) -> TypeGuard[float]:
    """Returns whether a JSON value is a number, which true and false are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _num_servers(run: RunDirectory) -> int:
    """Returns how many inference servers a run has."""
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
            f"answers {rate:,.0f} rows/s of {event['num_sessions']} groups, "
            f"{event['batch_rows']:.1f} in a batch, on model {event['model']}"
        )
    if event["kind"] == "turn":
        did = [f"{word} {event[name]}" for name, word in _DID if name in event]
        return ", ".join(["at the next turn", *did])
    if event["kind"] == "gate":
        return f"gate, {event.get('summary')}"
    return "starts"


def _done(event: Mapping[str, Any], name: str, word: str) -> str:
    """Returns how much of a turn is done, and the total if it is known."""
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
