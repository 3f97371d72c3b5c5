"""The list of runs, and one run: what it does, its curves, and what changes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tengen.errors import TengenError
from tengen.serve.catalog import Catalog
from tengen.serve.history import shown_curves
from tengen.serve.limits import Limits
from tengen.serve.replies import Busy, answers, json_reply
from tengen.serve.watch import Watches, facts, state_of, summary

__all__ = ["RunsApi"]

_PING_S = 15.0
# Of a status, what is told beside it or not at all.
_APART = ("run", "memory")
# What changes by itself or by others, and is no news.
_NO_NEWS = ("age_s", "free_bytes", "memory")


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
        return [
            Route("/api/runs", answers(self._list), methods=["GET"]),
            Route("/api/changes", answers(self._list_changes), methods=["GET"]),
            Route("/api/runs/{run}", answers(self._run), methods=["GET"]),
            Route("/api/runs/{run}/changes", answers(self._changes), methods=["GET"]),
        ]

    def close(self) -> None:
        """Ends what pages are told."""
        self._is_closing.set()

    async def _list(self, request: Request) -> Response:
        return json_reply(request, await run_in_threadpool(self._summaries))

    async def _run(self, request: Request) -> Response:
        run_id = request.path_params["run"]

        def find() -> dict[str, Any]:
            run = self._catalog.find(run_id)
            with self._watches.of(run).look() as (status, history):
                return {
                    "run": self._described(run_id, status),
                    "in_environments": history.in_environments,
                    "config": run.read_run()["config"],
                    "epoch": history.epoch,
                    "num_points": history.num_points,
                    **shown_curves(history.curves),
                }

        return json_reply(request, await run_in_threadpool(find))

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
                with self._watches.of(run).look() as (status, history):
                    described = self._described(run_id, status)
                    points = history.since(place["num_points"])
                    is_other = history.epoch != place["epoch"]
                    now = {"epoch": history.epoch, "num_points": history.num_points}
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

    def _summaries(self) -> list[dict[str, Any]]:
        found = []
        for run_id, run in self._catalog.runs().items():
            named = {"id": run_id, "name": self._catalog.name(run)}
            try:
                with self._watches.of(run).look() as (status, history):
                    told = summary(status, history)
            except TengenError as error:
                told = {"error": str(error)}
            found.append({**named, **told})
        return found

    def _described(self, run_id: str, status: dict[str, Any]) -> dict[str, Any]:
        run = self._catalog.find(run_id)
        return {
            "id": run_id,
            "name": self._catalog.name(run),
            "state": state_of(status),
            "facts": facts(status),
            "memory": status["memory"],
            "status": {
                key: value for key, value in status.items() if key not in _APART
            },
        }


def _news(value: Any) -> Any:
    """Returns a JSON value without what is no news."""
    if isinstance(value, dict):
        return {k: _news(v) for k, v in value.items() if k not in _NO_NEWS}
    if isinstance(value, list):
        return [_news(each) for each in value]
    return value
