"""Folders of demonstrations: what is written is read, and nothing else is accepted."""

import json
import shutil
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from made_demos import episode_of, made_episodes, write_episodes

from tengen.envs import ActionSpec, EnvSpec
from tengen.errors import RunError, UsageError
from tengen.experience import Demonstrations
from tengen.experience.games.archive import pack
from tengen.tensors import ACTION_MASK, TensorSpec
from tests.refusals import refused

SPEC = EnvSpec(
    name="a task",
    observations={
        "observation/picture": TensorSpec(dtype="uint8", shape=(3, 4)),
        "observation/place": TensorSpec(shape=(2,)),
        "observation/flag": TensorSpec(dtype="bool", shape=(70,)),
    },
    actions=ActionSpec(num_choices=(3,)),
    max_episode_steps=None,
    reward_threshold=None,
)
SEVERAL = replace(SPEC, actions=ActionSpec(shape=(2,), num_choices=(3, 2)))
CONTINUOUS = replace(SPEC, actions=ActionSpec(shape=(2,), low=(-1, -1), high=(1, 1)))
MASKED = replace(SPEC, has_action_mask=True)


def same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize("spec", [SPEC, SEVERAL, CONTINUOUS])
def test_what_is_written_is_read(tmp_path, spec):
    episodes = [episode_of(spec, length, seed=length) for length in (4, 1, 7)]
    lives = np.array([True, False, True, False])
    episodes[0]["life_lost"] = lives
    written = write_episodes(tmp_path / "demos", spec, episodes)
    read = Demonstrations(tmp_path / "demos")
    assert read.contents == written.contents
    assert read.num_steps == 12
    assert read.contents.lengths == (4, 1, 7)
    assert read.contents.returns == pytest.approx([e["reward"].sum() for e in episodes])
    found = list(read)
    for one, other in zip(found, episodes, strict=True):
        same(one, other)
    read.check_fits(spec)
    # Other programs can read the files.
    with np.load(tmp_path / "demos" / "000002.npz") as file:
        np.testing.assert_array_equal(file["reward"], episodes[2]["reward"])


def test_equal_episodes_give_equal_files(tmp_path):
    for name in ("one", "other"):
        write_episodes(tmp_path / name, SPEC, [episode_of(SPEC, 5)])
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "other")
    )
    assert one == other
    assert len(one) == 2


def test_other_tasks_and_changed_environments_are_refused(tmp_path):
    demos = write_episodes(tmp_path / "demos", SPEC, [episode_of(SPEC, 5)])
    with refused(UsageError, "a task", "another"):
        demos.check_fits(replace(SPEC, name="another"))
    other = {**SPEC.observations, "observation/place": TensorSpec(shape=(3,))}
    with refused(UsageError, "observations"):
        demos.check_fits(replace(SPEC, observations=other))
    for spec, name in ((MASKED, "observations"), (CONTINUOUS, "action")):
        with refused(UsageError, name):
            demos.check_fits(spec)
    with refused(UsageError, "num_choices"):
        demos.check_fits(replace(SPEC, actions=ActionSpec(num_choices=(4,))))


def broken(**changes):
    return episode_of(SPEC, 5, **changes)


NAN = np.where(np.arange(6)[:, None] == 5, np.nan, np.zeros(2)).astype(np.float32)
NO = np.zeros(5, np.bool_)


def without(name):
    episode = broken()
    del episode[name]
    return episode


UNFIT = {
    "observation/place (": broken(**{"observation/place": NAN}),
    "observation/flag (": broken(**{"observation/flag": np.zeros((5, 70), np.bool_)}),
    "columns (": without("observation/place"),
    "columns (observation": broken(other=NO),
    "reward (not finite)": broken(reward=np.full(5, np.inf, np.float32)),
    "reward (float64": broken(reward=np.zeros(5)),
    "action (float32": broken(action=np.zeros(5, np.float32)),
    "action": broken(action=np.full(5, 3)),
    "action (int64": broken(action=np.zeros((5, 1), np.int64)),
    "end (0": broken(terminated=NO),
    "end (2": broken(truncated=np.arange(5) == 2),
    "terminated (int64": broken(terminated=np.zeros(5, np.int64)),
    "of at least one step": episode_of(SPEC, 0),
    "columns (action": {"action": NO},
}


@pytest.mark.parametrize("name", UNFIT)
def test_an_unfit_episode_is_refused_and_leaves_nothing(tmp_path, name):
    with refused(UsageError, name):
        write_episodes(tmp_path / "demos", SPEC, [broken(), UNFIT[name]])
    assert list(tmp_path.iterdir()) == []
    # Also where a file has it.
    write_episodes(tmp_path / "demos", SPEC, [broken(), broken()])
    path = tmp_path / "demos" / "000001.npz"
    path.write_bytes(pack({}, UNFIT[name]))
    demos = Demonstrations(tmp_path / "demos")
    demos.episode(0)
    with refused(UsageError, str(path)):
        demos.episode(1)


def test_masks_are_kept_and_checked(tmp_path):
    mask = np.ones((6, 3), np.bool_)
    episode = broken(**{ACTION_MASK: mask})
    written = write_episodes(tmp_path / "demos", MASKED, [episode])
    same(written.episode(0), episode)
    mask[2, episode["action"][2]] = False
    with refused(UsageError, "action", ACTION_MASK):
        write_episodes(tmp_path / "illegal", MASKED, [episode])
    mask[2] = False
    with refused(UsageError, ACTION_MASK):
        write_episodes(tmp_path / "none", MASKED, [episode])


def test_nothing_is_overwritten_and_nothing_is_empty(tmp_path):
    with refused(UsageError, "episodes (0)"):
        write_episodes(tmp_path / "demos", SPEC, [])
    write_episodes(tmp_path / "in" / "demos", SPEC, [broken()])
    with refused(UsageError, f"out ({tmp_path / 'in' / 'demos'})"):
        write_episodes(tmp_path / "in" / "demos", SPEC, [broken()])
    (tmp_path / "file").write_text("")
    with pytest.raises((UsageError, RunError)):
        write_episodes(tmp_path / "file" / "demos", SPEC, [broken()])


@pytest.fixture
def folder(tmp_path):
    episodes = [broken(seed=seed) for seed in range(3)]
    write_episodes(tmp_path / "demos", SPEC, episodes)
    return tmp_path / "demos"


def test_a_missing_folder_is_refused(tmp_path):
    with refused(UsageError, str(tmp_path / "none")):
        Demonstrations(tmp_path / "none")


def flip(path):
    """Changes a byte of the rewards, before the entry that follows them."""
    with zipfile.ZipFile(path) as file:
        place = file.getinfo("terminated.npy").header_offset - 2
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: path.write_bytes(b"PK"),
        lambda path: shutil.copy(path.with_name("demonstrations.json"), path),
        flip,
    ],
    ids=["missing", "truncated", "short", "other", "flipped"],
)
def test_a_damaged_file_is_refused_by_name(folder, change):
    path = folder / "000001.npz"
    change(path)
    demos = Demonstrations(folder)
    demos.episode(2)
    with refused(UsageError, str(path)):
        list(demos)


def test_objects_are_not_unpickled(folder):
    path = folder / "000000.npz"
    with zipfile.ZipFile(path, "a") as file, file.open("evil.npy", "w") as entry:
        np.lib.format.write_array(entry, np.array([print], object))
    with refused(UsageError, str(path)):
        Demonstrations(folder).episode(0)


@pytest.mark.parametrize(
    "change",
    [
        {"lengths": [5, 5]},
        {"lengths": [5, 5, 0]},
        {"lengths": [5, 5, 2**60]},
        {"lengths": [], "returns": []},
        {"lengths": 3},
        {"returns": [0.0, 0.0, float("nan")]},
        {"schema": 0},
        {"schema": 2},
        {"num_choices": [3, 3]},
        {"num_choices": [-1]},
        {"task": None},
        {"observations": []},
        {"observations": {ACTION_MASK: {"dtype": "bool", "shape": [2]}}},
        {"observations": {"observation": {"dtype": "object", "shape": [2]}}},
        {"surprise": 1},
    ],
)
def test_a_damaged_list_is_refused(folder, change):
    path = folder / "demonstrations.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with refused(UsageError, str(path) if "schema" not in change else str(folder)):
        Demonstrations(folder)


def test_an_episode_of_another_length_is_refused(folder):
    path = folder / "demonstrations.json"
    path.write_text(path.read_text().replace("5,", "4,", 1))
    with refused(UsageError, "length (5)"):
        list(Demonstrations(folder))


def test_a_text_that_is_no_json_is_refused(folder):
    path = folder / "demonstrations.json"
    for text in ("", "[]", "{", "[" * 100_000):
        path.write_text(text)
        with refused(UsageError, str(path)):
            Demonstrations(folder)


def test_a_recorder_takes_the_episodes_that_an_evaluation_counts():
    """Those are the first ones of each copy, and not the first to end."""
    pytest.importorskip("gymnasium")
    task = "tests.environments:Catch"

    def choose(seen):
        boards = seen["observation"]
        ball = boards[:, :-1].max(axis=1).argmax(axis=1)
        paddle = boards[:, -1].argmax(axis=1)
        return np.sign(ball - paddle) + 1

    _, several = made_episodes(task, choose, 7, num_envs=3)
    assert len(several) == 7
    for episode in several:
        assert episode["reward"].tolist() == [0.0] * 8 + [1.0]
        assert episode["terminated"].tolist() == [False] * 8 + [True]
        boards = episode["observation"]
        assert boards.shape == (10, 10, 5)
        # The ball is a row lower in each board, up to the final one.
        assert [int(board.any(axis=1).argmax()) for board in boards] == list(range(10))
