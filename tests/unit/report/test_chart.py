import math
import xml.etree.ElementTree as ElementTree

import pytest

from tengen.errors import UsageError
from tengen.report import curves
from tengen.report.curves import Chart, chart_svg, shown_number
from tests.refusals import refused
from tests.unit.observe.curves.curve_events import learned, make_run
from tests.unit.report.conftest import put_events

SVG = "{http://www.w3.org/2000/svg}"


def drawn(xs, ys, errors=()):
    chart = Chart("loss <by> steps", "steps", "loss", xs, ys, errors)
    return ElementTree.fromstring(chart_svg(chart))


def line(svg):
    (polyline,) = svg.iter(f"{SVG}polyline")
    pairs = (pair.split(",") for pair in polyline.get("points", "").split())
    return [(float(x), float(y)) for x, y in pairs]


def test_a_line_rises_with_its_values():
    svg = drawn((0, 10, 20), (1.0, 3.0, 2.0))
    (a, b, c) = line(svg)
    assert a[0] < b[0] < c[0]
    # SVG counts from the top.
    assert a[1] > c[1] > b[1]
    assert svg.get("aria-label") == svg.findtext(f"{SVG}title") == "loss <by> steps"
    told = svg.findtext(f"{SVG}desc")
    assert told == (
        "loss by steps: 3 points, from 1 at 0 to 2 at 20; the greatest is 3 at 10"
    )
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert {"steps", "loss", "0", "20"} <= set(texts)


def test_bars_are_as_long_as_the_errors():
    svg = drawn((0, 1), (0.0, 100.0), (50.0, 25.0))
    (path,) = (p.get("d", "") for p in svg.iter(f"{SVG}path"))
    first, second = (
        abs(float(bar.split("V")[0].split()[1]) - float(bar.split("V")[1]))
        for bar in path.removeprefix("M").split("M")
    )
    assert first == pytest.approx(2 * second, abs=0.2)


def test_many_points_are_few_and_keep_their_extremes():
    xs = tuple(float(x) for x in range(20_000))
    ys = tuple(1e3 if x == 777 else math.sin(x) for x in range(20_000))
    svg = drawn(xs, ys)
    assert len(line(svg)) <= 240
    assert len(ElementTree.tostring(svg)) < 30_000
    assert min(y for _, y in line(svg)) < 40


@pytest.mark.parametrize(
    ("xs", "ys"),
    [
        ((5.0,), (7.0,)),
        ((0.0, 1.0), (0.0, 0.0)),
        ((1e18, 1e18 + 1e5), (1e-300, 2e-300)),
        ((0.0, 1.0, 2.0), (math.nan, 1.0, math.inf)),
        ((0.0, 1.0, 2.0), (-1e308, 1e299, -1e299)),
    ],
)
def test_odd_numbers_are_drawn_inside(xs, ys):
    points = line(drawn(xs, ys))
    assert points
    assert all(0 <= x <= 480 and 0 <= y <= 280 for x, y in points)


def test_no_point_is_an_error():
    with refused(ValueError, "chart (loss <by> steps)"):
        drawn((0.0,), (math.nan,))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.25, "0.25"), (9999, "9999"), (12_500, "12.5k"), (3e6, "3M")],
)
def test_numbers_are_short(value, shown):
    assert shown_number(value) == shown


LOSSES = (math.nan, math.inf, 0.5)


def test_games_have_a_rating_with_errors(game_run):
    found = curves(game_run.path)
    rating, loss = found.charts()
    assert rating.xs == (24, 48, 72, 96, 120)
    assert rating.ys == (100, 200, 300, 400, 500)
    assert rating.errors == (80, 40, pytest.approx(80 / 3), 20, 16)
    assert loss.ys[0] == 2.0
    assert not found.in_environments


def test_environments_have_returns_by_frames(environment_run):
    found = curves(str(environment_run.path))
    names = [(chart.x_label, chart.y_label) for chart in found.charts()]
    assert names == [
        ("frames", "return"),
        ("frames", "episode length"),
        ("frames", "loss"),
    ]
    assert found.charts()[0].xs[0] == 2000


def test_a_notebook_shows_drawings_and_a_terminal_a_table(environment_run):
    found = curves(environment_run.path)
    html = ElementTree.fromstring(found._repr_html_())
    assert len(list(html.iter("{http://www.w3.org/2000/svg}svg"))) == 3
    first, *rows = str(found).splitlines()
    assert first.split()[:3] == ["learner_steps", "agent_steps", "frames"]
    assert len(rows) == 6
    assert rows[-1].split()[:3] == ["240", "3000", "12k"]


def test_numbers_that_are_none_are_not_drawn(tmp_path):
    run = make_run(tmp_path / "run", ("selfplay", "learn"))
    told = [learned(100.0 + i, 0, i, loss=loss) for i, loss in enumerate(LOSSES)]
    put_events(run, *told)
    (loss,) = curves(run.path).charts()
    assert loss.ys == (0.5,)
    assert len(curves(run.path).rows) == 3


def test_a_run_that_learned_nothing_is_refused(tmp_path):
    run = make_run(tmp_path / "run")
    for path in (run.path, tmp_path):
        with refused(UsageError, f"run ({path})"):
            curves(path)
