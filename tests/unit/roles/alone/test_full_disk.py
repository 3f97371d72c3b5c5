"""Roles on a full disk: they wait, say so, and go on with nothing lost."""

import argparse
import threading

import pytest

from tengen.errors import DiskFullError
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.roles.alone import command
from tengen.roles.alone.role_log import FullDiskPause, RoleLog
from tengen.run import RunDirectory
from tests.refusals import refused
from tests.unit.conftest import HashBackend, HashRunner, fill

SETTINGS = (
    "agent.actor.games_per_generation=24",
    "agent.actor.full_simulations=8",
    "agent.actor.snapshot_s=0.01",
    "store.min_rows=50",
    "learner.batch_size=32",
    "inference.precision=fp32",
    "inference.backend=openvino",
    "inference.batch_shape=dynamic",
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("tengen.roles.alone.role_log._RETRY_S", 0.0)


class Ballast:
    """Fills a disk to the last byte, and frees it when a role says that it waits."""

    def __init__(self, disk):
        self._disk = disk
        self.said: list[str] = []

    def fill(self):
        self._path = fill(self._disk)

    def say(self, text):
        self.said.append(text)
        if text.startswith("waits"):
            self._path.unlink()


def make_run(folder, *settings):
    run = RunDirectory.create_or_resume(folder)
    config = override(make_config("tictactoe", None, None), [*SETTINGS, *settings])
    write_config(run, config)
    return run


def assert_said(ballast, disk):
    waits, goes_on = ballast.said
    assert waits.startswith(
        f"waits, the disk of {disk}/run is full (0.0 MB free); free"
    )
    assert "nothing durable is lost (" in waits
    assert goes_on == "resumes, the disk has space again"


@pytest.mark.parametrize("how_often", [1, 3])
def test_it_tries_again_and_tells_once(tmp_path, how_often):
    said: list[str] = []
    refusals = [DiskFullError("path (x) cannot be written")] * how_often
    done = []

    def write():
        if refusals:
            raise refusals.pop()
        done.append(True)

    pause = FullDiskPause(tmp_path, threading.Event(), said.append)
    pause(write)
    pause(write)
    assert done == [True, True]
    assert [text.split()[0] for text in said] == ["waits,", "resumes,"]


def test_a_stop_ends_the_waiting_with_the_refusal(tmp_path):
    stop = threading.Event()
    pause = FullDiskPause(tmp_path, stop, lambda text: stop.set())

    def write():
        raise DiskFullError("path (x) cannot be written")

    with refused(DiskFullError, "path (x)"):
        pause(write)


class Filling(HashBackend):
    """Fills the disk after so many rows."""

    def __init__(self, num_rows, fill):
        super().__init__()
        self.num_rows = num_rows
        self.fill = fill

    def bind(self, inputs, outputs, state=None):
        backend = self

        class Runner(HashRunner):
            def run(self, num_rows):
                before = backend.num_rows
                backend.num_rows -= num_rows
                if backend.num_rows <= 0 < before:
                    backend.fill()
                super().run(num_rows)

        return Runner(backend.salt, inputs, outputs)


def play(run, backend, monkeypatch, **context):
    """Plays one generation with a backend that is no model's."""
    run.models.publish(0, lambda folder: None)
    with monkeypatch.context() as patch:
        patch.setattr(
            "tengen.roles.selfplay.playing.open_backend", lambda *_, **__: backend
        )
        patch.setattr(
            "tengen.roles.selfplay.role.SelfplayRole._directory", lambda *_: run.path
        )
        role = make_role("selfplay", read_config(run), run, RoleContext(**context))
        try:
            report = role.turn()
        finally:
            role.close()
    assert report is not None
    return dict(report)


@pytest.mark.parametrize("num_rows", [1000, 4000])
def test_selfplay_goes_on_with_the_games_it_had(
    tmp_path, small_disk, monkeypatch, num_rows
):
    # So many that their journal outgrows the page that it has.
    settings = ("agent.actor.games_per_generation=200", "agent.actor.cache_mib=0")
    reference = make_run(tmp_path / "reference", *settings)
    play(reference, HashBackend(), monkeypatch)
    run = make_run(small_disk / "run", *settings)
    ballast = Ballast(small_disk)
    pause = FullDiskPause(run.path, threading.Event(), ballast.say)
    backend = Filling(num_rows, ballast.fill)
    report = play(run, backend, monkeypatch, write=pause)
    assert report["num_games"] == 200
    assert_said(ballast, small_disk)
    (segment,) = run.experience.glob("selfplay-0/1/*")
    (expected,) = reference.experience.glob("selfplay-0/1/*")
    assert segment.read_bytes() == expected.read_bytes()


def test_the_learner_keeps_its_steps_until_there_is_room(
    tmp_path, small_disk, monkeypatch
):
    run = make_run(small_disk / "run")
    play(run, HashBackend(), monkeypatch)
    ballast = Ballast(small_disk)
    pause = FullDiskPause(run.path, threading.Event(), ballast.say)
    role = make_role("learn", read_config(run), run, RoleContext(write=pause))
    try:
        role.turn()
        ballast.fill()
        report = role.turn()
    finally:
        role.close()
    assert report is not None
    assert report["num_steps"] > 0
    assert_said(ballast, small_disk)
    assert run.checkpoints.numbers() == [0, 1]
    assert not list(run.path.rglob(".tmp-*"))


def test_export_by_itself_waits_and_exports(small_disk, monkeypatch):
    run = make_run(small_disk / "run")
    role = make_role("learn", read_config(run), run, RoleContext())
    role.turn()
    role.close()
    ballast = Ballast(small_disk)
    say = RoleLog.say

    def heard(log, text):
        say(log, text)
        ballast.say(text)

    monkeypatch.setattr(RoleLog, "say", heard)
    ballast.fill()
    args = argparse.Namespace(
        run=run.path, once=True, threads=1, devices=None, task=None
    )
    report = command.export(args)
    assert report["exit_code"] == 0
    assert report["last"]["candidate"] == 0
    assert_said(ballast, small_disk)
    # The gate renames, which needs no room.
    ballast.fill()
    assert command.gate(args)["last"] == {"candidate": 0, "accepted": True}
    assert run.models.numbers() == [0]
    assert not list(run.path.rglob(".tmp-*"))
