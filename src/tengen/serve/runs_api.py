"""The pages that watch runs: all of them, one, by environment, and their stores.

A page asks again every two seconds, and is sent what has changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from tengen.errors import TengenError, UsageError
from tengen.observe import RunView
from tengen.run import RunDirectory
from tengen.serve import shown
from tengen.serve.catalog import Catalog
from tengen.serve.replies import UNPACKED, encoded, shows
from tengen.serve.watch import Watch

__all__ = ["RunsApi"]

# Pages that are kept until they change.
_MAX_PAGES = 16
# What changes by itself or through others, and is no news.
_NO_NEWS = ("age_s", "free_bytes", "memory")
_FILM_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}


class RunsApi:
    """Routes of the pages that watch runs.

    Args:
        catalog: The runs.
        look_s: Seconds between two looks at a run's files, at least.
    """

    def __init__(self, catalog: Catalog, look_s: float) -> None:
        self._catalog = catalog
        self._look_s = look_s
        # What is known of each run, by its path.
        self._watches: dict[str, Watch] = {}
        # The last page of some runs, by id: its ETag, and the page as JSON.
        self._pages: dict[str, tuple[str, bytes]] = {}

    def routes(self) -> list[Route]:
        """Returns the routes."""
        one = "/api/runs/{run}"
        return [
            Route("/api/runs", shows(lambda _: self._summaries())),
            Route(one, self._run, methods=["GET"]),
            Route(f"{one}/films/{{name}}", self._film, methods=["GET"]),
            Route("/api/environments", shows(lambda _: self._environments())),
            Route("/api/stores", shows(lambda _: self._each(shown.store_row))),
        ]

    def _watch(self, run: RunDirectory) -> Watch:
        # Two threads at once get the same one.
        return self._watches.setdefault(str(run.path), Watch(run, self._look_s))

    def _summaries(self) -> list[dict[str, Any]]:
        return self._each(shown.summary, lambda error: {"error": str(error)})

    def _each(
        self,
        tell: Callable[[dict[str, Any], RunView], Any],
        fail: Callable[[TengenError], Any] = lambda error: None,
    ) -> list[dict[str, Any]]:
        """Returns what is told of each run, with its id and name; None is left out.

        Args:
            tell: Tells of a run.
            fail: Tells of one that cannot be read; the list of runs says why.
        """
        found = []
        for run_id, run in self._catalog.runs().items():
            try:
                with self._watch(run).look() as (status, view):
                    told = tell(status, view)
            except TengenError as error:
                told = fail(error)
            if told is not None:
                found.append({**self._named(run_id, run), **told})
        return found

    def _environments(self) -> list[dict[str, Any]]:
        """Tells of each task its runs, with the curve of the returns of each."""

        def tell(status: dict[str, Any], view: RunView) -> dict[str, Any] | None:
            if not view.in_environments:
                return None
            return {"task": str(status["task"]), **shown.environment_row(status, view)}

        tasks: dict[str, list[dict[str, Any]]] = {}
        for row in self._each(tell):
            tasks.setdefault(row.pop("task"), []).append(row)
        return [{"task": task, "runs": runs} for task, runs in tasks.items()]

    def _named(self, run_id: str, run: RunDirectory) -> dict[str, str]:
        return {"id": run_id, "name": self._catalog.name(run)}

    async def _run(self, request: Request) -> Response:
        """Tells of one run; a page that has all of it already is told so."""
        run_id = request.path_params["run"]
        tag, page = await run_in_threadpool(self._page, run_id)
        headers = {"Cache-Control": "private, no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(page, 200, headers, "application/json")

    def _page(self, run_id: str) -> tuple[str, bytes]:
        run = self._catalog.find(run_id)
        named = self._named(run_id, run)
        with self._watch(run).look() as (status, view):
            news = encoded(_news(shown.described(named, status)))
            tag = f'"{view.version}-{hashlib.sha256(news).hexdigest()[:16]}"'
            kept = self._pages.get(run_id)
            if kept is None or kept[0] != tag:
                kept = tag, encoded(shown.run_page(named, status, view))
                if len(self._pages) >= _MAX_PAGES:
                    self._pages.clear()
                self._pages[run_id] = kept
            return kept

    async def _film(self, request: Request) -> Response:
        name = request.path_params["name"]
        run = self._catalog.find(request.path_params["run"])
        for path in await run_in_threadpool(shown.films, run):
            if path.name == name:
                headers = {**UNPACKED, "Cache-Control": "no-cache"}
                return FileResponse(path, 200, headers, _FILM_TYPES[path.suffix])
        raise UsageError(f"film ({name[:40]!r}) is not of this run; choose another")


def _news(value: Any) -> Any:
    """Returns a JSON value without what is no news."""
    if isinstance(value, dict):
        return {k: _news(v) for k, v in value.items() if k not in _NO_NEWS}
    if isinstance(value, list):
        return [_news(each) for each in value]
    return value
