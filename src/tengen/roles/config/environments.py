"""The family of runs in environments: its schedule, and the table for the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tengen import envs
from tengen.agents import EnvironmentAgent
from tengen.experience import (
    Experience,
    ExperiencePart,
    ItemLayout,
    ReplayConfig,
    StepDraws,
    StepPlan,
    StepTable,
    plan_steps,
)
from tengen.roles.config.run_config import Family, RunConfig, Schedule
from tengen.run import RunDirectory
from tengen.store import Column, Store

if TYPE_CHECKING:
    from tengen.transport import NetDoor

__all__ = ["Environments", "steps_of"]

# Seconds of learning between two models if actors work concurrently. The interval is
# short for queues, because their agents must learn from the newest policy.
_QUEUE_S = 0.02
_REPLAY_S = 0.25


def steps_of(experience: Experience) -> StepTable:
    """Casts an environment run's experience to the table that actors write to."""
    assert isinstance(experience, StepTable)
    return experience


class Environments(Family, agents=EnvironmentAgent):
    """The family of all runs in environments. Steps are stored in a table."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__(config)
        self._agent = EnvironmentAgent.of(config.agent, "learn")
        self._num_actors = config.launch.of("actor").count

    @property
    def schedule(self) -> Schedule:
        """See ``Family.schedule``."""
        return Schedule(
            acting="actor",
            learning=("learn", "export", "gate"),
            serving="inference",
            model_s=_QUEUE_S if self.config.store.is_queue else _REPLAY_S,
            is_shared=True,
            counts_frames=True,
        )

    def open_experience(
        self,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> StepTable:
        """See ``Family.open_experience``."""
        return StepTable(
            *self._table(run),
            self.config.seed,
            state,
            num_slots=self._num_slots,
            batch_size=self.config.learner.batch_size,
            directory=directory,
            net=net,
        )

    def open_part(
        self, run: RunDirectory, connect: Callable[[], Store]
    ) -> ExperiencePart:
        """See ``Family.open_part``; the result is a client of the table."""
        _, columns, layout, table = self._table(run)

        def open_draws(shared: Mapping[str, Any]) -> StepDraws:
            return StepDraws(connect(), columns, layout, table)

        return ExperiencePart(open_draws)

    def check_room(self, run: RunDirectory, directory: Path | None = None) -> str:
        """See ``Family.check_room``."""
        return self.plan_table(run, directory).room.line

    def plan_table(self, run: RunDirectory, directory: Path | None = None) -> StepPlan:
        """Returns the memory and disk plan for the table of ``open_experience``.

        Raises:
            UsageError: The table does not fit into the memory or the disk.
        """
        return plan_steps(
            *self._table(run),
            num_slots=self._num_slots,
            batch_size=self.config.learner.batch_size,
            directory=directory,
        )

    @property
    def _num_slots(self) -> int:
        agent = self._agent
        num_each = agent.num_slots(envs.env_spec(self.config.task))
        return agent.actor.num_envs * self._num_actors * num_each

    def _table(
        self, run: RunDirectory
    ) -> tuple[Path, dict[str, Column], ItemLayout, ReplayConfig]:
        """Returns the steps' folder and columns, the item layout and table config."""
        config, agent = self.config, self._agent
        spec = envs.env_spec(config.task)
        columns = {
            name: Column(dtype=tensor.dtype, shape=tensor.shape)
            for name, tensor in agent.columns(spec).items()
        }
        layout = agent.layout_of(config.signature)
        table = agent.table_config(config.store, config.learner, self._num_actors, spec)
        return run.experience / "steps", columns, layout, table
