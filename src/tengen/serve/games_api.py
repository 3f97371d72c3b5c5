"""Kept games: which there are, and one of them ply by ply."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tengen.errors import UsageError
from tengen.games import Game, allow, open_game
from tengen.run import RunDirectory
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
from tengen.serve.records import game_record
from tengen.serve.replies import answers, saved, shows

__all__ = ["GamesApi"]


class GamesApi:
    """Routes of the page of games.

    Args:
        catalog: The runs.
        tasks: Games in Python that the user typed.
    """

    def __init__(self, catalog: Catalog, tasks: list[str]) -> None:
        self._catalog = catalog
        for task in tasks:
            allow(task)

    def routes(self) -> list[Route]:
        """Returns the routes."""
        base = "/api/runs/{run}/games"
        one = f"{base}/{{source}}/{{index:int}}"
        return [
            Route(base, shows(self._sources)),
            Route(f"{base}/{{source}}", shows(lambda r: source_page(self._source(r)))),
            Route(one, shows(self._game)),
            Route(f"{one}/record", answers(self._record), methods=["GET"]),
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
        raise UsageError(f"games ({name[:40]!r}) are not kept here; choose others")

    def _kept(self, request: Request) -> tuple[KeptGame, Game]:
        index = request.path_params["index"]
        for kept in read_source(self._source(request)):
            if kept.index == index:
                task = str(self._run(request).read_run()["config"].get("task"))
                return kept, open_game(kept.variant or task)
        raise UsageError(f"game ({index}) is not kept here; choose another")
