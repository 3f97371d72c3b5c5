"""Role ``export``: each turn exports the newest checkpoint as a candidate."""

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
from tengen.roles.config import RunConfig
from tengen.roles.config.run_file import open_inference, record_inference
from tengen.roles.role import Report, Role, RoleContext
from tengen.run import RunDirectory
from tengen.search import PlayConfig

_CHECK_ROWS = 128
_INT8_ROWS = 768
# The minimum number of rows for a reliable check of an int8 model's rounding errors.
_MIN_INT8_ROWS = 48


class ExportRole(Role):
    """Exports the averaged weights of new checkpoints.

    Checkpoints in the middle of a pass (``store.kind=generations``) are skipped,
    because only a complete pass yields a model.

    Before a model is published, its graph is compared with the torch network on game
    positions. If the run's precision is int8, the model is also quantised on positions
    of the newest generation. If int8 loses too much accuracy, or no games exist yet,
    the model is published without int8 and plays in bf16, or in fp32 if the CPU has no
    bf16. If the run evaluates with torch, models have no graph.

    Raises:
        UsageError: Another process exports for this run.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        super().__init__(config, run, context, "export")
        self._exporter = ModelExporter(run.path / "templates")
        self._has_warned = False
        # Number of the newest checkpoint and of the next model at the last turn without
        # an export, so that the next turn need not read the checkpoint again.
        self._exported: tuple[int, int] | None = None
        # Positions on which a graph is compared with its torch network. Empty in
        # environments, whose graphs are not compared.
        self._inputs: dict[str, NDArray[np.generic]] = {}
        if config.games is not None:
            game = open_game(config.task)
            planes = random_positions(game, _CHECK_ROWS, config.seed)
            self._inputs = {"planes": planes}

    def turn(self) -> Report | None:
        """Exports the newest checkpoint; returns None if there is nothing to export."""
        number = self._run.checkpoints.latest()
        if number is None:
            self.waits_for = "there is no checkpoint; run tengen learn first"
            return None
        known = number, next_number(self._run)
        if known == self._exported:
            return None
        number, saved = _read_newest(self._run, number)
        self.waits_for = (
            f"checkpoint ({number:06d}) is already exported; run tengen learn first"
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
                # Checkpoints of earlier versions lack these keys.
                **saved.extra.get("data", {}),
                **saved.extra.get("times", {}),
            ),
            sha256={},
        )
        # Not the checkpoint's number, so that a model removed by hand can be replaced.
        candidate = next_number(self._run)
        report: dict[str, Any] = {"candidate": candidate, "check": {}}

        def complete(directory: Path) -> ModelMeta:
            if self._inputs:
                report.update(self._check(directory, meta))
            return dataclasses.replace(meta, play=self._play(meta))

        exporter = (
            self._exporter if needs_graph(self._config.inference, saved.net) else None
        )
        with self._context.starting("exporting the network"):
            publish_model(
                self._run.candidates.entry(candidate),
                meta,
                saved.tensors,
                exporter,
                complete,
            )
        return report

    def _play(self, meta: ModelMeta) -> PlayConfig | None:
        """Returns the model's search settings; None in an environment."""
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
        # Opens the float model, because the folder has no int8 graph yet.
        backend = open_backend(directory, inference, 1)
        checked = check_export(directory, backend, self._inputs)
        report["check"] = checked.record()
        if inference.precision == "int8":
            report |= self._quantise(directory, meta.generation)
        return report

    def _choose_again(self) -> None:
        """Measures the newest model to choose settings that became ``auto`` again."""
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
        """Chooses the run's inference settings; returns a summary of the measurement.

        Args:
            directory: The folder of the model whose speed is measured.
            inference: The settings before the choice; values to choose are ``auto``.
            net: The model's network.
        """
        agent = self._config.games
        int8_s, num_evaluations = 0.0, 0.0
        is_open = inference.precision in ("auto", "int8")
        has_graph = (directory / ONNX_FILE).exists()
        is_possible = can_quantise() and self._config.net.can_quantise
        if is_open and inference.backend != "torch" and has_graph and is_possible:
            # This int8 graph only serves to measure speed, so it need not be accurate.
            planes = self._inputs["planes"].astype(np.float32)
            # CPU time of the only thread, because wall-clock time on a busy machine
            # includes waiting, which could make int8 look too expensive.
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
        """Adds an int8 graph, unless it is too inaccurate or positions are too few."""
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
                f"num_rows ({num_rows}) must be at least {_MIN_INT8_ROWS} different "
                f"positions",
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
        """Returns a warning about a missing int8 graph; empty after the first one."""
        if self._has_warned:
            return {}
        self._has_warned = True
        return {
            "warning": f"int8 is not used for generation {generation}, {reason}; "
            f"such models use {float_precision()}"
        }


def _read_newest(run: RunDirectory, number: int) -> tuple[int, SavedModel]:
    """Reads checkpoint ``number``, or the newest checkpoint if that was removed."""
    while True:
        try:
            return number, read_model(run.checkpoints.entry(number))
        except TengenError:
            newest = run.checkpoints.latest()
            if newest in (None, number):
                raise
            number = newest


def _exported_steps(run: RunDirectory) -> int:
    """Returns the learner steps of the newest exported model; -1 if there is none."""
    newest = -1
    # Read candidates first, because the gate moves them into the other two folders.
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
            # The gate has moved the candidate to a folder that is read afterwards.
    return newest
