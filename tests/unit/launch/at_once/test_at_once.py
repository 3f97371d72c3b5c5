"""The schedule of roles that all work at once, on roles that only count."""

import dataclasses
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tengen.errors import RunError, UsageError
from tengen.launch import Budget
from tengen.launch.schedule import run_schedule
from tengen.launch.workers import workers_at_once
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import StopListener, read_config, write_config
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.launch.fake_roles import (
    CHOSEN,
    Fake,
    Roles,
    Turn,
    called,
    config,
    played,
    train,
    until_stopped,
)

ACTORS = "launch.roles.actor.count=3"


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def test_it_plays_the_budget_and_no_generation_more(run):
    roles, journal = train(run, {"selfplay": played}, Budget(games=25))
    assert roles.fakes["selfplay"].num_turns == 3
    assert len(journal.of("selfplay")) == 3
    assert all(details["follow_models"] for details in roles.fakes["learn"].details)


def test_the_end_learns_what_is_left_and_accepts_all_of_it(run):
    """Export and gate go on until there is nothing to do: the last model counts."""
    is_over = threading.Event()
    candidates = list(range(4))
    steps = [{"num_steps": 1, "steps_left": left} for left in (2, 1, 0)]

    def play(fake):
        is_over.set()
        return played(fake)

    def learn(fake):
        return steps.pop(0) if is_over.is_set() and steps else None

    def accept(fake):
        if steps or not candidates:
            return None
        return {"candidate": candidates.pop(0)}

    scripts: dict[str, Turn] = {"selfplay": play, "learn": learn, "gate": accept}
    _, journal = train(run, scripts, Budget(games=1))
    assert [report["steps_left"] for report in journal.of("learn")] == [2, 1, 0]
    assert [report["candidate"] for report in journal.of("gate")] == [0, 1, 2, 3]
    assert journal.num_generations == 4


def test_a_further_learner_has_turns_while_the_first_one_learns(run):
    """The first one waits for it in each step, also once the budget is spent."""
    follower: list[Fake] = []
    waited_s: list[float] = []

    def follow(fake):
        follower[:] = [fake]
        time.sleep(0.01)
        return {"num_followed": 1, "num_learners": 2}

    def learn(fake):
        if not is_played.is_set() or len(waited_s) == 3:
            return None
        start_s = time.monotonic()
        before = follower[0].num_turns if follower else 0
        while not follower or follower[0].num_turns < before + 2:
            if time.monotonic() > start_s + 5:
                break
            time.sleep(0.001)
        waited_s.append(time.monotonic() - start_s)
        return {"num_steps": 1, "steps_left": 2 - len(waited_s)}

    is_played = threading.Event()

    def play(fake):
        is_played.set()
        return played(fake)

    scripts: dict[str, Turn] = {"selfplay": play, "learn": learn, "follow-1": follow}
    made = config("launch.roles.learn.count=2")
    train(run, scripts, Budget(games=1), made)
    assert len(waited_s) == 3
    assert max(waited_s) < 5


def test_a_budget_in_minutes_ends_the_learner_too(run):
    """It would learn for hours; what it has learned is exported all the same."""
    scripts: dict[str, Turn] = {"selfplay": until_stopped, "learn": until_stopped}
    roles, journal = train(run, scripts, Budget(minutes=0.01))
    (learned,) = journal.of("learn")
    assert learned["stopped"]
    assert not roles.fakes["export"].details[-1]["remaining"]


def test_generations_fit_the_minutes_where_all_roles_work_at_once(run):
    fitted = {
        "games_per_generation": 40,
        "num_slots": 10,
        "game_s": 1.0,
        "generation_s": 15.0,
        "num_rows": 300,
    }
    has_changed = threading.Event()

    def play(fake):
        if fake.num_turns == 1:
            return {**played(fake), "fitted": fitted}
        return until_stopped(fake)

    def learn(fake):
        if fake.details[-1]["is_changed"]:
            has_changed.set()

    def stopping(stop, roles):
        has_changed.wait(900)
        run.request_stop()

    scripts: dict[str, Turn] = {"selfplay": play, "learn": learn}
    budget = Budget(minutes=120.0, fits_generations=True)
    made, _ = train(run, scripts, budget, stopping=stopping)
    for details in made.fakes["selfplay"].details:
        assert details["generation_s"] == 900.0
    changed = [details["is_changed"] for details in made.fakes["learn"].details]
    assert sum(changed) == 1
    found: Any = read_config(run)
    assert found.agent.actor.games_per_generation == 40
    assert found.store.min_rows == 300


def test_who_plays_waits_until_the_backend_is_chosen(run):
    made = config("inference.precision=auto")
    chosen = threading.Event()

    def export(fake):
        # Three times nothing, so that whoever did not wait had begun.
        if fake.num_turns == 4:
            chosen.set()
            write_config(run, config())

    def play(fake):
        assert chosen.is_set()
        return played(fake)

    def judge(fake):
        assert chosen.is_set()

    scripts: dict[str, Turn] = {"selfplay": play, "gate": judge, "export": export}
    roles, _ = train(run, scripts, Budget(games=1), made)
    assert roles.fakes["selfplay"].num_turns == 1


@pytest.mark.parametrize("error", [RunError("it died"), UsageError("it is refused")])
def test_a_role_that_fails_ends_the_others_and_is_raised(run, error):
    def fail(fake):
        raise error

    scripts: dict[str, Turn] = {
        "selfplay": until_stopped,
        "learn": until_stopped,
        "export": fail,
    }
    with refused(type(error), str(error)):
        train(run, scripts, Budget())


@pytest.mark.parametrize("role", ["selfplay", "learn", "export", "gate", "rate"])
def test_a_stop_ends_whatever_role_is_at_work(run, role):
    def stopping(stop, roles):
        while not roles.fakes.get(role) or not roles.fakes[role].num_turns:
            time.sleep(0.01)
        run.request_stop()

    rated = config("agent.rating.time_share=0.9")

    def begun(fake):
        fake.tell({"stage": "self-play", "num_games": 0})

    scripts: dict[str, Turn] = {"selfplay": begun, role: until_stopped}
    _, journal = train(run, scripts, Budget(), rated, stopping)
    assert [report["stopped"] for report in journal.of(role)] == [True]
    others = {name for name, _ in journal.reports} - {role}
    assert not others  # nothing is learned or published after a stop


@pytest.mark.parametrize("fails", ["actor", "inference"])
def test_what_fails_once_the_run_ends_is_an_error_unless_it_has_nothing_to_save(
    run, fails
):
    """Actors find that what they write to has closed: roles end in any order."""
    pytest.importorskip("gymnasium")
    made = override(make_config("CartPole-v1", None, None), [*CHOSEN])
    write_config(run, made)
    started = threading.Event()

    def fail(fake):
        started.set()
        fake.stopped.wait(900)
        raise UsageError(f"{fails} (closed) must be open")

    class Ending(Fake):
        def kill(self):
            pass

        def turn(self, role, *others):
            return self.script(self)

    class Learning(Roles):
        kind = Ending

        def start(self, worker):
            first = dataclasses.replace(worker, roles=worker.roles[:1])
            fake = super().start(first)
            fake.roles = worker.roles
            return fake

    serve = {"inference": lambda fake: {"model": 0, "seconds": 1.0}}
    learn = {"learn": lambda fake: {"num_steps": 0, "seconds": 1.0}}
    roles: Any = Learning({**learn, **serve, fails: fail})
    journal: Any = SimpleNamespace(
        begin=lambda spending: None,
        report=lambda *told: None,
        end_generation=lambda shares: None,
        ended_late=lambda name, why: late.append((name, why)),
    )
    late: list[tuple[str, str]] = []
    with StopListener(run) as stop:

        def end():
            started.wait(900)
            run.request_stop()

        threading.Thread(target=end).start()
        try:
            call = called(made, run, Budget(minutes=5), journal, stop, num_threads=4)
            run_schedule(roles, call)
            assert fails == "actor"
            assert late == [("actor-0", "actor (closed) must be open")]
        except UsageError:
            assert fails == "inference"


def test_the_stage_tells_of_every_role_at_work(run):
    together = threading.Barrier(2, timeout=900)

    def work(fake):
        if fake.num_turns == 1:
            together.wait()
        return played(fake)

    scripts: dict[str, Turn] = {"selfplay": work, "learn": work}
    scripts["learn"] = lambda fake: work(fake) if fake.num_turns == 1 else None
    _, journal = train(run, scripts, Budget(games=20))
    assert "selfplay, learn" in " | ".join(journal.stages)


def test_roles_divide_the_cores():
    rest = {"export": 1, "gate": 1, "rate": 1}
    for cores, selfplay, learn in ((1, 1, 1), (2, 1, 1), (4, 3, 1), (16, 12, 4)):
        expected = {"selfplay": selfplay, "learn": learn, **rest}
        assert threads_of(config(), cores) == expected
    given = config("launch.roles.gate.num_cpus=5", "launch.roles.learn.num_cpus=7")
    expected = {"selfplay": 12, "learn": 7, **rest, "gate": 5}
    assert threads_of(given, 16) == expected
    assert threads_of(config("agent.learn_from=other"), 16)["learn"] == 16


def threads_of(made, num_threads):
    """Returns the threads of each role, of which each is a process."""
    workers = workers_at_once(made, num_threads)
    assert all(worker.roles == (worker.name,) for worker in workers)
    return {worker.name: worker.num_threads for worker in workers}


def test_environments_have_a_learner_an_inference_and_actors():
    pytest.importorskip("gymnasium")
    made = override(make_config("CartPole-v1", None, None), [*CHOSEN, ACTORS])
    workers = workers_at_once(made, 4)
    assert [(one.name, one.index, one.num_threads) for one in workers] == [
        ("learn", 0, 2),
        ("inference-0", 0, 2),
        ("actor-0", 0, 1),
        ("actor-1", 1, 1),
        ("actor-2", 2, 1),
    ]
    assert workers[0].roles == ("learn", "export", "gate")
    assert workers[1].roles == ("inference",)
    assert {one.roles for one in workers[2:]} == {("actor",)}
    made = override(made, ["launch.roles.inference.count=2"])
    assert [
        (one.name, one.index, one.num_threads) for one in workers_at_once(made, 8)[1:3]
    ] == [("inference-0", 0, 2), ("inference-1", 1, 2)]


@pytest.mark.parametrize(
    ("task", "setting", "named"),
    [
        ("tictactoe", "launch.roles.lern.num_cpus=2", "launch.roles (lern)"),
        ("tictactoe", "launch.roles.learn.num_cpus=-1", "num_cpus (-1)"),
        ("tictactoe", "launch.roles.shuffle.num_cpus=2", "launch.roles (shuffle)"),
        ("tictactoe", "launch.roles.actor.count=2", "launch.roles (actor)"),
        ("tictactoe", "launch.roles.gate.count=2", "gate.count (2)"),
        ("tictactoe", "launch.roles.learn.count=0", "count (0)"),
        ("tictactoe", "launch.roles.learn.count=1000", "learn.count (1000)"),
        ("CartPole-v1", "launch.roles.inference.count=65", "inference.count (65)"),
        ("CartPole-v1", "launch.listen=127.0.0.1:65470", "its port (65470)"),
        ("CartPole-v1", "launch.roles.export.num_cpus=2", "launch.roles (export)"),
    ],
)
def test_resources_of_roles_are_checked(task, setting, named):
    if task == "CartPole-v1":
        pytest.importorskip("gymnasium")
    with refused(UsageError, named):
        override(make_config(task, None, None), [setting])


def publishing(run, most):
    """A gate that makes a model each turn, up to a number."""

    def accept(fake):
        newest = run.models.latest() or 0
        if newest == most:
            return None
        run.models.publish(newest + 1, lambda folder: None)
        return {"candidate": newest + 1}

    return accept


def test_a_run_that_has_its_models_starts_no_process(run):
    run.models.publish(1, lambda folder: None)
    roles, journal = train(run, {}, Budget(models=1))
    assert journal.reports == []
    assert {fake.num_turns for fake in roles.fakes.values()} == {0}


def test_no_model_too_many_is_made_before_the_call_sees_that_it_is_over(run):
    scripts: dict[str, Turn] = {"selfplay": until_stopped, "gate": publishing(run, 9)}
    train(run, scripts, Budget(models=2))
    assert run.models.numbers() == [1, 2]


def test_the_end_makes_no_model_too_many(run):
    """The last model may be made of what is learned once the games are played."""
    run.models.publish(0, lambda folder: None)
    is_played = threading.Event()
    accept = publishing(run, 9)
    main = threading.current_thread()

    def play(fake):
        is_played.set()
        return played(fake)

    def gate(fake):
        # The process' own thread finds nothing: all comes after the budget.
        late = is_played.is_set() and threading.current_thread() is main
        return accept(fake) if late else None

    scripts: dict[str, Turn] = {"selfplay": play, "gate": gate}
    roles, _ = train(run, scripts, Budget(games=10, models=2))
    assert run.models.numbers() == [0, 1, 2]
    assert roles.fakes["learn"].is_closed
