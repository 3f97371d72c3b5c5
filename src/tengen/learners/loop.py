"""The learner loop of all agents, which samples batches and performs learner steps.

A batch is always split into the same number of parts (``tengen.learners.shards``), so
the weights after a step are bit-identical for any number of threads.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen.closable import Closable
from tengen.errors import RunError
from tengen.experience import Experience
from tengen.experience.steps.mixing import joined
from tengen.learners.batches import BatchAhead, joined_priorities, placed, rows_to_learn
from tengen.learners.config import LearnerConfig
from tengen.learners.group import ALONE, Group, GroupLost, Team, row_bounds
from tengen.learners.optimizer import Optimizer
from tengen.learners.recorded import RecordedStep
from tengen.learners.shards import Shards, preferred_dtype
from tengen.learners.states import LearnerState, Trained
from tengen.learners.update import Update
from tengen.nets import Net
from tengen.store import Batch

__all__ = ["Learner", "LearnerState"]


class Learner(Closable):
    """Trains a network on experience with an agent's update.

    ``steps`` runs this loop::

        batch = experience.sample(batch_size)     # during the previous batch's training
        for minibatch in update.minibatches(batch):
            for part in split(minibatch):         # on num_threads threads
                gradients += grad(update.loss(net, part))
            optimizer.step(gradients)
            optimizer.update_average()
            update.move_targets(net)
            update.stepped(metrics)
        batch.ack(priorities)

    If several learners compute each step together (``join``), one of them is the
    leader. Only the leader calls ``steps``, and its ``team`` orders the followers to
    sample their parts; the followers call ``follow``.

    Not thread-safe.

    Attributes:
        config: The config given to the constructor.
        device: The device given to the constructor.
        dtype: The dtype in which hidden layers compute.
        net: The network in training, on the device; its weights change in place.
        optimizer: The optimizer, which has the averaged network to publish.
        num_samples: Number of rows trained on. The rows of a batch are counted at its
            first minibatch.
        remaining: Remaining fraction of the run's budget, in [0, 1], for the cool-down;
            updated by the caller. None: the run has no end.
        asked: Fraction of the run's budget that this call of ``tengen train`` uses, in
            (0, 1]; None for all.
        group: The learners that compute each step together, initially ``ALONE``.
        num_lost: Number of steps abandoned because a learner of the group was lost.
    """

    def __init__(
        self,
        config: LearnerConfig,
        net: Net,
        update: Update,
        experience: Experience | None,
        *,
        num_threads: int = 1,
        num_together: int = 1,
        device: str = "cpu",
        team: Team | None = None,
    ) -> None:
        """Creates a learner and starts its threads.

        Args:
            config: Settings of the learner, such as the batch size.
            net: The network to train; the constructor puts it into training mode.
            update: The agent's update.
            experience: The source of batches; None for a follower.
            num_threads: Maximum number of parts of a batch computed in parallel, at
                most ``config.num_shards``. It does not affect the result.
            num_together: Maximum number of batches of a small network that are sampled
                and prepared together; see ``Experience.num_together``.
            device: The torch device on which the learner computes.
            team: The followers of this learner; None if it has no followers.
        """
        self.config = config
        self.device = device
        self._device = torch.device(device)
        self._experience = experience
        self.net = net.to(self._device).train()
        dtype = preferred_dtype(config.precision, self._device)
        self._is_small = RecordedStep.supports(config, self.net, update)
        if self._is_small and config.precision == "auto":
            # Recorded steps have no lower precision, and are faster than in bfloat16.
            dtype = torch.float32
        update.place(self._device, dtype)
        self.optimizer = Optimizer(config.optimizer, net, update.parameters())
        self._trained = Trained(self.net, self.optimizer, update)
        self.num_samples = 0
        self.remaining: float | None = None
        self.asked: float | None = None
        self._steps_before = 0
        self._update = update
        self.dtype = dtype
        self._num_threads = num_threads
        self._team = team
        self.group: Group = ALONE
        self.num_lost = 0
        self._shards = self._make_shards(config.num_shards)
        self._recorded = self._make_recorded()
        # A hand-over to a thread takes as long as the step of a small network.
        has_thread = team is not None or not self._is_small
        is_single = has_thread or update.max_lag is not None
        self._num_together = 1 if is_single else num_together
        self._ahead = BatchAhead(self._sample, has_thread=has_thread)

    @property
    def num_steps(self) -> int:
        """Number of optimizer steps in the run, including steps before a resumption."""
        return self._steps_before + self.optimizer.num_steps

    def step(self) -> dict[str, float]:
        """Performs one learner step and returns its metrics; see ``steps``."""
        return next(self.steps(1))

    def steps(
        self, num_steps: int, stop: threading.Event | None = None
    ) -> Iterator[dict[str, float]]:
        """Performs learner steps on ``num_steps`` batches; yields each step's metrics.

        While the learner trains on one batch, the next batch is sampled in the
        background, always in the same order; a small network's batches are sampled in
        the caller's thread. After the last step no batch is in flight, so the state can
        be saved. If the caller stops early, the next call uses the batch in flight.

        Args:
            num_steps: Number of batches to sample.
            stop: When set, sampling stops. The steps on at most two more samples
                follow, and then the state can be saved.

        Yields:
            Metrics of one step: ``loss`` and its named parts, ``grad_norm``,
            ``learning_rate``, ``sample_wait_s`` and ``train_s``. For environments also
            ``lag_steps``, the policy lag in learner steps. For agents with ``max_lag``
            also ``too_old``, the fraction of excluded items. If all items are excluded,
            there is no ``loss``.

        Raises:
            RunError: Loss or gradient is not finite, or memory is too small.
        """
        left = num_steps
        while left > 0:
            if self._team is not None and not self._ahead.is_under_way:
                self._team.settle(self)
            start_s = time.perf_counter()
            batch = self._ahead.take(min(left, self._num_together))
            is_together = self._num_together > 1
            count = len(batch.keys) // self.config.batch_size if is_together else 1
            is_stopping = stop is not None and stop.is_set()
            # Do not sample in advance if the team is about to change, because a change
            # must not happen while a batch is being sampled.
            is_due = self._team is not None and self._team.is_due
            if left > count and not is_stopping and not is_due:
                self._ahead.begin(min(left - count, self._num_together))
            sampled_s = time.perf_counter()
            num_before = self.optimizer.num_steps
            try:
                found, priorities = self._train(batch, count)
            except GroupLost as error:
                num_applied = self.optimizer.num_steps - num_before
                left -= self._give_up(batch, error, num_applied)
                if stop is not None and stop.is_set():
                    return
                continue
            # Wait, so that the next batch is always sampled before priorities change.
            self._ahead.settle()
            batch.ack(priorities)
            train_s = time.perf_counter() - sampled_s
            left -= count
            for metrics in found:
                metrics["sample_wait_s"] = (sampled_s - start_s) / count
                metrics["train_s"] = train_s / count
                yield metrics
            if is_stopping and not self._ahead.is_under_way:
                return

    def follow(self, batch: Batch) -> dict[str, float]:
        """Trains on this learner's part of a batch, together with the group.

        Args:
            batch: This learner's part, which is acknowledged with its new priorities.

        Returns:
            The metrics of the learner step; see ``steps``.

        Raises:
            GroupLost: The step was abandoned; the batch is not acknowledged.
            RunError: See ``steps``.
        """
        (metrics,), priorities = self._train(batch, 1)
        batch.ack(priorities)
        return metrics

    def join(self, group: Group) -> None:
        """Joins a group of learners, which then compute each step together.

        Args:
            group: A group whose learners have equal states, or ``ALONE``.

        Raises:
            RunError: A batch is in flight.
        """
        self._check_idle()
        self._shards.close()
        self.group = self._update.group = group
        num_parts, size = self._num_parts, group.size
        group.num_parts = num_parts
        first, last = (
            num_parts * rank // size for rank in (group.rank, group.rank + 1)
        )
        self._shards = self._make_shards(last - first)
        self._recorded = self._make_recorded()

    def check_same(self) -> None:
        """Checks that all learners have the same weights; see ``Trained``."""
        self._trained.check_same(self.group)

    def validate(self, columns: Mapping[str, NDArray[np.generic]]) -> dict[str, float]:
        """Returns the losses of the averaged network on ``columns``, for validation.

        Args:
            columns: The columns of a batch, arrays ``[B, ...]``.

        Returns:
            ``loss`` and its named parts, means over rows.
        """
        tensors = {
            name: placed(column, self._device) for name, column in columns.items()
        }
        with torch.no_grad():
            parts = self._update.loss(self.optimizer.average, tensors)
        return {
            "loss": parts.loss.item(),
            **{name: metric.item() for name, metric in parts.metrics.items()},
        }

    @property
    def is_recorded(self) -> bool:
        """Whether steps were performed, and all as recorded (``RecordedStep``)."""
        return self._recorded is not None and self._recorded.is_recorded

    def state(self) -> LearnerState:
        """Returns the learner's state, whose tensors share the learner's memory.

        Raises:
            RunError: A batch is in flight, because ``steps`` was not run to completion.
        """
        self._check_idle()
        tensors = {"generator": torch.get_rng_state(), **self._trained.tensors()}
        return LearnerState(
            tensors, self.num_steps, self.optimizer.num_steps, self.num_samples
        )

    def load_state(self, state: LearnerState) -> None:
        """Restores the ``state`` of a learner with the same configs.

        Raises:
            RunError: A tensor is missing, unknown or has the wrong shape; the learner
                is unchanged.
        """
        self._trained.load(state)
        self._steps_before = state.num_steps - state.num_optimizer_steps
        torch.set_rng_state(state.tensors["generator"])
        self.num_samples = state.num_samples
        self._shards.spread_statistics()
        self._recorded = self._make_recorded()

    def close(self) -> None:
        """Ends the learner's threads. Blocks until a batch in flight is sampled."""
        self._ahead.close()
        self._shards.close()

    @property
    def _num_parts(self) -> int:
        """Number of parts of a batch, at least one per learner of the group."""
        return max(self.config.num_shards, self.group.size)

    def _make_shards(self, num_shards: int) -> Shards:
        return Shards(
            self.net,
            self._update,
            num_shards,
            dtype=self.dtype,
            num_threads=self._num_threads,
        )

    def _make_recorded(self) -> RecordedStep | None:
        if self.group.size > 1 or not self._is_small:
            return None
        return RecordedStep(self.net, self._shards, self.optimizer, self._update)

    def _check_idle(self) -> None:
        if self._ahead.is_under_way:
            raise RunError(
                "state (a batch is in flight) must be read after the last step; finish "
                "the requested steps"
            )

    def _sample(self, num_steps: int) -> Batch:
        assert self._experience is not None
        num_samples = self.config.batch_size
        if self.group.size == 1:
            return joined(
                [self._experience.sample(num_samples) for _ in range(num_steps)]
            )
        assert self._team is not None
        bounds = row_bounds(num_samples, self._num_parts, self.group.size)
        divided = self._experience.divide(num_samples, *bounds[0])
        # Send the order first, so that followers sample their parts in parallel.
        self._team.order(divided.order, bounds, self.remaining, self.asked)
        return divided.draw()

    def _give_up(self, batch: Batch, error: GroupLost, num_applied: int) -> int:
        """Abandons the current and the next batch after the loss of a learner.

        Completed optimizer steps are not undone, and all learners of the next group
        receive the resulting weights.

        Args:
            batch: The batch on which the step failed.
            error: The failure of the group.
            num_applied: Number of completed optimizer steps on this batch.

        Returns:
            The number of abandoned batches, 1 or 2. They count as sampled.
        """
        assert self._team is not None
        self.num_lost += 1
        self._team.lost(error, num_applied)
        batch.ack()
        if not self._ahead.is_under_way:
            return 1
        self._ahead.take().ack()
        return 2

    def _train(
        self, batch: Batch, num_steps: int
    ) -> tuple[list[dict[str, float]], NDArray[np.float64] | None]:
        """Trains on a batch; returns mean metrics and the priorities of its items.

        Args:
            batch: A batch.
            num_steps: Number of learner steps, which share the batch equally. If there
                are several, the items have no priorities.

        Returns:
            The metrics of each learner step, and the priorities.
        """
        rows = rows_to_learn(batch, self._update, self.group, self.num_steps)
        if rows.num_rows == 0:
            return [rows.metrics], None
        # A single thread runs all steps on a batch in one call, because passing each
        # part to the thread would take long relative to the step of a small network.
        is_one_thread = self._shards.num_threads == 1
        try:
            columns = {
                name: placed(array, self._device) for name, array in rows.arrays.items()
            }
            work = functools.partial(
                self._train_on_parts, columns, rows.num_rows, num_steps
            )
            found, priorities = self._shards.run(work) if is_one_thread else work()
        except torch.OutOfMemoryError as error:
            raise RunError(
                f"learner.batch_size ({self.config.batch_size}) does not fit the "
                f"memory of {self._device}; lower it, or raise learner.num_shards"
            ) from error
        return [{**means, **rows.metrics} for means in found], priorities

    def _train_on_parts(
        self, columns: dict[str, Tensor], num_rows: int, num_steps: int
    ) -> tuple[list[dict[str, float]], NDArray[np.float64] | None]:
        """Trains on equal parts of a batch, one per learner step; see ``_train``."""
        if num_steps == 1:
            means, priorities = self._train_on(columns, num_rows)
            return [means], priorities
        size = num_rows // num_steps
        parts = zip(*(torch.split(x, size) for x in columns.values()), strict=True)
        found = []
        for part in parts:
            means, _ = self._train_on(dict(zip(columns, part, strict=True)), size)
            found.append(means)
        return found, None

    def _train_on(
        self, columns: dict[str, Tensor], num_rows: int
    ) -> tuple[dict[str, float], NDArray[np.float64] | None]:
        """Performs the optimizer steps of all minibatches of a batch; see ``_train``.

        Args:
            columns: This learner's rows, tensors ``[rows, ...]``.
            num_rows: Total number of rows of the batch over all learners.
        """
        totals: dict[str, float] = {}
        num_minibatches = 0
        priorities = None
        minibatches = self._update.minibatches(self.net, columns)
        # Prepare minibatches on a thread of ``_shards``, which has one intra-op thread.
        following = functools.partial(next, minibatches, None)
        while (minibatch := self._shards.run(following)) is not None:
            if num_minibatches == 0:
                # ``minibatches`` may have changed the network's running statistics.
                self._shards.spread_statistics()
            step = self._recorded or self._step
            metrics, priorities = step(minibatch, self.remaining, self.asked)
            self._shards.run(
                functools.partial(
                    self._update.stepped, self.net, self.num_steps, metrics
                )
            )
            if num_minibatches == 0:
                self.num_samples += num_rows
            num_minibatches += 1
            for name, value in metrics.items():
                totals[name] = totals.get(name, 0.0) + value
        means = {name: total / num_minibatches for name, total in totals.items()}
        return means, priorities

    def _step(
        self, columns: dict[str, Tensor], remaining: float | None, asked: float | None
    ) -> tuple[dict[str, float], NDArray[np.float64] | None]:
        """Performs the step that ``RecordedStep`` performs, in any learner."""
        parts = self._shards.compute(columns)
        num_rows = len(next(iter(columns.values())))
        is_alone = self.group.size == 1

        def finish() -> dict[str, float]:
            if is_alone:
                metrics = self._shards.add(parts)
            else:
                metrics = self._shards.add_over(
                    self.group, parts, num_rows, self._num_parts
                )
            gradients = self._shards.gradients
            metrics.update(self.optimizer.step(gradients, remaining, asked))
            if is_alone:
                self._shards.merge_statistics()
            self.optimizer.update_average()
            self._update.move_targets(self.net)
            return metrics

        metrics = self._shards.run(finish)
        return metrics, joined_priorities([part.priorities for part in parts])
