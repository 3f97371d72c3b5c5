"""Who draws a run's events, and that nobody's failure reaches the run."""

import json
import sys
import types
import warnings

import pytest

from tengen.errors import TengenWarning, UsageError
from tengen.observe import EventWriter, ObserveConfig, open_charts
from tengen.observe.curves.charts import Charts, check_wandb, is_of_others
from tengen.observe.curves.points import PointMaker
from tengen.observe.events import EventFiles
from tengen.roles.alone.role_log import RoleLog
from tests.refusals import refused
from tests.unit.observe.curves.curve_events import acted, learned, make_run


class Drawer:
    def __init__(self, error=None):
        self.points, self.num_ticks, self.num_closed = [], 0, 0
        self.error = error

    def add(self, point):
        if self.error is not None:
            raise self.error
        self.points.append(point)

    def tick(self):
        self.num_ticks += 1

    def close(self):
        self.num_closed += 1


class FakeWandb(types.ModuleType):
    """What of wandb is used, without a network."""

    def __init__(self):
        super().__init__("wandb")
        self.inits, self.logged, self.metrics, self.num_finished = [], [], [], 0
        self.refuses = None

    def init(self, **given):
        if self.refuses is not None:
            raise self.refuses
        self.inits.append(given)
        return self

    def define_metric(self, name, step_metric=None):
        self.metrics.append((name, step_metric))

    def log(self, values):
        self.logged.append(values)

    def finish(self):
        self.num_finished += 1


@pytest.fixture
def wandb(monkeypatch):
    module = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.fixture
def no_packages(monkeypatch):
    """A machine that has neither package, whatever this one has."""
    for name in ("tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)


def charts_of(drawers, tail=None):
    maker = PointMaker(in_environments=True)
    return Charts(maker, drawers, tail, clock=lambda: 9.0)


def test_every_drawer_gets_every_point_and_is_closed_once():
    a, b = Drawer(), Drawer()
    charts = charts_of({"a": a, "b": b})
    charts.take(acted(1.0, 5.0))
    charts.take(learned(2.0, 100, 4))
    charts.take(acted(3.0, 6.0))
    charts.close()
    charts.close()
    assert a.points == b.points
    assert [(p.step, p.values["charts/episodic_return"]) for p in a.points] == [
        (100, 5.0),
        (100, 6.0),  # what waited, at the last step
    ]
    assert (a.num_ticks, a.num_closed) == (3, 1)


def test_one_that_fails_is_told_of_once_and_left_out():
    bad, good = Drawer(OSError(28, "no space\nleft")), Drawer()
    charts = charts_of({"bad": bad, "good": good})
    with pytest.warns(TengenWarning) as told:
        charts.take(learned(1.0, 1, 1))
    charts.take(learned(2.0, 2, 2))
    assert len(told) == 1
    assert "\n" not in str(told[0].message)
    assert len(good.points) == 2


def test_an_event_that_is_no_number_is_passed_over():
    drawer = Drawer()
    charts = charts_of({"a": drawer})
    charts.take(learned(1.0, 10, 4, curiosity=10**400))
    charts.take(learned(2.0, 20, 8))
    assert [point.step for point in drawer.points] == [20]


def test_a_writer_hands_on_what_it_wrote(tmp_path):
    run, drawer = make_run(tmp_path), Drawer()
    writer = EventWriter(run, "train", 1, charts_of({"a": drawer}))
    fields = {k: v for k, v in learned(0, 64, 4).items() if k not in ("time_s", "kind")}
    writer.write("turn", **fields)
    writer.close()
    (point,) = drawer.points
    (line,) = run.events_path("train", 1).read_text().splitlines()
    assert (point.step, point.time_s) == (64, json.loads(line)["time_s"])
    assert drawer.num_closed == 1


def test_a_machine_without_packages_writes_its_files_and_says_nothing(
    tmp_path, no_packages
):
    run = make_run(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        charts = open_charts(run)
        charts.take(learned(1.0, 10, 4))
        charts.close()
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1


def test_tensorboard_is_written_by_default(tmp_path):
    for name, observe in (("on", {}), ("off", {"tensorboard": False})):
        run = make_run(tmp_path / name, observe=observe)
        charts = open_charts(run)
        charts.take(learned(1.0, 10, 4))
        charts.close()
    assert len(list((tmp_path / "on" / "tensorboard").iterdir())) == 1
    assert not (tmp_path / "off" / "tensorboard").exists()


def test_wandb_has_one_run_for_all_calls(tmp_path, wandb):
    run = make_run(
        tmp_path / "seed3",
        observe={"wandb": "go", "wandb_mode": "offline", "tensorboard": False},
        seed=3,
    )
    for step in (10, 20):
        charts = open_charts(run)
        charts.take(learned(1.0, step, 4))
        charts.close()
    first, second = wandb.inits
    assert first == second
    assert first["project"] == "go"
    assert first["name"] == "seed3"
    assert first["mode"] == "offline"
    assert first["resume"] == "allow"
    assert first["dir"] == str(tmp_path / "seed3")
    assert first["config"]["seed"] == 3
    assert first["id"] == (tmp_path / "seed3" / "wandb" / "id").read_text().strip()
    assert ("*", "global_step") in wandb.metrics
    assert [each["global_step"] for each in wandb.logged] == [10, 20]
    assert wandb.logged[0]["losses/loss"] == 0.5
    assert wandb.num_finished == 2
    other = make_run(tmp_path / "seed4", observe={"wandb": "go"})
    open_charts(other).close()
    assert wandb.inits[2]["id"] != first["id"]
    assert wandb.inits[2]["mode"] is None  # as WANDB_MODE says


def test_wandb_that_cannot_begin_does_not_end_the_run(tmp_path, wandb):
    wandb.refuses = ConnectionError("no network")
    run = make_run(tmp_path, observe={"wandb": "go", "tensorboard": False})
    with pytest.warns(TengenWarning) as told:
        charts = open_charts(run)
    (warning,) = told
    assert "(wandb)" in str(warning.message)
    assert str(warning.message).endswith("no network")
    charts.take(learned(1.0, 10, 4))
    charts.close()
    assert wandb.logged == []


def test_a_project_without_the_package_is_refused(tmp_path, no_packages):
    check_wandb(ObserveConfig())
    run = make_run(tmp_path, observe={"wandb": "go"})
    for call in (
        lambda: check_wandb(ObserveConfig(wandb="go")),
        lambda: open_charts(run),
    ):
        with refused(UsageError, "observe.wandb (go)", "'tengen-rl[wandb]'"):
            call()


def test_bad_settings_are_refused_by_field():
    for field, value in (("wandb", "me/go"), ("wandb_mode", "often")):
        settings = {field: value}
        with refused(UsageError, f"{field} ("):
            ObserveConfig(**settings)


def append(run, name, *events, end="\n"):
    with open(run.events / name, "a") as file:
        file.write("\n".join(map(json.dumps, events)) + end)


def follow(run, now):
    """Follows files as ``open_charts`` does, by a clock of one's own."""
    return EventFiles(
        run, is_of_others, from_now=True, look_s=2.0, clock=lambda: now[0]
    )


def test_a_learner_by_itself_draws_what_the_others_tell(tmp_path):
    run, drawer = make_run(tmp_path), Drawer()
    append(run, "actor-command-1.jsonl", acted(1.0, 5.0))  # of before
    now = [0.0]
    tail = follow(run, now)
    charts = charts_of({"a": drawer}, tail)
    append(run, "actor-command-1.jsonl", acted(11.0, 6.0))
    append(run, "actor-command-2.jsonl", acted(12.0, 7.0))
    append(run, "learn-command-1.jsonl", learned(12.5, 1, 1))  # its own
    append(run, "train-1.jsonl", acted(12.7, 8.0))
    now[0] = 5.0
    charts.take(learned(13.0, 100, 4))
    (point,) = drawer.points
    assert (point.step, point.values["charts/episodic_return"]) == (100, 7.0)


def test_half_a_line_is_read_once_it_is_whole(tmp_path):
    run, now = make_run(tmp_path), [0.0]
    tail = follow(run, now)
    name, text = "rate-command-1.jsonl", json.dumps(acted(1.0, 5.0))
    for part in (text[:20], text[20:] + "\nnoise\n"):
        append(run, name, end=part)
        now[0] += 2.0
        found = list(tail.new_events())
    assert [event["mean_return"] for _, event in found] == [5.0]
    now[0] += 2.0
    assert list(tail.new_events()) == []
    append(run, name, acted(2.0, 6.0))
    now[0] += 1.0
    assert list(tail.new_events()) == []  # looked for too soon
    now[0] += 1.0
    assert len(list(tail.new_events())) == 1


@pytest.mark.parametrize(("role", "draws"), [("learn", True), ("actor", False)])
def test_of_roles_by_themselves_the_learner_draws(tmp_path, wandb, role, draws):
    run = make_run(tmp_path, observe={"wandb": "go", "tensorboard": False})
    log = RoleLog(role, run, 1)
    fields = {k: v for k, v in learned(0, 64, 4).items() if k not in ("time_s", "kind")}
    fields.pop("role"), fields.pop("turn_s")
    log.turn(fields, 2.0)
    log.close("done")
    assert [each["global_step"] for each in wandb.logged] == ([64] if draws else [])
