import pytest

from tengen.observe import RunView
from tengen.observe.run_view import Curve
from tengen.run import RunDirectory
from tests.unit.serve.made_runs import learned, write_events


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": {"task": "tictactoe"}})
    return run


def test_curves_grow_as_events_come(run):
    writer = write_events(run, range(1, 3))
    view = RunView(run).read()
    assert view.curves["losses/loss"].steps == [1, 2]
    assert view.curves["losses/loss"].values == [2.0, pytest.approx(4 / 3)]
    assert view.curves["charts/rating"].values == [101.0, 102.0]
    before = view.num_points
    view.read()
    assert view.num_points == before
    writer.write("turn", **learned(7, 0.5))
    view.read()
    (point,) = view.since(before)
    assert point["step"] == 7
    assert point["values"]["losses/loss"] == 0.5
    assert view.learned["total_steps"] == 7
    writer.close()


def test_what_a_call_makes_anew_is_taken_back(run):
    write_events(run, range(1, 6)).close()
    view = RunView(run).read()
    epoch = view.epoch
    write_events(run, range(4, 7)).close()
    view.read()
    assert view.epoch == epoch + 1
    assert view.curves["losses/loss"].steps == [1, 2, 3, 4, 5, 6]
    assert view.since(0)[0]["step"] == 4


def test_what_is_no_number_is_left_out(run):
    writer = write_events(run, range(1, 2))
    writer.write("turn", **learned(2, float("nan"), odd=10**400, text="x"))
    writer.write("turn", **learned(3, 1.0))
    writer.close()
    view = RunView(run).read()
    assert view.curves["losses/loss"].steps == [1, 3]


def test_a_long_curve_is_thinned_and_keeps_its_end():
    curve = Curve()
    for step in range(20_000):
        curve.add(step, float(step), float(step))
    assert len(curve.steps) < 4096
    assert curve.values[-1] == 19_999
    shown = curve.shown(100)
    assert len(shown["step"]) <= 100
    assert shown["value"][-1] == 19_999


def test_curves_with_the_same_steps_share_them(run):
    writer = write_events(run, range(1, 4))
    writer.write("turn", **learned(9, 0.5))
    shown = RunView(run).read().shown_curves()
    loss, part, rating = (
        shown["curves"][tag]
        for tag in ("losses/loss", "losses/policy_loss", "charts/rating")
    )
    assert loss["axis"] == part["axis"] != rating["axis"]
    assert rating["value"] == [101.0, 102.0, 103.0]
