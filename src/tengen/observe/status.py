"""``tengen status`` and ``tengen stop``, which only access the run directory."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tengen.errors import RunError, UsageError
from tengen.observe.progress import Progress
from tengen.observe.roles import of_agent, read_ratio, read_roles
from tengen.observe.run_view import RunView
from tengen.observe.target import read_target, target_line
from tengen.observe.view import describe
from tengen.run import RunDirectory, find_files, lock_holder, read_object

HOST_STATUS = "host_status.json"
"""The file in a mirror's folder (``tengen.remote``) with the latest status received
from the run's host."""

_LITTLE_BYTES = 1e9
# One candidate may be in evaluation and one may be new. If there are more, the gate is
# too slow and will skip some.
_MANY_CANDIDATES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen status`` and ``tengen stop``."""
    parser.add_argument("run", metavar="RUN", help="the run directory")


def status(args: argparse.Namespace) -> dict[str, Any]:
    """Prints a run's progress and its bottleneck; returns the report of the run.

    Raises:
        UsageError: The run does not exist.
        RunError: ``run.json`` is damaged.
    """
    run = RunDirectory.open(args.run)
    if (run.path / HOST_STATUS).exists():
        report, text = _of_host(run)
    else:
        report = read_status(run)
        text = _text(report)
    if not args.json:
        print(text)
    return report


def stop(args: argparse.Namespace) -> dict[str, Any]:
    """Asks a run's roles to save their work and end; returns without waiting.

    Raises:
        UsageError: The run does not exist.
        RunError: The request cannot be written.
    """
    run = RunDirectory.open(args.run)
    run.request_stop()
    if not args.json:
        print(f"{run.path}: asked every role to save its work and end")
    return {"run": str(run.path), "stop_requested": True}


def read_status(run: RunDirectory, view: RunView | None = None) -> dict[str, Any]:
    """Returns a run's state as JSON values, read only from the run's files.

    Keys: ``run``, ``task``, ``running`` (``PID on HOST`` or None), ``stop_requested``,
    ``num_models``, ``latest_model``, ``origin`` (the latest model's training data, from
    its ``meta.json``, or None), ``latest_checkpoint``, ``num_candidates`` (candidates
    that await the gate), ``gate_too_slow`` (whether a running gate with matches lags
    behind the candidates), ``num_rejected``, ``learn_from`` (the run whose games this
    run learns from; None for its own games), ``experience_bytes`` (size of the games
    that the run learns from), ``unfinished`` (writers whose generation is neither
    sealed nor being played), ``gate`` (the last match, see ``RunView``), ``target``
    (progress of the target's matches, see ``observe.target.read_target``),
    ``free_bytes`` (on the run's disk), ``progress`` (the latest ``Progress``, or None),
    ``places`` (hosts of the processes of a running call on several hosts, see
    ``observe.Place``), ``lost`` (lines about lost processes of this or the last call),
    and for standalone roles ``roles`` (``observe.roles.read_roles``) and ``ratio`` (one
    line, or None).

    Args:
        run: The run.
        view: The run's events, if they have just been read; None to read them.
    """
    view = RunView(run).read() if view is None else view
    config = run.read_run()["config"]
    num_candidates = len(run.candidates.numbers())
    running = run.lock_holder("train")
    hosts = view.hosts
    if hosts is not None and running not in (None, hosts.process):
        hosts = None  # the hosts are from an earlier call
    learn_from = of_agent(config, "learn_from") or None
    source = run if learn_from is None else RunDirectory(learn_from)
    return {
        "run": str(run.path),
        "task": config.get("task"),
        "running": running,
        "stop_requested": run.stop_requested(),
        "num_models": len(run.models.numbers()),
        "latest_model": run.models.latest(),
        "origin": _origin(run),
        "latest_checkpoint": run.checkpoints.latest(),
        "num_candidates": num_candidates,
        "gate_too_slow": num_candidates >= _MANY_CANDIDATES
        and run.lock_holder("gate") is not None
        and (of_agent(config, "gate") or {}).get("kind", "accept_all") != "accept_all",
        "num_rejected": len(run.rejected.numbers()),
        "learn_from": learn_from,
        "experience_bytes": _size_bytes(source.experience),
        "unfinished": _unfinished(run),
        "gate": view.gate,
        "target": read_target(run),
        "free_bytes": shutil.disk_usage(run.path).free,
        "places": [asdict(one) for one in hosts.places] if running and hosts else [],
        "lost": list(hosts.lost) if hosts else [],
        "roles": read_roles(run, view.processes),
        "ratio": read_ratio(run, view.processes),
        "progress": None if view.progress is None else view.progress.to_dict(),
    }


def _of_host(run: RunDirectory) -> tuple[dict[str, Any], str]:
    """Returns a mirror's last status from the run's host, as a report and as text.

    Raises:
        RunError: The file is damaged.
    """
    path = run.path / HOST_STATUS
    advice = "remove it; a role that runs here creates it again"
    content = read_object(path, "status", schema=1, advice=advice)
    try:
        report = dict(content["report"])
        report["age_s"] = round(max(0.0, time.time() - float(content["time_s"])), 1)
        text = f"{_text(report)}\nseen from {run.path}, {report['age_s']:.0f} s ago"
    except (LookupError, TypeError, ValueError, AttributeError, UsageError) as error:
        raise RunError(f"status ({path}) is damaged, {error!r}; {advice}") from None
    return report, text


def _place(place: dict[str, Any]) -> str:
    threads = place["num_threads"]
    words = f"{place['name']}, {threads} thread{'s' if threads > 1 else ''}"
    return f"on {place['host']}: {words}"


def _role(role: dict[str, Any]) -> str:
    if role["process"] is None:
        name = "" if role["writer"] is None else f"{role['writer']}, "
        return f"{name}{role['state']}"
    name = "" if role["writer"] is None else f", {role['writer']}"
    return f"{role['process']}{name}: {role['state']} ({role['age_s']:.0f} s ago)"


def _unfinished(run: RunDirectory) -> list[str]:
    """Returns the names of writers whose unfinished games no process continues."""
    writers = {
        path.parent.parent for path in find_files(run.experience, "*/*/*.journal")
    }
    return sorted(w.name for w in writers if lock_holder(w / "lock") is None)


def _gate(candidate: int, accepted: bool | None, summary: str) -> str:
    words = {True: "accepted", False: "rejected", None: "not decided yet"}
    return f"{candidate:06d} {words[accepted]}, {summary}"


def _origin(run: RunDirectory) -> dict[str, Any] | None:
    """Returns the newest model's origin, or None if its ``meta.json`` has none."""
    newest = run.models.latest()
    if newest is None:
        return None
    try:
        meta = json.loads((run.models.entry(newest) / "meta.json").read_bytes())
        origin = meta["origin"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return origin if isinstance(origin, dict) else None


def _model(latest: int, origin: dict[str, Any] | None) -> str:
    text = f"{latest:06d} is the latest"
    if origin is None:
        return text
    text += f", of checkpoint {origin.get('checkpoint')}"
    counts = [
        f"{origin[name]:,} {word}"
        for name, word in (("num_games", "games"), ("num_rows", "rows"))
        if isinstance(origin.get(name), int)
    ]
    return f"{text}, after {' and '.join(counts)}" if counts else text


def _waiting(num_candidates: int, gate_too_slow: bool) -> str:
    if not gate_too_slow:
        return f"{num_candidates} for the gate"
    return (
        f"{num_candidates} for the gate, which is too slow and will skip all but the "
        "newest; give tengen gate more --threads, or lower --set "
        "agent.gate.num_simulations"
    )


def _experience(num_bytes: int, learn_from: str | None) -> str:
    size = f"{num_bytes / 1e6:,.1f} MB"
    if learn_from is None:
        return size
    if RunDirectory(learn_from).is_new:
        return f"none: learn_from ({learn_from}) is not a run directory; restore it"
    return f"{size} of {learn_from}, from whose games this run learns"


def _size_bytes(folder: Path) -> int:
    """Returns the total size of a folder's files, which may vanish concurrently."""
    num_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                num_bytes += os.stat(os.path.join(parent, name)).st_size
    return num_bytes


def _text(report: dict[str, Any]) -> str:
    rows = status_rows(report)
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def status_rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the report of ``read_status`` as human-readable (name, text) pairs."""
    num_roles = sum(role["process"] is not None for role in report["roles"])
    if num_roles > 0:
        verb = "stopping" if report["stop_requested"] else "running"
        state = f"{verb}, {num_roles} standalone roles"
    elif report["running"] is None:
        state = "not running"
    elif report["stop_requested"]:
        state = f"stopping, process {report['running']}"
    else:
        state = f"running, process {report['running']}"
    latest = report["latest_model"]
    rows = [
        ("run", f"{report['run']} ({report['task'] or 'a store alone'}), {state}"),
        ("models", "none yet" if latest is None else _model(latest, report["origin"])),
        ("experience", _experience(report["experience_bytes"], report["learn_from"])),
    ]
    if report["unfinished"]:
        names = ", ".join(report["unfinished"])
        rows.append(("unfinished", f"{names}; the same command continues them"))
    if report["gate"] is not None:
        rows.append(("candidate", _gate(**report["gate"])))
    # A mirror's host may run an older version, which does not report the target.
    if report.get("target") is not None:
        rows.append(("target", target_line(report["target"])))
    if report["num_candidates"]:
        waiting = _waiting(report["num_candidates"], report["gate_too_slow"])
        rows.append(("waiting", waiting))
    if report["free_bytes"] < _LITTLE_BYTES:
        rows.append(("disk", f"{report['free_bytes'] / 1e6:,.1f} MB free; make room"))
    rows += [(one["place"], _place(one)) for one in report["places"]]
    rows += [("lost", line) for line in report["lost"]]
    rows += [(role["role"], _role(role)) for role in report["roles"]]
    if report["ratio"] is not None:
        rows.append(("ratio", report["ratio"]))
    if report["progress"] is not None:
        progress = Progress.from_dict(report["progress"])
        if report["running"] is None:
            progress = dataclasses.replace(progress, eta_s=None)
        rows += describe(progress)
        if progress.verdict:
            rows.append(("limit", progress.verdict))
    return rows
