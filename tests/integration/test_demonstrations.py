"""Runs that learn from demonstrations: what they refuse, and that they go on."""

import shutil
import sys

import numpy as np
import pytest

from tengen import cli
from tengen.experience import Demonstrations
from tengen.experience.games.archive import pack
from tengen.roles import read_config
from tengen.run import RunDirectory
from tests.integration.runs import run_command, turns
from tests.integration.test_environment_determinism import newest
from tests.unit.experience.made_demos import record_with

pytest.importorskip("gymnasium")

CARTPOLE = "CartPole-v1"
SETTINGS = [
    "agent.burn_in=4",
    "agent.unroll_length=8",
    "agent.period=4",
    "agent.actor.num_envs=4",
    "agent.actor.turn_steps=16",
    "net.lstm_units=8",
    "net.num_units=8",
    "store.min_items=20",
    "store.samples_per_item=4",
    "learner.batch_size=16",
]


def balance(seen):
    """Pushes the cart towards the side to which the pole falls."""
    angle, speed = seen["observation"][:, 2:].T
    return (angle + speed > 0).astype(np.int64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shown") / "demos"
    record_with(path, CARTPOLE, balance, 4)
    return path


def train(out, demos, *words, **given):
    command = [sys.executable, "-m", "tengen"]
    return run_command([*command, *words_of(out, demos, *words, **given)])


def words_of(out, demos, *words, agent="r2d3", task=CARTPOLE, frames=600):
    command = ["train", task, "--agent", agent, "--demos", str(demos)]
    command += ["--frames", str(frames), "--out", str(out)]
    for setting in SETTINGS:
        command += ["--set", setting]
    return [*command, *map(str, words)]


def refusal(capsys, *words, **given):
    """Returns the line with which a call is refused, in this process."""
    assert cli.main(words_of(*words, **given)) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1, line
    return line


def items_of(out):
    """Returns the first observations of the demonstrations that a run has stored."""
    run = RunDirectory(out)
    steps = read_config(run).family.open_experience(run, None)
    try:
        batch = steps.demos.sample_own(16)
        return steps.demos.num_inserts, batch.columns["observation"][:, 0]
    finally:
        steps.close()


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_demonstrations(folder, tmp_path):
    out = tmp_path / "run"
    done = train(out, folder, "--threads", 1)
    assert done.returncode == 0, done.stderr
    num_items, seen = items_of(out)
    demos = Demonstrations(folder)
    made = np.concatenate([episode["observation"] for episode in demos])
    # Items of 13 steps begin every 4 steps, and cover all steps and 13 more.
    num_written = -(-(demos.num_steps + 4 + 13) // 4) * 4
    assert num_items == (num_written - 13) // 4 + 1
    assert (np.abs(seen[:, None] - made).max(axis=2) == 0).any(axis=1).all()
    # A run keeps its folder, and has copied it.
    done = train(out, tmp_path / "moved")
    assert done.returncode == 2
    assert "store.demos" in done.stderr
    shutil.move(folder, tmp_path / "moved")
    try:
        done = train(out, folder, "--threads", 1)
    finally:
        shutil.move(tmp_path / "moved", folder)
    assert done.returncode == 0, done.stderr
    assert items_of(out)[0] == num_items
    assert turns(out, "learn")[-1]["table"]["num_rows"] >= 1200


def test_a_path_keeps_its_symlinks(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder.parent)
    link = tmp_path / "link" / folder.name
    assert cli.main(words_of(tmp_path / "run", link, frames=0)) == 0
    config = read_config(RunDirectory(tmp_path / "run"))
    assert config.store.demos == str(link)


@pytest.mark.slow
def test_a_seed_gives_the_same_bytes(folder, tmp_path):
    for name in ("one", "again"):
        done = train(tmp_path / name, folder, "--threads", 1, "--seed", 3)
        assert done.returncode == 0, done.stderr
    assert newest(tmp_path / "one") == newest(tmp_path / "again")


@pytest.mark.slow
def test_actors_and_learners_in_other_processes_use_them_too(folder, tmp_path):
    out = tmp_path / "run"
    words = ("--actors", 2, "--set", "launch.roles.learn.count=2")
    done = train(out, folder, *words, frames=3000)
    assert done.returncode == 0, done.stderr
    num_items, _ = items_of(out)
    assert num_items > 0
    assert newest(out)


def damaged(folder, to, change):
    shutil.copytree(folder, to)
    path = to / "000002.npz"
    episode = Demonstrations(folder).episode(2)
    change(path, dict(episode))
    return to


def with_column(name, change):
    def write(path, columns):
        columns[name] = change(columns[name])
        path.write_bytes(pack({}, columns))

    return write


BAD = {
    "truncated": lambda path, columns: path.write_bytes(path.read_bytes()[:200]),
    "missing": lambda path, columns: path.unlink(),
    "nan": with_column("observation", lambda seen: seen * np.float32(np.nan)),
    "shape": with_column("observation", lambda seen: seen[:, :3]),
    "short": with_column("action", lambda action: action[:-1]),
    "action": with_column("action", lambda action: action + 2),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_folder_is_refused_before_anything_is_written(
    folder, tmp_path, what, capsys
):
    demos = damaged(folder, tmp_path / "demos", BAD[what])
    assert "000002.npz" in refusal(capsys, tmp_path / "run", demos)
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_the_run_is_refused(folder, tmp_path, capsys):
    out, nothing = tmp_path / "run", tmp_path / "nothing"
    assert "Acrobot-v1" in refusal(capsys, out, folder, task="Acrobot-v1")
    assert "store.demos" in refusal(capsys, out, folder, agent="r2d2")
    assert str(nothing) in refusal(capsys, out, nothing)
    for share in (0, 1, -0.5):
        setting = ("--set", f"store.demo_share={share}")
        assert "demo_share" in refusal(capsys, out, folder, *setting)
    assert not out.exists()
