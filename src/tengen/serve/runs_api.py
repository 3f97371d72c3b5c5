"""The routes of the pages that show runs, environments, stores and games.

Pages poll every two seconds; status 304 means that a run has not changed.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from tengen.errors import RunError, TengenError, UsageError
from tengen.games import Game, open_game
from tengen.observe import RunView
from tengen.observe.status import read_status
from tengen.run import RunDirectory
from tengen.serve import shown
from tengen.serve.boards import game_record
from tengen.serve.catalog import Catalog
from tengen.serve.kept import (
    KeptGame,
    Source,
    game_page,
    read_source,
    replayed,
    source_page,
    source_row,
    sources,
)
from tengen.serve.replies import UNPACKED, encoded, saved, shows
from tengen.serve.shown import memory_of

# Maximum share of the time spent on reading a run: large runs are read less often.
_SHARE = 0.05


class Watch:
    """Reads the state of one run, at most once per interval. Thread-safe.

    Args:
        run: The run.
        look_s: Minimum number of seconds between two reads.
        clock: Returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        run: RunDirectory,
        look_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self._look_s = look_s
        self._clock = clock
        self._lock = threading.Lock()
        self._next_s = float("-inf")
        self._view: RunView | None = None
        self._status: dict[str, Any] = {}
        self._error: TengenError | None = None

    @contextmanager
    def look(self) -> Iterator[tuple[dict[str, Any], RunView]]:
        """Yields the run's status and view; holds the lock meanwhile. Blocks.

        The status is the report of ``read_status``, plus ``memory`` from ``memory_of``.

        Raises:
            UsageError: The run has a newer schema, or has been removed.
            RunError: A file of the run is damaged.
        """
        with self._lock:
            begun_s = self._clock()
            if begun_s >= self._next_s:
                self._read()
                took_s = self._clock() - begun_s
                self._next_s = self._clock() + max(self._look_s, took_s / _SHARE)
            if self._error is not None:
                raise self._error
            assert self._view is not None
            yield self._status, self._view

    def _read(self) -> None:
        self._error = None
        try:
            if self.run.is_new:
                raise UsageError(
                    f"run ({self.run.path}) is gone; open / for the list of runs"
                )
            if self._view is None:
                self._view = RunView(self.run)
            status = read_status(self.run, self._view.read())
            self._status = {**status, "memory": memory_of(status)}
        except TengenError as error:
            self._error = error
        except OSError as error:
            # The disk has become unavailable, or the run has just been removed.
            self._error = RunError(f"run ({self.run.path}) cannot be read: {error}")


# Maximum number of pages in the cache.
_MAX_PAGES = 16
# Fields that may change although the run does not. The ETag does not depend on them.
_NO_NEWS = ("age_s", "free_bytes", "memory")
_FILM_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}


class RunsApi:
    """The routes of the pages that show runs, environments and stores.

    Args:
        catalog: The runs.
        look_s: Minimum number of seconds between two reads of a run's files.
    """

    def __init__(self, catalog: Catalog, look_s: float) -> None:
        self._catalog = catalog
        self._look_s = look_s
        # The ``Watch`` of each run, by the run's path.
        self._watches: dict[str, Watch] = {}
        # A cache of run pages by run ID, as (ETag, page as JSON).
        self._pages: dict[str, tuple[str, bytes]] = {}

    def routes(self) -> list[Route]:
        """Returns the routes of the pages about runs, environments and stores."""
        one = "/api/runs/{run}"
        return [
            Route("/api/runs", shows(lambda _: self._summaries())),
            Route(one, self._run, methods=["GET"]),
            Route(f"{one}/films/{{name}}", self._film, methods=["GET"]),
            Route("/api/environments", shows(lambda _: self._environments())),
            Route("/api/stores", shows(lambda _: self._each(shown.store_row))),
        ]

    def _watch(self, run: RunDirectory) -> Watch:
        # setdefault is atomic: concurrent threads get the same watch.
        return self._watches.setdefault(str(run.path), Watch(run, self._look_s))

    def _summaries(self) -> list[dict[str, Any]]:
        return self._each(shown.summary, lambda error: {"error": str(error)})

    def _each(
        self,
        tell: Callable[[dict[str, Any], RunView], Any],
        fail: Callable[[TengenError], Any] = lambda error: None,
    ) -> list[dict[str, Any]]:
        """Returns the entries of all runs, with ID and name; omits entries None.

        Args:
            tell: Returns the entry of a run, given its status and view.
            fail: Returns the entry of a run that cannot be read, given the error.
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
        """Returns the runs in environments by task, each with its curve of returns."""

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
        """Returns the page of a run; status 304 if the client's copy is current."""
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
        raise UsageError(f"film ({name[:40]!r}) is not in this run; choose another")


def _news(value: Any) -> Any:
    """Returns a JSON value without the fields in ``_NO_NEWS``."""
    if isinstance(value, dict):
        return {k: _news(v) for k, v in value.items() if k not in _NO_NEWS}
    if isinstance(value, list):
        return [_news(each) for each in value]
    return value


class GamesApi:
    """The routes of the pages that show games.

    Args:
        catalog: The runs. Imports of their Python games must have been allowed.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def routes(self) -> list[Route]:
        """Returns the routes of the pages that show games."""
        base = "/api/runs/{run}/games"
        one = f"{base}/{{source}}/{{index:int}}"
        return [
            Route(base, shows(self._sources)),
            Route(f"{base}/{{source}}", shows(lambda r: source_page(self._source(r)))),
            Route(one, shows(self._game)),
            Route(f"{one}/record", self._record, methods=["GET"]),
        ]

    def _sources(self, request: Request) -> list[dict[str, str]]:
        return [source_row(source) for source in sources(self._run(request))]

    def _game(self, request: Request) -> dict[str, Any]:
        kept, game = self._kept(request)
        return game_page(game, kept)

    async def _record(self, request: Request) -> Response:
        def find() -> tuple[str, bytes]:
            kept, game = self._kept(request)
            replayed(game, kept)
            first, _, second = kept.title.partition(" against ")
            return game_record(game, kept.moves, first, second or first)

        name = f"game-{request.path_params['index']}"
        return saved(name, *await run_in_threadpool(find))

    def _run(self, request: Request) -> RunDirectory:
        return self._catalog.find(request.path_params["run"])

    def _source(self, request: Request) -> Source:
        name = request.path_params["source"]
        for source in sources(self._run(request)):
            if source.id == name:
                return source
        raise UsageError(f"games ({name[:40]!r}) do not exist here; choose others")

    def _kept(self, request: Request) -> tuple[KeptGame, Game]:
        index = request.path_params["index"]
        for kept in read_source(self._source(request)):
            if kept.index == index:
                task = str(self._run(request).read_run()["config"].get("task"))
                return kept, open_game(kept.variant or task)
        raise UsageError(f"game ({index}) does not exist here; choose another")
