"""Folders of demonstrations: what is written is read, and nothing else is accepted."""

import json
import os
import shutil
import tracemalloc
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


def test_screens_that_compress_well_are_read(tmp_path):
    """Their file is 300 times smaller than the 70 MB that it inflates to."""
    screens = TensorSpec(dtype="uint8", shape=(84, 84))
    spec = replace(SPEC, observations={"observation": screens})
    columns = {"observation": np.zeros((10_001, 84, 84), np.uint8)}
    columns["observation"][::7, 1] = 3
    episode = {**episode_of(SPEC, 10_000), **columns}
    for name in SPEC.observations:
        del episode[name]
    written = write_episodes(tmp_path / "demos", spec, [episode])
    path = tmp_path / "demos" / "000000.npz"
    assert 64 * path.stat().st_size < columns["observation"].nbytes > 1 << 26
    same(written.episode(0), episode)


def test_small_numbers_of_a_wide_type_are_read(tmp_path):
    wide = TensorSpec(dtype="uint32", shape=(2,))
    spec = replace(SPEC, observations={"observation": wide})
    written = write_episodes(tmp_path / "demos", spec, [episode_of(spec, 3)])
    same(written.episode(0), episode_of(spec, 3))


def test_long_names_of_many_arrays_are_read(tmp_path):
    names = ["observation/" + "\u00e9" * 3000 + str(i) for i in range(50)]
    spec = replace(SPEC, observations=dict.fromkeys(names, TensorSpec(shape=())))
    written = write_episodes(tmp_path / "demos", spec, [episode_of(spec, 1)])
    same(written.episode(0), episode_of(spec, 1))


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
    with refused(UsageError, name, str(path)):
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
        {"checksums": [5, 5]},
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


@pytest.mark.parametrize(
    ("name", "value"), [("returns", 2.25), ("checksums", 1), ("lengths", 4)]
)
def test_an_episode_that_is_not_the_listed_one_is_refused(folder, name, value):
    path = folder / "demonstrations.json"
    contents = json.loads(path.read_text())
    digest = Demonstrations(folder).digest
    contents[name][1] = value
    path.write_text(json.dumps(contents))
    demos = Demonstrations(folder)
    assert demos.digest != digest
    demos.episode(0)
    with refused(UsageError, f"{name[:-1]} (", str(folder / "000001.npz"), str(value)):
        demos.episode(1)


def test_another_episode_of_equal_length_changes_the_digest(tmp_path):
    digests = set()
    for seed in (1, 1, 2):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        one = broken(seed=seed, reward=np.ones(5, np.float32))
        digests.add(write_episodes(folder, SPEC, [one]).digest)
    assert len(digests) == 2


def test_a_bomb_of_a_file_does_not_go_off(folder):
    path = folder / "000001.npz"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("bomb.npy", bytes(40_000_000))
    tracemalloc.start()
    with refused(UsageError, str(path)):
        Demonstrations(folder).episode(1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("name", ["000001.npz", "demonstrations.json"])
def test_what_is_no_regular_file_or_too_large_is_refused(folder, name):
    path = folder / name
    for change in (os.mkfifo, os.mkdir, lambda path: path.open("w").truncate(1 << 33)):
        path.unlink()
        change(path)
        tracemalloc.start()
        with refused(UsageError, str(path)):
            Demonstrations(folder).episode(1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200_000_000
        if path.is_dir():
            path.rmdir()
            path.touch()


@pytest.mark.parametrize(
    "change",
    [
        {"task": "x" * 100_000},
        {"num_choices": [2] * 100_000},
        {"observations": {"x" * 50_000: {"dtype": "uint8", "shape": [1]}}},
    ],
)
def test_a_long_value_makes_no_long_message(folder, change):
    path = folder / "demonstrations.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))

    def use():
        demos = Demonstrations(folder)
        list(demos)
        demos.check_fits(SPEC)

    with pytest.raises(UsageError) as caught:
        use()
    assert len(str(caught.value)) < 2000


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
