"""``tengen demos``: what an agent, a person and a dataset show becomes a folder."""

import io
import json
import sys
import types
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from tengen import cli
from tengen.experience import Demonstrations
from tests.unit.experience.made_demos import made_episodes, write_episodes

pytest.importorskip("gymnasium")

from gymnasium import spaces

CARTPOLE, PLAIN = "CartPole-v1", "tests.environments:Plain"
WALK, DOORS = "tests.unit.play.own_forms:Walk", "tests.masked_environments:DictDoors"


@pytest.fixture
def demos(capsys):
    """Runs a command, and returns its exit code, its report and its error."""

    def run(*words):
        code = cli.main(["demos", *map(str, words), "--json"])
        captured = capsys.readouterr()
        report = json.loads(captured.out) if code == 0 else None
        return code, report, captured.err

    return run


@pytest.fixture
def press(monkeypatch):
    """Sets the keys that the user presses."""

    def press(keys):
        monkeypatch.setitem(sys.__dict__, "stdin", io.StringIO(keys))

    return press


def test_an_agent_is_recorded_as_eval_scores_it(tmp_path, publish_agent, demos, capsys):
    run = publish_agent(tmp_path / "run", WALK, "r2d2", lstm_units=8)
    words = ("--episodes", 21, "--seed", 3)
    code, report, error = demos(
        "record", WALK, "--from", run.path, *words, "--out", tmp_path / "demos"
    )
    assert (code, error) == (0, "")
    assert (report["task"], report["episodes"]) == (WALK, 21)
    assert report["source"] == str(run.models.entry(run.models.latest()))
    words = ["eval", str(run.path), *map(str, words), "--task", WALK, "--json"]
    assert cli.main(words) == 0
    scored = json.loads(capsys.readouterr().out)
    for name in ("returns", "lengths"):
        assert sorted(report[name]) == pytest.approx(sorted(scored[name]))
    read = Demonstrations(tmp_path / "demos")
    assert [float(e["reward"].sum()) for e in read] == pytest.approx(report["returns"])
    shown = demos("show", tmp_path / "demos")
    assert shown == (0, {**report, "folder": str(tmp_path / "demos")}, "")
    path = tmp_path / "demos" / "demonstrations.json"
    contents = json.loads(path.read_text())
    contents["returns"][20] += 1
    path.write_text(json.dumps(contents))
    code, _, error = demos("show", tmp_path / "demos")
    assert (code, error.count("\n")) == (2, 1)
    assert "000020.npz" in error


def test_a_source_prints_one_line_without_control_characters(tmp_path, capsys):
    spec, episodes = made_episodes(PLAIN, lambda seen: np.zeros(1, np.int64), 1)
    source = "a\x1b[31m\nname" + "x" * 5000
    write_episodes(tmp_path / "demos", spec, episodes, source)
    assert cli.main(["demos", "show", str(tmp_path / "demos")]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert len(out) < 1000
    assert "\x1b" not in out


def test_a_person_plays_with_keys(tmp_path, demos, press):
    press("x" + "ad" * 4 + "\n" + "aa" + "d" * 10)
    out = tmp_path / "demos"
    code, report, prompts = demos(
        "record", PLAIN, "--keys", "ad", "--episodes", 2, "--out", out
    )
    assert code == 0
    assert report["lengths"] == [10, 10]
    assert "keys ad" in prompts
    first, second = Demonstrations(out)
    assert first["action"].tolist() == [0, 1] * 4 + [0, 0]
    assert second["action"].tolist() == [1] * 10
    assert second["truncated"].tolist() == [False] * 9 + [True]


def test_the_end_of_the_input_keeps_complete_episodes(tmp_path, demos, press):
    press("0" * 13)
    out = tmp_path / "demos"
    code, report, _ = demos("record", PLAIN, "--keys", "--out", out)
    assert (code, report["episodes"]) == (0, 1)
    press("0" * 9 + "\x04" + "0" * 20)
    code, _, error = demos("record", PLAIN, "--keys", "--out", tmp_path / "other")
    assert code == 2
    assert "episodes (0)" in error
    assert [path.name for path in tmp_path.iterdir()] == ["demos"]


def test_an_illegal_key_is_no_action(tmp_path, demos, press):
    press("01234567" * 100)
    out = tmp_path / "demos"
    code, _, _ = demos("record", DOORS, "--keys", "--episodes", 2, "--out", out)
    assert code == 0
    for episode in Demonstrations(out):
        mask = episode["action_mask"][:-1]
        assert np.take_along_axis(mask, episode["action"][:, None], axis=1).all()
        assert len(episode["action"]) == 10


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((CARTPOLE, "--keys", "a"), "--keys (a)"),
        ((CARTPOLE, "--keys", "aa"), "--keys (aa)"),
        (("Pendulum-v1", "--keys"), "--keys (Pendulum-v1)"),
        (("tictactoe", "--keys"), "task (tictactoe)"),
        ((CARTPOLE, "--keys", "--episodes", 0), "episodes (0)"),
        ((CARTPOLE, "--keys", "--seed", -1), "seed (-1)"),
        (("NoSuch-v1", "--keys"), "NoSuch-v1"),
        ((CARTPOLE,), "--keys"),
        ((CARTPOLE, "--keys", "--from", "x"), "--from"),
        ((CARTPOLE, "--from", "no-such-run"), "no-such-run"),
    ],
)
def test_bad_arguments_are_refused(tmp_path, demos, words, named):
    code, _, error = demos("record", *words, "--out", tmp_path / "demos")
    assert (code, error.count("\n")) == (2, 1)
    assert named in error
    assert list(tmp_path.iterdir()) == []


def test_another_task_s_model_is_refused(tmp_path, publish_agent, demos):
    run = publish_agent(tmp_path / "run", CARTPOLE)
    words = ("record", "Acrobot-v1", "--from", run.path, "--out", tmp_path / "demos")
    code, _, error = demos(*words)
    assert code == 2
    assert "Acrobot-v1" in error
    assert not (tmp_path / "demos").exists()


@dataclass
class Shown:
    """An episode as Minari returns it."""

    observations: object
    actions: object
    rewards: object
    terminations: object
    truncations: object


class FakeDataset:
    """What the import uses of ``minari.MinariDataset``."""

    def __init__(self, observations, actions, episodes, env_id=CARTPOLE):
        self.observation_space, self.action_space = observations, actions
        self.env_spec = env_id and types.SimpleNamespace(id=env_id)
        self.total_episodes = len(episodes)
        self._episodes = episodes

    def iterate_episodes(self):
        for episode in self._episodes:
            if isinstance(episode, Exception):
                raise episode
            yield episode


@pytest.fixture
def minari(monkeypatch):
    """A module ``minari`` with one dataset, ``it``."""
    sets = {}

    def load(name):
        if name not in sets:
            raise FileNotFoundError(f"no {name}\nhere")
        return sets[name]

    module = types.ModuleType("minari")
    module.load_dataset = load
    monkeypatch.setitem(sys.modules, "minari", module)
    return sets


BOX = spaces.Box(-9, 9, (2,), np.float64)
PARTS = spaces.Dict({"x": BOX, "n": spaces.Discrete(3, start=5)})
CHOICE = spaces.Discrete(4, start=10)


def shown(length, **changes):
    last = np.arange(length) == length - 1
    parts = {
        "observations": {
            "x": np.arange(2.0 * length + 2).reshape(-1, 2) / 10,
            "n": np.full(length + 1, 6),
        },
        "actions": np.arange(length) % 4 + 10,
        "rewards": np.arange(length) / 2,
        "terminations": last,
        "truncations": np.zeros(length, np.bool_),
    }
    return Shown(**{**parts, **changes})


def test_a_dataset_of_minari_is_imported(tmp_path, demos, minari):
    no = np.zeros(3, np.bool_)
    minari["it"] = FakeDataset(PARTS, CHOICE, [shown(5), shown(3, terminations=no)])
    code, report, error = demos("import", "it", "--out", tmp_path / "demos")
    assert (code, error) == (0, "")
    assert report["returns"] == [5.0, 1.5]
    assert (report["task"], report["source"]) == (CARTPOLE, "it")
    first, second = Demonstrations(tmp_path / "demos")
    assert first["action"].tolist() == [0, 1, 2, 3, 0]
    assert first["observation/x"].dtype == np.float32
    assert first["observation/x"][-1] == pytest.approx([1.0, 1.1])
    assert first["observation/n"].tolist() == [[0, 1, 0]] * 6
    # An episode without an end was cut short.
    assert (second["terminated"].any(), second["truncated"].tolist()) == (
        False,
        [False, False, True],
    )


def test_continuous_actions_are_imported(tmp_path, demos, minari):
    pushes = spaces.Box(-1, 1, (2, 3), np.float64)
    actions = np.linspace(-1, 1, 24).reshape(4, 2, 3)
    minari["it"] = FakeDataset(PARTS, pushes, [shown(4, actions=actions)])
    code, _, _ = demos("import", "it", "--task", "mine", "--out", tmp_path / "demos")
    assert code == 0
    read = Demonstrations(tmp_path / "demos")
    assert read.contents.task == "mine"
    (episode,) = read
    np.testing.assert_allclose(episode["action"], actions.reshape(4, 6), rtol=1e-6)


@pytest.mark.parametrize(
    "dataset",
    [
        FakeDataset(PARTS, CHOICE, [shown(5), OSError("truncated\nfile")]),
        FakeDataset(PARTS, CHOICE, [shown(5, actions=np.full(5, 9))]),
        FakeDataset(PARTS, CHOICE, [shown(5, rewards=np.full(5, np.nan))]),
        FakeDataset(PARTS, CHOICE, [shown(5, observations={"x": np.zeros((6, 2))})]),
        FakeDataset(PARTS, CHOICE, [shown(5, rewards=np.zeros(4))]),
        FakeDataset(PARTS, CHOICE, [shown(5, actions=None)]),
        FakeDataset(PARTS, CHOICE, []),
        FakeDataset(PARTS, CHOICE, [shown(5)], env_id=None),
        FakeDataset(spaces.Text(4), CHOICE, [shown(5)]),
        FakeDataset(PARTS, spaces.Text(4), [shown(5)]),
    ],
)
def test_a_bad_dataset_is_refused_in_one_line(tmp_path, demos, minari, dataset):
    minari["it"] = dataset
    code, _, error = demos("import", "it", "--out", tmp_path / "demos")
    assert (code, error.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_dataset_or_package_is_refused(tmp_path, demos, minari, monkeypatch):
    code, _, error = demos("import", "nothing", "--out", tmp_path / "demos")
    assert (code, error.count("\n")) == (2, 1)
    assert "dataset (nothing)" in error
    monkeypatch.setitem(sys.modules, "minari", None)
    code, _, error = demos("import", "nothing", "--out", tmp_path / "demos")
    assert code == 2
    assert "minari (missing)" in error
    assert "tengen-rl[minari]" in error


def test_minari_itself_is_read(tmp_path, demos, monkeypatch):
    pytest.importorskip("h5py")
    minari = pytest.importorskip("minari")
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "sets"))
    buffers = [
        EpisodeBuffer(
            id=i,
            observations=np.zeros((i + 2, 4), np.float32),
            actions=np.ones(i + 1, np.int64),
            rewards=[1.0] * (i + 1),
            terminations=[False] * i + [True],
            truncations=[False] * (i + 1),
            infos={},
        )
        for i in range(3)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "a/set/set-v0", buffers, env=CARTPOLE, algorithm_name="none"
        )
    for name, out in (
        ("a/set/set-v0", "one"),
        (tmp_path / "sets" / "a" / "set" / "set-v0", "two"),
    ):
        code, report, _ = demos("import", name, "--out", tmp_path / out)
        assert (code, report["lengths"]) == (0, [1, 2, 3])
