"""Export, learner and gate at the same time: each may move what another looks at."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tengen.models import accept, publish
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, read_config, write_config
from tengen.roles.config.run_file import RUN_LOCK
from tengen.roles.learning import export
from tengen.roles.role import Role
from tengen.run import NumberedFolder, RunDirectory, WriterLock, publish_directory

SETTINGS = (
    "inference.precision=fp32",
    "inference.backend=openvino",
    "inference.batch_shape=dynamic",
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, override(make_config("tictactoe", None, None), SETTINGS))
    role = make(run, "learn")
    role.turn()
    role.close()
    return run


def make(run: RunDirectory, name: str) -> Role:
    return make_role(name, read_config(run), run, RoleContext())


def test_a_candidate_may_be_taken_as_soon_as_it_is_there(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(final: Path, write: Any) -> None:
        publish_directory(final, write)
        accept(run, int(final.name))

    role = make(run, "export")
    monkeypatch.setattr(publish, "publish_directory", taken)
    report = role.turn()
    role.close()
    assert report is not None
    assert report["candidate"] == 0
    assert run.models.numbers() == [0]


def test_a_candidate_may_be_taken_while_export_looks_at_it(run: RunDirectory) -> None:
    class Taken(NumberedFolder):
        def entry(self, number: int) -> Path:
            path = super().entry(number)
            if path.exists():
                accept(RunDirectory(run.path), number)
            return path

    role = make(run, "export")
    role.turn()
    run.candidates = Taken(run.candidates.path)
    assert role.turn() is None
    role.close()
    assert run.models.numbers() == [0]


def test_an_old_checkpoint_may_go_while_export_reads_it(run: RunDirectory) -> None:
    class Moving(NumberedFolder):
        def entry(self, number: int) -> Path:
            path = super().entry(number)
            if number == 0:
                path.rename(super().entry(4))
            return path

    role = make(run, "export")
    run.checkpoints = Moving(run.checkpoints.path)
    report = role.turn()
    role.close()
    assert report is not None


def test_export_that_polls_reads_a_checkpoint_once(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = make(run, "export")
    assert role.turn() is not None
    reads = []
    read_model = export.read_model

    def counted(path: Path) -> Any:
        reads.append(path.name)
        return read_model(path)

    monkeypatch.setattr(export, "read_model", counted)
    assert [role.turn() for _ in range(5)] == [None] * 5
    assert reads == ["000000"]
    # One that was taken out by hand is made again.
    run.candidates.entry(0).rename(run.path / "taken")
    assert role.turn() is not None
    role.close()


def test_a_config_changed_after_the_last_export_is_completed(run: RunDirectory) -> None:
    role = make(run, "export")
    role.turn()
    role.close()
    accept(run, 0)
    write_config(run, override(read_config(run), ("inference.precision=auto",)))
    role = make(run, "export")
    assert role.turn() is None
    role.close()
    assert not read_config(run).inference.has_auto


def test_what_export_measured_does_not_undo_another_change(run: RunDirectory) -> None:
    """Of a ``train`` that resumes the run meanwhile and holds its config."""
    write_config(run, override(read_config(run), ("inference.precision=auto",)))
    waits = threading.Event()

    class Telling(RunDirectory):
        def lock(self, name: str, *, wait: bool = False) -> WriterLock:
            if name == RUN_LOCK and wait:
                waits.set()
            return super().lock(name, wait=wait)

    role = make(Telling(run.path), "export")
    held = run.lock(RUN_LOCK)
    changed = override(read_config(run), ("agent.rating.num_games=6",))
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(role.turn)
        assert waits.wait(900)
        write_config(run, changed)
        held.release()
        assert turn.result() is not None
    role.close()
    config = read_config(run)
    assert config.agent.rating.num_games == 6
    assert not config.inference.has_auto
