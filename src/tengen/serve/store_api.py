"""The experience of each run: tables of a store, or the games in their window."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tengen.errors import TengenError
from tengen.serve.catalog import Catalog
from tengen.serve.replies import answers, json_reply
from tengen.serve.watch import Watches

__all__ = ["StoreApi"]


class StoreApi:
    """The route of the page of stores.

    Args:
        catalog: The runs.
        watches: What is known of them.
    """

    def __init__(self, catalog: Catalog, watches: Watches) -> None:
        self._catalog = catalog
        self._watches = watches

    def routes(self) -> list[Route]:
        """Returns the routes."""
        return [Route("/api/stores", answers(self._list), methods=["GET"])]

    async def _list(self, request: Request) -> Response:
        """Tells of each run what its learner and its store last said.

        ``served`` is what ``tengen store top`` shows, of a store that is a process of
        its own; ``learned`` is what the learner counts in what it draws from.
        """

        def find() -> list[dict[str, Any]]:
            found = []
            for run_id, run in self._catalog.runs().items():
                try:
                    with self._watches.of(run).look() as (status, history):
                        turn = history.last.get("turn/learn", {})
                        served = history.last.get("store")
                except TengenError:
                    continue  # the list of runs says what is wrong with it
                table = turn.get("table")
                found.append(
                    {
                        "id": run_id,
                        "name": self._catalog.name(run),
                        "experience_bytes": status["experience_bytes"],
                        "free_bytes": status["free_bytes"],
                        "learned": table if isinstance(table, dict) else None,
                        "served": served,
                    }
                )
            return found

        return json_reply(request, await run_in_threadpool(find))
