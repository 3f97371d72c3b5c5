"""Role ``rate``: one turn plays the newest model against fixed anchors."""

from __future__ import annotations

from tengen import games
from tengen.agents.alphazero import AlphaZero
from tengen.errors import RunError
from tengen.evaluation import MatchStopped, ModelPlayer, rate_generation
from tengen.inference import open_backend, search_outputs
from tengen.models import load_model
from tengen.roles.config import RunConfig, newest_inference
from tengen.roles.inputs import run_book
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory

__all__ = ["RateRole"]

_TIME_LIMIT_S = 10.0
"""Seconds of a turn after which no further round of games begins."""


class RateRole:
    """Rates models; see ``Role``. Results are kept in ``RUN/eval``.

    Args:
        config: The run's config.
        run: The run.
        context: Threads and stop.

    Raises:
        UsageError: Another process rates this run.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self.waits_for = ""
        self._config = config
        self._run = run
        self._context = context
        self._lock = run.lock("rate")
        agent = AlphaZero.of(config.agent, "rate")
        self._rating, self._play = agent.rating, agent.play
        self._book = run_book(config, run) if self._rating.book else None
        self._game = games.open_game(config.task)
        self._wanted = config.agent.signature(config.task)

    def turn(self) -> Report | None:
        """Rates the newest model; returns None if there is none."""
        model = self._run.models.latest()
        self.waits_for = "no model is published yet" if model is None else ""
        if model is None:
            return None
        self._context.progress({"stage": "rating"})
        directory = load_model(
            self._run.models.entry(model),
            self._config.task,
            self._wanted,
            error=RunError,
        )
        backend = open_backend(
            directory.path,
            newest_inference(self._run, self._config),
            self._context.num_threads,
            outputs=search_outputs(scores=self._play.search.score_weight > 0),
        )
        try:
            rating = rate_generation(
                self._run,
                model,
                ModelPlayer(f"{model:06d}", self._config.task, backend, self._play),
                self._game,
                self._rating,
                play=self._play,
                book=self._book,
                seed=self._config.seed,
                num_threads=self._context.num_threads,
                time_limit_s=_TIME_LIMIT_S,
                stop=self._context.stop.is_set,
            )
        except MatchStopped:
            return {"model": model, "stopped": True}
        return {
            "model": model,
            "rating": rating.elo,
            "rating_error": rating.error,
        }

    def close(self) -> None:
        """Lets another process rate."""
        self._lock.release()
