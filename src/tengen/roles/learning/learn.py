"""Role ``learn``: each turn learns from new experience and writes a checkpoint."""

from __future__ import annotations

import contextlib
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from tengen.agents import History
from tengen.agents.bases.stages import num_begun
from tengen.experience import NUM_VALIDATION_ROWS
from tengen.inference import needs_graph
from tengen.inference.torch_backend import load_head
from tengen.learners import Learner, load_checkpoint, save_checkpoint
from tengen.learners.checkpoint import read_extra
from tengen.models.load import is_other_size
from tengen.nets import Net, NetConfig
from tengen.nets.modules.board_size import on_board
from tengen.roles.config import RunConfig
from tengen.roles.devices import learner_device
from tengen.roles.experience import open_experience
from tengen.roles.inputs import fitting_model
from tengen.roles.learning.leading import lead, open_run_door
from tengen.roles.role import LearnedNet, Report, Role, RoleContext
from tengen.roles.spent import core_minutes_of, record_began
from tengen.run import RunDirectory, keep_freed_memory
from tengen.run.actor_counts import read_actor_counts

_PROGRESS_INTERVAL_S = 0.25
# Where actors work at the same time: seconds that a turn waits for their items, and the
# steps after which it looks at the clock.
_WAIT_S = 0.5
_LOOK_S = 0.002
_CLOCK_STEPS = 8
# Turns between two checkpoints if the models of the run are opponents.
_OPPONENT_TURNS = 10
# Experience counts recorded in models, without window_bytes, which differs by process.
_DATA = ("num_games", "num_rows", "window_rows", "pass_generation", "pass_games")


class LearnRole(Role):
    """Trains the network. A new run's first turn only saves checkpoint 0.

    A turn ends after an epoch of samples, or earlier if the rate limiter allows no more
    samples. A stopped turn writes a checkpoint from which the next turn resumes, with
    bit-identical results. In the middle of a pass (``store.kind=generations``) this
    checkpoint is not exported. A killed turn is repeated. The network grows at the
    beginning of a turn, before its learner steps.

    If roles take turns in environments and evaluate with torch, the actor uses the
    learner's own network. Then a turn before another turn writes a checkpoint only if
    the last checkpoint is some seconds old, or, with opponents, every tenth time.
    ``close`` saves all turns since then, but a kill loses them. If
    ``launch.roles.learn.count`` is above 1 and roles work concurrently, ``follow``
    roles compute shards of each step, but only this role has the experience and writes
    files.

    Raises:
        UsageError: Another process learns for this run, or the device is not here.

    Attributes:
        save_s: Seconds between two checkpoints where another turn follows in this
            process.
    """

    save_s = 10.0

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self._wanted = config.agent.signature(config.task)
        super().__init__(config, run, context, "learn")
        self._held.enter_context(open_run_door(config, run, context.stop))
        self._device = learner_device(config)
        learner = config.learner
        self._epoch_steps = learner.epoch_samples // learner.batch_size
        keep_freed_memory()
        extra: dict[str, Any] = {"generation": 0, "grown_at": []}
        self._number = run.checkpoints.latest()
        if self._number is not None:
            extra = read_extra(run.checkpoints.entry(self._number))
        self._generation = int(extra["generation"])
        self._core_minutes = core_minutes_of(extra)
        # The number of the generation at which each stage began.
        self._grown_at: list[int] = list(extra["grown_at"])
        self._schedule = config.schedule
        self._goes_on = context.at_once and bool(self._schedule.serving)
        self._acts_here = self._schedule.is_shared and not context.at_once
        self._hands_over = self._acts_here and not needs_graph(
            config.inference, config.net
        )
        # Whether the newest checkpoint is in the middle of a pass.
        self._is_in_pass = bool(extra.get("is_in_pass", False))
        # Whether the learner has changed since the newest checkpoint, and whether the
        # last turn ended normally, so that the learner's state can be saved.
        self._is_unsaved = False
        self._is_whole = True
        self._saved_s = -math.inf
        self._num_turns = 0
        # Seconds of the current turn that were spent waiting for actors.
        self._idle_s = 0.0
        # Times of the first and last learner step since the newest checkpoint, in UNIX
        # seconds.
        self._times: dict[str, float] = {}
        # Whether to record when learning began; unknown if the run has learned before.
        self._keeps_time = self._schedule.num_models > 0 and not self._number
        # With an initial model, learning begins before any data is read. Otherwise the
        # run first plays bootstrap games, and learning begins with the first step.
        if self._keeps_time and learner.initial_model:
            record_began(run)
        self._experience = open_experience(config, run, context, extra.get("table"))
        if self._experience is not context.shared.experience:
            self._held.callback(context.write, self._experience.close)
        self._leading = lead(config, run, context, self._experience)
        if self._leading is not None:
            self._held.callback(self._leading.close)
        if self._number is None:
            # Updates use torch's generator, whose state is stored in checkpoints.
            torch.manual_seed(config.seed)
        self._tell_stage()
        what = "making the network"
        if self._number is not None:
            what = f"restoring checkpoint {self._number:06d}"
        with context.starting(what):
            self._learner = self._make_learner(self._initial_net())
            if self._number is not None:
                load_checkpoint(run.checkpoints.entry(self._number), self._learner)
        if self._number is None and learner.initial_model and learner.optimizer.rates:
            # The learning-rate schedule's boundaries include the initial model's steps.
            model = fitting_model(config, self._wanted)
            self._learner.optimizer.num_steps = model.meta.num_steps

    def turn(self) -> Report | None:
        """Runs the learner steps allowed now; returns None if there is nothing to do.

        If new rows arrived but are too few to learn from, the turn only reports them.
        """
        self.waits_for = ""
        if self._number is None:
            self._save()
            return {"num_steps": 0, "checkpoint": self._number}
        self._idle_s = 0.0
        if self._goes_on:
            self._wait(_WAIT_S)
        arrived = self._experience.refresh()
        generation = max(self._generation, self._experience.generation)
        num_steps = min(self._num_allowed(), self._epoch_steps)
        if num_steps == 0:
            if self._is_in_pass and not self._experience.describe().get("pass_left"):
                # A setting was changed after the stop, and the change ended the pass.
                self._save()
                return {"num_steps": 0, "checkpoint": self._number}
            if self._acts_here and arrived:
                self._keep()
            elif self._is_unsaved and self._context.saves:
                self._save()
            self.waits_for = self._experience.lacks(self._config.learner.batch_size)
            return self._took_in(arrived, generation) if arrived else None
        self._generation = generation
        has_grown = self._begin_stages()
        self._learner.remaining = self._context.remaining
        self._learner.asked = self._context.asked
        start_s = time.monotonic()
        if self._keeps_time:
            record_began(self._run)
        self._times.setdefault("learned_from_at", round(time.time(), 3))
        self._is_whole = False
        metrics = self._learn(num_steps)
        self._is_whole = True
        self._times["learned_to_at"] = round(time.time(), 3)
        if self._leading is not None:
            self._leading.team.check_same()
        if metrics["num_steps"] or has_grown:
            self._keep()
        return {
            **metrics,
            "stopped": self._context.stop.is_set(),
            "steps_left": self._num_allowed(),
            "checkpoint": self._number,
            "generation": generation,
            "grown_at": list(self._grown_at),
            "num_new": arrived,
            **self._counts_of_team(),
            **self._validate(),
            "table": self._with_acted(self._experience.describe()),
            "idle_s": self._idle_s,
            "seconds": time.monotonic() - start_s,
        }

    @property
    def is_saved(self) -> bool:
        """See ``Role.is_saved``."""
        return not self._is_unsaved

    def save(self) -> None:
        """See ``Role.save``. The state of a failed turn is not saved."""
        if self._is_unsaved and self._is_whole:
            self._save()

    def close(self) -> None:
        """Saves learner and experience, ends the threads, and releases the lock.

        Raises:
            RunError: Writing to the disk failed.
        """
        with contextlib.ExitStack() as ending:
            ending.callback(super().close)
            ending.callback(self._context.write, self._experience.close)
            ending.callback(self._learner.close)
            if self._leading is not None:
                ending.callback(self._leading.close)
            self.save()

    def _took_in(self, arrived: int, generation: int) -> Report:
        """Returns the report of a turn without learner steps, as rows are too few."""
        return {
            "num_steps": 0,
            "lacks": self.waits_for,
            "generation": generation,
            "num_new": arrived,
            "table": self._with_acted(self._experience.describe()),
        }

    def _with_acted(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns ``values`` with the counts of actors in other processes added."""
        counts = read_actor_counts(self._run)
        return {**values, **{name: values[name] + counts[name] for name in counts}}

    def _wait(self, seconds: float) -> None:
        """Waits at most ``seconds`` until the experience allows a learner step."""
        start_s = time.monotonic()
        until = start_s + seconds
        while self._num_allowed() == 0 and time.monotonic() < until:
            if self._context.stop.wait(_LOOK_S):
                break
        self._idle_s += time.monotonic() - start_s

    def _num_allowed(self) -> int:
        """Returns the number of learner steps that the experience allows now."""
        return self._experience.available() // self._config.learner.batch_size

    def _validate(self) -> dict[str, Any]:
        """Returns the losses on validation games; empty without validation games."""
        columns = self._experience.validation(NUM_VALIDATION_ROWS)
        if columns is None:
            return {}
        return {"validation": self._learner.validate(columns)}

    def _initial_net(self) -> Net:
        config = self._config.nets[len(self._grown_at)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._config.seed)
            if self._config.learner.initial_model and self._number is None:
                return self._net_of_model(config)
            net: Net = config.build(self._wanted)
            return net

    def _net_of_model(self, config: NetConfig) -> Net:
        """Returns the initial model's network, on the task's board and grown."""
        net = load_head(fitting_model(self._config, self._wanted).path).head.net
        if is_other_size(net.signature, self._wanted):
            net = on_board(net, self._wanted)
        if net.config != config:
            net = net.grown(config)
        return net.requires_grad_(True)

    def _make_learner(self, net: Net) -> Learner:
        # Move the network first, so that the update copies it on this device.
        net = net.to(self._device)
        return Learner(
            self._config.learner,
            net,
            self._config.agent.make_update(self._config.task, net, self._config.store),
            self._experience,
            num_threads=self._context.num_threads,
            num_together=self._experience.num_together,
            device=self._device,
            team=None if self._leading is None else self._leading.team,
        )

    def _counts_of_team(self) -> dict[str, int]:
        """Returns the numbers of current and lost learners; empty without a team."""
        if self._leading is None:
            return {}
        team = self._leading.team
        return {"num_learners": team.size, "num_lost_learners": team.num_lost}

    def _begin_stages(self) -> bool:
        """Begins the stages that are due. A change of the budget never reverts a stage.

        Returns:
            Whether a stage began.
        """
        history = History(
            core_minutes=self._context.core_minutes or self._core_minutes,
            in_all=self._context.core_minutes_in_all,
            num_games=self._experience.describe().get("num_games", 0),
        )
        due = num_begun(self._config.stages, history) - len(self._grown_at)
        if due > 0:
            self._grown_at += [self._generation] * due
            self._tell_stage()
            self._grow(self._config.nets[len(self._grown_at)])
        return due > 0

    def _tell_stage(self) -> None:
        if self._leading is not None:
            self._leading.team.stage = len(self._grown_at)

    def _grow(self, config: NetConfig) -> None:
        """Grows the network without changing its outputs; restarts its average."""
        old = self._learner
        old.close()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._config.seed + self._generation)
            grown = old.optimizer.average.grown(config).requires_grad_(True)
        self._learner = self._make_learner(grown)
        # Copy only the counters; the optimizer, its warm-up and the average restart.
        self._learner.load_state(
            self._learner.state()._replace(
                num_steps=old.num_steps, num_samples=old.num_samples
            )
        )

    def _learn(self, num_steps: int) -> dict[str, Any]:
        found: dict[str, list[float]] = defaultdict(list)
        done = 0
        reported_s = -math.inf
        if self._context.stop.is_set():
            num_steps = 0
        for metrics in self._steps(num_steps):
            done += 1
            for name, value in metrics.items():
                found[name].append(value)
            if time.monotonic() - reported_s < _PROGRESS_INTERVAL_S:
                continue
            reported_s = time.monotonic()
            self._context.progress(
                {
                    "stage": "learning",
                    "num_steps": done,
                    "of_steps": num_steps,
                    **self._counts_of_team(),
                    **{name: metrics[name] for name in ("loss",) if name in metrics},
                }
            )
        means = {name: sum(values) / len(values) for name, values in found.items()}
        return {"num_steps": done, "total_steps": self._learner.num_steps, **means}

    def _steps(self, num_steps: int) -> Iterator[dict[str, float]]:
        """Runs ``num_steps`` learner steps, and more if new experience arrives."""
        learner, stop = self._learner, self._context.stop
        if not self._goes_on:
            yield from learner.steps(num_steps, stop)
            return
        until = time.monotonic() + self._schedule.model_s
        left = self._epoch_steps
        while num_steps > 0:
            num_steps = min(num_steps, _CLOCK_STEPS)
            yield from learner.steps(num_steps, stop)
            left -= num_steps
            remaining_s = until - time.monotonic()
            if stop.is_set() or remaining_s <= 0:
                return
            self._wait(remaining_s)
            num_steps = min(self._num_allowed(), left)

    def _keep(self) -> None:
        """Passes the network to the actor, and saves it unless a later turn can."""
        self._is_unsaved = True
        context = self._context
        can_wait = self._hands_over and not (context.saves or context.stop.is_set())
        self._num_turns += 1
        is_due = time.monotonic() - self._saved_s >= self.save_s
        if self._schedule.has_opponents:
            is_due = self._num_turns % _OPPONENT_TURNS == 0
        if not can_wait or is_due:
            self._save()
        if self._hands_over:
            learner = self._learner
            net = LearnedNet(learner.optimizer.average, learner.num_steps)
            context.shared.learned = net

    def _save(self) -> None:
        self._number = number = 0 if self._number is None else self._number + 1
        self._context.write(lambda: self._write(number))
        self._is_unsaved = False
        self._times = {}
        self._saved_s = time.monotonic()

    def _write(self, number: int) -> None:
        # Excludes counts of actors in other processes, because these actors store them.
        table = self._experience.state()
        described = self._with_acted(self._experience.describe())
        if self._context.core_minutes is not None:
            self._core_minutes = self._context.core_minutes
        self._is_in_pass = described.get("pass_left", 0) > 0
        extra = {
            "core_minutes": self._core_minutes,
            "generation": self._generation,
            "grown_at": self._grown_at,
            "is_in_pass": self._is_in_pass,
            "table": table,
            "data": {name: described[name] for name in _DATA if name in described},
            "times": dict(self._times),
        }
        save_checkpoint(self._run.checkpoints, number, self._learner, extra)
