"""Games as columns of equal length, and the page that shows their use."""

import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from store_games import random_game

from tengen.errors import RunError, UsageError
from tengen.experience import ExperienceWriter, read_table
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.run import RunDirectory
from tests.refusals import refused

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "howto" / "play" / "data.md"
GAME = "connect4"


@pytest.fixture
def run(tmp_path):
    """A run with two generations, of three and of two games."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": {"task": GAME}})
    with ExperienceWriter(run.experience / "selfplay-0", 1) as writer:
        for generation, indices in ((0, (0, 1, 2)), (10, (0, 4))):
            games = writer.open_games(generation, GAME)
            for index in indices:
                games.sink.put(random_game(GAME, index, generation))
            games.close()
            writer.seal(generation)
    return run


def test_a_row_is_a_game_a_ply_or_a_visit(run):
    games = read_table(run.path, "games")
    assert games["generation"].tolist() == [0, 0, 0, 10, 10]
    assert games["game_index"].tolist() == [0, 1, 2, 0, 4]
    plies = read_table(str(run.path), "plies")
    assert {len(column) for column in plies.values()} == {games["num_plies"].sum()}
    first = (plies["generation"] == 10) & (plies["game_index"] == 4)
    opening = int(games["num_opening_plies"][4])
    length = int(games["num_plies"][4])
    assert plies["ply"][first].tolist() == list(range(opening, opening + length))
    visits = read_table(run.path, "policies")
    assert len({len(column) for column in visits.values()}) == 1
    # As the segment itself has them, entry by entry.
    (path,) = run.experience.glob("*/*/000010.npz")
    with np.load(path) as segment:
        ends = np.cumsum(segment["num_policy_entries"])
        ply = int(segment["num_plies"][0]) + 2
        wanted = segment["policy_mass"][ends[ply - 1] : ends[ply]]
    found = (visits["generation"] == 10) & (visits["game_index"] == 4)
    found &= visits["ply"] == opening + 2
    np.testing.assert_array_equal(visits["mass"][found], wanted)


def test_columns_that_do_not_fit_are_refused(run):
    (path,) = run.experience.glob("*/*/000010.npz")
    with ArchiveReader(path) as reader:
        names = [name for name in np.load(path).files if name != "meta.json"]
        columns = {name: reader.read(name) for name in names}
        meta = {k: v for k, v in reader.meta.items() if k != "schema"}
    columns["num_policy_entries"] = np.full(len(columns["action"]), 60_000, np.uint16)
    path.write_bytes(pack(meta, columns))
    with refused(RunError, "columns"):
        read_table(run.path, "policies")


def test_what_is_not_there_is_refused(run, tmp_path):
    with refused(UsageError, "table (gamez)"):
        read_table(run.path, "gamez")
    with refused(UsageError, "run directory"):
        read_table(tmp_path / "gone", "games")
    other = RunDirectory.create_or_resume(tmp_path / "other")
    other.write_run({"config": {}})
    with refused(UsageError, "sealed"):
        read_table(other.path, "games")


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """What the page's code finds in a folder with a run, but for the last block."""
    pytest.importorskip("pandas")
    with tarfile.open(ROOT / "tests/golden/runs/schema_1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "runs").mkdir()
    (tmp_path / "schema_1").rename(tmp_path / "runs" / "tictactoe")
    monkeypatch.chdir(tmp_path)
    found = {}
    for block in blocks()[:-1]:
        exec(block, found)
    return found


def test_the_page_reads_a_segment_and_a_run(shown):
    assert len(blocks()) == 3
    assert len(shown["games"]) == 48
    assert set(shown["games"].outcome) <= {1, 2, 3}
    assert len(shown["plies"]) == shown["games"].num_plies.sum()
    assert shown["value_by_ply"].abs().max() <= 1


def test_the_page_asks_duckdb(shown):
    pytest.importorskip("duckdb")
    exec(blocks()[-1], shown)
    assert sorted(shown["first"].columns) == ["action", "mass"]
    assert shown["first"].mass.is_monotonic_decreasing
