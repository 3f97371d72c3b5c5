"""Searches for people, by default one at a time, each shown while it grows."""

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

__all__ = ["Searches", "analysis_json", "forecast_json"]

_FIRST_SLICE = 8
_SLICE_S = 0.15
_SHOWN_S = 0.25
_VARIATION_MOVES = 8


class Searches:
    """Runs searches of positions, no more at once than the limits say.

    Args:
        limits: How many searches run and wait, and the threads of each.
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
        """Yields what a search finds, some times a second; the last is the answer.

        Args:
            player: The player that searches.
            moves: Legal moves of a game that is not over.
            simulations: Within the limits.
            seed: Seed of what is drawn at random.

        Raises:
            Busy: Too many wait.
            UsageError: The model's search is refused.
        """
        async with self._turn():
            threads = min(self._limits.num_threads, player.usual_threads())
            if not player.can_grow:
                yield await run_in_threadpool(
                    player.analyse, moves, simulations, seed, threads
                )
                return
            # Left with whatever ends it: a search that fails is not resumed.
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
            raise Busy("searches (of others) are waiting; try again in some seconds")
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
    """Returns what a search found, as JSON values; values are the side to move's.

    Unvisited actions are left out unless the network holds them likely.
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
    """Returns how the network expects a game to end, for the side to move.

    Keys: ``ownership``, a number in [-1, 1] a cell, row by row; ``score`` and
    ``lead``, points, the last None where it is not estimated.
    """
    ownership = forecast.ownership_to_play.ravel().tolist()
    lead = forecast.lead_to_play
    return {
        "ownership": [round(value, 2) for value in ownership],
        "score": round(forecast.score_to_play, 1),
        "lead": None if lead is None else round(lead, 1),
    }
