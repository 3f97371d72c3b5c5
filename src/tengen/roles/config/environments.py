"""The family of runs in environments: its schedule, and the table for the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tengen import envs
from tengen.actors import StepBlock
from tengen.actors.playback import play_back
from tengen.agents import EnvironmentAgent
from tengen.errors import UsageError
from tengen.experience import (
    Demonstrations,
    Experience,
    ExperiencePart,
    ItemLayout,
    Mixture,
    ReplayConfig,
    StepDraws,
    StepPlan,
    StepTable,
    plan_steps,
)
from tengen.roles.config.run_config import Family, RunConfig, Schedule
from tengen.run import RunDirectory
from tengen.run.publish import reach
from tengen.store import Column, Store

if TYPE_CHECKING:
    from tengen.transport import NetDoor

__all__ = ["Environments", "steps_of"]

# Seconds of learning between two models if actors work concurrently. The interval is
# short for queues, because their agents must learn from the newest policy.
_QUEUE_S = 0.02
_REPLAY_S = 0.25
# Name of the store's writer that inserts demonstrations.
_DEMO_WRITER = "demonstrations"


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
        demos = self._demos()
        steps = StepTable(
            *self._table(run),
            self.config.seed,
            state,
            num_slots=self._num_slots,
            batch_size=self.config.learner.batch_size,
            directory=directory,
            net=net,
            mixture=self._mixture,
            num_demos=0 if demos is None else demos.num_items,
        )
        if demos is not None:
            try:
                self._add_demos(steps, demos)
            except BaseException:
                steps.close()
                raise
        return steps

    def open_part(
        self, run: RunDirectory, connect: Callable[[], Store]
    ) -> ExperiencePart:
        """See ``Family.open_part``; the result is a client of the table."""
        _, columns, layout, table = self._table(run)

        def open_draws(shared: Mapping[str, Any]) -> StepDraws:
            return StepDraws(connect(), columns, layout, table, self._mixture)

        return ExperiencePart(open_draws)

    def check_room(self, run: RunDirectory, directory: Path | None = None) -> str:
        """See ``Family.check_room``."""
        return self.plan_table(run, directory).room.line

    def plan_table(self, run: RunDirectory, directory: Path | None = None) -> StepPlan:
        """Returns the memory and disk plan for the table of ``open_experience``.

        Raises:
            UsageError: The table does not fit into the memory or the disk.
        """
        demos = self._demos()
        return plan_steps(
            *self._table(run),
            num_slots=self._num_slots,
            batch_size=self.config.learner.batch_size,
            directory=directory,
            num_demos=0 if demos is None else demos.num_items,
        )

    @property
    def _num_slots(self) -> int:
        agent = self._agent
        num_each = agent.num_slots(envs.env_spec(self.config.task))
        return agent.actor.num_envs * self._num_actors * num_each

    @property
    def _mixture(self) -> Mixture | None:
        """Which elements of a batch are demonstrations; None for none."""
        config = self._table_config()
        return Mixture(config.demo_share, self.config.seed) if config.demos else None

    def _demos(self) -> _Demos | None:
        """Returns the run's demonstrations; None if it has none.

        The episodes are written as one sequence of steps. The first episodes follow
        again after the last one, so that every step is in an item after the burn-in.

        Raises:
            UsageError: The folder is missing or damaged.
        """
        config = self._table_config()
        if not config.demos:
            return None
        demos = Demonstrations(Path(config.demos))
        demos.check_fits(envs.env_spec(self.config.task))
        layout = self._agent.layout_of(self.config.signature)
        block_steps = layout.block_steps(self._agent.actor.turn_steps)
        lengths = np.array(demos.contents.lengths, np.int64)
        num_steps = int((lengths + 1).sum())
        num_blocks = -(-(num_steps + layout.num_stored) // block_steps)
        is_reset = np.zeros(num_steps, np.bool_)
        is_reset[np.cumsum(lengths + 1) - 1] = True
        before = np.zeros(layout.num_stored - 1, np.bool_)
        played = np.resize(is_reset, num_blocks * block_steps)
        ends = layout.ends(0, np.concatenate([before, played]))
        return _Demos(demos, num_blocks, int(ends.sum()))

    def _add_demos(self, steps: StepTable, demos: _Demos) -> None:
        """Inserts the demonstrations that the table does not have yet.

        Raises:
            UsageError: An episode is damaged, or the table has other demonstrations.
        """
        table, config = steps.demos, self.config
        assert table is not None
        if table.num_inserts < demos.num_items:
            spec = envs.env_spec(config.task)
            layout, agent = steps.layout, self._agent
            block = StepBlock(
                agent.columns(spec),
                1,
                layout.block_steps(agent.actor.turn_steps),
                is_closed=layout.is_closed,
                num_before=layout.num_before,
            )
            writer = table.repeating_writer(_DEMO_WRITER)

            def write(columns: envs.Arrays, state: envs.Arrays) -> int:
                reach("demos.block", demos.episodes.folder)
                return writer.append(columns, state)

            play_back(
                spec,
                demos.episodes,
                config.signature,
                block,
                write,
                demos.num_blocks,
            )
            steps.flush()
        if table.num_inserts != demos.num_items:
            raise UsageError(
                f"store.demos ({demos.episodes.folder}) must not change during a run, "
                "which has copied other demonstrations; restore the folder, or choose "
                "another --out"
            )

    def _table_config(self) -> ReplayConfig:
        config, spec = self.config, envs.env_spec(self.config.task)
        return self._agent.table_config(
            config.store, config.learner, self._num_actors, spec
        )

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
        return run.experience / "steps", columns, layout, self._table_config()


class _Demos(NamedTuple):
    """A run's demonstrations, and their items in the table."""

    episodes: Demonstrations
    """The folder of episodes."""
    num_blocks: int
    """Number of blocks of steps to write."""
    num_items: int
    """Number of items in these blocks."""
