"""Self-play that goes on seals its games in parts, for learners that wait for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tengen.experience import GenerationWindow, SegmentReader
from tengen.experience.games.files import experience_files
from tengen.minigo.recipes import minigo_small
from tengen.overrides import override
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory
from tests.unit.roles.selfplay.stub_models import Model, plays_on

GAMES = 14
SETTINGS = (
    f"agent.actor.games_per_generation={GAMES}",
    "agent.actor.full_simulations=8",
    "agent.actor.cheap_simulations=4",
    "agent.actor.num_slots=3",
    "agent.actor.cache_mib=0",
    "agent.bootstrap.simulations=24",
    "launch.roles.selfplay.count=2",
)


class Patient(Model):
    """Answers once the learner has looked at each part that self-play has sealed.

    Otherwise a busy machine may end the games before the learner's first look.
    """

    def __init__(self, run: RunDirectory) -> None:
        super().__init__(1)
        self.run = run
        self.num_sealed = 0
        self.looked = threading.Event()

    def answer(self, planes: Any, policy: Any, value: Any) -> None:
        num_sealed = len(experience_files(self.run.experience, "npz"))
        if num_sealed > self.num_sealed:
            self.num_sealed = num_sealed
            # The first look may have begun before the part was sealed.
            for _ in range(2):
                self.looked.clear()
                assert self.looked.wait(900)
        super().answer(planes, policy, value)


def turn(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    bootstrap: bool = False,
    models: bool = False,
    **context: Any,
) -> Any:
    """Plays one generation of one of two processes.

    With ``models`` newer ones are published before a part, of six games, is full.

    Returns its games by index, how many segments they are, and what a learner saw of
    them first, while it was played.
    """
    run = RunDirectory.create_or_resume(folder)
    min_games = 48 if models else 16
    settings = (*SETTINGS, f"store.min_games={min_games}")
    config = override(minigo_small("go/5", 1), settings)
    write_config(run, config)
    run.models.publish(0 if bootstrap else 1, lambda folder: None)
    model = Patient(run)
    plays_on(monkeypatch, lambda *_, **__: model)
    seen: list[int] = []

    def look(report: dict[str, Any]) -> None:
        assert report["num_sealed"] in (0, len(_games(run)))
        assert len(run.incarnations("selfplay")) == 1
        if models and report["num_games"] >= (run.models.latest() or 0):
            run.models.publish(report["num_games"] + 1, lambda folder: None)
        window = GenerationWindow(config.task, run.experience, config.store, 0, 8)
        if window.refresh():
            seen.append(len(_games(run)))
            if run.models.latest() == 0:
                run.models.publish(1, lambda folder: None)
        model.looked.set()

    role = make_role(
        "selfplay", read_config(run), run, RoleContext(progress=look, **context)
    )
    try:
        report = role.turn()
    finally:
        role.close()
    assert report is not None
    assert report["num_games"] == len(_games(run))
    assert not report["stopped"]
    assert experience_files(run.experience, "journal") == []
    return (
        _games(run),
        len(experience_files(run.experience, "npz")),
        min(seen, default=0),
    )


def _games(run: RunDirectory) -> dict[int, tuple[Any, ...]]:
    found: dict[int, tuple[Any, ...]] = {}
    for path in experience_files(run.experience, "npz"):
        with SegmentReader(path) as reader:
            columns = reader.game_columns()
        ends = np.cumsum(columns["num_plies"])
        for place, index in enumerate(columns["game_index"].tolist()):
            assert index not in found
            plies = slice(ends[place] - columns["num_plies"][place], ends[place])
            found[index] = (
                columns["outcome"][place],
                columns["action"][plies].tolist(),
                columns["root_value"][plies].tolist(),
            )
    return found


def test_parts_are_there_before_the_generation_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a pass of 16 games by two processes each seals two at a time."""
    games, num_segments, seen = turn(tmp_path, monkeypatch, follow_models=True)
    assert set(games) == set(range(GAMES))
    assert num_segments >= 3
    assert 2 <= seen < GAMES


def test_newer_models_do_not_put_parts_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process of many may finish less than a part while each model plays."""
    games, num_segments, seen = turn(
        tmp_path, monkeypatch, models=True, follow_models=True
    )
    assert set(games) == set(range(GAMES))
    assert num_segments >= 2
    assert 6 <= seen < GAMES


def test_the_bootstrap_is_over_when_there_is_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in flight then is dropped, and the next turn is a usual one."""
    games, _, _ = turn(tmp_path, monkeypatch, bootstrap=True, follow_models=True)
    assert 2 <= len(games) < GAMES


def test_the_games_are_the_same_as_in_one_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts, _, _ = turn(tmp_path / "parts", monkeypatch, follow_models=True)
    whole, num_segments, seen = turn(tmp_path / "whole", monkeypatch)
    assert (num_segments, seen) == (1, 0)
    assert in_parts == whole
