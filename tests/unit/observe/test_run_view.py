import pytest

from tengen.observe import HostsLog, Place, RunView, read_hosts
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
    before = view.version
    assert view.read().version == before
    writer.write("turn", **learned(7, 0.5))
    assert view.read().version > before
    assert view.curves["losses/loss"].steps[-1] == 7
    assert view.curves["losses/loss"].values[-1] == 0.5
    assert view.learned["total_steps"] == 7
    writer.close()


def test_what_a_call_makes_anew_is_taken_back(run):
    write_events(run, range(1, 6)).close()
    view = RunView(run).read()
    write_events(run, range(4, 7)).close()
    view.read()
    assert view.curves["losses/loss"].steps == [1, 2, 3, 4, 5, 6]


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


def place(name, host):
    roles = (name.partition("-")[0],)
    return Place(place="node 1", host=host, name=name, roles=roles, num_threads=2)


def test_a_process_is_where_it_began_last(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    assert read_hosts(run) is None
    log = HostsLog(run, "call", "7 on head", [place("learn", "a")])
    log.moved(place("actor-0", "b"))
    log.moved(place("learn", "c"))
    log.moved(place("actor-0", "b"))
    log.lost("node 2 is gone")
    log.close()
    found = read_hosts(run)
    assert found.places == (place("learn", "c"), place("actor-0", "b"))
    assert (found.process, found.lost) == ("7 on head", ("node 2 is gone",))
    # The next call begins anew.
    HostsLog(run, "next", "8 on head", ()).close()
    found = read_hosts(run)
    assert (found.call, found.places) == ("next", ())
