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
from tengen.roles import RoleContext, RunConfig, make_role, read_config, write_config
from tengen.roles.role import Role
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.experience.store_games import write_generation

BATCH = 16
EPOCH_STEPS = 5
SETTINGS = ("store.min_rows=50", "store.limiter.samples_per_row=4")
# Else the first export measures which precision and backend are fastest.
CHOSEN = (
    "inference.backend=openvino",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
)


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
            shuffle = make_role("shuffle", read_config(run), run, RoleContext())
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
    with refused(UsageError, "epoch_samples (6)"):
        LearnerConfig(batch_size=7, epoch_samples=6)


def begun_passes(path: Path, *settings: str) -> tuple[RunDirectory, RunConfig]:
    """Returns a run that learns by passes, with model 0 and a generation."""
    config = override(
        make_config("go/5", None, "mlperf_minigo_small"),
        (
            f"learner.batch_size={BATCH}",
            "learner.num_shards=1",
            "store.min_games=24",
            *CHOSEN,
            *settings,
        ),
    )
    config = dataclasses.replace(config, net=parse_net("2x8"))
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    learn = make_role("learn", config, run, RoleContext())
    assert learn.turn() == {"num_steps": 0, "checkpoint": 0}
    learn.close()
    assert exported(run, config) == 0
    write_generation(run.experience, 1, 24, name=config.task)
    return run, config


def exported(run: RunDirectory, config: RunConfig) -> int | str:
    """Returns the candidate that is made now, or why there is none."""
    export = make_role("export", config, run, RoleContext())
    report, again = export.turn(), export.turn()
    export.close()
    assert again is None
    return export.waits_for if report is None else int(report["candidate"])


def learned(
    run: RunDirectory, config: RunConfig, *, is_stopped: bool = False
) -> dict[str, Any]:
    """Returns the report of one turn of a new learner."""
    context = RoleContext()
    if is_stopped:
        context.progress = lambda report: context.stop.set()
    learn = make_role("learn", config, run, context)
    report = dict(learn.turn() or {})
    learn.close()
    return report


IN_PASS = "checkpoint ({:06d}) is in the middle of a pass; run tengen learn first"


def test_a_pass_that_was_stopped_makes_one_model(tmp_path: Path) -> None:
    """That of its end; meanwhile the checkpoint of the stop is no model."""
    run, config = begun_passes(tmp_path / "run")
    first = learned(run, config, is_stopped=True)
    assert first["num_steps"] > 0 < first["steps_left"]
    assert exported(run, config) == IN_PASS.format(1)
    rest = learned(run, config)
    assert rest["steps_left"] == 0
    assert exported(run, config) == 1
    meta = read_meta(run.candidates.entry(1))
    assert meta.num_steps == first["num_steps"] + rest["num_steps"]
    assert meta.origin is not None
    # The generation of the model that the random games name.
    assert meta.origin.pass_generation == 3


def test_an_epoch_that_ends_in_a_pass_makes_no_model(tmp_path: Path) -> None:
    run, config = begun_passes(
        tmp_path / "run", f"learner.epoch_samples={EPOCH_STEPS * BATCH}"
    )
    number = 0
    while (report := learned(run, config)).get("steps_left"):
        number += 1
        assert report["num_steps"] == EPOCH_STEPS
        assert exported(run, config) == IN_PASS.format(number)
    assert number > 1
    assert exported(run, config) == 1


def test_a_pass_ends_also_where_its_last_batch_was_dropped(tmp_path: Path) -> None:
    """As after the loss of another learner: it counts as drawn."""
    run, config = begun_passes(tmp_path / "run")
    learn: Any = make_role("learn", config, run, RoleContext())
    steps = learn._learner.steps

    def dropped(num_steps: int, stop: Any) -> Any:
        yield from steps(num_steps - 1, stop)
        learn._experience.sample(BATCH).ack()

    learn._learner.steps = dropped
    assert learn.turn()["steps_left"] == 0
    learn.close()
    assert exported(run, config) == 1


@pytest.mark.parametrize("setting", ["learner.batch_size=4096", "store.share=0.001"])
def test_a_pass_ends_also_where_a_setting_leaves_nothing_of_it(
    tmp_path: Path, setting: str
) -> None:
    run, config = begun_passes(tmp_path / "run")
    stopped = learned(run, config, is_stopped=True)
    changed = override(config, (setting,))
    write_config(run, changed)
    assert learned(run, changed) == {"num_steps": 0, "checkpoint": 2}
    assert exported(run, changed) == 1
    meta = read_meta(run.candidates.entry(1))
    assert meta.num_steps == stopped["num_steps"]
