"""What cannot work is refused with one line, before anything is written."""

import errno
import os
import sys
import tempfile
import types
from importlib.machinery import ModuleSpec

import pytest

from tengen import cli
from tengen.distribution import pip_install
from tengen.envs.registry import SUITES
from tengen.run import check_writable
from tests.unit.conftest import remount

TRAIN = "train tictactoe --minutes 0.1"
SEARCH = "--set agent.actor.search"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            f"{TRAIN} --set agent.gate.kind=match --set agent.rating.opening_plies=9",
            "tengen: agent.rating.opening_plies (9) must be 0 to 8; ",
        ),
        (
            f"{TRAIN} --set agent.gate.kind=match --set agent.gate.opening_plies=9",
            "tengen: agent.gate.opening_plies (9) must be 0 to 8; ",
        ),
        (
            f"train connect4 --set net.auxiliary=true {SEARCH}.score_weight=0.4",
            "search.score_weight (0.4)",
        ),
        (
            f"train go/9 --set net.auxiliary=false {SEARCH}.score_weight=0.4",
            "search.score_weight (0.4)",
        ),
        ("recipes --recipe zzz", "recipe (zzz)"),
        ("recipes --openspiel x", "task (x)"),
        ("recipes --openspiel --recipe x", "recipe (x)"),
        ("train tictactoe --out=", "out ()"),
        (f"train tictactoe --games {'9' * 30}", "must be 0 to 1000000000; "),
        ("train tictactoe --minutes 1e308", "must be above 0 and at most"),
        ("train tictactoe --cpu-seconds 0", "cpu-seconds (0.0) must be above 0"),
        (f"{TRAIN} --out notes", "notes) must be a directory"),
        (f"{TRAIN} --out notes/run", "notes/run) must be a directory"),
        (
            f"train connect4 {SEARCH}.forced_playouts=2 {SEARCH}.noise_shaped=true",
            "tengen: agent.actor.search.noise_shaped (True) must be False",
        ),
        (
            f"train connect4 {SEARCH}.policy=puct {SEARCH}.gumbel_considered=4",
            "tengen: agent.actor.search.gumbel_considered (4) must be 16",
        ),
        (f"{TRAIN} --set launch.listen=foo", "tengen: launch.listen (foo)"),
        (
            f"{TRAIN} --set launch.listen=0.0.0.0:7070",
            "tengen: launch.listen (0.0.0.0:7070)",
        ),
        (
            f"{TRAIN} --set launch.listen=127.0.0.1:1 --set launch.key_file=k",
            "tengen: launch.key_file (k)",
        ),
        ("train neither:P", "OwnGame) or an environment (a gymnasium.Env)"),
        ("train neither:Q", "OwnGame) or an environment (a gymnasium.Env)"),
        # Where it is installed its scenario is named, else the suite.
        ("train footbal/academy_corner", 'did you mean "football/'),
        ("train unheard-of/3m", "tengen recipes lists what can be trained"),
        ("train CartPole-v2000", "task (CartPole-v2000)"),
        ("train CartPole-v1 --set foo=1", "foo (1)"),
    ],
)
def test_what_cannot_work_is_one_line(refused_line, tmp_path, words, line):
    if "CartPole" in words:
        pytest.importorskip("gymnasium")
    (tmp_path / "notes").write_text("mine")
    text = "class P:\n  reset = print\n\ndef Q(): return 3\n"
    (tmp_path / "neither.py").write_text(text)
    assert line in refused_line(*words.split())
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize("folder", ["checkpoints", "models", "candidates"])
def test_a_run_that_has_lost_its_config_is_not_begun_anew(tmp_path, capsys, folder):
    """Another agent, another seed: nothing of before would fit."""
    kept = tmp_path / "run" / folder / "000003"
    kept.mkdir(parents=True)
    assert cli.main(["train", "tictactoe", "--out", str(tmp_path / "run")]) == 2
    line = capsys.readouterr().err
    assert f"has {folder}/, but no run.json" in line
    assert line.count("\n") == 1
    assert list((tmp_path / "run").rglob("*")) == [kept.parent, kept]


@pytest.mark.parametrize("has_minatar", [False, True])
def test_an_environment_without_gymnasium(refused_line, monkeypatch, has_minatar):
    for suite in SUITES:
        monkeypatch.setitem(sys.modules, suite.package, None)
    if has_minatar:  # which needs no Gymnasium
        minatar = types.ModuleType("minatar")
        minatar.__spec__ = ModuleSpec("minatar", None)
        monkeypatch.setitem(sys.modules, "minatar", minatar)
    line = refused_line("train", "CartPole-v1")
    assert line.startswith("tengen: task (CartPole-v1) is not known; ")
    assert pip_install("--upgrade", "gymnasium>=1.1") in line
    assert 'did you mean "connect4"?' in refused_line("train", "conect4")


def test_a_replay_without_room(refused_line, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(
        "tengen.experience.steps.room._free_bytes", lambda folder: 2_000_000
    )
    line = refused_line("train", "CartPole-v1", "--agent", "dqn", "--frames", "100")
    assert "more than the 2.0 MB free on the disk" in line
    words = ["train", "CartPole-v1", "--agent", "dqn", "--actors", "2"]
    line = refused_line(*words, "--frames", "100")
    assert "more than the 2.0 MB free in /dev/shm, which actors share" in line
    line = refused_line("train", "CartPole-v1", "--set", "store.memory_bytes=5000")
    assert line.startswith("tengen: store.memory_bytes (5000) must be 0 with")


SLOW = """
import time
from tests.environments import Plain
from tests.unit.conftest import remount

class Slow(Plain):
    def __init__(self):
        time.sleep(3)
        super().__init__()
"""


def test_an_environment_that_is_slow_is_said_to_be_made(capsys, tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    (tmp_path / "slow_environment.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    task = "slow_environment:Slow"
    words = [task, "--set", "foo=1", "--out", str(tmp_path / "run")]
    assert cli.main(["train", *words]) == 2
    assert capsys.readouterr().out == "starting: making the environment\n"


WORDS = ["train", "tictactoe", "--games", "0", "--devices", "cpu", "--out"]


@pytest.mark.parametrize("name", ["", "run", "some/where/run"])
def test_a_new_run_on_a_read_only_disk(small_disk, name, capsys):
    remount(small_disk)
    assert cli.main([*WORDS, str(small_disk / name)]) == 2
    assert capsys.readouterr().err == (
        f"tengen: path ({small_disk / name}) cannot be written, it is mounted "
        "read-only; mount it for writing, or choose another folder\n"
    )


def test_a_run_that_was_made_before_the_disk_was_read_only(small_disk, capsys):
    out = str(small_disk / "run")
    assert cli.main([*WORDS, out]) == 0
    remount(small_disk)
    capsys.readouterr()
    assert cli.main([*WORDS, out]) == 2
    line = capsys.readouterr().err
    assert "it is mounted read-only" in line
    assert line.count("\n") == 1


def test_models_that_are_still_to_meet_their_target(small_disk, capsys):
    out = str(small_disk / "run")
    recipe = ["go/5", "--recipe", "mlperf_minigo_small"]
    assert cli.main(["train", *recipe, *WORDS[2:], out]) == 0
    remount(small_disk)
    capsys.readouterr()
    assert cli.main(["eval", out]) == 2
    assert capsys.readouterr().err == (
        f"tengen: path ({out}) cannot be written, it is mounted read-only; mount it "
        "for writing, or choose another folder\n"
    )


def test_a_folder_that_is_not_the_user_s(tmp_path, monkeypatch, capsys):
    def refuse(*, dir):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert cli.main([*WORDS, str(tmp_path / "run")]) == 2
    assert "access is denied; change its permissions" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_other_commands_make_is_refused_as_usage_too(small_disk, capsys):
    remount(small_disk)
    assert cli.main(["store", str(small_disk / "store")]) == 2
    assert "it is mounted read-only" in capsys.readouterr().err


def test_a_folder_that_may_be_written_has_nothing_left_in_it(tmp_path):
    check_writable(tmp_path / "a" / "b")
    check_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_named_in_utf_8(tmp_path, capsys):
    out = tmp_path / os.fsdecode(b"p\xff")
    assert cli.main([*WORDS, str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "p\\udcff) must be UTF-8" in line
    assert not out.exists()
