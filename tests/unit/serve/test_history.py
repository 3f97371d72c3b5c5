import pytest

from tengen.run import RunDirectory
from tengen.serve.history import Curve, History, shown_curves
from tests.unit.serve.made_runs import learned, write_events


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": {"task": "tictactoe"}})
    return run


def test_curves_grow_as_events_come(run):
    writer = write_events(run, range(1, 3))
    history = History(run)
    history.read()
    assert history.curves["losses/loss"].steps == [1, 2]
    assert history.curves["losses/loss"].values == [2.0, pytest.approx(4 / 3)]
    assert history.curves["charts/rating"].values == [101.0, 102.0]
    before = history.num_points
    history.read()
    assert history.num_points == before
    writer.write("turn", **learned(7, 0.5))
    history.read()
    (point,) = history.since(before)
    assert point["step"] == 7
    assert point["values"]["losses/loss"] == 0.5
    assert history.last["turn/learn"]["total_steps"] == 7
    writer.close()


def test_what_a_call_makes_anew_is_taken_back(run):
    write_events(run, range(1, 6)).close()
    history = History(run)
    history.read()
    epoch = history.epoch
    write_events(run, range(4, 7)).close()
    history.read()
    assert history.epoch == epoch + 1
    assert history.curves["losses/loss"].steps == [1, 2, 3, 4, 5, 6]
    assert history.since(0)[0]["step"] == 4


def test_what_is_no_number_is_left_out(run):
    writer = write_events(run, range(1, 2))
    writer.write("turn", **learned(2, float("nan"), odd=10**400, text="x"))
    writer.write("turn", **learned(3, 1.0))
    writer.close()
    history = History(run)
    history.read()
    assert history.curves["losses/loss"].steps == [1, 3]


def test_a_long_curve_is_thinned_and_keeps_its_end():
    curve = Curve()
    for step in range(20_000):
        curve.add(step, float(step), float(step))
    assert len(curve.steps) < 4096
    assert curve.values[-1] == 19_999
    shown = curve.shown(100)
    assert len(shown["step"]) <= 100
    assert shown["value"][-1] == 19_999


def test_curves_with_the_same_steps_share_them():
    curves = {"a": Curve(), "b": Curve(), "c": Curve()}
    for step in range(3):
        curves["a"].add(step, 0.0, 1.0)
        curves["b"].add(step, 0.0, 2.0)
    curves["c"].add(1, 0.0, 3.0)
    shown = shown_curves(curves)
    assert len(shown["axes"]) == 2
    assert shown["curves"]["a"]["axis"] == shown["curves"]["b"]["axis"]
    assert shown["curves"]["c"]["value"] == [3.0]
