"""Generations of a game in Python fit the minutes where processes play them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tengen import games
from tengen.experience import SegmentReader
from tengen.experience.games.files import experience_files
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.run import RunDirectory
from tests.unit.actors.test_processes import OWN_GAMES, model

__all__ = ["model"]  # a fixture

TASK = "own_games:TicTacToe"
SETTINGS = (
    "agent.actor.games_per_generation=24",
    "agent.actor.num_slots=12",
    "agent.actor.full_simulations=8",
    "agent.actor.cheap_simulations=4",
    "inference.backend=openvino",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
)


@pytest.mark.parametrize(("generation_s", "most"), [(1e-9, 4), (1e9, 24)])
def test_a_slow_generation_is_sealed_with_fewer_games(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: Path,
    generation_s: float,
    most: int,
) -> None:
    """Also where all games would begin at once."""
    monkeypatch.syspath_prepend(str(OWN_GAMES))
    monkeypatch.setenv("PYTHONPATH", str(OWN_GAMES))
    games.allow(TASK)
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, override(make_config(TASK, None, None), SETTINGS))
    run.models.publish(1, lambda folder: None)
    monkeypatch.setattr(
        "tengen.roles.selfplay.role.SelfplayRole._directory", lambda *_: model
    )
    context = RoleContext(num_threads=2, generation_s=generation_s)
    role = make_role("selfplay", read_config(run), run, context)
    try:
        report = role.turn()
        later = role.turn()
    finally:
        role.close()
    assert report is not None
    assert later is not None
    (first, _) = experience_files(run.experience, "npz")
    with SegmentReader(first) as segment:
        indices = segment.game_columns()["game_index"].tolist()
    assert len(indices) == len(set(indices)) == report["num_games"]
    assert sorted(indices) == list(range(most))
    if most < 24:
        # Each slot plays at least two games.
        assert report["fitted"]["games_per_generation"] == 4
        assert report["fitted"]["num_slots"] == 1
        assert later["num_games"] <= 4
    else:
        assert "fitted" not in report
        assert later["num_games"] == 24
