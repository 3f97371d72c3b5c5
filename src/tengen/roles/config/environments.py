"""The family of runs in environments: its schedule, and the table for the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tengen import envs
from tengen.actors import StepBlock
from tengen.actors.playback import play_back
from tengen.agents import EnvironmentAgent
from tengen.config import from_dict, to_dict
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
from tengen.run import RunDirectory, publish_json, read_object
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
_SCHEMA = 1


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
        copied = self._copied(run)
        steps = StepTable(
            *self._table(run),
            self.config.seed,
            state,
            num_slots=self._num_slots,
            batch_size=self.config.learner.batch_size,
            directory=directory,
            net=net,
            mixture=self._mixture,
            num_demos=0 if copied is None else copied.num_items,
        )
        if copied is not None:
            try:
                self._add_demos(run, steps, copied)
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

    def check_given(self, run: RunDirectory) -> None:
        """See ``Family.check_given``; reads all demonstrations before they are copied.

        A run that has copied them does not need the folder.
        """
        copied = self._copied(run)
        if copied is not None and not copied.is_complete:
            for _ in self._demos():
                pass

    def check_room(self, run: RunDirectory, directory: Path | None = None) -> str:
        """See ``Family.check_room``."""
        return self.plan_table(run, directory).room.line

    def plan_table(self, run: RunDirectory, directory: Path | None = None) -> StepPlan:
        """Returns the memory and disk plan for the table of ``open_experience``.

        Raises:
            UsageError: The table does not fit into the memory or the disk.
        """
        copied = self._copied(run)
        return plan_steps(
            *self._table(run),
            num_slots=self._num_slots,
            batch_size=self.config.learner.batch_size,
            directory=directory,
            num_demos=0 if copied is None else copied.num_items,
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

    def _demos(self) -> Demonstrations:
        """Returns the folder of demonstrations.

        Raises:
            UsageError: The folder is missing, damaged, or not of the task.
        """
        demos = Demonstrations(Path(self._table_config().demos))
        demos.check_fits(envs.env_spec(self.config.task))
        return demos

    def _copied(self, run: RunDirectory) -> _Copied | None:
        """Returns the record of the demonstrations to copy; None if there are none.

        The folder is opened only if the run has no record.

        Raises:
            UsageError: The folder is missing, damaged, or not of the task.
            RunError: The record is damaged.
        """
        if not self._table_config().demos:
            return None
        path = _record(run)
        if path.exists():
            advice = "restore it from a copy, or choose another --out"
            kept = read_object(path, "record", schema=_SCHEMA, advice=advice)
            return from_dict(_Copied, kept, str(path))
        return self._counted(self._demos())[1]

    def _counted(self, demos: Demonstrations) -> tuple[int, _Copied]:
        """Returns the number of blocks of the demonstrations' steps, and the record.

        The episodes are written as one sequence of steps. The first episodes follow
        again after the last one, so that every step is in an item after the burn-in.
        """
        layout = self._agent.layout_of(self.config.signature)
        block_steps = layout.block_steps(layout.period)
        lengths = np.array(demos.contents.lengths, np.int64)
        num_steps = int((lengths + 1).sum())
        num_blocks = -(-(num_steps + layout.num_stored) // block_steps)
        is_reset = np.zeros(num_steps, np.bool_)
        is_reset[np.cumsum(lengths + 1) - 1] = True
        before = np.zeros(layout.num_stored - 1, np.bool_)
        played = np.resize(is_reset, num_blocks * block_steps)
        ends = layout.ends(0, np.concatenate([before, played]))
        return num_blocks, _Copied(digest=demos.digest, num_items=int(ends.sum()))

    def _add_demos(self, run: RunDirectory, steps: StepTable, copied: _Copied) -> None:
        """Inserts the demonstrations that the table does not have yet.

        Raises:
            UsageError: An episode is damaged, or the table has other demonstrations.
        """
        table, config = steps.demos, self.config
        assert table is not None
        num_inserts = table.num_inserts
        if num_inserts < copied.num_items:
            demos = self._demos()
            num_blocks, found = self._counted(demos)
            if found != replace(copied, is_complete=False):
                raise self._changed()
            # First, so that a process that continues after a kill copies the same ones.
            publish_json(_record(run), to_dict(found))
            spec = envs.env_spec(config.task)
            layout = steps.layout
            block = StepBlock(
                self._agent.columns(spec),
                1,
                layout.block_steps(layout.period),
                is_closed=layout.is_closed,
                num_before=layout.num_before,
            )
            writer = table.repeating_writer(_DEMO_WRITER)

            def write(columns: envs.Arrays, state: envs.Arrays) -> int:
                reach("demos.block", demos.folder)
                return writer.append(columns, state)

            play_back(spec, demos, config.signature, block, write, num_blocks)
            steps.flush()
            num_inserts = table.num_inserts
        if num_inserts != copied.num_items:
            raise self._changed()
        if not copied.is_complete:
            publish_json(_record(run), to_dict(replace(copied, is_complete=True)))

    def _changed(self) -> UsageError:
        return UsageError(
            f"store.demos ({self._table_config().demos}) must not change during a run, "
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


@dataclass(frozen=True, kw_only=True)
class _Copied:
    """A run's record of the demonstrations that it copies into its table."""

    schema: int = _SCHEMA
    """Version of the format."""
    digest: str
    """``Demonstrations.digest``."""
    num_items: int
    """Number of items in the table."""
    is_complete: bool = False
    """Whether the table has all items, so that the folder is not needed."""


def _record(run: RunDirectory) -> Path:
    return run.experience / "demonstrations.json"
