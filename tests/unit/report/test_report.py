"""``tengen report``: one page of a run's files, whatever is in them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen.cli import main
from tengen.errors import RunError
from tengen.evaluation.kept_games import write_games
from tengen.evaluation.played_game import PlayedGame
from tengen.report import write_report
from tengen.run import RunDirectory, publish_directory
from tests.unit.observe.curves.curve_events import learned, make_run
from tests.unit.report.conftest import LOST, keep_games, match_of, put_events

PageOf = Callable[[Path], Any]
EXAMPLES = Path(__file__).parents[3] / "examples"
TITLES = ["State", "Curves", "Ratings", "Games", "Settings", "Code and machine"]
MISSING = "Missing. "
ALLOWED = """
html head meta title style body main h1 h2 h3 section p
div table caption thead tbody tr th td details summary pre figure figcaption footer
svg desc rect path circle line polyline polygon text g
"""


def told(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any, str]:
    """Runs the command; returns its exit code, JSON report and errors."""
    code = main(["report", *map(str, words), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_a_run_of_games(
    game_run: RunDirectory, page_of: PageOf, capsys: pytest.CaptureFixture[str]
) -> None:
    code, report, err = told(capsys, game_run.path)
    assert (code, report["missing"], err) == (0, [], "")
    path = game_run.path / "report.html"
    assert report["html"] == str(path)
    page = page_of(path)
    assert [word for word in page.words if word in TITLES] == TITLES
    assert "rating (Elo) by games" in page.labels
    assert "loss by games" in page.labels
    # A win, a loss and a draw first, then the rest.
    assert "000004 (first player) against mcts:1000: 000004 won" in page.words
    assert "mcts:1000 (first player) against 000004: mcts:1000 won" in page.words
    assert "000004 (first player) against mcts:1000: drawn" in page.words
    assert page.tags.count("svg") == 2 + 4
    assert "1. b2 2. a3 3. c1 4. b3 5. c3 6. a2 7. c2" in page.words
    assert "self-play 90%: more cores" in page.text
    assert f"Made by tengen report {game_run.path}, tengen" in page.text
    rated = page.words.index("000001")
    assert page.words[rated + 3] == "16"
    assert page.tags.count("table") == page.tags.count("caption")
    code_text = (game_run.path / "code.txt").read_text()
    assert code_text.strip() in page.text


def test_nothing_is_fetched_and_nothing_runs(
    game_run: RunDirectory, page_of: PageOf
) -> None:
    path = write_report(game_run.path).path
    page = page_of(path)
    assert set(page.tags) <= set(ALLOWED.split())
    assert not {"src", "href", "srcset", "data", "xlink:href"} & page.attributes
    assert not [name for name in page.attributes if name.startswith("on")]
    shown = path.read_text()
    assert set(re.findall(r"https?://[^\"<\s]*", shown)) == {
        "http://www.w3.org/2000/svg"
    }
    assert "url(" not in shown
    assert "@import" not in shown
    assert "prefers-color-scheme:dark" in shown


def test_a_run_of_an_environment(
    environment_run: RunDirectory, page_of: PageOf, tmp_path: Path
) -> None:
    made = write_report(environment_run.path, tmp_path / "page.html")
    assert made.path == tmp_path / "page.html"
    assert made.missing == ()
    assert made.num_bytes == made.path.stat().st_size
    page = page_of(made.path)
    assert "return by frames" in page.labels
    assert "Environments keep no episodes" in page.text
    assert not (environment_run.path / "report.html").exists()


def test_a_run_that_has_only_begun(tmp_path: Path, page_of: PageOf) -> None:
    run = make_run(tmp_path / "run", ("selfplay", "learn"))
    made = write_report(run.path)
    assert made.missing == ()
    page = page_of(made.path)
    for words in (
        "It has learned nothing yet.",
        "No model is rated yet.",
        "No match has kept games yet.",
        "No code has trained it yet.",
    ):
        assert words in page.words


@pytest.mark.skipif(sys.platform == "win32", reason="names of files there are fewer")
def test_whatever_files_say_stays_text(tmp_path: Path, page_of: PageOf) -> None:
    harm = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\ud800\u202e"
    name = 'run"><script>alert(1)<|script>'
    run = make_run(tmp_path / name, ("selfplay", "learn", harm), task="tictactoe")
    config = {"task": "tictactoe", harm: {harm: harm}, "agent": {"kind": harm}}
    run.write_run({**run.read_run(), "config": config, "measured": {harm: [harm]}})
    (run.path / "code.txt").write_text(harm, errors="replace")
    progress = {"kind": "progress", "generation": 1, "elapsed_s": 1.0, "verdict": harm}
    gate = {"kind": "gate", "candidate": 1, "summary": harm}
    put_events(
        run,
        learned(100.0, 0, 40, **{harm: 1.0, "table": {"num_games": 3}}),
        {"time_s": 101.0, **progress, "stage": harm},
        {"time_s": 102.0, **gate},
    )
    match_of(run, "final", harm, harm)
    keep_games(run, "final-1", (LOST, 1.0))
    made = write_report(run.path, made_by=harm)
    assert made.missing == ()
    page = page_of(made.path)
    assert set(page.tags) <= set(ALLOWED.split())
    assert not {"src", "onerror"} & page.attributes
    assert page.text.count("<script>alert(1)</script>") >= 8


def test_what_is_damaged_is_told_and_the_rest_is_there(
    game_run: RunDirectory, page_of: PageOf, capsys: pytest.CaptureFixture[str]
) -> None:
    (game_run.eval / "000001-1.json").write_text("{")
    (game_run.games / "final-1.jsonl").write_text('{"moves": 3}\n')
    with open(game_run.events / "train-1.jsonl", "ab") as file:
        file.write(b'\xff\x00 no event\n{"kind": [], "time_s": 7}\n{"kind": "turn"')
    code, report, err = told(capsys, game_run.path)
    assert code == 1
    titles = [line.split(":")[0] for line in report["missing"]]
    assert titles == ["Ratings", "Games"]
    assert "000001-1.json) is damaged" in report["missing"][0]
    assert "final-1.jsonl) are damaged" in report["missing"][1]
    assert [line.split(":")[1] for line in err.splitlines()] == [
        " report lacks Ratings",
        " report lacks Games",
    ]
    page = page_of(game_run.path / "report.html")
    assert sum(word.startswith(MISSING) for word in page.words) == 2
    assert "loss by games" in page.labels
    assert f"{MISSING}{report['missing'][0]}" in page.words


def test_illegal_moves_are_damage(game_run: RunDirectory, page_of: PageOf) -> None:
    keep_games(game_run, "final-2", ((4, 4), 1.0))
    (line,) = write_report(game_run.path).missing
    assert line.startswith("Games: game (of closing match 2) is damaged, action (4)")


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"schema": 3, "config": []}', b""])
def test_a_damaged_run_json_leaves_a_page_that_says_so(
    game_run: RunDirectory,
    page_of: PageOf,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
) -> None:
    (game_run.path / "run.json").write_bytes(content)
    code, report, _ = told(capsys, game_run.path)
    assert code == 1
    assert len(report["missing"]) == 5
    assert all("run.json" in line for line in report["missing"])
    assert "machine: " in page_of(game_run.path / "report.html").text


@pytest.mark.parametrize(
    "config",
    [
        {"task": {}, "agent": []},
        {"agent": {"rating": 3, "play": "x"}, "launch": 7, "store": []},
        {"agent": {"learn_from": {}, "target": 3, "gate": 1}},
        {"task": "nope/9"},
    ],
)
def test_a_config_of_other_forms_is_no_traceback(
    game_run: RunDirectory, page_of: PageOf, config: dict[str, Any]
) -> None:
    game_run.write_run({"config": config, "roles": 3})
    made = write_report(game_run.path)
    assert made.missing
    assert all(len(line.splitlines()) == 1 for line in made.missing)
    page_of(made.path)


def test_what_is_no_run_is_one_line(
    tmp_path: Path, game_run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "new" / "run.json").mkdir(parents=True)
    for words in (
        [tmp_path],
        [tmp_path / "gone"],
        [tmp_path / "file"],
        [tmp_path / "new"],
        [game_run.path, "--out", tmp_path / "gone" / "page.html"],
        [game_run.path, "--out", tmp_path],
        [game_run.path, "--out", ""],
        [game_run.path, "--task", "own_game:Hex"],
    ):
        code, report, err = told(capsys, *words)
        assert (code, report) == (2, None)
        assert err.startswith("tengen: ")
        assert len(err.splitlines()) == 1
    (game_run.path / "mirror.json").write_text('{"schema": 1, "host": "far"}')
    code, _, err = told(capsys, game_run.path)
    assert code == 2
    assert "is a mirror of the run at far" in err
    (game_run.path / "mirror.json").unlink()
    game_run.write_run({"config": {}})
    content = json.loads((game_run.path / "run.json").read_text())
    (game_run.path / "run.json").write_text(json.dumps({**content, "schema": 99}))
    assert told(capsys, game_run.path)[0] == 2
    assert not (game_run.path / "report.html").exists()


def test_a_full_disk_leaves_the_old_page(
    game_run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(game_run.path).path
    old = path.read_bytes()
    before = set(os.listdir(game_run.path))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match="the disk is full"):
        write_report(game_run.path, made_by="somebody else")
    assert path.read_bytes() == old
    assert set(os.listdir(game_run.path)) == before


def test_a_long_run_is_a_short_page(game_run: RunDirectory, page_of: PageOf) -> None:
    events = [
        learned(100.0 + i, 0, i, loss=1.0, table={"num_games": i})
        for i in range(1, 5_000)
    ]
    put_events(game_run, *events)
    config = {"task": "tictactoe", "many": {str(i): "x" * 1000 for i in range(3000)}}
    game_run.write_run({**game_run.read_run(), "config": config})
    (game_run.path / "code.txt").write_text("tengen: 0\n\n" * 100_000)
    long = [[move for _ in range(20_000) for move in (0, 80)]]
    keep_games(game_run, "final-1", *((moves, 1.0) for moves in long))
    assert write_report(game_run.path).num_bytes < 1_000_000


def test_games_of_go_are_read_from_sgf(tmp_path: Path, page_of: PageOf) -> None:
    run = make_run(tmp_path / "run", ("selfplay", "learn"), task="go/5")
    run.write_run({**run.read_run(), "config": {"task": "go/5"}})
    games = [PlayedGame(0, False, (12, 6, 25, 25), 0, 1.0)]
    folder = run.games / "gate" / "000003"
    folder.parent.mkdir(parents=True)
    publish_directory(
        folder, lambda path: write_games(path, "go/5", "new", "old", games)
    )
    made = write_report(run.path)
    assert made.missing == ()
    page = page_of(made.path)
    assert "1. C3 2. B4 3. pass 4. pass" in page.words
    assert any(
        word.startswith("old (first player) against new:") for word in page.words
    )


def test_a_program_is_imported_only_where_it_is_typed(
    tmp_path: Path, page_of: PageOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    sys.modules.pop("own_game", None)
    run = make_run(tmp_path / "run", ("selfplay", "learn"))
    run.write_run({**run.read_run(), "config": {"task": "own_game:Hex"}})
    keep_games(run, "final-1", ((0, 5, 1), 1.0))
    page = page_of(write_report(run.path).path)
    assert "own_game" not in sys.modules
    assert "1. 0 2. 5 3. 1" in page.words
    assert "svg" not in page.tags
    made = write_report(run.path, task="own_game:Hex")
    assert made.missing == ()
    assert "svg" in page_of(made.path).tags
