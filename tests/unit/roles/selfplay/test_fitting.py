"""Generations have fewer games where the machine is too slow for the recipe's."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen.actors import SelfplayConfig, play_generation
from tengen.experience import SegmentReader
from tengen.experience.games.files import experience_files
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.roles.config.run_file import (
    asked_generations,
    record_generation,
    with_asked_generations,
)
from tengen.roles.selfplay.fitting import WorkClock, fewer_games, smaller_generations
from tengen.run import RunDirectory
from tests.unit.roles.selfplay.stub_models import Model, plays_on

ACTOR = SelfplayConfig(games_per_generation=384, num_slots=32)


@pytest.mark.parametrize(
    ("num_finished", "seconds", "num_recovered", "expected"),
    [
        (0, 30.0, 0, 384),  # nothing is known yet
        (63, 30.0, 0, 384),
        # 96 of 384 games in ten seconds: 40 in all, and 60 are there.
        (64, 10.0, 0, 384),
        (64, 18.0, 0, 384),  # 72 s are only a little more
        # 128 s: as many as end within 60.
        (64, 32.0, 0, 180),
        (300, 103.0, 0, 364),  # no game that has begun is given up
        (320, 180.0, 0, 384),  # all have begun
        # Not one game in all the time: those that have begun.
        (0, 60.0, 0, 64),
        # Games of an earlier process are kept and take no time.
        (64, 32.0, 100, 100 + 180),
        (64, 32.0, 200, 384),  # 184 games in 61 s
    ],
)
def test_a_generation_gets_smaller_once_its_first_games_tell(
    num_finished: int, seconds: float, num_recovered: int, expected: int
) -> None:
    played = num_finished, seconds, num_recovered
    fitting = fewer_games(ACTOR, 2, 60.0, *played)
    assert fitting == dataclasses.replace(ACTOR, games_per_generation=expected)
    assert fewer_games(ACTOR, 2, None, *played) == ACTOR


@pytest.mark.parametrize(
    ("game_s", "sizes"),
    [
        (0.1, (384, 32)),
        (0.19, (384, 32)),
        (0.5, (120, 30)),
        (1.0, (60, 15)),
        (60.0, (32, 8)),
    ],
)
def test_the_next_generations_are_as_large_as_fits(
    game_s: float, sizes: tuple[int, int]
) -> None:
    actor = smaller_generations(ACTOR, 2, 60.0, game_s, 384)
    assert (actor.games_per_generation, actor.num_slots) == sizes
    few = dataclasses.replace(ACTOR, games_per_generation=20)
    assert smaller_generations(few, 2, 1e-3, 1.0, 20).games_per_generation == 20
    # One that was cut short is the measure, however fast its last games were.
    assert smaller_generations(ACTOR, 2, 60.0, 0.1, 200).games_per_generation == 200


def fitting_run(folder: Path, *settings: str, is_set: bool = False) -> RunDirectory:
    run = RunDirectory(folder)
    config = override(make_config("tictactoe", None, None), settings)
    generation = asked_generations(run, config, is_set=is_set)
    run = RunDirectory.create_or_resume(folder)
    write_config(run, config, generation=generation)
    return run


FITTED = {
    "games_per_generation": 40,
    "num_slots": 10,
    "game_s": 1.0,
    "generation_s": 40.0,
    "num_rows": 300,
}


def test_a_run_says_what_was_asked_and_what_fits(tmp_path: Path) -> None:
    run = fitting_run(tmp_path)
    before = read_config(run)
    assert record_generation(run, FITTED)
    now: Any = read_config(run)
    assert now.agent.actor.games_per_generation == 40
    assert now.agent.actor.num_slots == 10
    assert now.store.min_rows == 300  # learning begins after the first generation
    told = run.read_run()["measured"]["generation"]
    assert told == {
        "asked": {"games_per_generation": 256, "num_slots": 32},
        "fitted": FITTED,
    }
    # The next call begins with what was asked; rows are there by now.
    again = with_asked_generations(run, now)
    assert again.agent == before.agent
    assert again.store == now.store
    assert asked_generations(run, again, is_set=False) == {"asked": told["asked"]}


def test_a_size_that_the_user_sets_stays(tmp_path: Path) -> None:
    name = "agent.actor.games_per_generation"
    run = fitting_run(tmp_path / "new", f"{name}=100", is_set=True)
    assert "generation" not in run.read_run()["measured"]
    assert asked_generations(run, read_config(run), is_set=False) is None
    run = fitting_run(tmp_path / "later")
    record_generation(run, FITTED)
    changed = override(with_asked_generations(run, read_config(run)), [f"{name}=100"])
    write_config(run, changed, generation=asked_generations(run, changed, is_set=True))
    kept: Any = with_asked_generations(run, read_config(run))
    assert kept.agent.actor.games_per_generation == 100
    assert asked_generations(run, kept, is_set=False) is None


@pytest.mark.parametrize("settings", [("agent.iterations=3",), ("agent.learn_from=x",)])
def test_generations_of_a_benchmark_and_of_others_do_not_fit(
    tmp_path: Path, settings: tuple[str, ...]
) -> None:
    config = override(make_config("tictactoe", None, None), settings)
    assert asked_generations(RunDirectory(tmp_path), config, is_set=False) is None


@pytest.mark.parametrize("counts_cpu", [False, True])
@pytest.mark.parametrize(("generation_s", "most"), [(None, 40), (1e-9, 39), (1e9, 40)])
def test_a_slow_generation_is_sealed_with_the_games_that_have_begun(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    generation_s: float | None,
    most: int,
    counts_cpu: bool,
) -> None:
    settings = (
        "agent.actor.games_per_generation=40",
        "agent.actor.num_slots=3",
        "agent.actor.full_simulations=8",
        "agent.actor.cheap_simulations=4",
    )
    run = fitting_run(tmp_path, *settings)
    run.models.publish(1, lambda folder: None)
    is_measured = threading.Event()

    class SlowModel(Model):
        """Leaves the other thread time to measure a game, on a busy machine too."""

        def answer(self, planes: Any, policy: Any, value: Any) -> None:
            is_measured.wait(0.005)
            super().answer(planes, policy, value)

    def play(*args: Any, on_progress: Callable[[int, int], None], **kwargs: Any) -> Any:
        def measure(num_games: int, num_evaluations: int) -> None:
            on_progress(num_games, num_evaluations)
            if num_games:
                is_measured.set()

        return play_generation(
            *args, on_progress=measure, progress_interval_s=0.001, **kwargs
        )

    plays_on(monkeypatch, lambda *_, **__: SlowModel(1), play)
    context = RoleContext(
        num_threads=1, generation_s=generation_s, counts_cpu=counts_cpu
    )
    role = make_role("selfplay", read_config(run), run, context)
    try:
        report = role.turn()
    finally:
        role.close()
    assert report is not None
    (sealed,) = experience_files(run.experience, "npz")
    with SegmentReader(sealed) as segment:
        indices = segment.game_columns()["game_index"].tolist()
    assert sorted(indices) == list(range(report["num_games"]))
    assert 3 <= report["num_games"] <= most
    if most < 40:
        assert report["fitted"]["num_rows"] == report["num_rows"]
        assert report["told"].startswith("generations have 16 games, not 40")
    else:
        assert "fitted" not in report
        assert report["num_games"] == 40


def test_the_time_of_a_generation_includes_child_processes():
    clock = WorkClock(RoleContext(num_threads=1, counts_cpu=True))
    spin = "import time\nwhile time.process_time() < 1.0: pass"
    with subprocess.Popen([sys.executable, "-c", spin]) as child:
        while child.poll() is None and clock.read() < 0.5:
            time.sleep(0.01)
        assert child.poll() is None  # it counts while it runs
    assert child.returncode == 0
    assert 0.9 < clock.read() < 3.0  # after it has ended, once


def test_the_time_of_a_generation_is_wall_time_or_cpu_time_per_thread():
    wall = WorkClock(RoleContext(num_threads=2))
    cpu = WorkClock(RoleContext(num_threads=2, counts_cpu=True))
    time.sleep(0.3)
    assert wall.seconds >= 0.3
    assert cpu.seconds < 0.15
    begun_s = time.process_time()
    while time.process_time() - begun_s < 0.4:
        pass
    assert 0.18 <= cpu.seconds < wall.seconds
