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
from tengen.serve.kept import KeptGame, KeptPly, Source, read_source, replayed, sources
from tengen.serve.positions import describe_game
from tengen.serve.records import game_record
from tengen.serve.replies import answers, json_reply

__all__ = ["GamesApi"]

_MAX_GAMES = 2000


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
            Route(base, answers(self._sources), methods=["GET"]),
            Route(f"{base}/{{source}}", answers(self._games), methods=["GET"]),
            Route(one, answers(self._game), methods=["GET"]),
            Route(f"{one}/record", answers(self._record), methods=["GET"]),
        ]

    async def _sources(self, request: Request) -> Response:
        def find() -> list[dict[str, str]]:
            found = sources(self._run(request))
            return [{"id": s.id, "kind": s.kind, "title": s.title} for s in found]

        return json_reply(request, await run_in_threadpool(find))

    async def _games(self, request: Request) -> Response:
        def find() -> dict[str, Any]:
            source = self._source(request)
            games = read_source(source)
            shown = [
                {
                    "index": game.index,
                    "title": game.title,
                    "num_plies": len(game.moves),
                    "result": game.result,
                    "variant": game.variant,
                }
                for game in games[:_MAX_GAMES]
            ]
            return {"title": source.title, "num_games": len(games), "games": shown}

        return json_reply(request, await run_in_threadpool(find))

    async def _game(self, request: Request) -> Response:
        def find() -> dict[str, Any]:
            kept, game = self._kept(request)
            return {
                "game": describe_game(game),
                "index": kept.index,
                "title": kept.title,
                "result": kept.result,
                "moves": kept.moves,
                "num_opening_plies": kept.num_opening_plies,
                "positions": replayed(game, kept),
                "plies": [_ply(ply) for ply in kept.plies],
            }

        return json_reply(request, await run_in_threadpool(find))

    async def _record(self, request: Request) -> Response:
        def find() -> tuple[str, bytes]:
            kept, game = self._kept(request)
            replayed(game, kept)
            first, _, second = kept.title.partition(" against ")
            return game_record(game, kept.moves, first, second or first)

        suffix, data = await run_in_threadpool(find)
        index = request.path_params["index"]
        disposition = f'attachment; filename="game-{index}.{suffix}"'
        headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
        return Response(data, 200, headers, "application/octet-stream")

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
        run = self._run(request)
        kept = next(
            (k for k in read_source(self._source(request)) if k.index == index), None
        )
        if kept is None:
            raise UsageError(f"game ({index}) is not kept here; choose another")
        task = str(run.read_run()["config"].get("task"))
        return kept, open_game(kept.variant or task)


def _ply(ply: KeptPly | None) -> dict[str, Any] | None:
    if ply is None:
        return None
    return {
        "value": round(ply.value_to_play, 4),
        "simulations": ply.num_simulations,
        "policy": [[action, round(share, 5)] for action, share in ply.policy],
        "lead": ply.lead_to_play,
    }
