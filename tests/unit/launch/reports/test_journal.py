import pytest

from tengen.launch import Budget, RunJournal
from tengen.launch.budget import Spending
from tengen.launch.reports.processes import Servers
from tengen.observe import EventWriter, Progress, RunView, read_progress
from tengen.observe.view import plain_line
from tengen.run import RunDirectory

PLAYED = {
    "generation": 3,
    "num_games": 24,
    "num_rows": 100,
    "num_evaluations": 400,
    "batch_rows": 8.0,
    "batch_capacity": 16,
    "inference_busy": 0.6,
    "tree_busy": 0.3,
}
LEARNED = {
    "generation": 3,
    "num_steps": 5,
    "total_steps": 15,
    "loss": 1.5,
    "table": {"num_games": 70, "num_rows": 700},
}


class View:
    """Keeps what it is shown."""

    def __init__(self):
        self.shown = []
        self.generations = []
        self.messages = []
        self.starting_with = []

    def starting(self, what):
        self.starting_with.append(what)

    def update(self, progress):
        self.shown.append(progress)

    def generation(self, progress):
        self.generations.append(progress)

    def message(self, text):
        self.messages.append(text)


@pytest.fixture
def view():
    return View()


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path)
    run.write_run({"config": {}})
    return run


@pytest.fixture
def journal(run, view):
    last = Progress(generation=2, elapsed_s=9.0, num_games=46, num_rows=460)
    return RunJournal(
        view,
        EventWriter(run, "train", run.new_incarnation("train")),
        acting="selfplay",
        last=last,
    )


def test_a_turn_in_progress_shows_what_it_adds(journal, view):
    journal.progress({"num_games": 6, "num_evaluations": 500, "seconds": 2.0})
    assert view.shown[-1].num_games == 46 + 6
    assert view.shown[-1].acting_evaluations_per_s == 250.0
    assert view.shown[-1].generation == 2


def test_what_the_start_does_is_shown_until_the_work_begins(journal, view):
    """Once each, whichever processes say it."""
    for what in ("process actor", "making the environment", "process actor"):
        journal.progress({"starting": what})
        assert view.shown[-1].stage == f"starting: {what}"
    journal.progress({"stage": "learning"})
    journal.progress({"starting": "compiling the network"})
    assert view.shown[-1].stage == "compiling the network"
    assert view.shown[-1].num_games == 46
    assert view.starting_with == ["process actor", "making the environment"]


def test_parts_of_a_generation_are_counted_by_the_learner_alone(journal, view):
    journal.report("learn", {**LEARNED, "table": {"num_games": 62}}, 1.0)
    journal.progress({"num_games": 20, "num_sealed": 16})
    assert view.shown[-1].num_games == 62 + 4
    stopped = {**PLAYED, "num_games": 21, "num_sealed": 16, "stopped": True}
    journal.report("selfplay", stopped, 1.0)
    assert view.shown[-1].num_games == 62 + 5


def test_totals_are_those_of_the_learners_table(journal, view, run):
    """Whatever was said before: another writer, or a killed call, added games too."""
    journal.report("selfplay", PLAYED, 4.0)
    assert view.shown[-1].num_games == 46 + 24
    assert view.shown[-1].acting_rows_per_s == 25.0
    assert view.shown[-1].batch_fill == 0.5
    journal.report("learn", LEARNED, 1.0)
    journal.end_generation()
    (now,) = view.generations
    assert (now.num_games, now.num_rows, now.num_steps) == (70, 700, 15)
    assert now.generation == 3
    assert read_progress(run).num_rows == 700
    journal.progress({"num_games": 1})
    assert view.shown[-1].num_games == 71


@pytest.fixture
def acting(run, view):
    """A journal of environments, of a call without an end."""
    return RunJournal(
        view,
        EventWriter(run, "train", run.new_incarnation("train")),
        acting="actor",
        last=Progress(generation=0, elapsed_s=0.0),
        lighter="lower --set a.b",
    )


@pytest.fixture
def timed(run, view):
    """The same of a call by 1,000 frames, what it counts, and its clock's seconds."""
    now = [100.0]
    journal = RunJournal(
        view,
        EventWriter(run, "train", run.new_incarnation("train")),
        acting="actor",
        last=None,
        clock=lambda: now[0],
    )
    spending = Spending(Budget(frames=1000), clock=lambda: now[0])
    journal.begin(spending)
    return journal, spending, now


ACTED = {name: value for name, value in PLAYED.items() if name != "num_games"} | {
    "simulation_busy": 0.25,
    "answer_wait": 0.4,
    "room_wait": 0.1,
}
STEPPED = {**LEARNED, "table": {"num_items": 7, "num_rows": 700, "num_episodes": 9}}
SERVED = {
    "server": 0,
    "host": "one",
    "model": 3,
    "num_sessions": 4,
    "seconds": 2.0,
    "num_evaluations": 400,
    "batch_rows": 12.0,
    "batch_capacity": 16,
    "inference_busy": 0.7,
    "wait_share": 0.2,
}


def test_environments_have_no_games(acting, view):
    acting.report("actor", ACTED, 1.0)
    acting.report("learn", STEPPED, 1.0)
    acting.end_generation({"learn": 0.6, "actor": 0.75})
    (now,) = view.generations
    assert (now.num_games, now.num_episodes) == (None, 9)
    assert plain_line(now).startswith("turns 3 | episodes 9 | frames/s ")


def test_each_stage_of_environments_tells_its_waits(acting, view):
    acting.report("inference", SERVED, 1.0)
    acting.report("actor", ACTED, 1.0)
    acting.report("learn", STEPPED, 1.0)
    acting.end_generation({"learn": 0.95, "actor": 0.5, "inference": 1.0})
    (now,) = view.generations
    assert now.batch_fill == 0.75  # inference's, of all actors' rows
    assert now.simulation_share == 0.25
    assert now.actor_wait_share == 0.5
    assert now.inference_wait_share == 0.2
    assert now.learner_wait_share == pytest.approx(0.05)
    assert now.verdict.startswith(
        "learner 95% busy, inference 70% busy, actors simulate 25%, wait 50% (answers "
        "40%, room 10%): the learner cannot keep up; lower --set a.b, give it more"
    )


def test_each_inference_server_is_told_and_the_limit_is_of_all(acting, view, run):
    other = {"server": 1, "host": "two", "batch_rows": 4.0, "inference_busy": 1.0}
    acting.report("inference", {**SERVED, **other}, 1.0)
    acting.report("inference", SERVED, 1.0)
    acting.report("actor", ACTED, 1.0)
    acting.report("learn", STEPPED, 1.0)
    acting.end_generation({"learn": 0.2, "actor": 0.5, "inference": 1.0})
    told = view.generations[-1]
    assert told.batch_fill == 0.5
    assert "inference 85% busy" in told.verdict
    assert "inference cannot keep up" in told.verdict
    assert [(one.server, one.host, one.rows_per_s) for one in told.servers] == [
        (0, "one", 200.0),
        (1, "two", 200.0),
    ]
    servers = "servers 0 on one 200 rows/s (batch fill 75%, busy 70%), 1 on two 200"
    assert servers in plain_line(told)
    assert read_progress(run) == told


def test_a_server_that_tells_nothing_any_more_is_not_counted():
    now = [100.0]
    servers = Servers(lambda: now[0])
    assert (servers.busy, servers.batch_fill, servers.each) == (None, None, ())
    servers.take({**SERVED, "server": 1, "batch_rows": 4.0})
    now[0] += 14.0
    servers.take(SERVED)
    assert [one.server for one in servers.each] == [0, 1]
    assert servers.batch_fill == 0.5
    now[0] += 2.0
    assert [one.server for one in servers.each] == [0]
    assert servers.batch_fill == 0.75


def test_where_roles_take_turns_they_wait_for_each_other(acting, view):
    acting.report("actor", ACTED, 3.0)
    acting.report("learn", STEPPED, 1.0)
    acting.end_generation()
    (now,) = view.generations
    assert (now.actor_wait_share, now.learner_wait_share) == (0.25, 0.75)
    assert now.inference_wait_share is None
    assert now.batch_fill == 0.5


def test_frames_say_when_they_end(timed):
    journal, spending, now = timed
    assert journal.progress_now.eta_s is None
    now[0] += 30.0  # processes start
    spending.begin_work()
    assert journal.progress_now.eta_s is None
    now[0] += 10.0
    spending.end_turn({"num_rows": 200}, counts_frames=True)
    assert journal.progress_now.eta_s == pytest.approx(40.0)


def test_a_rate_times_the_elapsed_time_is_the_total(timed, view):
    """However short a part of the time the environments were stepped in."""
    acting, spending, now = timed
    for _ in range(4):
        now[0] += 25.0
        report = {**ACTED, "seconds": 0.5}
        spending.end_turn(report, counts_frames=True)
        acting.report("actor", report, 0.5)
        acting.report("learn", STEPPED, 20.0)
        acting.end_generation()
    told = view.generations[-1]
    assert told.elapsed_s == 100.0
    assert told.rows_per_s * told.elapsed_s == pytest.approx(4 * 100)
    assert told.evaluations_per_s * told.elapsed_s == pytest.approx(4 * 400)
    assert told.acting_rows_per_s == 200.0
    assert "frames/s 4 (200 while acting)" in plain_line(told)
    assert "evaluations/s 16 (800 while acting)" in plain_line(told)
    acting.progress({"num_evaluations": 400, "seconds": 0.5})
    assert view.shown[-1].evaluations_per_s == pytest.approx(5 * 400 / 100)


def test_the_verdict_is_of_the_generation_alone(journal, view):
    journal.report("learn", LEARNED, 100.0)  # the call begins: processes start
    journal.end_generation()
    assert view.generations == []
    journal.report("selfplay", PLAYED, 3.0)
    journal.report("learn", LEARNED, 1.0)
    journal.end_generation()
    assert view.generations[0].verdict.startswith("self-play 75% (net 60%, trees 30%")


def test_a_stopped_turn_counts_what_is_durable(journal, view):
    journal.report("selfplay", {"stopped": True}, 1.0)
    journal.report("selfplay", {**PLAYED, "num_games": 5, "stopped": True}, 1.0)
    assert view.shown[-1].num_games == 46 + 5
    assert view.shown[-1].generation == 2


def test_the_fill_is_of_the_batches_that_there_were(journal, view):
    journal.report("selfplay", PLAYED, 1.0)
    assert view.shown[-1].batch_fill == 0.5


def test_cache_hits_are_of_the_last_turn_and_of_caches_alone(journal, view):
    journal.report("selfplay", {**PLAYED, "cache_hit_share": 0.25}, 1.0)
    assert view.shown[-1].cache_hit_share == 0.25
    journal.progress({"num_games": 1, "stage": "self-play"})
    assert view.shown[-1].cache_hit_share == 0.25
    journal.report("selfplay", PLAYED, 1.0)
    assert view.shown[-1].cache_hit_share is None


def test_a_roles_warning_is_shown(journal, view):
    journal.report("export", {"candidate": 1, "check": {}}, 1.0)
    assert view.messages == []
    journal.report("export", {"candidate": 2, "warning": "plays in bf16"}, 1.0)
    assert view.messages == ["plays in bf16"]


def test_what_a_gate_tells_is_kept(run, view, journal):
    match = {"candidate": 4, "summary": "3 pairs"}
    journal.progress({"stage": "gate, 3 pairs", "gate": match})
    journal.progress({"stage": "gate, 4 pairs"})
    assert RunView(run).read().gate == {**match, "accepted": None}
    assert [shown.stage for shown in view.shown] == ["gate, 3 pairs", "gate, 4 pairs"]


EVEN = {"selfplay": 0.75, "learn": 0.6, "export": 0.07, "gate": 0.01}


def test_the_verdict_at_once_is_of_busy_shares(journal, view):
    journal.report("learn", {"num_steps": 0, "checkpoint": 0}, 9.0)
    journal.end_generation({"learn": 0.9, "export": 0.5})
    assert view.generations == []  # nobody has played yet
    journal.report("selfplay", PLAYED, 3.0)
    journal.end_generation({"selfplay": 1.0})
    assert view.generations == []  # nobody has learned yet
    journal.report("learn", LEARNED, 100.0)
    journal.end_generation(EVEN)
    assert view.generations[0].verdict == (
        "at once, self-play 75% (net 60%, trees 30%, batches 50% full); learning 60%; "
        "publishing 7%: self-play and learner keep pace"
    )


def test_what_is_learned_is_told_before_a_generation_ends(journal, view, run):
    """As where parts of it are sealed while the rest is played."""
    journal.progress({"num_games": 20, "num_sealed": 16})
    journal.report("learn", LEARNED, 100.0)
    journal.end_generation(EVEN)
    assert (view.generations[0].num_steps, view.generations[0].verdict) == (15, "")
    assert read_progress(run).num_games == 70


def test_games_at_once_are_counted_once(journal, view):
    """Generations 3 and 4 are played before the learner takes both in."""
    journal.report("selfplay", PLAYED, 1.0)
    journal.progress({"num_games": 2})
    assert view.shown[-1].num_games == 46 + 24 + 2
    journal.report("selfplay", {**PLAYED, "generation": 4}, 1.0)
    assert view.shown[-1].num_games == 46 + 48
    journal.report("learn", LEARNED, 1.0)
    assert view.shown[-1].num_games == 70 + 24
    journal.report("selfplay", {**PLAYED, "num_games": 5, "stopped": True}, 1.0)
    assert view.shown[-1].num_games == 70 + 24 + 5
    table = {"num_games": 94, "num_rows": 900}
    journal.report("learn", {**LEARNED, "generation": 4, "table": table}, 1.0)
    # The learner was first with what a turn of self-play tells a moment later.
    journal.report("selfplay", {**PLAYED, "generation": 4}, 1.0)
    assert view.shown[-1].num_games == 94
    journal.end_generation(EVEN)
    assert view.generations[-1].num_games == 94


def test_a_call_that_learned_nothing_says_what_lacks(journal):
    assert journal.unlearned == ""
    few = {"num_steps": 0, "lacks": "items (3) are few", "table": {}}
    journal.report("learn", few, 1.0)
    assert journal.unlearned == "items (3) are few"
    journal.report("learn", LEARNED, 1.0)
    assert journal.unlearned == ""
    journal.report("learn", few, 1.0)
    assert journal.unlearned == ""


def test_a_call_whose_steps_made_no_item_says_so(acting):
    assert acting.unlearned == ""
    acting.report("actor", {**ACTED, "mean_return": None}, 1.0)
    assert acting.unlearned == "no item of experience was completed; collect more steps"
    acting.report("learn", STEPPED, 1.0)
    assert acting.unlearned == ""
