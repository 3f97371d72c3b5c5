"""The pages that watch runs: all of them, one, by environment, and their stores."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from tengen.errors import TengenError, UsageError
from tengen.observe import RunView
from tengen.run import RunDirectory
from tengen.serve import shown
from tengen.serve.catalog import Catalog
from tengen.serve.limits import Limits
from tengen.serve.replies import Busy, answers, shows
from tengen.serve.watch import Watches

__all__ = ["RunsApi"]

_PING_S = 15.0
# What changes by itself or through others, and is no news.
_NO_NEWS = ("age_s", "free_bytes", "memory")
_FILM_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}


class RunsApi:
    """Routes of the pages that watch runs.

    Args:
        catalog: The runs.
        watches: What is known of them.
        limits: How many pages are told of changes, and how often.
    """

    def __init__(self, catalog: Catalog, watches: Watches, limits: Limits) -> None:
        self._catalog = catalog
        self._watches = watches
        self._limits = limits
        self._num_streams = 0
        self._is_closing = asyncio.Event()

    def routes(self) -> list[Route]:
        """Returns the routes."""
        one = "/api/runs/{run}"
        return [
            Route("/api/runs", shows(lambda _: self._summaries())),
            Route("/api/changes", answers(self._list_changes), methods=["GET"]),
            Route(one, shows(self._run)),
            Route(f"{one}/changes", answers(self._changes), methods=["GET"]),
            Route(f"{one}/films/{{name}}", answers(self._film), methods=["GET"]),
            Route("/api/environments", shows(lambda _: self._environments())),
            Route("/api/stores", shows(lambda _: self._each(shown.store_row))),
        ]

    def close(self) -> None:
        """Ends what pages are told."""
        self._is_closing.set()

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
                with self._watches.of(run).look() as (status, view):
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

    def _run(self, request: Request) -> Any:
        run_id = request.path_params["run"]
        run = self._catalog.find(run_id)
        with self._watches.of(run).look() as (status, view):
            return shown.run_page(self._named(run_id, run), status, view)

    async def _film(self, request: Request) -> Response:
        name = request.path_params["name"]
        run = self._catalog.find(request.path_params["run"])
        for path in await run_in_threadpool(shown.films, run):
            if path.name == name:
                headers = {"Cache-Control": "no-cache"}
                return FileResponse(path, 200, headers, _FILM_TYPES[path.suffix])
        raise UsageError(f"film ({name[:40]!r}) is not of this run; choose another")

    async def _list_changes(self, request: Request) -> Response:
        """Tells of the list whenever it is another one."""
        last: Any = None

        def look() -> list[tuple[str, Any]]:
            nonlocal last
            now = self._summaries()
            if now == last:
                return []
            last = now
            return [("runs", now)]

        return self._stream(look)

    async def _changes(self, request: Request) -> Response:
        """Tells of one run: its state when that changes, and the points that came.

        The page says which points it has, ``epoch`` and ``num_points``. It is told
        ``again`` where it must ask for all of them.
        """
        run_id = request.path_params["run"]
        run = self._catalog.find(run_id)
        place = {"epoch": 0, "num_points": 0}
        for name in place:
            text = request.query_params.get(name, "0")
            place[name] = int(text) if text.isdecimal() and len(text) < 10 else 0
        last: Any = None

        def look() -> list[tuple[str, Any]]:
            nonlocal last
            found: list[tuple[str, Any]] = []
            try:
                with self._watches.of(run).look() as (status, view):
                    described = shown.described(self._named(run_id, run), status)
                    points = view.since(place["num_points"])
                    is_other = view.epoch != place["epoch"]
                    now = {"epoch": view.epoch, "num_points": view.num_points}
            except TengenError as error:
                return [("failure", {"error": str(error)})]
            if _news(described) != last:
                last = _news(described)
                found.append(("run", described))
            if is_other or points is None:
                found.append(("again", {}))
            elif points:
                found.append(("points", points))
            place.update(now)
            return found

        return self._stream(look)

    def _stream(self, look: Callable[[], list[tuple[str, Any]]]) -> Response:
        if self._num_streams >= self._limits.max_streams:
            raise Busy(
                f"pages ({self._num_streams}) are told of changes already; close some"
            )

        async def events() -> AsyncIterator[str]:
            self._num_streams += 1
            try:
                # A page that lost its server asks again, soon and not at once.
                yield "retry: 3000\n\n"
                told_s = time.monotonic()
                while not self._is_closing.is_set():
                    for name, content in await run_in_threadpool(look):
                        text = json.dumps(content, separators=(",", ":"))
                        yield f"event: {name}\ndata: {text}\n\n"
                        told_s = time.monotonic()
                    if time.monotonic() - told_s >= _PING_S:
                        yield ": still here\n\n"
                        told_s = time.monotonic()
                    try:
                        await asyncio.wait_for(
                            self._is_closing.wait(), self._limits.look_s
                        )
                    except TimeoutError:
                        continue
            finally:
                self._num_streams -= 1

        return StreamingResponse(
            events(),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


def _news(value: Any) -> Any:
    """Returns a JSON value without what is no news."""
    if isinstance(value, dict):
        return {k: _news(v) for k, v in value.items() if k not in _NO_NEWS}
    if isinstance(value, list):
        return [_news(each) for each in value]
    return value
