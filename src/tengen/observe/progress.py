"""The progress of a run, as the view and ``tengen status`` show it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen.config import from_dict


@dataclass(frozen=True, kw_only=True)
class ServerProgress:
    """Recent statistics of one inference server."""

    server: int
    """Index of the server, from 0."""
    host: str
    """Name of the server's host."""
    model: int
    """Number of the model that the server uses."""
    num_sessions: int
    """Number of sessions; each session serves a group of an actor's copies."""
    rows_per_s: float
    """Rows evaluated per second."""
    batch_rows: float
    """Mean number of rows per batch."""
    batch_fill: float
    """``batch_rows`` divided by the total rows of all sessions, in [0, 1]."""
    busy: float
    """Share of the time spent evaluating, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a run at one instant; fields that do not apply are None.

    The runner writes it as an event of kind ``progress`` after every generation.
    """

    generation: int
    """Number of finished generations."""
    elapsed_s: float
    """Seconds since this call began."""
    cpu_s: float | None = None
    """CPU seconds of all processes of this call; set after each generation."""
    stage: str = ""
    """The current activity, such as self-play, learning or rating."""
    num_games: int | None = None
    """Games finished since the run began."""
    num_episodes: int | None = None
    """Episodes finished since the run began."""
    num_rows: int | None = None
    """Rows of experience generated since the run began."""
    num_steps: int | None = None
    """Learner steps since the run began."""
    rows_per_s: float | None = None
    """Rows of experience generated in this call, per second of ``elapsed_s``."""
    evaluations_per_s: float | None = None
    """Positions that the network evaluated in this call to generate experience, without
    cache hits, per second of ``elapsed_s``."""
    acting_rows_per_s: float | None = None
    """Rows generated per second of acting in the last generation. If roles work
    concurrently: rows per second of all acting processes over the last seconds."""
    acting_evaluations_per_s: float | None = None
    """Positions evaluated per second of acting, measured as ``acting_rows_per_s``."""
    cache_hit_share: float | None = None
    """Share of requested positions that were in the evaluation cache, over the last
    generation, in [0, 1]; None without a cache."""
    batch_fill: float | None = None
    """Rows in an inference batch divided by its capacity, in [0, 1]."""
    simulation_share: float | None = None
    """Share of the actors' time spent stepping environments, in [0, 1]. This field and
    the next three are None in games."""
    actor_wait_share: float | None = None
    """Share of the time that actors wait for other roles, in [0, 1]."""
    inference_wait_share: float | None = None
    """Share of the time that inference waits for rows, in [0, 1]; None if actors run
    inference in their own process."""
    learner_wait_share: float | None = None
    """Share of the time that the learner waits for other roles, in [0, 1]."""
    servers: tuple[ServerProgress, ...] = ()
    """Statistics per inference server, if inference is a role."""
    num_learners: int | None = None
    """Number of learners that share each learner step; None for a single learner."""
    loss: float | None = None
    """Mean total loss of the last generation."""
    lag_steps: float | None = None
    """Policy lag: the number of learner steps by which the acting models were behind
    the learner in the latest batches; None in games."""
    mean_return: float | None = None
    """Mean return of recent episodes."""
    rating: float | None = None
    """Elo of the latest rated model; the uniform random player has 0."""
    rating_error: float | None = None
    """The 95 % confidence half-width of ``rating``, in Elo."""
    eta_s: float | None = None
    """Estimated seconds until this call's budget is spent."""
    verdict: str = ""
    """The bottleneck of the run, in one line."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the known fields as JSON values."""
        fields = dataclasses.asdict(self).items()
        return {name: value for name, value in fields if value not in (None, "", ())}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Progress:
        """Returns the progress from the result of ``to_dict``; ignores unknown keys.

        Raises:
            UsageError: ``generation`` or ``elapsed_s`` is missing, or a value has the
                wrong type.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        known = {name: value for name, value in data.items() if name in names}
        return from_dict(cls, known, where="progress")
