"""The application: all routes behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.types import ASGIApp

from tengen.serve.catalog import Catalog
from tengen.serve.games_api import GamesApi
from tengen.serve.guard import Guard
from tengen.serve.limits import Limits
from tengen.serve.pages import Pages
from tengen.serve.play_api import PlayApi
from tengen.serve.players import Players
from tengen.serve.runs_api import RunsApi
from tengen.serve.searches import Searches
from tengen.serve.watch import Watches

__all__ = ["Application"]


class Application:
    """The application that answers all requests.

    Args:
        catalog: The runs.
        limits: Bounds of what clients may ask.
        names: Names of the server, without a port.
        any_address: Whether every numeric address counts as a name too.
        token: The token that clients must send; empty: none is needed.
        tasks: Games in Python that the user typed.

    Attributes:
        asgi: The ASGI application that a server runs.
    """

    def __init__(
        self,
        catalog: Catalog,
        limits: Limits,
        *,
        names: Collection[str],
        any_address: bool = False,
        token: str = "",
        tasks: Sequence[str] = (),
    ) -> None:
        self._runs = RunsApi(catalog, Watches(limits.look_s), limits)
        self._players = Players(limits.max_players, tasks)
        play = PlayApi(catalog, self._players, Searches(limits), limits)
        routes = [
            *self._runs.routes(),
            *GamesApi(catalog, list(tasks)).routes(),
            *play.routes(),
            *Pages().routes(),
        ]
        self.asgi: ASGIApp = Guard(
            Starlette(routes=routes, lifespan=self._lifespan),
            names=names,
            any_address=any_address,
            token=token,
            max_body_bytes=limits.max_body_bytes,
        )

    def close(self) -> None:
        """Ends the streams to pages, so that the server can end."""
        self._runs.close()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        yield
        self._players.close()
