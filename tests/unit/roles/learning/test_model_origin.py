"""What a model says of the training behind it."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from tengen.learners import checkpoint
from tengen.models import ModelOrigin, load_model
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, RunConfig, make_role, write_config
from tengen.run import RunDirectory
from tests.unit.experience.store_games import write_generation

SETTINGS = (
    "seed=5",
    "agent.stages=[]",
    "net.num_channels=8",
    "store.min_rows=50",
    "learner.batch_size=16",
    "inference.backend=torch",
    "inference.precision=fp32",
    "inference.batch_shape=fixed",
)


def take_turn(name: str, config: RunConfig, run: RunDirectory) -> None:
    role = make_role(name, config, run, RoleContext())
    assert role.turn() is not None
    role.close()


def origin_after(config: RunConfig, run: RunDirectory) -> ModelOrigin:
    """Returns the origin of a model that is made now."""
    for name in ("learn", "export", "gate"):
        take_turn(name, config, run)
    newest = run.models.latest()
    assert newest is not None
    origin = load_model(run.models.entry(newest)).meta.origin
    assert origin is not None
    return origin


def make_run(path: Path, config: RunConfig) -> RunDirectory:
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    return run


def test_a_model_says_what_it_was_trained_on(tmp_path: Path) -> None:
    config = override(make_config("tictactoe", None, None), SETTINGS)
    run = make_run(tmp_path / "run", config)
    wanted = ModelOrigin(
        run=str(run.path),
        seed=5,
        checkpoint=0,
        num_games=0,
        num_rows=0,
        window_rows=0,
    )
    assert origin_after(config, run) == wanted
    role = make_role("learn", config, run, RoleContext())
    # A model's times are rounded to milliseconds.
    before = time.time() - 0.001
    for generation in (1, 2):
        write_generation(run.experience, generation, 24)
        report = role.turn()
    role.close()
    assert report is not None
    for name in ("export", "gate"):
        take_turn(name, config, run)
    found = load_model(run.models.entry(1)).meta.origin
    table = {
        name: count for name, count in report["table"].items() if "bytes" not in name
    }
    assert table.keys() == {"num_games", "num_rows", "window_rows"}
    assert table["num_games"] == 48
    assert found is not None
    begun, ended = found.learned_from_at, found.learned_to_at
    assert begun is not None
    assert ended is not None
    assert before <= begun <= ended <= time.time() + 0.001
    assert found == dataclasses.replace(
        wanted, checkpoint=2, learned_from_at=begun, learned_to_at=ended, **table
    )


def test_a_model_names_what_its_run_began_with(tmp_path: Path) -> None:
    config = override(make_config("tictactoe", None, None), SETTINGS)
    main = make_run(tmp_path / "main", config)
    origin_after(config, main)
    words = ("learner.initial_model", "agent.learn_from")
    config = override(config, [f"{word}={main.path}" for word in words])
    origin = origin_after(config, make_run(tmp_path / "extra", config))
    assert (origin.learn_from, origin.initial_model) == (str(main.path),) * 2


def test_an_environment_counts_no_games(tmp_path: Path) -> None:
    config = make_config("CartPole-v1", None, None)
    origin = origin_after(config, make_run(tmp_path / "run", config))
    assert (origin.num_games, origin.num_rows, origin.checkpoint) == (None, 0, 0)


def test_a_checkpoint_without_counts_is_exported(tmp_path: Path) -> None:
    config = override(make_config("tictactoe", None, None), SETTINGS)
    run = make_run(tmp_path / "run", config)
    take_turn("learn", config, run)
    saved = run.checkpoints.entry(0)
    content = checkpoint.read_checkpoint_json(saved)
    del content["extra"]["data"]
    checkpoint.write_checkpoint_json(saved, content)
    take_turn("export", config, run)
    origin = load_model(run.candidates.entry(0)).meta.origin
    assert origin == ModelOrigin(run=str(run.path), seed=5, checkpoint=0)
