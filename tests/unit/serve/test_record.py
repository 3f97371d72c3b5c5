"""Episodes that a person plays over HTTP are recorded, and nothing else is."""

import base64
import json
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing

import numpy as np
import pytest

from tengen import cli, envs
from tengen.distribution import pip_install_extra
from tengen.errors import EnvError, RunError
from tengen.experience import Demonstrations

pytest.importorskip("gymnasium")
pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from tests.refusals import refused
from tests.unit.serve import playable
from tests.unit.serve.playable import LANE, change, play_lane, playing

BROKEN = LANE.replace("Lane", "Broken")
BLIND = LANE.replace("Lane", "Blind")
PLAIN = "tests.environments:Plain"


def test_an_episode_is_that_of_the_environment():
    pytest.importorskip("pygame")
    with playing("CartPole-v1", num_episodes=1) as (site, _, episodes):
        first = state = site.ask("/api/recording").json
        assert (state["task"], state["names"]) == ("CartPole-v1", ["0", "1"])
        assert (state["keys"], state["frames_per_s"]) == ([], 50)
        assert len(base64.b64decode(state["pixels"])) == 3 * 400 * state["width"]
        with closing(envs.make("CartPole-v1", 1, 0)) as env:
            seen = [env.reset()["observation"][0]]
            total = 0.0
            while not state["has_ended"]:
                choice = len(seen) % 2
                before, state = state, change(site, "step", state, choice)
                step = env.step(np.array([choice]))
                seen.append(step.observation["observation"][0])
                total += float(step.reward[0])
                assert (state["num_steps"], state["total"]) == (len(seen) - 1, total)
                assert change(site, "step", before, choice) == state
        assert step.terminated[0]
        assert state["pixels"] != first["pixels"]
        assert episodes == []
        state = change(site, "next", state)
        assert (state["num_recorded"], state["num_left"]) == (1, 0)
    (episode,) = episodes
    np.testing.assert_array_equal(episode["observation"], seen)
    assert episode["action"].tolist() == [i % 2 for i in range(1, len(seen))]


def test_an_episode_can_be_discarded_before_and_after_its_end():
    with playing(num_episodes=2) as (site, recording, episodes):
        has_stopped = []
        recording.on_end = lambda: has_stopped.append(True)
        state = site.ask("/api/recording").json
        state = change(site, "step", state, 2)
        first = set()
        for _ in range(20):
            state = change(site, "discard", state)
            assert (state["num_steps"], state["num_recorded"]) == (0, 0)
            first.add(tuple(state["legal"]))
        assert len(first) == 2  # other seeds begin elsewhere
        state = change(site, "discard", play_lane(site, state))
        assert episodes == []
        state = change(site, "next", play_lane(site, state))
        assert len(episodes) == 1
        assert not has_stopped
        state = change(site, "next", play_lane(site, state))
        assert (len(episodes), state["num_left"]) == (2, 0)
        assert has_stopped == [True]
        for what in ("step", "next", "discard"):
            assert change(site, what, state, 1) == state
    assert len(episodes) == 2


def test_an_ended_episode_is_recorded_at_the_end_and_others_are_not():
    with playing() as (site, _, episodes):
        state = play_lane(site, site.ask("/api/recording").json)
    assert len(episodes) == 1
    with playing() as (site, _, episodes):
        state = site.ask("/api/recording").json
        change(site, "step", state, 2)
    assert episodes == []


@pytest.mark.parametrize(
    ("what", "choice"),
    [("step", choice) for choice in (True, -1, 3, 1.0, "1", None, [[1]], 0)]
    + [("next", None)],
)
def test_bad_changes_change_nothing(what, choice):
    with playing() as (site, _, _):
        state = site.ask("/api/recording").json
        while state["legal"][0] or "task" in state:
            state = change(site, "discard", state)
        reply = site.ask(
            f"/api/recording/{what}", {"at": state["at"], "choice": choice}
        )
        assert reply.status == 422
        assert reply.json["error"].count("\n") == 0
        for at in (None, True, "0", state["at"] + 1, -1):
            assert change(site, what, {"at": at}, choice) == state
        state = change(site, "step", state, 1)
        assert state["num_steps"] == 1
        ended = play_lane(site, state)
        body = {"at": ended["at"], "choice": 1}
        assert site.ask("/api/recording/step", body).status == 422


def test_the_keys_are_the_environments_or_typed():
    with playing() as (site, _, _):
        shown = site.ask("/api/recording").json
    assert shown["keys"] == [
        [[], 2],
        [[276], 0],
        [[1073741903, "d"], 1],
        [["D"], 1],
    ]
    assert (shown["names"], shown["frames_per_s"]) == (["0", "1", "2"], 20)
    with playing(keys=["a", "ArrowUp", "x"]) as (site, _, _):
        shown = site.ask("/api/recording").json
    assert shown["keys"] == [[[], 2], [["a"], 0], [["ArrowUp"], 1], [["x"], 2]]


def test_names_of_actions_are_those_of_the_suites():
    pytest.importorskip("minigrid")
    with playing("minigrid/Empty-5x5") as (site, _, _):
        names = site.ask("/api/recording").json["names"]
    assert names == ["left", "right", "forward", "pickup", "drop", "toggle", "done"]
    pytest.importorskip("ale_py")
    with playing("atari/Breakout") as (site, _, _):
        shown = site.ask("/api/recording").json
        change(site, "step", shown, 1)
    assert shown["names"] == ["NOOP", "FIRE", "RIGHT", "LEFT"]
    assert (shown["frames_per_s"], shown["width"]) == (15, 160)


def test_a_broken_environment_ends_the_recording():
    ended = []
    with refused(EnvError, BROKEN), playing(BROKEN) as (site, recording, _):
        recording.on_end = lambda: ended.append(True)
        state = site.ask("/api/recording").json
        assert state["keys"] == []
        assert (len(state["names"]), "\x1b" in "".join(state["names"])) == (3, False)
        state = change(site, "step", state, 2)
        reply = site.ask("/api/recording/step", {"at": state["at"], "choice": 2})
        assert reply.status == 409
        assert "the wheel came off" in reply.json["error"]
        assert ended == [True]
        for what in ("step", "discard"):  # the failed environment is not called again
            again = site.ask(f"/api/recording/{what}", {"at": state["at"], "choice": 2})
            assert (again.status, again.json) == (409, reply.json)


@pytest.mark.parametrize(("cell", "what"), [(2, "step"), (3, "step"), (0, "discard")])
def test_a_frame_that_cannot_be_rendered_ends_the_recording(cell, what):
    playable.Blind.cell = -1
    ended, episodes = [], []
    blind = playing(BLIND, episodes=episodes)
    with refused(RunError, BLIND, "the lamp broke"), blind as (site, recording, _):
        recording.on_end = lambda: ended.append(True)
        state = site.ask("/api/recording").json
        playable.Blind.cell = cell
        for _ in range(20):
            body = {"at": state["at"], "choice": 1}
            reply = site.ask(f"/api/recording/{what}", body)
            if reply.status != 200:
                break
            state = reply.json
        assert (reply.status, ended, "--video" in reply.text) == (409, [True], False)
        assert "the lamp broke" in reply.json["error"]
        assert site.ask("/api/recording").json == reply.json
    assert episodes == []  # even if the episode ends in that frame


def test_the_page_is_where_the_address_leads():
    with playing() as (site, _, _):
        reply = site.ask("/")
        assert (reply.status, reply.headers["location"]) == (307, "/record")
        page = site.ask("/record")
        assert (page.status, page.headers["content-type"][:9]) == (200, "text/html")
        assert site.ask("/runs").status == 404
        assert site.ask("/api/runs").status == 404
        assert site.ask("/api/recording/step").status in (404, 405)


class Session:
    """The command in a process of its own."""

    def __init__(self, out, *words):
        words = ["demos", "play", LANE, "--out", str(out), "--port", "0", *words]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tengen", *words, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert LANE in line, self.process.communicate()
        (self.url,) = (word for word in line.split() if word.startswith("http"))
        self.state = self.ask("")

    def ask(self, path, body=None):
        request = urllib.request.Request(
            f"{self.url}api/recording{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=900) as reply:
            return json.load(reply)

    def play(self):
        while not self.state["has_ended"]:
            body = {"at": self.state["at"], "choice": 1}
            self.state = self.ask("/step", body)

    def next(self):
        self.state = self.ask("/next", {"at": self.state["at"]})


def test_the_command_ends_when_all_episodes_are_recorded(tmp_path):
    session = Session(tmp_path / "demos", "--episodes", "2")
    for _ in range(2):
        session.play()
        session.next()
    assert session.state["num_left"] == 0
    out, error = session.process.communicate(timeout=900)
    assert (session.process.returncode, error) == (0, "")
    report = json.loads(out.splitlines()[-1])
    assert (report["task"], report["returns"]) == (LANE, [1.0, 1.0])
    assert len(list(Demonstrations(tmp_path / "demos"))) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_recorded_episode_is_on_disk_before_the_next_begins(number, tmp_path):
    session = Session(tmp_path / "demos")
    session.play()
    session.next()
    assert len(list(Demonstrations(tmp_path / "demos"))) == 1
    session.play()
    session.process.send_signal(number)
    session.process.communicate(timeout=900)
    is_kill = number == signal.SIGKILL
    assert session.process.returncode == (-number if is_kill else 0)
    assert len(list(Demonstrations(tmp_path / "demos"))) == (1 if is_kill else 2)
    assert [path.name for path in tmp_path.iterdir()] == ["demos"]


def test_without_an_episode_there_is_no_folder(tmp_path):
    session = Session(tmp_path / "demos")
    session.process.send_signal(signal.SIGTERM)
    _, error = session.process.communicate(timeout=900)
    assert (session.process.returncode, error.count("\n")) == (2, 1)
    assert "episodes (0)" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("CartPole-v1", "--keys", "a"), "--keys (a)"),
        (("CartPole-v1", "--keys", "a,ArrowUp,b"), "--keys (a"),
        (("Pendulum-v1",), "--keys (Pendulum-v1)"),
        (("tictactoe",), "task (tictactoe)"),
        ((PLAIN,), "rgb_array"),
        ((LANE, "--episodes", "0"), "episodes (0)"),
        ((LANE, "--port", "70000"), "port (70000)"),
        ((LANE, "--host", "no.such.invalid"), "no.such.invalid"),
        (("NoSuch-v1",), "NoSuch-v1"),
    ],
)
def test_bad_arguments_are_refused(tmp_path, capsys, words, named):
    assert cli.main(["demos", "play", *words, "--out", str(tmp_path / "demos")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert named in error
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_one_line_names_what_to_install(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "starlette", None)
    words = ["demos", "play", LANE, "--out", str(tmp_path / "demos")]
    assert cli.main(words) == 2
    assert pip_install_extra("serve") in capsys.readouterr().err
