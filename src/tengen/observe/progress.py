"""The progress of a run: the record that the view and ``status`` show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tengen.config import from_dict

__all__ = ["Progress", "ServerProgress"]


@dataclass(frozen=True, kw_only=True)
class ServerProgress:
    """What one inference server did recently."""

    server: int
    """Its index, from 0."""
    host: str
    """The name of its host."""
    model: int
    """The number of the model that answers."""
    num_sessions: int
    """Groups of the actors' copies that it answers."""
    rows_per_s: float
    """Rows that it answered per second."""
    batch_rows: float
    """Rows of a batch, on the mean."""
    batch_fill: float
    """``batch_rows`` over the rows of all its groups, in [0, 1]."""
    busy: float
    """Share of its time in which it evaluated, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a run at one instant; what does not apply is None.

    The runner writes one as an event of kind ``progress`` after every generation.
    """

    generation: int
    """Generations finished."""
    elapsed_s: float
    """Seconds of this call."""
    cpu_s: float | None = None
    """CPU-seconds of this call, of all its processes; set after each generation."""
    stage: str = ""
    """What happens now: self-play, learning, rating."""
    num_games: int | None = None
    """Games finished since the run began."""
    num_episodes: int | None = None
    """Episodes finished since the run began."""
    num_rows: int | None = None
    """Rows of experience made since the run began."""
    num_steps: int | None = None
    """Learner steps since the run began."""
    rows_per_s: float | None = None
    """Rows of experience made in this call, over ``elapsed_s``."""
    evaluations_per_s: float | None = None
    """Positions evaluated by the net in this call to make experience, over
    ``elapsed_s``; cache hits do not count."""
    acting_rows_per_s: float | None = None
    """Rows made a second while acting, without the time of all else, last generation;
    where roles work at once, of the last seconds and of all that act."""
    acting_evaluations_per_s: float | None = None
    """Positions evaluated a second while acting, as ``acting_rows_per_s``."""
    cache_hit_share: float | None = None
    """Share of the positions asked for that a cache answered, in [0, 1], last
    generation; None without a cache."""
    batch_fill: float | None = None
    """Rows in an inference batch over its capacity, in [0, 1]."""
    simulation_share: float | None = None
    """Share of the actors' time in which their environments step, in [0, 1]; None in
    games, as of the three below."""
    actor_wait_share: float | None = None
    """Share of the time in which actors wait for others, in [0, 1]."""
    inference_wait_share: float | None = None
    """Share of the time in which inference waits for rows, in [0, 1]; None where actors
    have it in their process."""
    learner_wait_share: float | None = None
    """Share of the time in which the learner waits for others, in [0, 1]."""
    servers: tuple[ServerProgress, ...] = ()
    """The inference servers, where inference is a role; of shares above, which are of
    inference, these have their parts."""
    num_learners: int | None = None
    """Learners that make each step together; None where there is one alone."""
    loss: float | None = None
    """Mean total loss of the last generation."""
    lag_steps: float | None = None
    """Policy lag: by how many learner steps the models that acted were behind the
    learner, in the latest batches; None in games."""
    mean_return: float | None = None
    """Mean return of the last episodes."""
    rating: float | None = None
    """Elo of the latest model, the uniform random player being 0."""
    rating_error: float | None = None
    """Half the 95 % interval of ``rating``, in Elo."""
    eta_s: float | None = None
    """Seconds until this call's budget ends."""
    verdict: str = ""
    """What limits the run, in one line."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields that are known, as JSON values."""
        fields = dataclasses.asdict(self).items()
        return {name: value for name, value in fields if value not in (None, "", ())}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Progress:
        """Returns the progress from ``to_dict``; ignores other keys, which events have.

        Raises:
            UsageError: ``generation`` or ``elapsed_s`` is missing, or a value is of
                another type.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        known = {name: value for name, value in data.items() if name in names}
        return from_dict(cls, known, where="progress")
