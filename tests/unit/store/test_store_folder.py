"""Whose a store's folder must be, where anybody may make one of its name."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from tengen import cli
from tengen.errors import RunError, UsageError
from tengen.run import RunDirectory, service_folder
from tengen.store import Column, Store, StoreConfig, TableConfig
from tengen.transport import folder as own_folder
from tests.refusals import refused

TABLE = TableConfig(name="t", columns={"value": Column(dtype="int64")})


def make(directory: Path) -> Store:
    return Store(StoreConfig.of([TABLE], memory_bytes=1 << 20, directory=directory))


def be_another_user(monkeypatch) -> None:
    """Folders that are there from now on are of somebody else."""
    user = own_folder.os.geteuid() + 1
    monkeypatch.setattr(own_folder.os, "geteuid", lambda: user)


def test_a_folder_is_made_for_its_user_alone(folder: Path) -> None:
    with make(folder / "store"):
        mode = stat.S_IMODE((folder / "store").stat().st_mode)
        assert mode == 0o700


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        *((mode, f"mode {mode:03o}") for mode in (0o777, 0o1777, 0o770, 0o702)),
        ("link", "a link"),
        ("link to nothing", "a link"),
        ("file", "not a folder"),
        ("foreign", "of user"),
    ],
)
def test_what_others_could_have_made_is_refused(
    folder: Path, monkeypatch, kind: str | int, found: str
) -> None:
    store, target = folder / "store", folder / "target"
    if kind == "file":
        store.touch()
    elif "link" in str(kind):
        store.symlink_to(target)
        if kind == "link":
            target.mkdir(0o700)
    else:
        store.mkdir(0o700)
        if isinstance(kind, int):
            store.chmod(kind)
        else:
            be_another_user(monkeypatch)
    with refused(UsageError, f"store, {found}"):
        make(store)
    assert target.exists() == (kind == "link")
    assert not store.is_dir() or not list(store.iterdir())


def test_clients_go_to_no_folder_of_others(folder: Path, monkeypatch) -> None:
    (folder / "link").symlink_to(folder / "store")
    with make(folder / "store"):
        client = Store.connect(folder / "link", patience_s=0.1)
        (folder / "store").chmod(0o770)
        with refused(UsageError, "store, mode 770)"):
            Store.connect(folder / "link")
        # Those that are there already too.
        with refused(UsageError, "store, mode 770)"):
            client.table("t").describe()
        (folder / "store").chmod(0o700)
        assert client.table("t").describe()["num_items"] == 0
        with monkeypatch.context() as patch:
            be_another_user(patch)
            with refused(UsageError, "store, of user"):
                Store.connect(folder / "store")
    with refused(RunError, "store ("):
        client.table("t").describe()
    # Whoever takes the name of a store that has ended gets none of its clients.
    (folder / "other").mkdir(0o700)
    (folder / "store").symlink_to(folder / "other")
    with refused(UsageError, "store, a link)"):
        client.table("t").insert("a", 0, {"value": np.int64(1)})


@pytest.mark.parametrize("kind", ["link", "open", "foreign"])
def test_a_name_that_is_taken_is_one_line(
    tmp_path: Path, capsys, monkeypatch, folder: Path, kind: str
) -> None:
    monkeypatch.setattr("tengen.run.endpoints._MEMORY", folder)
    config = tmp_path / "tables.json"
    config.write_text('{"tables": {"t": {"columns": {"x": {"dtype": "int8"}}}}}')
    run = RunDirectory.create_or_resume(tmp_path / "run")
    taken = service_folder(run, "store")
    assert taken.parent == folder
    assert f"-{os.getuid()}-" in taken.name
    if kind == "link":
        (folder / "target").mkdir(0o700)
        taken.symlink_to(folder / "target")
    else:
        taken.mkdir(0o700)
        if kind == "open":
            taken.chmod(0o777)
        else:
            be_another_user(monkeypatch)
    assert cli.main(["store", str(tmp_path / "run"), "--config", str(config)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1, line
    assert "only this user can write; remove it" in line
    assert not (tmp_path / "run" / "run.json").exists()
    assert not (tmp_path / "run" / "store").is_symlink()
