"""Turns of the role learn: how long they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import UsageError
from tengen.learners import LearnerConfig
from tengen.models.load import read_meta
from tengen.nets import parse_net
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import Role, RoleContext, make_role, write_config
from tengen.run import RunDirectory
from tests.unit.experience.store_games import write_generation

BATCH = 16
EPOCH_STEPS = 5
SETTINGS = ("store.min_rows=50", "store.limiter.samples_per_row=4")


def begun(path: Path, *settings: str) -> tuple[RunDirectory, Role]:
    """Returns a new run and its learner, after its first turn."""
    config = override(
        make_config("tictactoe", None, None),
        (f"learner.batch_size={BATCH}", *SETTINGS, *settings),
    )
    config = dataclasses.replace(config, net=parse_net("2x8"))
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    role = make_role("learn", config, run, RoleContext())
    assert role.turn() == {"num_steps": 0, "checkpoint": 0}
    return run, role


def turns(role: Role) -> list[dict[str, Any]]:
    """Takes turns until there is nothing to do any more."""
    reports = []
    while (report := role.turn()) is not None:
        reports.append(dict(report))
    return reports


def weights(run: RunDirectory) -> bytes:
    newest = run.checkpoints.latest()
    assert newest is not None
    return (run.checkpoints.entry(newest) / "state.safetensors").read_bytes()


@pytest.mark.parametrize("drawn_by", ["learn", "shuffle"])
def test_epochs_learn_what_one_turn_does(tmp_path: Path, drawn_by: str) -> None:
    shuffled = f"store.drawn_by={drawn_by}"
    epochs = f"learner.epoch_samples={EPOCH_STEPS * BATCH + BATCH - 1}"
    found = []
    for name, settings in (("whole", ()), ("parts", (epochs,))):
        run, role = begun(tmp_path / name, shuffled, *settings)
        write_generation(run.experience, 1, 24)
        if drawn_by == "shuffle":
            shuffle = make_role("shuffle", role._config, run, RoleContext())
            assert shuffle.turn() is not None
            shuffle.close()
        found.append((turns(role), weights(run)))
        role.close()
    ((whole,), whole_weights), (parts, parts_weights) = found
    total = whole["num_steps"]
    assert whole["steps_left"] == 0
    assert total > 3 * EPOCH_STEPS
    left = [max(0, total - EPOCH_STEPS * (i + 1)) for i in range(len(parts))]
    assert [report["steps_left"] for report in parts] == left
    assert left[-1] == 0 < left[-2]
    assert {report["num_steps"] for report in parts[:-1]} == {EPOCH_STEPS}
    assert sum(report["num_steps"] for report in parts) == total
    # Each ends with its checkpoint.
    numbers = [report["checkpoint"] for report in parts]
    assert numbers == list(range(1, len(parts) + 1))
    assert [report["num_new"] > 0 for report in parts] == [
        True,
        *[False] * (len(parts) - 1),
    ]
    assert parts_weights == whole_weights


def test_an_epoch_is_a_batch_or_more() -> None:
    assert LearnerConfig(batch_size=7, epoch_samples=7).epoch_samples == 7
    with pytest.raises(UsageError, match=r"epoch_samples \(6\) must be at least 7, "):
        LearnerConfig(batch_size=7, epoch_samples=6)


def test_a_pass_that_was_stopped_makes_one_model(tmp_path: Path) -> None:
    """That of its end; meanwhile the checkpoint of the stop is no model."""
    config = override(
        make_config("go/5", None, "mlperf_minigo_small"),
        (f"learner.batch_size={BATCH}", "learner.num_shards=1", "store.min_games=24"),
    )
    config = dataclasses.replace(config, net=parse_net("2x8"))
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, config)
    made = []
    for is_stopped in (True, False):
        context = RoleContext()
        learn = make_role("learn", config, run, context)
        export = make_role("export", config, run, RoleContext())
        if is_stopped:
            learn.turn()
            assert (export.turn() or {})["candidate"] == 0
            write_generation(run.experience, 1, 24, name=config.task)
            context.progress = lambda report, stop=context.stop: stop.set()
        made.append(dict(learn.turn() or {}))
        # Twice: what is not exported now is not exported at the next look either.
        reports = [export.turn(), export.turn()]
        if is_stopped:
            assert reports == [None, None]
            assert export.waits_for == (
                "checkpoint (000001) is in the middle of a pass; run tengen learn first"
            )
        else:
            assert reports[1] is None
            assert (reports[0] or {})["candidate"] == 1
        learn.close()
        export.close()
    assert made[0]["num_steps"] > 0 < made[0]["steps_left"]
    assert made[1]["steps_left"] == 0
    meta = read_meta(run.candidates.entry(1))
    assert meta.num_steps == made[0]["num_steps"] + made[1]["num_steps"]
    assert meta.origin is not None
    # The generation of the model that the random games name.
    assert meta.origin.pass_generation == 3
