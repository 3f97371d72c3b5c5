"""Runs the searches that users of the server request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool

from tengen.play import Analysis, Player
from tengen.play.forecast import Forecast
from tengen.serve import Limits
from tengen.serve.replies import Busy

_FIRST_SLICE = 8
_SLICE_S = 0.15
_SHOWN_S = 0.25
_VARIATION_MOVES = 8


class Searches:
    """Runs searches of positions, with a limited number of concurrent searches.

    Args:
        limits: The limits on running searches, waiting searches and threads per search.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running = asyncio.Semaphore(limits.max_searches)
        self._num_waiting = 0

    async def run(
        self,
        player: Player,
        moves: Sequence[int],
        simulations: int,
        seed: int = 0,
    ) -> AsyncIterator[Analysis]:
        """Searches a position; yields interim analyses, and the final one last.

        Args:
            player: The player that searches.
            moves: Legal moves of a game that has not ended.
            simulations: Simulations of the search, within the limits.
            seed: Seed of the search's random numbers.

        Raises:
            Busy: Too many searches are waiting.
            UsageError: The model's search settings are invalid.
        """
        async with self._turn():
            threads = min(self._limits.num_threads, player.usual_threads())
            if not player.can_grow:
                yield await run_in_threadpool(
                    player.analyse, moves, simulations, seed, threads
                )
                return
            # The stack passes exceptions to ``begin``, which then drops the searcher.
            with ExitStack() as stack:
                growing = player.begin(moves, simulations, seed, threads)
                search = await run_in_threadpool(stack.enter_context, growing)
                shown_s, size = time.monotonic(), _FIRST_SLICE
                while not search.is_proven and search.num_simulations < simulations:
                    begun_s = time.monotonic()
                    left = simulations - search.num_simulations
                    await run_in_threadpool(search.grow, min(size, left))
                    now_s = time.monotonic()
                    size = size * 2 if now_s - begun_s < _SLICE_S / 2 else size
                    if now_s - shown_s >= _SHOWN_S:
                        shown_s = now_s
                        yield search.analysis(_VARIATION_MOVES)
                yield search.analysis(_VARIATION_MOVES)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._num_waiting >= self._limits.max_waiting:
            raise Busy("searches (of others) are queued; try again in a few seconds")
        self._num_waiting += 1
        try:
            await self._running.acquire()
        finally:
            self._num_waiting -= 1
        try:
            yield
        finally:
            self._running.release()


def analysis_json(analysis: Analysis) -> dict[str, Any]:
    """Returns an analysis as JSON values, from the view of the side to move.

    Actions without visits are left out, unless their prior exceeds 0.001.
    """
    return {
        "value": round(analysis.value_to_play, 4),
        "network_value": round(analysis.network_value_to_play, 4),
        "score": analysis.score_to_play,
        "best": analysis.best_action,
        "simulations": analysis.num_simulations,
        "certain": analysis.is_proven,
        "actions": [
            {
                "action": row.action,
                "visits": row.visits,
                "prior": round(row.prior, 5),
                "policy": round(row.policy, 5),
                "value": round(row.value_to_play, 4),
                "variation": list(row.variation),
            }
            for row in analysis.actions
            if row.visits or row.prior > 1e-3
        ],
    }


def forecast_json(forecast: Forecast) -> dict[str, Any]:
    """Returns a forecast as JSON values, from the view of the side to move.

    Keys: ``ownership``, one number in [-1, 1] per cell, row by row; ``score``, in
    points; and ``lead``, in points, or None if the network does not predict it.
    """
    ownership = forecast.ownership_to_play.ravel().tolist()
    lead = forecast.lead_to_play
    return {
        "ownership": [round(value, 2) for value in ownership],
        "score": round(forecast.score_to_play, 1),
        "lead": None if lead is None else round(lead, 1),
    }
