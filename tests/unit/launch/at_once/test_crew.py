"""More or fewer processes that act, while a call goes on."""

from __future__ import annotations

import json
import threading

import pytest

from tengen.cli import main
from tengen.errors import UsageError
from tengen.launch.crew import Crew
from tengen.launch.workers import workers_at_once
from tengen.recipes import make_config
from tengen.roles import read_config, write_config
from tengen.run import RunDirectory


class FakeHandle:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_stopped = threading.Event()
        self.is_closed = False

    def stop(self) -> None:
        self.is_stopped.set()

    def close(self) -> None:
        assert self.is_stopped.is_set()
        self.is_closed = True


class FakeLauncher:
    """Has room for so many processes that act."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.started: list[tuple[str, int, int]] = []
        self.handles: dict[tuple[str, int], FakeHandle] = {}

    def start(self, worker):
        (role, *_), index = worker.roles, worker.index
        if index >= self.room:
            raise UsageError(f"no room for {role}-{index}")
        self.started.append((role, index, worker.num_threads))
        handle = FakeHandle(f"{role}-{index}")
        self.handles[role, index] = handle
        return handle


@pytest.fixture
def run(tmp_path):
    made = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(made, make_config("CartPole-v1", "ppo", None))
    return made


def crew_of(run, launcher):
    config = read_config(run)
    crew = Crew(launcher, config, run, workers_at_once(config, 4))
    ends = threading.Event()

    def serve(worker):
        # A turn ends once its process is told to stop.
        while not (ends.is_set() or crew.handle(worker).is_stopped.wait(0.01)):
            pass
        if crew.has_left(worker):
            crew.forget(worker)

    return crew, serve, ends


def scale(run, text: str) -> int:
    return main(["scale", str(run.path), text, "--json"])


def actors(crew):
    return [one.name for one in crew.workers if one.roles == ("actor",)]


def test_actors_come_and_go(run, capsys):
    pytest.importorskip("gymnasium")
    launcher = FakeLauncher()
    crew, serve, ends = crew_of(run, launcher)
    crew.start_threads(serve)
    assert crew.follow_config() == (1, [], "")
    assert scale(run, "actors=4") == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["before"], report["count"], report["running"]) == (1, 4, False)
    assert crew.follow_config() == (4, [], "")
    crew.start_threads(serve)
    assert actors(crew) == ["actor-0", "actor-1", "actor-2", "actor-3"]
    assert launcher.started[-3:] == [("actor", index, 1) for index in (1, 2, 3)]
    assert scale(run, "actor=2") == 0
    count, leaving, refused = crew.follow_config()
    assert (count, [one.name for one in leaving]) == (2, ["actor-2", "actor-3"])
    assert refused == ""
    for name in ("actor-2", "actor-3"):
        crew.threads[name].join(900)
    handles = launcher.handles
    assert [handles["actor", index].is_closed for index in range(4)] == [
        False,
        False,
        True,
        True,
    ]
    # Those who left may come again, once they are gone.
    old = handles["actor", 2]
    assert scale(run, "actors=3") == 0
    assert crew.follow_config()[0] == 3
    crew.start_threads(serve)
    assert handles["actor", 2] is not old
    assert crew.threads["actor-2"].is_alive()
    assert not handles["actor", 2].is_stopped.is_set()
    ends.set()
    for thread in crew.threads.values():
        thread.join(900)


def test_one_that_has_not_ended_yet_is_not_begun_again(run):
    pytest.importorskip("gymnasium")
    launcher = FakeLauncher()
    crew, _, _ = crew_of(run, launcher)
    ends = threading.Event()
    assert scale(run, "actors=2") == 0
    crew.follow_config()
    crew.start_threads(lambda worker: ends.wait(900))  # it saves, for long
    assert scale(run, "actors=1") == 0
    crew.follow_config()
    assert scale(run, "actors=2") == 0
    assert crew.follow_config()[0] == 1
    assert launcher.started.count(("actor", 1, 1)) == 1
    ends.set()
    crew.threads["actor-1"].join(900)
    assert crew.follow_config()[0] == 2
    assert launcher.started.count(("actor", 1, 1)) == 2


def test_where_there_is_no_room_it_says_so(run):
    pytest.importorskip("gymnasium")
    crew, _, _ = crew_of(run, FakeLauncher(room=3))
    assert scale(run, "actors=5") == 0
    assert crew.follow_config() == (3, [], "no room for actor-3")
    assert crew.follow_config() == (3, [], "")


def test_what_serves_actors_is_outgrown(run):
    """Inference turns away what it has no rows for, so they are not begun."""
    pytest.importorskip("gymnasium")
    assert scale(run, "actors=2") == 0
    crew, _, _ = crew_of(run, FakeLauncher())
    assert crew.outgrown(2) == ""
    assert scale(run, "actors=9") == 0
    count, _, refused = crew.follow_config()
    assert count == 8
    assert refused == (
        "launch.roles.actor.count (9) must be at most 8 in this call, 4 times the "
        "initial 2; restart the command"
    )
    assert crew.outgrown(count) == (
        "inference's batches and a queue's memory are still sized for 2; restart the "
        "command to resize them"
    )
    # A command that is started again is sized for all of them.
    again, _, _ = crew_of(run, FakeLauncher())
    assert (len(actors(again)), again.outgrown(9)) == (9, "")


def test_self_play_is_served_by_nobody_and_grows_at_will(tmp_path):
    made = RunDirectory.create_or_resume(tmp_path / "go")
    write_config(made, make_config("tictactoe", None, None))
    crew, _, _ = crew_of(made, FakeLauncher())
    assert scale(made, "selfplay=20") == 0
    assert crew.follow_config() == (20, [], "")
    assert crew.outgrown(20) == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("actors", "must be ROLE=N"),
        ("actors=x", "must be ROLE=N"),
        ("selfplay=2", "is not the acting role of this run"),
        ("learn=2", "is not the acting role of this run"),
        ("actors=0", "count"),
        ("actors=5000", "count"),
    ],
)
def test_what_it_refuses(run, text, line, capsys):
    before = run.read_run()
    assert scale(run, text) == 2
    assert line in capsys.readouterr().err
    assert run.read_run() == before
