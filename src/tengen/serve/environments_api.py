"""Environments: what several seeds of a task returned, and films of episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from tengen.errors import TengenError, UsageError
from tengen.run import RunDirectory, find_files
from tengen.serve.catalog import Catalog
from tengen.serve.history import History
from tengen.serve.links import in_folder
from tengen.serve.replies import answers, json_reply
from tengen.serve.watch import Watches, state_of

__all__ = ["EnvironmentsApi"]

_FILMS = "films"
_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}
_MAX_FILMS = 100


class EnvironmentsApi:
    """Routes of the page of environments.

    Args:
        catalog: The runs.
        watches: What is known of them.
    """

    def __init__(self, catalog: Catalog, watches: Watches) -> None:
        self._catalog = catalog
        self._watches = watches

    def routes(self) -> list[Route]:
        """Returns the routes."""
        return [
            Route("/api/environments", answers(self._list), methods=["GET"]),
            Route("/api/runs/{run}/films/{name}", answers(self._film), methods=["GET"]),
        ]

    async def _list(self, request: Request) -> Response:
        """Tells of each task its runs, with the curve of the returns of each."""

        def find() -> list[dict[str, Any]]:
            tasks: dict[str, list[dict[str, Any]]] = {}
            for run_id, run in self._catalog.runs().items():
                try:
                    config = run.read_run()["config"]
                    with self._watches.of(run).look() as (status, history):
                        told = _told(status, history)
                except TengenError:
                    continue  # the list of runs says what is wrong with it
                if told is None:
                    continue
                described = {
                    "id": run_id,
                    "name": self._catalog.name(run),
                    "seed": config.get("seed"),
                    "films": [path.name for path in _films(run)],
                    **told,
                }
                tasks.setdefault(str(config.get("task")), []).append(described)
            return [{"task": task, "runs": runs} for task, runs in tasks.items()]

        return json_reply(request, await run_in_threadpool(find))

    async def _film(self, request: Request) -> Response:
        name = request.path_params["name"]

        def find() -> Path:
            run = self._catalog.find(request.path_params["run"])
            for path in _films(run):
                if path.name == name:
                    return path
            raise UsageError(f"film ({name[:40]!r}) is not of this run; choose another")

        path = await run_in_threadpool(find)
        headers = {"Cache-Control": "no-cache"}
        return FileResponse(path, 200, headers, _TYPES[path.suffix])


def _told(status: dict[str, Any], history: History) -> dict[str, Any] | None:
    """Returns what a run of an environment has told; None of a run of games."""
    if not history.in_environments:
        return None
    curve = history.curves.get("charts/episodic_return")
    progress = status["progress"] or {}
    return {
        "state": state_of(status),
        "mean_return": progress.get("mean_return"),
        "num_episodes": progress.get("num_episodes"),
        "curve": None if curve is None else curve.shown(),
    }


def _films(run: RunDirectory) -> list[Path]:
    """Returns the films that ``tengen eval RUN --video RUN/films`` made."""
    found = find_files(run.path / _FILMS, "*")
    films = [p for p in found if p.suffix in _TYPES and p.is_file()]
    return sorted(in_folder(films, run.path))[:_MAX_FILMS]
