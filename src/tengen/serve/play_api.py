"""The API with which users play against a model.

The server is stateless: the page stores the game, and each request contains all of its
moves. A page may be closed, and the server restarted, at any time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tengen.bundled import bundled_names, read_manifest
from tengen.config import check
from tengen.errors import UsageError
from tengen.play import Player
from tengen.run import RunDirectory
from tengen.serve import Limits
from tengen.serve.boards import (
    describe_game,
    game_record,
    play_moves,
    position,
    read_moves,
)
from tengen.serve.catalog import Catalog
from tengen.serve.players import (
    Players,
    describe_bundled,
    describe_levels,
)
from tengen.serve.replies import (
    UNPACKED,
    json_reply,
    message_of,
    read_json,
    saved,
    shows,
)
from tengen.serve.searches import Searches, analysis_json, forecast_json

_MAX_MODELS = 1000
_SIMULATIONS = 200
_SEED_BITS = 62


class PlayApi:
    """The routes of the API with which users play.

    Args:
        catalog: The runs.
        players: Loads and caches the models.
        searches: Runs the searches.
        limits: The limits of a search.
    """

    def __init__(
        self, catalog: Catalog, players: Players, searches: Searches, limits: Limits
    ) -> None:
        self._catalog = catalog
        self._players = players
        self._searches = searches
        self._limits = limits

    def routes(self) -> list[Route]:
        """Returns the routes of the API."""
        routes = [Route("/api/players", shows(_bundled))]
        for base in ("/api/runs/{run}/play", "/api/players/{player}/play"):
            routes += [
                Route(base, shows(self._models)),
                Route(f"{base}/position", self._position, methods=["POST"]),
                Route(f"{base}/search", self._search, methods=["POST"]),
                Route(f"{base}/record", self._record, methods=["POST"]),
            ]
        return routes

    def _models(self, request: Request) -> dict[str, Any]:
        """Returns the models or levels that users can play against, and the game."""
        most = self._limits.max_simulations
        found: dict[str, Any] = {"max_simulations": most}
        if (name := _bundled_of(request)) is not None:
            player = self._players.get_bundled(name, None)
            levels = describe_levels(read_manifest(name), most)
            found |= {"models": [], "newest": None, "levels": levels}
        else:
            run = self._run(request)
            number, player = self._players.get(run, None)
            models = run.models.numbers()[-_MAX_MODELS:]
            found |= {"models": models, "newest": number, "levels": []}
        return {"game": describe_game(player.game), **found}

    async def _position(self, request: Request) -> Response:
        """Returns the position after the moves in the request."""
        asked = await read_json(request)

        def find() -> dict[str, Any]:
            number, player = self._player(request, asked)
            moves = read_moves(player.game, asked.get("moves"))
            state = play_moves(player.game, moves)
            return {"model": number, **position(player.game, state)}

        return json_reply(await run_in_threadpool(find))

    async def _search(self, request: Request) -> Response:
        """Searches the position after the request's moves, and streams the results.

        Each line is a JSON object with a ``kind``. ``position`` comes before the
        search; ``forecast`` follows if the request sets ``forecasts`` and the network
        has auxiliary heads; ``analysis`` comes several times during the search. The
        last line is ``answer`` with the best action or, if the request sets ``plays``,
        with the action to play and the position after it. After a failure, the last
        line is ``error``.
        """
        asked = await read_json(request)
        simulations = asked.get("simulations", min(_SIMULATIONS, self._most))
        check(
            type(simulations) is int and 1 <= simulations <= self._most,
            "simulations",
            simulations if type(simulations) is int else "of the page",
            f"must be 1 to {self._most}; request fewer",
        )

        def find() -> tuple[int | None, Player, list[int], dict[str, Any]]:
            number, player = self._player(request, asked)
            moves = read_moves(player.game, asked.get("moves"))
            state = play_moves(player.game, moves)
            return number, player, moves, position(player.game, state)

        number, player, moves, before = await run_in_threadpool(find)
        level = player.level
        if level is not None:
            simulations = min(level.simulations, self._most)
        plays = asked.get("plays") is True
        # A random seed for levels: their sampled moves should vary between games.
        seed = secrets.randbits(_SEED_BITS) if level is not None else 0
        forecasts = asked.get("forecasts") is True

        async def lines() -> AsyncIterator[dict[str, Any]]:
            yield {"kind": "position", "model": number, **before}
            if before["result"] is not None:
                return
            if forecasts:
                found = await run_in_threadpool(player.forecast, moves)
                if found is not None:
                    yield {"kind": "forecast", **forecast_json(found)}
            analysis = None
            async for analysis in self._searches.run(player, moves, simulations, seed):
                yield {"kind": "analysis", **analysis_json(analysis)}
            assert analysis is not None
            after = {}
            action = analysis.best_action
            if plays:
                action = analysis.action_to_play
                moves.append(action)
                state = play_moves(player.game, moves)
                after = position(player.game, state)
            yield {"kind": "answer", "action": action, **after}

        return StreamingResponse(
            _encoded(lines()),
            media_type="application/x-ndjson",
            headers=UNPACKED,
        )

    async def _record(self, request: Request) -> Response:
        """Returns a game as a file: SGF for Go and gomoku, otherwise text."""
        asked = await read_json(request)

        def find() -> tuple[str, bytes]:
            number, player = self._player(request, asked)
            moves = read_moves(player.game, asked.get("moves"))
            play_moves(player.game, moves)
            name = f"{player.game.name} model {number}"
            if number is None:
                name = f"{player.game.name} of tengen"
            names = ("you", name) if asked.get("person") != 1 else (name, "you")
            return game_record(player.game, moves, *names)

        return saved("game", *await run_in_threadpool(find))

    def _run(self, request: Request) -> RunDirectory:
        return self._catalog.find(request.path_params["run"])

    @property
    def _most(self) -> int:
        return self._limits.max_simulations

    def _player(
        self, request: Request, asked: dict[str, Any]
    ) -> tuple[int | None, Player]:
        """Returns (number, player) of the requested model; number None if bundled."""
        if (name := _bundled_of(request)) is not None:
            level = asked.get("level")
            if level is not None and (type(level) is not int or level < 1):
                raise UsageError("level (of the page) must be 1 or more; choose one")
            return None, self._players.get_bundled(name, level)
        number = asked.get("model")
        if number is not None and type(number) is not int:
            raise UsageError("model (of the page) must be a number; choose one")
        return self._players.get(self._run(request), number)


def _bundled_of(request: Request) -> str | None:
    """Returns the name of the bundled player in a request's path, or None."""
    player = request.path_params.get("player")
    return None if player is None else str(player).replace("~", "/")[:80]


def _bundled(request: Request) -> list[dict[str, Any]]:
    """Returns descriptions of all bundled players."""
    return [describe_bundled(name) for name in bundled_names()]


async def _encoded(lines: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    try:
        async for line in lines:
            yield _line(line)
    except Exception as error:
        message = message_of(error)
        if message is None:
            raise
        yield _line({"kind": "error", "error": message})


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
