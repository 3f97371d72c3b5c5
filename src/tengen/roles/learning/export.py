"""Role ``export``: one turn makes a candidate from the newest checkpoint."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.agents.alphazero import AlphaZero
from tengen.errors import RunError, TengenError
from tengen.experience import sample_positions
from tengen.games import open_game, random_positions
from tengen.inference import InferenceConfig, choose, needs_graph, open_backend
from tengen.inference.openvino_backend import ONNX_FILE, float_precision
from tengen.learners.checkpoint import SavedModel, read_model
from tengen.models import (
    INT8_FILE,
    ModelExporter,
    ModelMeta,
    ModelOrigin,
    can_quantise,
    check_export,
    publish_model,
    quantise,
)
from tengen.models.load import read_meta
from tengen.models.publish import next_number
from tengen.nets import NetConfig
from tengen.roles.config import RunConfig, open_inference, record_inference
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory
from tengen.search import PlayConfig

__all__ = ["ExportRole"]

_CHECK_ROWS = 128
_INT8_ROWS = 768
# Fewer rows are not enough to check a model's rounding.
_MIN_INT8_ROWS = 48


class ExportRole:
    """Exports the averaged weights of new checkpoints; see ``Role``.

    A checkpoint in the middle of a pass (``store.kind=generations``) is left out: the
    end of the pass makes the model.

    Each exported model is compared with its torch source, on positions of games, before
    it is published. In a run in int8 it is also quantised, on positions of the newest
    generation. If int8 loses too much, and for the first model, which has no games yet,
    the model is published without int8; it then plays in bf16, or in fp32 if the CPU
    has no bf16. In a run that computes by torch models have no graph.

    Args:
        config: The run's config.
        run: The run.
        context: Threads.

    Raises:
        UsageError: Another process exports for this run.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self.waits_for = ""
        self._config = config
        self._run = run
        self._context = context
        self._lock = run.lock("export")
        self._exporter = ModelExporter(run.path / "templates")
        self._has_warned = False
        # The newest checkpoint and next model number when there was nothing to export,
        # so that polling does not read a checkpoint each time.
        self._exported: tuple[int, int] | None = None
        # If only torch evaluates, there is nothing to compare.
        self._inputs: dict[str, NDArray[np.generic]] = {}
        if config.games is not None:
            game = open_game(config.task)
            planes = random_positions(game, _CHECK_ROWS, config.seed)
            self._inputs = {"planes": planes}

    def turn(self) -> Report | None:
        """Exports the newest checkpoint; returns None if it is exported already."""
        number = self._run.checkpoints.latest()
        if number is None:
            self.waits_for = "there is no checkpoint; run tengen learn first"
            return None
        known = number, next_number(self._run)
        if known == self._exported:
            return None
        number, saved = _read_newest(self._run, number)
        self.waits_for = (
            f"checkpoint ({number:06d}) is exported already; run tengen learn first"
        )
        if saved.num_steps <= _exported_steps(self._run):
            self._exported = known
            if self._config.inference.has_auto and self._inputs:
                self._choose_again()
            return None
        if saved.extra.get("is_in_pass", False):
            self._exported = known
            self.waits_for = (
                f"checkpoint ({number:06d}) is in the middle of a pass; run tengen "
                f"learn first"
            )
            return None
        self.waits_for = ""
        agent = self._config.games
        meta = ModelMeta(
            task=self._config.task,
            agent=self._config.agent.kind,
            net=saved.net,
            signature=saved.signature,
            generation=int(saved.extra["generation"]),
            num_steps=saved.num_steps,
            num_samples=saved.num_samples,
            made_at=round(time.time(), 3),
            origin=ModelOrigin(
                run=str(self._run.path),
                seed=self._config.seed,
                checkpoint=number,
                learn_from="" if agent is None else agent.learn_from,
                initial_model=self._config.learner.initial_model,
                # Checkpoints of earlier versions have no such data.
                **saved.extra.get("data", {}),
                **saved.extra.get("times", {}),
            ),
            sha256={},
        )
        # Not the checkpoint's number: a model that was removed by hand is made again.
        candidate = next_number(self._run)
        report: dict[str, Any] = {"candidate": candidate, "check": {}}

        def complete(directory: Path) -> ModelMeta:
            if self._inputs:
                report.update(self._check(directory, meta))
            return dataclasses.replace(meta, play=self._play(meta))

        exporter = self._exporter if needs_graph(self._config.inference) else None
        with self._context.starting("exporting the network"):
            publish_model(
                self._run.candidates.entry(candidate),
                meta,
                saved.tensors,
                exporter,
                complete,
            )
        return report

    def close(self) -> None:
        """Lets another process export."""
        self._lock.release()

    def _play(self, meta: ModelMeta) -> PlayConfig | None:
        """Returns how a model plays; None in an environment."""
        agent = self._config.games
        if agent is None:
            return None
        return agent.play.in_precision(self._config.inference.precision)

    def _check(self, directory: Path, meta: ModelMeta) -> dict[str, Any]:
        report: dict[str, Any] = {}
        again = open_inference(self._run, meta.net)
        if again is not None or self._config.inference.has_auto:
            asked = again or self._config.inference
            with self._context.starting("measuring the machine"):
                told = self._choose(directory, asked, meta.net)
            if told:
                report["told"] = told
        inference = self._config.inference
        # There is no int8 graph yet, so this is the float model.
        backend = open_backend(directory, inference, 1)
        checked = check_export(directory, backend, self._inputs)
        report["check"] = checked.record()
        if inference.precision == "int8":
            report |= self._quantise(directory, meta.generation)
        return report

    def _choose_again(self) -> None:
        """Completes a config that was changed after the last export."""
        for folder in (self._run.models, self._run.candidates):
            newest = folder.latest()
            if newest is None:
                continue
            with tempfile.TemporaryDirectory() as copy:
                directory = Path(copy) / "model"
                shutil.copytree(folder.entry(newest), directory)
                net = read_meta(directory, error=RunError).net
                self._choose(directory, self._config.inference, net)
            return

    def _choose(
        self, directory: Path, inference: InferenceConfig, net: NetConfig
    ) -> str:
        """Completes the run's config by measurement; returns what was measured.

        Args:
            directory: A model.
            inference: The settings before the choice, with ``auto`` where a value is
                open.
            net: The model's network.
        """
        agent = self._config.games
        int8_s, num_evaluations = 0.0, 0.0
        is_open = inference.precision in ("auto", "int8")
        has_graph = (directory / ONNX_FILE).exists()
        is_possible = can_quantise() and self._config.net.can_quantise
        if is_open and inference.backend != "torch" and has_graph and is_possible:
            # Only for the trial of speed: the answers do not matter yet.
            planes = self._inputs["planes"].astype(np.float32)
            # One thread quantises. On a busy machine its wall time would count the
            # turns of others, and int8 would be refused for them.
            begun_s = time.process_time()
            quantise(directory, np.resize(planes, (_INT8_ROWS, *planes.shape[1:])))
            int8_s = time.process_time() - begun_s
            assert agent is not None
            num_evaluations = agent.evaluations_per_model(self._config.task)
        choice = choose(
            directory,
            inference,
            self._inputs,
            self._context.num_threads,
            outputs=None if agent is None else agent.outputs(),
            num_evaluations=num_evaluations,
            int8_s=int8_s,
        )
        (directory / INT8_FILE).unlink(missing_ok=True)
        self._config = record_inference(self._run, choice, inference, net)
        return choice.summary()

    def _quantise(self, directory: Path, generation: int) -> dict[str, Any]:
        """Adds the int8 graph, unless there are few games or it loses too much."""
        positions = sample_positions(
            self._config.task,
            self._run.experience,
            generation,
            _INT8_ROWS,
            self._config.seed,
        )
        if positions is None:
            return {}
        num_rows = len(positions[0])
        if num_rows < _MIN_INT8_ROWS:
            return self._refused(
                generation,
                f"num_rows ({num_rows}) of different positions is below "
                f"{_MIN_INT8_ROWS}",
            )
        check = quantise(directory, *positions)
        report: dict[str, Any] = {"int8": check.record()}
        num_points = positions[0][0, 0].size
        search = AlphaZero.of(self._config.agent, "selfplay").actor.search
        refusal = check.refusal(search.point_utility(num_points))
        if refusal is not None:
            (directory / INT8_FILE).unlink()
            report |= self._refused(generation, refusal)
        return report

    def _refused(self, generation: int, reason: str) -> dict[str, Any]:
        """Returns the warning, once."""
        if self._has_warned:
            return {}
        self._has_warned = True
        return {
            "warning": f"int8 of the model of generation {generation} is refused, "
            f"{reason}; such models play in {float_precision()}"
        }


def _read_newest(run: RunDirectory, number: int) -> tuple[int, SavedModel]:
    """Returns a checkpoint, or the newest if the learner has removed it meanwhile."""
    while True:
        try:
            return number, read_model(run.checkpoints.entry(number))
        except TengenError:
            newest = run.checkpoints.latest()
            if newest in (None, number):
                raise
            number = newest


def _exported_steps(run: RunDirectory) -> int:
    """Returns the learner steps of the newest model of any kind, -1 without one."""
    newest = -1
    # In the order in which the gate moves models.
    for folder in (run.candidates, run.rejected, run.models):
        number = folder.latest()
        if number is None:
            continue
        try:
            meta = read_meta(folder.entry(number), error=RunError)
            newest = max(newest, meta.num_steps)
        except RunError:
            if folder.entry(number).exists():
                raise
            # The gate has moved it to a folder that is still to be looked at.
    return newest
