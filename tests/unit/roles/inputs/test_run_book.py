"""Roles of a run whose games begin with a book's openings."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np

from tengen.errors import RunError, UsageError
from tengen.evaluation.ratings.records import read_records
from tengen.experience import SegmentReader
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.roles.inputs import checked_book, keep_book, run_book
from tengen.run import RunDirectory
from tests.refusals import refused

OPENINGS = [[4, 0], [0, 4], [4, 1, 0]]
SETTINGS = (
    "agent.actor.games_per_generation=30",
    "agent.actor.full_simulations=4",
    "agent.actor.book_share=1",
    "agent.rating.book=true",
    "agent.rating.opening_plies=0",
    "agent.rating.num_games=2",
    "agent.rating.num_simulations=4",
    "agent.rating.anchor_games=2",
    'agent.rating.anchors=["random", "mcts:2"]',
    "inference.backend=torch",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
    "inference.devices=cpu",
)


def take_turn(name: str, config: Any, run: RunDirectory) -> Any:
    role = make_role(name, config, run, RoleContext())
    try:
        return role.turn()
    finally:
        role.close()


def a_book(path: Path) -> Path:
    content = {"schema": 1, "task": "tictactoe", "openings": [{"moves": [4, 0]}]}
    path.write_text(json.dumps(content))
    return path


def with_book(path: Path | str) -> Any:
    settings = ["agent.actor.book_share=1", f"agent.book={path}"]
    return override(make_config("tictactoe", None, None), settings)


def test_a_path_is_no_digest(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config, data = checked_book(with_book(a_book(tmp_path / "bk.json")), run)
    assert data is not None
    # A file that is there but for its ending does not count as the run's own.
    (tmp_path / "other.json").write_text("no book")
    with refused(UsageError, "cannot be read"):
        checked_book(with_book(tmp_path / "other"), run)
    keep_book(run, data, config.agent.book)
    assert checked_book(config, run) == (config, None)


def test_a_copy_that_was_changed_is_refused(tmp_path: Path) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    config, data = checked_book(with_book(a_book(tmp_path / "bk.json")), run)
    keep_book(run, data, config.agent.book)
    (copy,) = (run.path / "books").iterdir()
    copy.write_text(copy.read_text().replace("[4, 0]", "[0, 4]"))
    for look in (lambda: run_book(config, run), lambda: checked_book(config, run)):
        with refused(RunError, "its digest is"):
            look()


def test_a_book_is_read_once(tmp_path: Path) -> None:
    """As a shell's <(...) gives its bytes to the first reader alone."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    content = a_book(tmp_path / "bk.json").read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    config, data = checked_book(with_book(pipe), run)
    writer.join()
    keep_book(run, data, config.agent.book)
    assert run_book(config, run) is not None


def test_games_and_ratings_begin_with_its_openings(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    openings = [{"moves": moves} for moves in OPENINGS]
    path.write_text(
        json.dumps({"schema": 1, "task": "tictactoe", "openings": openings})
    )
    run = RunDirectory.create_or_resume(tmp_path / "run")
    asked = override(
        make_config("tictactoe", None, None), [*SETTINGS, f"agent.book={path}"]
    )
    config, source = checked_book(asked, run)
    assert source == path.read_bytes()
    keep_book(run, source, config.agent.book)
    write_config(run, config)
    for name in ("learn", "export", "gate", "selfplay", "rate"):
        take_turn(name, config, run)
    (segment,) = run.experience.glob("selfplay-*/*/*.npz")
    with SegmentReader(segment) as reader:
        num_plies, moves = reader.column("num_opening_plies"), reader.column("opening")
    played = {tuple(part.tolist()) for part in np.split(moves, num_plies.cumsum()[:-1])}
    assert played == set(map(tuple, OPENINGS))
    (record,) = [one for one in read_records(run) if one.a.isdecimal()]
    assert record.book == config.agent.book
