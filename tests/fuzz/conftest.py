"""Runs for a server to show, with secrets beside them and behind links."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tengen.run import RunDirectory
from tests.unit.serve.made_runs import (
    add_experience,
    add_matches,
    make_environment_run,
    write_events,
)

GOLDEN = Path(__file__).parents[1] / "golden"
SECRET = "what-nobody-may-read"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Returns ``folder``, whose runs are served, and ``outside``, with secrets."""
    top = tmp_path_factory.mktemp("fuzzed")
    folder, outside = top / "runs", top / "outside"
    for path in (folder, outside, outside / "films", outside / "games"):
        path.mkdir()
    with tarfile.open(GOLDEN / "runs" / "schema_1.tar.xz") as archive:
        archive.extractall(top, filter="data")
    (top / "schema_1").rename(folder / "tictactoe")
    games = RunDirectory.create_or_resume(folder / "tictactoe")
    write_events(games, range(1, 4)).close()
    add_experience(games, "tictactoe")
    add_matches(games, "tictactoe")
    make_environment_run(folder / "CartPole", 1)
    for name in ("secret.txt", "films/secret.mp4", "secret.mp4"):
        (outside / name).write_text(SECRET)
    (folder / "secret.txt").write_text(SECRET)
    # A complete run outside the served folder; its players are named after the secret.
    shutil.copytree(folder / "tictactoe", outside / "run")
    run = outside / "run" / "run.json"
    run.write_text(run.read_text().replace("tictactoe", SECRET))
    (outside / "games" / "0.sgf").write_text(
        f"(;GM[1]FF[4]SZ[5]PB[{SECRET}]PW[{SECRET}]RE[B+1];B[aa];W[bb])"
    )
    for link, target in (
        ("link", "run"),
        ("secret.mp4", "secret.mp4"),
        ("CartPole/films/link.mp4", "films/secret.mp4"),
        ("tictactoe/films", "films"),
        ("tictactoe/games/gate/000009", "games"),
        (
            "tictactoe/experience/selfplay-0/1/000009.npz",
            "run/experience/selfplay-0/1/000001.npz",
        ),
    ):
        (folder / link).symlink_to(outside / target)
    return SimpleNamespace(top=top, folder=folder, outside=outside, secret=SECRET)
