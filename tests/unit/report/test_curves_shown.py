from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tengen.errors import UsageError
from tengen.report import curves
from tengen.run import RunDirectory
from tests.unit.observe.curves.curve_events import learned, make_run
from tests.unit.report.conftest import put_events

LOSSES = (math.nan, math.inf, 0.5)


def test_games_have_a_rating_with_errors(game_run: RunDirectory) -> None:
    found = curves(game_run.path)
    rating, loss = found.charts()
    assert rating.xs == (24, 48, 72, 96, 120)
    assert rating.ys == (100, 200, 300, 400, 500)
    assert rating.errors == (80, 40, pytest.approx(80 / 3), 20, 16)
    assert loss.ys[0] == 2.0
    assert not found.in_environments


def test_environments_have_returns_by_frames(environment_run: RunDirectory) -> None:
    found = curves(str(environment_run.path))
    names = [(chart.x_label, chart.y_label) for chart in found.charts()]
    assert names == [
        ("frames", "return"),
        ("frames", "episode length"),
        ("frames", "loss"),
    ]
    assert found.charts()[0].xs[0] == 2000


def test_a_notebook_shows_drawings_and_a_terminal_a_table(
    environment_run: RunDirectory,
) -> None:
    found = curves(environment_run.path)
    html = ElementTree.fromstring(found._repr_html_())
    assert len(list(html.iter("{http://www.w3.org/2000/svg}svg"))) == 3
    first, *rows = str(found).splitlines()
    assert first.split()[:3] == ["learner_steps", "agent_steps", "frames"]
    assert len(rows) == 6
    assert rows[-1].split()[:3] == ["240", "3000", "12k"]


def test_numbers_that_are_none_are_not_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ("selfplay", "learn"))
    told = [learned(100.0 + i, 0, i, loss=loss) for i, loss in enumerate(LOSSES)]
    put_events(run, *told)
    (loss,) = curves(run.path).charts()
    assert loss.ys == (0.5,)
    assert len(curves(run.path).rows) == 3


def test_a_run_that_learned_nothing_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with pytest.raises(UsageError, match="has learned nothing yet"):
        curves(run.path)
    with pytest.raises(UsageError, match="is not a run directory"):
        curves(tmp_path)
