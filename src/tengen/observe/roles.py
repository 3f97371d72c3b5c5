"""Which roles of a run are processes of their own now, and what each does."""

from __future__ import annotations

import time
from typing import Any

from tengen.observe.events import read_events
from tengen.observe.ratio import busy_share, ratio
from tengen.run import RunDirectory, find_files, lock_holder, read_mirrors

__all__ = ["needed_roles", "of_agent", "read_ratio", "read_roles"]

_SERVING = "inference"


def read_roles(run: RunDirectory) -> list[dict[str, Any]]:
    """Returns the roles that run by themselves, as JSON values.

    Keys: ``role``, ``process`` (``PID on HOST``, None for a role that the run needs and
    nobody is), ``writer`` (of self-play; of several inference servers, which),
    ``state``, and ``age_s``, seconds since it said so. Empty where no role ever ran by
    itself, or ``tengen train`` runs.
    """
    logs = _logs(run)
    if not logs or run.lock_holder("train") is not None:
        return []
    found = []
    needed = needed_roles(run.read_run())
    away = {one.process for one in read_mirrors(run) if one.is_away}
    for role in dict.fromkeys((*needed, *sorted(logs))):
        alive = {
            events[0]["process"]: events
            # Of two with one name, as in containers, the newest counts.
            for events in reversed(logs.get(role, []))
            if events[0].get("process") in _holders(run, role)
        }
        holders = _holders(run, role)
        for process, writer in holders.items():
            if process in alive:
                described = _described(role, process, writer, alive[process])
                if process in away:
                    described["state"] = f"not heard of; last {described['state']}"
                found.append(described)
        if not alive and role in needed:
            found.append(_missing(run, role))
        elif role == _SERVING and role in needed and _num_servers(run) > 1:
            names = [_server_name(index) for index in range(_num_servers(run))]
            found += [
                _missing(run, role, name, f" --index {index}")
                for index, name in enumerate(names)
                if name not in holders.values()
            ]
    return found


def _num_servers(run: RunDirectory) -> int:
    """Returns how many inference servers a run has."""
    launch = run.read_run()["config"].get("launch", {})
    return int(launch.get("roles", {}).get(_SERVING, {}).get("count", 1))


def _server_name(index: int) -> str:
    return f"server {index}"


def _missing(
    run: RunDirectory, role: str, name: str | None = None, option: str = ""
) -> dict[str, Any]:
    return {
        "role": role,
        "process": None,
        "writer": name,
        "state": f"not running; start tengen {role} {run.path}{option}",
        "age_s": None,
    }


def read_ratio(run: RunDirectory) -> str | None:
    """Returns the verdict on self-play and learner; None where it cannot be told."""
    content = run.read_run()
    config = content["config"]
    if of_agent(config, "learn_from"):
        return None
    logs, now_s = _logs(run), time.time()

    def newest(role: str) -> list[dict[str, Any]] | None:
        """Returns what the process says that is the role now."""
        holders = _holders(run, role)
        alive = (e for e in logs.get(role, []) if e[0].get("process") in holders)
        return next(alive, None)

    def busy(role: str) -> float | None:
        events = newest(role)
        if events is None:
            return None
        return busy_share(events, float(events[0]["time_s"]), now_s)

    learner = newest("learn")
    if learner is None:
        return None
    roles = needed_roles(content)
    if "learn" not in roles:
        return None
    suppliers = {role: busy(role) for role in roles[: roles.index("learn")]}
    return ratio(learner, config, now_s, suppliers)


def needed_roles(content: dict[str, Any]) -> tuple[str, ...]:
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


def of_agent(config: dict[str, Any], name: str) -> Any:
    """Returns a setting of a run's agent; None where it has none.

    Args:
        config: As in ``run.json``, perhaps of an earlier version, where the agent's
            settings stood beside its name.
        name: Of the setting.
    """
    agent = config.get("agent")
    return (agent if isinstance(agent, dict) else config).get(name)


def _logs(run: RunDirectory) -> dict[str, list[list[dict[str, Any]]]]:
    """Returns the events of each incarnation, the newest first, by role."""
    found: dict[str, list[list[dict[str, Any]]]] = {}
    roles = {
        path.name.split("-command-")[0]
        for path in find_files(run.events, "*-command-*")
    }
    for role in roles:
        for number in reversed(run.incarnations(f"{role}-command")):
            events = list(read_events(run.events_path(f"{role}-command", number)))
            if events:
                found.setdefault(role, []).append(events)
    return found


def _holders(run: RunDirectory, role: str) -> dict[str, str | None]:
    """Returns the processes that hold a role's locks, and which writer they are.

    Of one on a host without the run directory the run's service holds the lock.
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


def _described(
    role: str, process: str, writer: str | None, events: list[dict[str, Any]]
) -> dict[str, Any]:
    last = events[-1]
    return {
        "role": role,
        "process": process,
        "writer": writer,
        "state": _state(last),
        "age_s": round(max(0.0, time.time() - float(last["time_s"])), 1),
    }


def _state(event: dict[str, Any]) -> str:
    if event["kind"] == "state":
        return str(event["state"])
    if event["kind"] == "busy":
        done = (_done(event, name, word) for name, word in _DONE if name in event)
        return ", ".join([str(event.get("stage", "busy")), *done])
    if event["kind"] == "turn" and event.get("role") == _SERVING:
        rate = event["num_evaluations"] / max(1e-9, event["seconds"])
        return (
            f"answers {rate:,.0f} rows/s of {event['num_sessions']} groups, "
            f"{event['batch_rows']:.1f} in a batch, on model {event['model']}"
        )
    if event["kind"] == "turn":
        did = (f"{word} {event[name]}" for name, word in _DID if name in event)
        return ", ".join(["at the next turn", *did])
    if event["kind"] == "gate":
        return f"gate, {event.get('summary')}"
    return "starts"


def _done(event: dict[str, Any], name: str, word: str) -> str:
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
