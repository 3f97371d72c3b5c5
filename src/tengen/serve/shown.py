"""The contents of the pages about runs, as JSON values. Imports no web framework."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from tengen.observe import Progress, RunView
from tengen.observe.cpu_time import tree_memory_bytes
from tengen.observe.view import describe
from tengen.run import RunDirectory, find_files
from tengen.serve.boards import picture
from tengen.serve.catalog import in_folder

# The status table on a run's page omits these keys of the status.
_APART = ("run", "memory")
_HEADLINES = ("charts/rating", "charts/episodic_return", "losses/loss")
_SMALL_POINTS = 48
_FILMS = "films"
_FILM_TYPES = (".gif", ".mp4")
_MAX_FILMS = 100
_IN_SUMMARY = (
    *("rows_per_s", "evaluations_per_s", "eta_s", "loss", "rating"),
    *("rating_error", "mean_return", "verdict", "stage", "num_games"),
    *("num_episodes", "num_steps", "generation"),
)


def run_page(named: dict[str, str], status: dict[str, Any], view: RunView) -> Any:
    """Returns the content of a run's page.

    Args:
        named: The run's ``id`` and ``name``.
        status: The run's status, with the result of ``memory_of`` as ``memory``.
        view: The view of the run's events.
    """
    return {
        "run": described(named, status),
        "in_environments": view.in_environments,
        "config": view.run.read_run()["config"],
        "curves": view.shown_curves(),
    }


def described(named: dict[str, str], status: dict[str, Any]) -> dict[str, Any]:
    """Returns the current state of a run. The arguments are those of ``run_page``."""
    progress = status["progress"]
    facts = [] if progress is None else describe(Progress.from_dict(progress))
    return {
        **named,
        "state": _state(status),
        "facts": facts,
        "memory": status["memory"],
        "status": {key: value for key, value in status.items() if key not in _APART},
    }


def summary(status: dict[str, Any], view: RunView) -> dict[str, Any]:
    """Returns a run's entry in the list of runs."""
    progress = status["progress"] or {}
    tag = next((t for t in _HEADLINES if t in view.curves), None)
    return {
        "task": status["task"],
        "in_environments": view.in_environments,
        "state": _state(status),
        "latest_model": status["latest_model"],
        "told_s": view.told_s,
        "headline": tag,
        "curve": view.curves[tag].shown(_SMALL_POINTS) if tag else None,
        "picture": None if view.in_environments else picture(str(status["task"])),
        **{name: progress.get(name) for name in _IN_SUMMARY},
    }


def environment_row(status: dict[str, Any], view: RunView) -> dict[str, Any]:
    """Returns a run's entry on the page of environments."""
    curve = view.curves.get("charts/episodic_return")
    progress = status["progress"] or {}
    return {
        "seed": view.run.read_run()["config"].get("seed"),
        "films": [path.name for path in films(view.run)],
        "state": _state(status),
        "mean_return": progress.get("mean_return"),
        "num_episodes": progress.get("num_episodes"),
        "curve": None if curve is None else curve.shown(),
    }


def store_row(status: dict[str, Any], view: RunView) -> dict[str, Any]:
    """Returns a run's entry on the page of stores.

    ``served`` has the statistics of a standalone store process, as ``tengen store top``
    shows them, and ``learned`` the counts of the learner's own table. Each is None if
    absent.
    """
    table = view.learned.get("table")
    return {
        "experience_bytes": status["experience_bytes"],
        "free_bytes": status["free_bytes"],
        "learned": table if isinstance(table, dict) else None,
        "served": view.store,
    }


def films(run: RunDirectory) -> list[Path]:
    """Returns the videos that ``tengen eval RUN --video RUN/films`` has written."""
    found = find_files(run.path / _FILMS, "*")
    named = [p for p in found if p.suffix in _FILM_TYPES and p.is_file()]
    return sorted(in_folder(named, run.path))[:_MAX_FILMS]


def memory_of(status: dict[str, Any]) -> dict[str, int]:
    """Returns the memory of a run's processes on this machine, in bytes.

    Keys are process names as in the status. Child processes count.
    """
    named = [status["running"], *(role["process"] for role in status["roles"])]
    found = {}
    for process in filter(None, named):
        number, _, host = process.partition(" on ")
        if host == socket.gethostname() and number.isdecimal():
            num_bytes = tree_memory_bytes(int(number))
            if num_bytes is not None:
                found[process] = num_bytes
    return found


def _state(status: dict[str, Any]) -> str:
    """Returns ``running``, ``stopping`` or ``not running``."""
    roles = any(role["process"] is not None for role in status["roles"])
    if not roles and status["running"] is None:
        return "not running"
    return "stopping" if status["stop_requested"] else "running"
